//! The book in `docs/`: pages that are generated from code, links, and the build.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use jepa_gguf::schema::Family;

use crate::process::{Outcome, cargo, root, step, target_folder};
use crate::{bench, gpu, links};

/// Writes the generated pages, or checks that they are fresh; checks the links of all pages and builds the book in `target/book`. The command line's reference
/// is compared by the tests.
pub(crate) fn run(check: bool) -> Outcome {
    let figures = fs::read_to_string(root().join(bench::FIGURES))?;
    let cards = fs::read_to_string(root().join(gpu::FIGURES)).ok();
    let performance = bench::page(&figures)? + &gpu::section(cards.as_deref())?;
    let pages = [("docs/schema.md", jepa_gguf::schema::schema_page()), ("docs/performance.md", performance)];
    for (name, page) in pages {
        let path = root().join(name);
        if !check {
            fs::write(&path, page)?;
        } else if fs::read_to_string(&path).unwrap_or_default() != page {
            return Err(format!("{name} is stale; run `cargo xtask docs`").into());
        }
    }
    if !check {
        let mut reference = cargo(&["test", "--workspace", "--test", "cli", "--", "reference"]);
        step("command line reference", reference.env("JEPA_WRITE_DOCS", "1"))?;
    }
    every_family_has_a_row()?;
    links::check(&root(), &pages_of_the_repository()?, "docs".as_ref())?;
    build_book(check)
}

/// Builds the book in `target/book`. A check goes on without mdBook where it cannot be had, for want of a network.
fn build_book(check: bool) -> Outcome {
    let target = target_folder()?.join("mdbook");
    let mut compile = cargo(&["build", "--locked", "--manifest-path", "xtask/book/Cargo.toml", "--target-dir"]);
    match step("mdBook", compile.arg(&target)) {
        Err(error) if check => {
            eprintln!("skipped: the book: {error}");
            Ok(())
        }
        Err(error) => Err(error),
        Ok(()) => {
            let program = target.join("debug").join("book").with_extension(std::env::consts::EXE_EXTENSION);
            step("book", Command::new(program).arg(root()))
        }
    }
}

/// The README and the pages of the book, below the root.
fn pages_of_the_repository() -> Result<Vec<PathBuf>, std::io::Error> {
    let mut pages = vec![PathBuf::from("README.md")];
    for entry in fs::read_dir(root().join("docs"))? {
        let path = PathBuf::from("docs").join(entry?.file_name());
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

fn every_family_has_a_row() -> Outcome {
    for page in ["README.md", "docs/families.md"] {
        let text = fs::read_to_string(root().join(page))?;
        if let Some(word) = Family::WORDS.iter().find(|word| !text.contains(&format!("\n| `{word}` |"))) {
            return Err(format!("{page}: the table of families has no row for `{word}`").into());
        }
    }
    Ok(())
}
