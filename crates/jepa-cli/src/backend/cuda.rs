//! NVIDIA's libraries and cards, asked for one by one before Burn is touched: Burn ends in a signal where one is missing.

use std::panic::{self, UnwindSafe};
use std::path::PathBuf;

use cudarc::driver::result;
use cudarc::nvrtc::compile_ptx;

use super::Found;
use super::fault::quietly;
use crate::exit::CliError;

/// Where the headers of the toolkit are when nothing says otherwise; Burn looks in the same places.
const TOOLKITS: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];

/// All cards.
///
/// # Errors
/// [`CliError::NoDevice`] that says which of driver, card, run-time compiler and headers is missing.
pub(super) fn cards() -> Result<Vec<Found>, CliError> {
    let missing = |what: &str, next| Err(CliError::NoDevice { backend: "cuda", what: what.to_owned(), next });
    // Functions of a library that is not there panic; there is no safe way to ask first.
    let Some(driver) = unless_it_panics(|| result::init().is_ok()) else {
        return missing("NVIDIA's driver is not installed (libcuda)", "install it, or run with `--backend cpu`");
    };
    let count = if driver { result::device::get_count().unwrap_or(0) } else { 0 };
    if count == 0 {
        return missing("NVIDIA's driver finds no card", "look at what `nvidia-smi` says, or run with `--backend cpu`");
    }
    if unless_it_panics(|| compile_ptx("extern \"C\" __global__ void nothing() {}")).is_none() {
        return missing(
            "NVIDIA's run-time compiler is not installed (libnvrtc)",
            "install the CUDA toolkit of the driver's version",
        );
    }
    if !headers().iter().any(|folder| folder.join("include").is_dir()) {
        return missing(
            "the headers of the CUDA toolkit are not there",
            "install the toolkit, or set CUDA_PATH to its folder",
        );
    }
    let found = |ordinal| {
        let name = result::device::get(ordinal).and_then(result::device::get_name);
        Found {
            name: name.unwrap_or_else(|_| format!("card {ordinal}")),
            driver: "CUDA".to_owned(),
            software: false,
            largest_buffer: None,
        }
    };
    Ok((0..count).map(found).collect())
}

fn headers() -> Vec<PathBuf> {
    match std::env::var_os("CUDA_PATH") {
        Some(path) => vec![path.into()],
        None => {
            let mut folders: Vec<PathBuf> = TOOLKITS.map(PathBuf::from).into();
            if PathBuf::from("/usr/bin/nvcc").exists() {
                folders.push("/usr".into());
            }
            folders
        }
    }
}

/// What `ask` gives, unless it panics, which says nothing on stderr.
fn unless_it_panics<R>(ask: impl FnOnce() -> R + UnwindSafe) -> Option<R> {
    quietly(|| panic::catch_unwind(ask).ok())
}
