//! What CI runs, in order of how soon it can fail.

use std::path::Path;

use crate::process::{Outcome, cargo, step};
use crate::{docs, parity};

/// Fails on the first step that fails. Every step uses the same features of the same workspace, so that nothing is compiled twice.
pub(crate) fn run(cases: Option<&Path>) -> Outcome {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    step("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step("docs", cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    docs::run(true)?;
    step("tests", &mut cargo(&["test", "--workspace"]))?;
    match cases {
        Some(folder) if folder.is_dir() => {
            for backend in ["cpu", "ndarray"] {
                parity::cases(&parity::folders_of_cases(folder)?, backend)?;
            }
            Ok(())
        }
        Some(folder) => {
            eprintln!("skipped: {} is not here", folder.display());
            Ok(())
        }
        None => Ok(()),
    }
}
