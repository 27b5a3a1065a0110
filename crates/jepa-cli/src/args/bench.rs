use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use jepa_models::SHAPES;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// GGUF file whose encoder runs [default: seeded weights of a shape]
    #[arg(short, long, value_name = "FILE", conflicts_with = "shape")]
    pub(crate) model: Option<PathBuf>,
    /// Encoders of these sizes, with all their layers; may be given several times
    #[arg(long, value_name = "SHAPE", value_parser = clap::builder::PossibleValuesParser::new(SHAPES), default_values = ["vit-s"])]
    pub(crate) shape: Vec<String>,
    /// Inputs encoded at once; may be given several times
    #[arg(long, value_name = "N", default_values = ["1"])]
    pub(crate) batch: Vec<NonZeroUsize>,
    /// Forward passes that are timed, after one that is not
    #[arg(long, value_name = "N", default_value = "9")]
    pub(crate) repeat: NonZeroUsize,
}
