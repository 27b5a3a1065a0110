//! What CI runs, in order of how soon it can fail.

use std::path::Path;
use std::process::Command;

use crate::process::{Outcome, cargo, step};
use crate::{docs, new_family};

/// Mesa's Vulkan on the CPU, which the tests of the wgpu backend run on where there is no graphics card: installed when it is missing.
fn software_vulkan() {
    let drivers = std::fs::read_dir("/usr/share/vulkan/icd.d").into_iter().flatten().flatten();
    if !cfg!(target_os = "linux") || drivers.count() > 0 {
        return;
    }
    // Without a network it gives up at once.
    let apt = |name: &str, args: &[&str]| {
        let options =
            ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"];
        step(name, Command::new("apt-get").args(options).args(args))
    };
    let install = || apt("software Vulkan", &["install", "--yes", "--no-install-recommends", "mesa-vulkan-drivers"]);
    // The lists of packages may be old, or not there at all.
    let update = || apt("package lists", &["update"]);
    if let Err(error) = install().or_else(|_| update().and_then(|()| install())) {
        eprintln!("skipped: tests of the wgpu backend, for want of a Vulkan driver: {error}");
    }
}

/// Fails on the first step that fails. Every step uses the same features of the same workspace, so that nothing is compiled twice.
pub(crate) fn run(cases: Option<&Path>) -> Outcome {
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    step("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step("docs", cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    docs::run(true)?;
    new_family::trial()?;
    software_vulkan();
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
