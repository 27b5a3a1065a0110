use std::path::PathBuf;

use clap::Args;

use super::{InputArgs, ModelArgs};

#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Names to keep, for instance 'enc.blk.*.attn_out' [default: all]
    #[arg(long, value_name = "GLOB")]
    pub(crate) filter: Option<String>,
    /// File to write: .safetensors
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}
