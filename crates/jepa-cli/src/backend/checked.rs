//! Devices that have been found sound, remembered from run to run: a check compiles kernels and takes seconds.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use burn::prelude::Backend;
use jepa_models::{EncoderConfig, self_check};

use super::{is_on_host, running_on};
use crate::args::Shared;
use crate::exit::{CliError, say_on_stderr};

/// Checks a device at the sizes of an encoder, unless it has been checked before.
///
/// # Errors
/// [`CliError::WrongOnDevice`] for an operation that the device gets wrong.
pub(crate) fn check_once<B: Backend>(
    config: &EncoderConfig,
    device: &B::Device,
    shared: &Shared,
) -> Result<(), CliError> {
    if is_on_host::<B>() || shared.no_self_check {
        return Ok(());
    }
    let hp = &config.hparams;
    let sizes = [hp.embed_dim, hp.n_head, hp.ffn_dim, config.native_grid().tokens()].map(|size| size.to_string());
    let dtype = shared.dtype.dtype();
    let line = [env!("CARGO_PKG_VERSION"), &running_on(), dtype.name(), &sizes.join(" ")].join(" | ");
    let path = memory();
    let known = path.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    if known.lines().any(|known| known == line) {
        return Ok(());
    }
    if !shared.quiet {
        say_on_stderr("checking the device's numbers once, at this model's sizes …");
    }
    self_check::<B>(config, device, dtype)
        .map_err(|source| CliError::WrongOnDevice { device: running_on(), source: Box::new(source) })?;
    // A device that cannot be remembered is checked again.
    if let Some(path) = path {
        let _ = path.parent().map(fs::create_dir_all);
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
    Ok(())
}

/// The file of the devices that were found sound.
fn memory() -> Option<PathBuf> {
    Some(dirs::cache_dir()?.join("jepa-cli").join("sound-devices.txt"))
}
