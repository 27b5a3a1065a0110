//! What can go wrong with an export, grouped by whose fault it is.

use std::path::PathBuf;

use crate::error::GgufError;

/// Why a bundle was not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    // The bundle is fine but Hugging Face has no place for it.
    /// A family or a part without a class in transformers.
    #[error("{what}: transformers has no class for it; bundles of ijepa, hfvit and vjepa2 can be exported")]
    NoClass {
        /// The family or the part.
        what: String,
    },
    /// A number that the class fixes otherwise.
    #[error("key {key}: {found}, but {class} has {fixed}")]
    Fixed {
        /// The key.
        key: &'static str,
        /// Value in the bundle.
        found: String,
        /// The class of transformers.
        class: &'static str,
        /// The only value it has.
        fixed: String,
    },

    // The bundle is damaged.
    /// The weights cannot be read.
    #[error("the weights cannot be read")]
    Gguf(#[from] GgufError),

    // The caller's argument.
    /// The output is there already.
    #[error("{} exists and is not an empty folder; choose another output", path.display())]
    Exists {
        /// The output.
        path: PathBuf,
    },

    // Input and output.
    /// The operating system refused something.
    #[error("cannot {op} {}", path.display())]
    Io {
        /// What was tried.
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
}
