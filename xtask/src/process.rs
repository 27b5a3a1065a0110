//! Starting other programs.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_owned()
}

/// Cargo, in the repository.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// Where cargo builds, by its flags, variables and settings.
pub(crate) fn target_folder() -> Result<PathBuf, Box<dyn Error>> {
    let metadata = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let folder = metadata["target_directory"].as_str().ok_or("cargo metadata names no target_directory")?;
    Ok(folder.into())
}

/// Runs a step, names it and says how long it took.
pub(crate) fn step(name: &str, command: &mut Command) -> Outcome {
    eprintln!("== {name}");
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).status()?;
    eprintln!("== {name}: {status} after {:.0} s", start.elapsed().as_secs_f32());
    if status.success() { Ok(()) } else { Err(format!("{name} failed").into()) }
}
