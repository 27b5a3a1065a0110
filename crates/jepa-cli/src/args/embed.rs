use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jepa_models::{LayerSelection, Pool};

use super::{InputArgs, ModelArgs};

#[derive(Args, Debug)]
pub(crate) struct EmbedArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// File to write: .npy, .safetensors, .jsonl or .csv [default: a summary on stdout]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// How tokens become one vector
    #[arg(long, value_enum, default_value_t = PoolWord::Auto)]
    pub(crate) pool: PoolWord,
    /// Blocks counted from 0, `last`, `last4`: each normalised, pooled and joined in this order
    #[arg(long, value_name = "3,7,last")]
    pub(crate) layers: Option<LayerSelection>,
    /// Inputs encoded at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = super::at_least_one)]
    pub(crate) batch: NonZeroUsize,
    /// Scale every vector to length 1
    #[arg(long)]
    pub(crate) l2: bool,
}

/// How tokens become one vector, or stay tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PoolWord {
    /// What the family's reference does
    Auto,
    /// Mean over the patch tokens
    Mean,
    /// The CLS token
    Cls,
    /// The projected CLS token of a world model
    State,
    /// No pooling: the whole token map
    None,
}

impl PoolWord {
    /// The pooling; `None` for the token map.
    pub(crate) fn pool(self) -> Option<Pool> {
        match self {
            Self::Auto => Some(Pool::Auto),
            Self::Mean => Some(Pool::Mean),
            Self::Cls => Some(Pool::Cls),
            Self::State => Some(Pool::State),
            Self::None => None,
        }
    }
}
