//! A bundle: a GGUF file that has been checked against the schema.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::bytes::Access;
use crate::error::GgufError;
use crate::file::Gguf;
use crate::schema::{Hparams, check_tensors, key_spec, read_hparams};
use crate::tensor::TensorInfo;
use crate::value::Metadata;

/// Reads the hyper-parameters of a file to be off its keys and its tensor table, and checks the two against each other.
pub(crate) fn check_head(metadata: Metadata, tensors: Vec<TensorInfo>) -> Result<Hparams, GgufError> {
    let mut file = Gguf::without_data(metadata, tensors);
    let hparams = read_hparams(&file)?;
    check_tensors(&mut file, &hparams)?;
    Ok(hparams)
}

/// Something odd about a bundle that does not keep it from running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A `jepa.*` key that this version of the schema does not have.
    UnknownKey {
        /// The key.
        key: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key } => write!(f, "key {key}: not in the schema, ignored"),
        }
    }
}

/// An open file whose keys and tensors are exactly those of a JEPA model.
///
/// Opening reads the header only; weights come from [`Bundle::gguf`] when they are asked for.
///
/// ```no_run
/// let bundle = jepa_gguf::Bundle::open("vjepa2-vitl-fpc64-256-f16.gguf")?;
/// for warning in bundle.warnings() {
///     eprintln!("{warning}");
/// }
/// let hp = bundle.hparams();
/// println!("{} {} x {}", hp.family, hp.enc.n_layer, hp.enc.embed_dim);
/// # Ok::<(), jepa_gguf::GgufError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bundle {
    file: Arc<Gguf>,
    hparams: Arc<Hparams>,
    warnings: Vec<Warning>,
}

impl Bundle {
    /// Maps a file and checks it.
    ///
    /// # Errors
    /// Any damage of the container and any breach of the schema, see [`GgufError`]; or the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        Self::open_with(path, Access::Map)
    }

    /// Maps or reads a file and checks it.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub fn open_with(path: impl AsRef<Path>, access: Access) -> Result<Self, GgufError> {
        Self::from_gguf(Gguf::open_with(path, access)?)
    }

    /// Checks an open file against the schema.
    ///
    /// # Errors
    /// Any breach of the schema, see [`GgufError`].
    pub fn from_gguf(mut file: Gguf) -> Result<Self, GgufError> {
        let hparams = read_hparams(&file)?;
        check_tensors(&mut file, &hparams)?;
        let unknown = |key: &str| key.starts_with("jepa.") && key_spec(key).is_none();
        let warnings = file
            .metadata()
            .iter()
            .filter(|(key, _)| unknown(key))
            .map(|(key, _)| Warning::UnknownKey { key: key.to_owned() })
            .collect();
        Ok(Self { file: Arc::new(file), hparams: Arc::new(hparams), warnings })
    }

    /// The file. Its tensors report the shapes of the schema.
    pub fn gguf(&self) -> &Arc<Gguf> {
        &self.file
    }

    /// Every number a graph needs.
    pub fn hparams(&self) -> &Hparams {
        &self.hparams
    }

    /// What is odd about the file, in the order of its keys.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}
