use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::{InputArgs, ModelArgs};

#[derive(Args, Debug)]
pub(crate) struct ImatrixArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// File to write: a GGUF of activation statistics
    #[arg(short, long, value_name = "OUT.gguf")]
    pub(crate) output: PathBuf,
    /// Inputs encoded at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = super::at_least_one)]
    pub(crate) batch: NonZeroUsize,
}
