use std::path::PathBuf;

use clap::Args;

use super::{ModelArgs, Size};

#[derive(Args, Debug)]
pub(crate) struct PreprocessArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Pictures, folders, folders of frames, and .npy files of frames (u8, [frames, height, width, 3])
    #[arg(value_name = "INPUT", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// File to write: .npy or .safetensors
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Pixels after resize and crop, u8 [N,(T,)H,W,C], instead of the normalised tensor f32 [N,C,(T,)H,W]
    #[arg(long)]
    pub(crate) u8: bool,
    /// Size of the crop in pixels, multiples of the patch [default: the model's]
    #[arg(long, value_name = "HxW")]
    pub(crate) size: Option<Size>,
    /// Most frames of a clip, taken evenly spaced [default: the model's]
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub(crate) frames: Option<std::num::NonZeroUsize>,
}
