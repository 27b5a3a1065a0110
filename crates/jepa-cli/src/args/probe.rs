use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use jepa_gguf::schema::HeadPool;
use jepa_models::LayerSelection;
use jepa_models::tail::Unfreeze;

use super::ModelArgs;

#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    #[command(subcommand)]
    pub(crate) action: ProbeAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeAction {
    /// Train a head on the features of a model; the result is the model with that head, for `classify`
    Train(ProbeTrainArgs),
    /// Judge a model with a head by inputs of known classes
    Eval(ProbeEvalArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ProbeTrainArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A folder with one sub-folder per class, or a .csv or .jsonl of path and label
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,
    /// GGUF file to write; `knn` has none
    #[arg(short, long, value_name = "OUT.gguf")]
    pub(crate) output: Option<PathBuf>,
    /// What is trained on the features
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: ProbeKind,
    /// How tokens become one vector (linear, knn)
    #[arg(long, default_value = "auto", value_parser = PossibleValuesParser::new(HeadPool::WORDS).map(|word| HeadPool::from_word(&word).expect("the parser takes these words only")))]
    pub(crate) pool: HeadPool,
    /// Blocks counted from 0, `last`, `last4`: pooled and joined (linear, knn), or joined as tokens (attentive) [default: the output]
    #[arg(long, value_name = "3,7,last")]
    pub(crate) layers: Option<LayerSelection>,
    /// Train inside the encoder too: its last N blocks (`last:N`), or all its norms (`norms`) (linear, attentive)
    #[arg(long, value_name = "last:N|norms", conflicts_with = "layers")]
    pub(crate) unfreeze: Option<Unfreeze>,
    /// Pieces that a step is computed in, one after the other, to take less memory
    #[arg(long, value_name = "N", default_value = "1", value_parser = super::at_least_one)]
    pub(crate) accumulate: NonZeroUsize,
    /// Most passes over the data; it ends earlier when 20 bring nothing
    #[arg(long, value_name = "N", default_value = "100", value_parser = super::at_least_one)]
    pub(crate) epochs: NonZeroUsize,
    /// Learning rate of AdamW at the start [default: 0.001 for attentive, 0.0003 with --unfreeze; linear needs none and is solved by L-BFGS without it]
    #[arg(long, value_name = "RATE", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) lr: Option<f64>,
    /// Inputs encoded at once, and examples of one step of the training [default: 8, and a sixteenth of the examples from 16 to 256]
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    pub(crate) batch: Option<NonZeroUsize>,
    /// Decides what is held out, the order of the examples, the first weights and the crops
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
    /// Random crops and mirror images of each input that are learned from too
    #[arg(long, value_name = "K", default_value = "0", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) augment: u16,
    /// Part of every class that is held out to choose the best epoch
    #[arg(long, value_name = "PART", default_value = "0.2", value_parser = part, allow_negative_numbers = true)]
    pub(crate) val_split: f64,
}

/// What is made of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbeKind {
    /// One layer on the pooled vector
    #[default]
    Linear,
    /// A learned query that pools the tokens, and one layer
    Attentive,
    /// No training: the classes of the nearest neighbours
    Knn,
}

impl ProbeKind {
    /// The word on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Attentive => "attentive",
            Self::Knn => "knn",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ProbeEvalArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A folder with one sub-folder per class, or a .csv or .jsonl of path and label
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,
    /// Picture of the confusion matrix to write
    #[arg(long, value_name = "OUT.png")]
    pub(crate) confusion: Option<PathBuf>,
    /// Inputs encoded at once
    #[arg(long, value_name = "N", default_value = "8", value_parser = super::at_least_one)]
    pub(crate) batch: NonZeroUsize,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0).ok_or("wanted a number above 0".to_owned())
}

fn part(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|part| (0.0..1.0).contains(part)).ok_or("wanted a number from 0 to below 1".to_owned())
}
