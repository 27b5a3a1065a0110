use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Folders that hold a case.json
    #[arg(value_name = "CASE_DIR", required = true)]
    pub(crate) cases: Vec<PathBuf>,
    /// Model file type to replay, f32, f16, q8_0 … [default: every one the case has]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) model_type: Option<String>,
    /// Write the outputs that were got, under the expected tensors' names (one case at a time)
    #[arg(long, value_name = "F.safetensors")]
    pub(crate) dump: Option<PathBuf>,
}
