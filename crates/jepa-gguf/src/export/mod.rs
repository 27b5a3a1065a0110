//! From bundles back to folders that transformers loads: `config.json`, the processor's file and `model.safetensors`.
//!
//! A folder made here is converted back to the bundle it came from; what Hugging Face has no key for stands under `jepa` in `config.json`.
//!
//! ```no_run
//! use jepa_gguf::{Bundle, export::Export};
//!
//! let bundle = Bundle::open("ijepa_vith14_1k-f16.gguf")?;
//! let export = Export::plan(&bundle)?;
//! export.start("ijepa_vith14_1k".as_ref())?.finish(|_| ())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod class;
mod config;
mod error;
mod tensors;
mod write;

pub use error::ExportError;
pub use write::ExportWriting;

use crate::bundle::Bundle;
use class::Class;
use tensors::ExportedTensor;

/// A bundle whose every tensor has a place in the folder, or is listed as dropped.
#[derive(Debug)]
pub struct Export<'a> {
    bundle: &'a Bundle,
    class: Class,
    tensors: Vec<ExportedTensor>,
    dropped: Vec<String>,
}

impl<'a> Export<'a> {
    /// Decides which class of transformers the bundle becomes. Nothing is read but the header.
    ///
    /// # Errors
    /// [`ExportError::NoClass`] and [`ExportError::Fixed`] for what transformers has no place for, by name.
    pub fn plan(bundle: &'a Bundle) -> Result<Self, ExportError> {
        let class = Class::of(bundle.hparams())?;
        let (tensors, dropped) = tensors::tensors(bundle.hparams(), class)?;
        Ok(Self { bundle, class, tensors, dropped })
    }

    /// The class of transformers that loads the folder.
    pub fn architecture(&self) -> &'static str {
        self.class.architecture(self.bundle.hparams().head.is_some()).0
    }

    /// How many tensors the folder will have.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// Tensors of the bundle that the class has no place for: the predictor of I-JEPA.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }
}
