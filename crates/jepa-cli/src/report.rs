//! What goes to stdout.

use std::io::{self, Write};

use serde::Serialize;

use crate::args::Shared;
use crate::exit::CliError;

/// A result that people read as text and scripts as JSON, both from the same values.
pub(crate) trait Report: Serialize {
    /// The text for people.
    fn text(&self) -> String;
}

/// Prints a report in the form that was asked for.
pub(crate) fn print(report: &impl Report, shared: &Shared) -> Result<(), CliError> {
    if shared.json { print_json(report) } else { print_text(&report.text()) }
}

/// Prints `value` as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let json = serde_json::to_string_pretty(value).expect("reports hold strings, numbers and lists only");
    print_text(&json)
}

/// Prints text and ends it with a line break.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") })
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::BrokenPipe),
        Err(error) => Err(CliError::output("stdout", error)),
    }
}
