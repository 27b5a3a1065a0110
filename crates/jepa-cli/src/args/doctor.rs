use std::path::PathBuf;

use clap::Args;
use jepa_models::SHAPES;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// GGUF file at whose sizes the device is checked
    #[arg(short, long, value_name = "FILE", conflicts_with = "shape")]
    pub(crate) model: Option<PathBuf>,
    /// Sizes at which the device is checked; may be given several times
    #[arg(long, value_name = "SHAPE", value_parser = clap::builder::PossibleValuesParser::new(SHAPES), default_values = ["vit-s", "vit-b", "vit-l"])]
    pub(crate) shape: Vec<String>,
}
