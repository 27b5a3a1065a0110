use std::path::PathBuf;

use clap::Args;
use globset::Glob;
use jepa_gguf::GgmlType;

const AFTER_HELP: &str = "\
Only the large matrices change; norms, biases, position tables and tokens stay as they are. Rows that are not whole blocks of a K type become q8_0.

  jepa-cli quantize model-f32.gguf model-q8_0.gguf --type q8_0
  jepa-cli quantize model-f32.gguf model-q4_k.gguf --type q4_k --imatrix model.imatrix.gguf --report pictures/*.jpg";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct QuantizeArgs {
    /// GGUF file to start from: f32, f16 or bf16
    #[arg(value_name = "IN.gguf")]
    pub(crate) input: PathBuf,
    /// GGUF file to write
    #[arg(value_name = "OUT.gguf", required_unless_present = "dry_run")]
    pub(crate) output: Option<PathBuf>,
    /// Type of the large matrices: q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1, q4_0, q3_k, q2_k, f16 or bf16
    #[arg(long = "type", value_name = "TYPE", value_parser = smaller_type)]
    pub(crate) dtype: GgmlType,
    /// Tensors that stay as they are, for instance 'enc.blk.0.*'; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) keep: Vec<Glob>,
    /// Activation statistics of `jepa-cli imatrix`: columns that carry more are rounded with more care
    #[arg(long, value_name = "FILE")]
    pub(crate) imatrix: Option<PathBuf>,
    /// Show what every tensor would become and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take a file that is quantised already
    #[arg(long)]
    pub(crate) allow_requantize: bool,
    /// Show the error of every tensor, and that of the features on these pictures and clips [default: seeded noise]
    #[arg(long, value_name = "IMAGE", num_args = 0.., conflicts_with = "dry_run")]
    pub(crate) report: Option<Vec<PathBuf>>,
}

fn smaller_type(text: &str) -> Result<GgmlType, String> {
    GgmlType::from_name(text).filter(|dtype| *dtype != GgmlType::F32).ok_or_else(|| {
        let names: Vec<_> = GgmlType::ALL.iter().filter(|t| **t != GgmlType::F32).map(|t| t.name()).collect();
        format!("wanted one of {}", names.join(", "))
    })
}
