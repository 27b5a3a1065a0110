//! What can be wrong with a checkpoint.

use std::path::PathBuf;

/// Why a checkpoint is refused. Messages carry no path of the file; who opened it adds that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
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
