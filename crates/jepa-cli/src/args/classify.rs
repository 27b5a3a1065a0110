use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::{InputArgs, ModelArgs};

#[derive(Args, Debug)]
pub(crate) struct ClassifyArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Classes to print for each input
    #[arg(long, value_name = "K", default_value = "5")]
    pub(crate) top_k: NonZeroUsize,
    /// File of all logits to write: .npy, .safetensors, .jsonl or .csv
    #[arg(long, value_name = "OUT")]
    pub(crate) logits: Option<PathBuf>,
    /// Inputs encoded at once
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) batch: NonZeroUsize,
}
