//! Builds the book of the folder that it is given, which holds `book.toml`.

use std::path::PathBuf;
use std::process::ExitCode;

use mdbook_driver::MDBook;

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: book FOLDER");
        return ExitCode::from(2);
    };
    match MDBook::load(root).and_then(|book| book.build()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("book: {error:#}");
            ExitCode::FAILURE
        }
    }
}
