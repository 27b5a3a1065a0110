//! What was typed: one file per command, flags and help only.

mod bench;
mod classify;
mod compare;
mod convert;
mod doctor;
mod embed;
mod export;
mod imatrix;
mod info;
mod input;
mod plan;
mod predict;
mod preprocess;
#[cfg(feature = "train")]
mod probe;
mod quantize;
mod rollout;
mod trace;
mod verify;

use burn::tensor::DType;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::backend::BackendName;

pub(crate) use bench::{BenchArgs, BenchTask};
pub(crate) use classify::ClassifyArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use convert::ConvertArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use embed::EmbedArgs;
pub(crate) use export::ExportArgs;
pub(crate) use imatrix::ImatrixArgs;
pub(crate) use info::InfoArgs;
pub(crate) use input::{InputArgs, ModelArgs, Size};
pub(crate) use plan::PlanArgs;
pub(crate) use predict::{Ids, PredictArgs};
pub(crate) use preprocess::PreprocessArgs;
#[cfg(feature = "train")]
pub(crate) use probe::{ProbeAction, ProbeArgs, ProbeEvalArgs, ProbeKind, ProbeTrainArgs};
pub(crate) use quantize::QuantizeArgs;
pub(crate) use rollout::RolloutArgs;
pub(crate) use trace::TraceArgs;
pub(crate) use verify::VerifyArgs;

const AFTER_HELP: &str = "\
Exit codes: 0 all good; 1 an input failed or a comparison missed its bar; 2 wrong usage; 3 the model, the device or the output is at fault.

Model files: hf download jepacpp/vjepa2-vitl-fpc64-256-GGUF vjepa2-vitl-fpc64-256-f16.gguf --local-dir models";

/// Features of pictures and clips from JEPA vision models, one GGUF file each.
#[derive(Debug, Parser)]
#[command(name = "jepa-cli", version, after_help = AFTER_HELP, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) shared: Shared,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a model file holds
    Info(InfoArgs),
    /// List backends, devices and CPU instruction sets
    Devices,
    /// Turn pictures and clips into feature vectors or token maps
    Embed(EmbedArgs),
    /// Name what is in pictures and clips, with the labels of the file
    Classify(ClassifyArgs),
    /// Predict the latents of hidden patches from the visible ones
    Predict(PredictArgs),
    /// Roll a world model forward under actions
    Rollout(RolloutArgs),
    /// Find actions that bring a world model to a goal picture
    Plan(PlanArgs),
    /// Train and judge heads on the features of a model
    #[cfg(feature = "train")]
    Probe(ProbeArgs),
    /// Write the exact tensor that would enter the network
    Preprocess(PreprocessArgs),
    /// Make a smaller file: ggml's block types, bit for bit
    Quantize(QuantizeArgs),
    /// Gather which columns of the weights matter, for `quantize --imatrix`
    Imatrix(ImatrixArgs),
    /// Turn a published checkpoint into a model file
    Convert(ConvertArgs),
    /// Turn a model file back into a Hugging Face folder
    Export(ExportArgs),
    /// Replay parity cases and compare with their stored outputs
    Verify(VerifyArgs),
    /// Compare two arrays row by row
    Compare(CompareArgs),
    /// Write every intermediate tensor of one input
    Trace(TraceArgs),
    /// Time a part of a model: of a file, or of a published size
    Bench(BenchArgs),
    /// Check a device's numbers at the sizes of models
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Flags of every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Shared options")]
pub(crate) struct Shared {
    /// Backend to run on [default: the best one in this binary]
    #[arg(long, value_enum, global = true)]
    pub(crate) backend: Option<BackendName>,
    /// CPU threads [default: all cores]; `bench` takes several
    #[arg(long, value_name = "N", global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Vec<u16>,
    /// How exactly the CPU multiplies matrices of f32
    #[arg(long, value_enum, global = true, default_value_t)]
    pub(crate) precision: PrecisionWord,
    /// Type of the weights and products on a graphics card
    #[arg(long = "dtype", id = "computed_in", value_name = "DTYPE", value_enum, global = true, default_value_t)]
    pub(crate) dtype: DtypeWord,
    /// Trust a graphics card without checking its numbers once
    #[arg(long, global = true)]
    pub(crate) no_self_check: bool,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Show no progress bar
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

impl Shared {
    /// Numbers of threads to run with: those that were asked for, or one for each core.
    pub(crate) fn threads_or_all(&self) -> Vec<usize> {
        match self.threads[..] {
            [] => vec![rayon::current_num_threads()],
            ref some => some.iter().copied().map(usize::from).collect(),
        }
    }
}

/// Type of the linear layers and of the products of attention on a graphics card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DtypeWord {
    /// 32 bits
    #[default]
    F32,
    /// 16 bits, 11 of them for the digits
    F16,
    /// 16 bits, 8 of them for the digits
    Bf16,
}

impl DtypeWord {
    /// As Burn calls it.
    pub(crate) const fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
        }
    }
}

/// How exactly the CPU multiplies matrices of f32, in PyTorch's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionWord {
    /// IEEE f32
    Highest,
    /// f32's accuracy by the fastest means
    #[default]
    High,
    /// Rounded to bf16 where the machine multiplies bf16 faster
    Medium,
}

impl PrecisionWord {
    /// The word on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Highest => "highest",
            Self::High => "high",
            Self::Medium => "medium",
        }
    }
}

/// A number of things, one at least.
pub(crate) fn at_least_one(text: &str) -> Result<std::num::NonZeroUsize, String> {
    text.parse().map_err(|_| "wanted a whole number from 1".to_owned())
}
