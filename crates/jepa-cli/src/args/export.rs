use std::path::PathBuf;

use clap::Args;

const AFTER_HELP: &str = "\
Bundles of ijepa, hfvit and vjepa2 become a folder that transformers loads, and that `jepa-cli convert` turns back into the same bundle.

  jepa-cli export -m ijepa_vith14_1k-f32.gguf -o ijepa_vith14_1k";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExportArgs {
    /// Model file
    #[arg(short, long, value_name = "M.gguf")]
    pub(crate) model: PathBuf,
    /// Folder to write; it must not exist or be empty
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}
