//! Opening a model file.

use std::path::Path;

use burn::prelude::Backend;
use jepa_gguf::{Access, Bundle, GgufError, TensorWriter};
use jepa_models::{Jepa, ModelError};

use crate::args::{ModelArgs, Shared};
use crate::backend::check_once;
use crate::exit::{CliError, say_on_stderr};
use crate::interrupt::Unfinished;

/// Opens and checks the file; its warnings go to stderr.
pub(crate) fn open_bundle(path: &Path, no_mmap: bool, shared: &Shared) -> Result<Bundle, CliError> {
    let access = if no_mmap { Access::Read } else { Access::Map };
    let bundle = Bundle::open_with(path, access).map_err(|error| model_error(path, error))?;
    if !shared.quiet {
        for warning in bundle.warnings() {
            say_on_stderr(&format!("warning: model {}: {warning}", path.display()));
        }
    }
    Ok(bundle)
}

/// Opens the file and loads it onto `device`.
pub(crate) fn load<B: Backend>(args: &ModelArgs, device: &B::Device, shared: &Shared) -> Result<Jepa<B>, CliError> {
    let bundle = open_bundle(&args.model, args.no_mmap, shared)?;
    let model =
        Jepa::from_bundle_as(bundle, device, shared.dtype.dtype()).map_err(|error| model_error(&args.model, error))?;
    check_once::<B>(model.encoder().config(), device, shared)?;
    Ok(model)
}

/// An error of the model at `path`.
pub(crate) fn model_error(path: &Path, source: impl Into<ModelError>) -> CliError {
    CliError::Model { path: path.to_owned(), source: source.into() }
}

/// Finishes a GGUF file; Ctrl-C leaves nothing of it.
pub(crate) fn finish_gguf(path: &Path, writer: TensorWriter) -> Result<(), CliError> {
    let _unfinished = Unfinished::new(writer.temporary_path());
    writer.finish().map_err(|error| write_error(path, error))
}

/// An error of writing the GGUF file `path`: the system's word for it where the system refused.
pub(crate) fn write_error(path: &Path, error: GgufError) -> CliError {
    match error {
        GgufError::Io { source, .. } => CliError::output(path, source),
        GgufError::NotAFile { .. } => CliError::output(path, "this is no regular file"),
        other => CliError::output(path, other),
    }
}
