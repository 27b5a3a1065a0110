use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

/// Which model, and how its file is read.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    /// GGUF file of the model
    #[arg(short, long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// Read the file into memory instead of mapping it
    #[arg(long)]
    pub(crate) no_mmap: bool,
}

/// What is brought into the model's form.
#[derive(Args, Debug, Default)]
pub(crate) struct InputArgs {
    /// Pictures, folders, folders of frames, and .npy files of frames (u8, [frames, height, width, 3])
    #[arg(value_name = "INPUT", required_unless_present = "input_tensor")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Size of the crop in pixels, multiples of the patch [default: the model's]
    #[arg(long, value_name = "HxW")]
    pub(crate) size: Option<Size>,
    /// Most frames of a clip, taken evenly spaced [default: the model's]
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub(crate) frames: Option<NonZeroUsize>,
    /// Normalised pixels instead of pictures: f32 .npy of [N,C,H,W] or [N,C,T,H,W]
    #[arg(long, value_name = "X.npy", conflicts_with_all = ["inputs", "size", "frames"])]
    pub(crate) input_tensor: Option<PathBuf>,
}

impl InputArgs {
    /// Every file or folder that is read.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.inputs.iter().chain(&self.input_tensor).map(PathBuf::as_path)
    }
}

/// `384x256` or `384`: rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse::<usize>().ok().filter(|n| (1..=1 << 14).contains(n));
        let (height, width) = text.split_once(['x', 'X', '×']).unwrap_or((text, text));
        match (side(height), side(width)) {
            (Some(height), Some(width)) => Ok(Self { height, width }),
            _ => Err("wanted HxW in pixels, for instance 384x256, each from 1 to 16384".to_owned()),
        }
    }
}
