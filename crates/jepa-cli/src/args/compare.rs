use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// What was got: .npy or .safetensors
    pub(crate) a: PathBuf,
    /// What was wanted: .npy or .safetensors
    pub(crate) b: PathBuf,
    /// Fail when a row's cosine is below this
    #[arg(long, value_name = "X")]
    pub(crate) min_cos: Option<f64>,
    /// Fail when the largest difference over the largest wanted value is above this
    #[arg(long, value_name = "X")]
    pub(crate) max_rel: Option<f64>,
}
