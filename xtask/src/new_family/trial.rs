//! The recipe tried: a made-up family in a copy of the sources, compiled, and a checkpoint of it converted.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::NewFamily;
use crate::process::{Outcome, cargo, root, step, target_folder};

const MADE_UP: &str = "walkjepa";

/// The test that the copy gets.
const TEST: &str = include_str!("converts.rs");

/// What the copy is made of: enough for cargo to see the same workspace, so that it compiles no dependency again.
const SOURCES: [&str; 10] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "clippy.toml",
    "rustfmt.toml",
    "crates",
    "docs",
    "fuzz",
    "tests",
    "xtask",
];

/// Adds a family to a copy of the workspace in the target folder; every crate of it must pass the lints, and `jepa-gguf` convert a checkpoint of the family.
pub(crate) fn trial() -> Outcome {
    let target = target_folder()?;
    let copy = target.join("new-family");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    fs::create_dir_all(&copy)?;
    for name in SOURCES {
        copy_all(&root().join(name), &copy.join(name))?;
    }
    // Cargo tells crates of a workspace apart by name, version and place below its root: without a version of their own those of the copy would
    // take the place of the original's in the target folder, and later steps would run them.
    let manifest = fs::read_to_string(copy.join("Cargo.toml"))?;
    let own =
        manifest.replacen(&format!("version = \"{}\"", env!("CARGO_PKG_VERSION")), "version = \"0.0.0-trial\"", 1);
    if own == manifest {
        return Err("Cargo.toml: found no version of the workspace, wanted one to replace in the copy".into());
    }
    fs::write(copy.join("Cargo.toml"), own)?;
    NewFamily::plan(&copy, MADE_UP, "hfvit::VIT")?.add(&copy)?;
    fs::write(copy.join("crates/jepa-gguf/tests/new_family.rs"), TEST)?;

    let in_copy = |args: &[&str]| -> Command {
        let mut command = cargo(args);
        command.current_dir(&copy).env("CARGO_TARGET_DIR", &target);
        command
    };
    // Long lines are the formatter's business, for an author too.
    step("new family: format", &mut in_copy(&["fmt", "--all"]))?;
    // Everything has been downloaded by then. A test among the targets keeps the features, and so the dependencies, those of every other step.
    let some = ["--workspace", "--offline", "--lib", "--test", "new_family"];
    step("new family: lints", in_copy(&["clippy"]).args(some).args(["--", "-D", "warnings"]))?;
    step("new family: conversion", &mut in_copy(&["test", "--workspace", "--offline", "--test", "new_family"]))
}

/// Copies a file, or a folder without what was built in it.
fn copy_all(from: &Path, to: &Path) -> Result<(), std::io::Error> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if name != "target" && name != "fixtures" || is_needed(from) {
            copy_all(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}

/// Whether the fixtures of this folder are: the converter's.
fn is_needed(tests: &Path) -> bool {
    tests.ends_with("crates/jepa-gguf/tests")
}
