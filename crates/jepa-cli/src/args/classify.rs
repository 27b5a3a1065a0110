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
    #[arg(long, value_name = "K", default_value = "5", value_parser = super::at_least_one)]
    pub(crate) top_k: NonZeroUsize,
    /// File of all logits to write: .npy, .safetensors, .jsonl or .csv
    #[arg(long, value_name = "OUT")]
    pub(crate) logits: Option<PathBuf>,
    /// Clips taken from each video, one after another; an attentive head attends across them
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "input_tensor", value_parser = super::at_least_one)]
    pub(crate) segments: NonZeroUsize,
    /// Crops of each clip along its long side; their probabilities are averaged
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "input_tensor", value_parser = super::at_least_one)]
    pub(crate) views: NonZeroUsize,
    /// Inputs encoded at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = super::at_least_one)]
    pub(crate) batch: NonZeroUsize,
}
