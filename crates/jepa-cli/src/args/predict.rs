use std::path::PathBuf;

use clap::Args;

use super::{InputArgs, ModelArgs};

/// Most ids that a range may name: more than any grid has, less than memory.
const MOST_IDS: usize = 1 << 24;

#[derive(Args, Debug)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Patches that are seen: ids such as 0,1,5-9, or an .npy of them, [ids] or [inputs, ids]
    #[arg(long, value_name = "IDS")]
    pub(crate) context: Ids,
    /// Patches to predict, in the order of the output
    #[arg(long, value_name = "IDS")]
    pub(crate) targets: Ids,
    /// Which mask token stands for the targets, modulo their number
    #[arg(long, value_name = "I", default_value = "1")]
    pub(crate) mask_index: usize,
    /// File to write: .npy with the targets, or .safetensors with `pred` and, where the model has it, `context`
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}

/// Token ids as they are typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// In the argument itself.
    Listed(Vec<usize>),
    /// In a `.npy` file.
    File(PathBuf),
}

impl std::str::FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.ends_with(".npy") {
            return Ok(Self::File(text.into()));
        }
        let mut ids = Vec::new();
        for word in text.split(',').map(str::trim) {
            let number = |digits: &str| {
                digits
                    .trim()
                    .parse::<usize>()
                    .map_err(|_| format!("`{word}` is no id; write for instance 0,1,5-9, or name an .npy file"))
            };
            match word.split_once('-') {
                None => ids.push(number(word)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last || last - first >= MOST_IDS {
                        return Err(format!("the range `{word}` runs backwards or is too long"));
                    }
                    ids.extend(first..=last);
                }
            }
        }
        Ok(Self::Listed(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbers_and_ranges_in_their_order() {
        assert_eq!("7, 0-2,5".parse(), Ok(Ids::Listed(vec![7, 0, 1, 2, 5])));
        assert_eq!("a.npy".parse(), Ok(Ids::File("a.npy".into())));
        for wrong in ["", "1,", "x", "5-2", "1-", "0-99999999999", "-3"] {
            assert!(wrong.parse::<Ids>().is_err(), "{wrong}");
        }
    }
}
