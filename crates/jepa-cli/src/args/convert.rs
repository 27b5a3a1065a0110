use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jepa_gguf::GgmlType;
use jepa_gguf::convert::EncoderChoice;
use jepa_gguf::schema::Family;

const AFTER_HELP: &str = "\
The family is found in the checkpoint. Meta's training checkpoints do not say everything; hints do: img_size, patch_size, n_frames,
tubelet_size, enc_n_head, pred_n_head, hier_layers. Released files are known by their names and need none.

  jepa-cli convert ijepa_vith14_1k/ -o ijepa_vith14_1k-f16.gguf
  jepa-cli convert my-vjepa2.pt -o my-vjepa2-q8_0.gguf --type q8_0 --hint img_size=256 --hint n_frames=64";

#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ConvertArgs {
    /// Hugging Face folder, or a .safetensors, .pt or .pth.tar file; nothing in it is executed
    #[arg(value_name = "SRC")]
    pub(crate) source: PathBuf,
    /// GGUF file to write
    #[arg(short, long, value_name = "OUT.gguf")]
    pub(crate) output: PathBuf,
    /// Family of the model [default: found in the checkpoint]
    #[arg(long, value_name = "FAMILY", value_parser = family())]
    pub(crate) family: Option<Family>,
    /// Which encoder of a training checkpoint [default: target, for V-JEPA 2-AC context]
    #[arg(long, value_enum)]
    pub(crate) encoder: Option<EncoderWord>,
    /// Type of the large matrices: f16, f32, bf16, q8_0 or any other block type
    #[arg(long = "type", value_name = "TYPE", default_value = "f16", value_parser = dtype)]
    pub(crate) dtype: GgmlType,
    /// What the checkpoint does not say; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(crate) hint: Vec<(String, String)>,
}

/// An encoder of a training checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncoderWord {
    /// The one that was trained
    Context,
    /// Its moving average
    Target,
}

impl From<EncoderWord> for EncoderChoice {
    fn from(word: EncoderWord) -> Self {
        match word {
            EncoderWord::Context => Self::Context,
            EncoderWord::Target => Self::Target,
        }
    }
}

fn family() -> impl TypedValueParser<Value = Family> {
    let words = PossibleValuesParser::new(Family::WORDS.iter().copied());
    words.map(|word| Family::from_word(&word).expect("one of the words"))
}

fn dtype(text: &str) -> Result<GgmlType, String> {
    GgmlType::from_name(text).ok_or_else(|| {
        let names: Vec<_> = GgmlType::ALL.iter().map(|t| t.name()).collect();
        format!("wanted one of {}", names.join(", "))
    })
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("wanted KEY=VALUE, for instance enc_n_head=16")?;
    Ok((key.to_owned(), value.to_owned()))
}
