//! What CI runs, in order of how soon it can fail.

use std::path::Path;

use crate::docs;
use crate::process::{Outcome, cargo, step};

/// Fails on the first step that fails. Every step uses the same features of the same workspace, so that nothing is compiled twice.
pub(crate) fn run(cases: Option<&Path>) -> Outcome {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    step("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step("docs", cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    docs::run(true)?;
    let mut tests = cargo(&["test", "--workspace"]);
    match cases.map(Path::canonicalize) {
        Some(Ok(folder)) => {
            tests.env("JEPA_CASES", folder);
        }
        Some(Err(error)) => eprintln!("skipped: further cases: {error}"),
        None => {}
    }
    step("tests", &mut tests)
}
