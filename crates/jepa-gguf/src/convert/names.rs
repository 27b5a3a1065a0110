//! The names of a checkpoint, brought into the form that the mapping tables use.

use std::collections::BTreeMap;

use super::error::ConvertError;
use crate::checkpoint::{Checkpoint, SourceTensor};

/// Which of the encoders of a training checkpoint to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncoderChoice {
    /// The one that was trained.
    Context,
    /// Its moving average.
    Target,
}

impl EncoderChoice {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Target => "target",
        }
    }
}

/// A tensor of the checkpoint that does not become part of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Its name in the checkpoint.
    pub tensor: String,
    /// Why it is left out.
    pub why: &'static str,
}

/// How a layout names its tensors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Naming {
    /// Prefixes that may stand in front are taken off, then one is put there.
    Plain {
        /// Taken off, each at most once.
        strip: &'static [&'static str],
        /// Put in front.
        add: &'static str,
    },
    /// Meta's training checkpoints: a dictionary of encoders, predictor and training state. Names become `encoder.…` of the chosen encoder and
    /// `predictor.…`; the wrappers `module.` and `backbone.` are taken off.
    Meta {
        /// The encoder taken when the caller does not choose.
        default: EncoderChoice,
    },
}

/// Dictionaries of a training checkpoint that hold no weights of the model.
const TRAINING: &[&str] = &[
    "opt",
    "optimizer",
    "scaler",
    "scheduler",
    "wd_scheduler",
    "epoch",
    "itr",
    "loss",
    "batch_size",
    "world_size",
    "lr",
];

/// The tensors of a checkpoint under the names of a mapping table.
#[derive(Debug)]
pub(super) struct Names<'a> {
    tensors: BTreeMap<String, &'a SourceTensor>,
    set_aside: Vec<Dropped>,
}

impl<'a> Names<'a> {
    /// Brings the names into the form of a layout. Without the encoder that is wanted, the other one is taken when `any` is set.
    pub(super) fn new(
        checkpoint: &'a Checkpoint,
        naming: Naming,
        choice: Option<EncoderChoice>,
        any: bool,
    ) -> Result<Self, ConvertError> {
        let mut names = Self { tensors: BTreeMap::new(), set_aside: Vec::new() };
        match naming {
            Naming::Plain { strip, add } => {
                for tensor in checkpoint.tensors() {
                    let bare = strip.iter().find_map(|prefix| tensor.name.strip_prefix(prefix)).unwrap_or(&tensor.name);
                    names.insert(format!("{add}{bare}"), tensor)?;
                }
            }
            Naming::Meta { default } => {
                let encoder = encoder_of(checkpoint, choice.unwrap_or(default), any)?;
                for tensor in checkpoint.tensors() {
                    names.sort_in(tensor, encoder)?;
                }
            }
        }
        Ok(names)
    }

    /// A tensor of a training checkpoint.
    fn sort_in(&mut self, tensor: &'a SourceTensor, encoder: &str) -> Result<(), ConvertError> {
        let set_aside = |why| Dropped { tensor: tensor.name.clone(), why };
        match tensor.name.split_once('.') {
            Some((part, rest)) if part == encoder => self.insert(format!("encoder.{}", unwrapped(rest)), tensor),
            Some(("predictor", rest)) => self.insert(format!("predictor.{}", unwrapped(rest)), tensor),
            Some(("encoder" | "target_encoder" | "ema_encoder", _)) => {
                self.set_aside.push(set_aside("another encoder"));
                Ok(())
            }
            _ if TRAINING.contains(&tensor.name.split('.').next().unwrap_or_default()) => {
                self.set_aside.push(set_aside("state of the training"));
                Ok(())
            }
            _ => self.insert(tensor.name.clone(), tensor),
        }
    }

    fn insert(&mut self, name: String, tensor: &'a SourceTensor) -> Result<(), ConvertError> {
        match self.tensors.insert(name, tensor) {
            None => Ok(()),
            Some(other) => Err(ConvertError::TensorTwice { tensor: tensor.name.clone(), other: other.name.clone() }),
        }
    }

    /// The tensor under a name of the mapping table.
    pub(super) fn get(&self, name: &str) -> Option<&'a SourceTensor> {
        self.tensors.get(name).copied()
    }

    /// All names and tensors, in the order of the names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a SourceTensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), *tensor))
    }

    /// Whether a name starts with `prefix`.
    pub(super) fn any(&self, prefix: &str) -> bool {
        self.tensors.range(prefix.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// How many numbered groups there are: one more than the largest number behind `prefix`.
    pub(super) fn groups(&self, prefix: &str) -> usize {
        let behind = self.tensors.range(prefix.to_owned()..).map_while(|(name, _)| name.strip_prefix(prefix));
        let numbers = behind.filter_map(|rest| rest.split('.').next()?.parse::<usize>().ok());
        numbers.max().map_or(0, |largest| largest.saturating_add(1))
    }

    /// What the naming itself leaves out.
    pub(super) fn set_aside(&self) -> &[Dropped] {
        &self.set_aside
    }
}

/// The key of the chosen encoder in a training checkpoint.
fn encoder_of(checkpoint: &Checkpoint, choice: EncoderChoice, any: bool) -> Result<&'static str, ConvertError> {
    const KEYS: [(&str, EncoderChoice); 3] = [
        ("encoder", EncoderChoice::Context),
        ("target_encoder", EncoderChoice::Target),
        ("ema_encoder", EncoderChoice::Target),
    ];
    let has =
        |key: &str| checkpoint.tensors().iter().any(|t| t.name.split_once('.').is_some_and(|(part, _)| part == key));
    let there: Vec<_> = KEYS.into_iter().filter(|(key, _)| has(key)).collect();
    let wanted = there.iter().find(|(_, kind)| *kind == choice).or(if any { there.first() } else { None });
    match wanted {
        Some((key, _)) => Ok(*key),
        None if any => Ok("encoder"),
        None => {
            let found: Vec<_> = there.iter().map(|(key, _)| *key).collect();
            let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
            Err(ConvertError::NoEncoder { wanted: choice.word(), found })
        }
    }
}

/// A name without the wrappers of data-parallel training and of the video model.
fn unwrapped(mut name: &str) -> &str {
    while let Some(bare) = name.strip_prefix("module.").or_else(|| name.strip_prefix("backbone.")) {
        name = bare;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_come_off_in_any_order() {
        assert_eq!(unwrapped("module.backbone.blocks.0.norm1.bias"), "blocks.0.norm1.bias");
        assert_eq!(unwrapped("backbone.module.norm.bias"), "norm.bias");
        assert_eq!(unwrapped("norm.bias"), "norm.bias");
    }
}
