use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jepa_models::SHAPES;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// GGUF file whose parts run [default: seeded weights of a shape]
    #[arg(short, long, value_name = "FILE", conflicts_with = "shape")]
    pub(crate) model: Option<PathBuf>,
    /// Models of these sizes, with all their layers; may be given several times
    #[arg(long, value_name = "SHAPE", value_parser = clap::builder::PossibleValuesParser::new(SHAPES), default_values = ["vit-s"])]
    pub(crate) shape: Vec<String>,
    /// The part that runs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) task: BenchTask,
    /// Inputs, or candidates of a world model, that run at once; may be given several times
    #[arg(long, value_name = "N", default_values = ["1"], value_parser = super::at_least_one)]
    pub(crate) batch: Vec<NonZeroUsize>,
    /// Frames of a clip [default: as many as the model was made for, 16 at most]
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub(crate) frames: Option<NonZeroUsize>,
    /// Passes that are timed, after one that is not
    #[arg(long, value_name = "N", default_value = "9", value_parser = super::at_least_one)]
    pub(crate) repeat: NonZeroUsize,
}

/// A part of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchTask {
    /// Pixels to tokens
    #[default]
    Encoder,
    /// Every second token from the others; of a world model, the next frame; without a file, by V-JEPA 2's predictor (384 × 12)
    Predictor,
    /// Tokens to classes
    Head,
    /// Two steps of a world model from one frame; without a file, of V-JEPA 2-AC's predictor (1024 × 24) on tokens of that size
    Rollout,
}

impl BenchTask {
    /// The word on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::Predictor => "predictor",
            Self::Head => "head",
            Self::Rollout => "rollout",
        }
    }
}
