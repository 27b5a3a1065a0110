use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// GGUF file of the model
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// List every tensor
    #[arg(long)]
    pub(crate) tensors: bool,
    /// Read the file into memory instead of mapping it
    #[arg(long)]
    pub(crate) no_mmap: bool,
}
