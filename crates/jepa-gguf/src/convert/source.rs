//! What a family's mapping reads its numbers off: the tensors under their table names, `config.json`, and the caller's hints.

use std::path::Path;

use super::config::Config;
use super::error::ConvertError;
use super::hints::{Hint, Hints};
use super::names::Names;
use super::published::PublishedFile;
use crate::limits::{MAX_LAYERS, MAX_WIDTH};

/// A checkpoint as its family's mapping sees it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) names: &'a Names<'a>,
    pub(super) config: Option<&'a Config>,
    pub(super) hints: &'a Hints,
    /// The folder the weights lie in, when a folder was given.
    pub(super) folder: Option<&'a Path>,
    /// The published file that this is by its name.
    pub(super) published: Option<&'static PublishedFile>,
}

/// A convolution over patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatchConv {
    pub(super) width: usize,
    pub(super) chans: usize,
    pub(super) tubelet: usize,
    pub(super) patch: usize,
}

impl Source<'_> {
    /// The configuration, which every layout that calls this has.
    pub(super) fn config(&self) -> Result<&Config, ConvertError> {
        let why = "the layout keeps its sizes there";
        self.config.ok_or_else(|| ConvertError::MissingFile { file: "config.json".to_owned(), why })
    }

    /// Shape of a tensor that sizes are read off for `target`.
    pub(super) fn shape(&self, name: &str, target: &str) -> Result<&[usize], ConvertError> {
        let tensor = self.names.get(name).ok_or_else(|| ConvertError::MissingTensor {
            tensor: name.to_owned(),
            target: target.to_owned(),
            wanted: Vec::new(),
        })?;
        match tensor.shape.iter().find(|&&size| size == 0 || size as u64 > MAX_WIDTH) {
            None => Ok(&tensor.shape),
            Some(_) => Err(self.misshaped(name, format!("sizes from 1 to {MAX_WIDTH}"), target)),
        }
    }

    /// Rows of a matrix, or values of a vector.
    pub(super) fn rows(&self, name: &str, target: &str) -> Result<usize, ConvertError> {
        let shape = self.shape(name, target)?;
        shape.first().copied().ok_or_else(|| self.misshaped(name, "a vector or a matrix".to_owned(), target))
    }

    /// Rows and columns of a matrix.
    pub(super) fn matrix(&self, name: &str, target: &str) -> Result<(usize, usize), ConvertError> {
        match *self.shape(name, target)? {
            [rows, columns] => Ok((rows, columns)),
            _ => Err(self.misshaped(name, "a matrix".to_owned(), target)),
        }
    }

    /// Rows and columns of a table that may have sizes of 1 in front.
    pub(super) fn table(&self, name: &str, target: &str) -> Result<(usize, usize), ConvertError> {
        match *self.shape(name, target)? {
            [rows, columns] | [1, rows, columns] => Ok((rows, columns)),
            _ => Err(self.misshaped(name, "[rows, width], with or without a 1 in front".to_owned(), target)),
        }
    }

    /// The sizes of a convolution over patches of pictures (`[D, C, P, P]`) or clips (`[D, C, τ, P, P]`).
    pub(super) fn patch_conv(&self, name: &str) -> Result<PatchConv, ConvertError> {
        match *self.shape(name, "enc.patch_embed.weight")? {
            [width, chans, patch, side] if patch == side => Ok(PatchConv { width, chans, tubelet: 1, patch }),
            [width, chans, tubelet, patch, side] if patch == side => Ok(PatchConv { width, chans, tubelet, patch }),
            _ => {
                let wanted = "[width, channels, P, P] or [width, channels, frames, P, P]".to_owned();
                Err(self.misshaped(name, wanted, "jepa.enc.patch_size"))
            }
        }
    }

    /// The error for a tensor whose sizes cannot be used.
    pub(super) fn misshaped(&self, name: &str, wanted: String, reason: &str) -> ConvertError {
        let (tensor, found) =
            self.names.get(name).map_or_else(|| (name.to_owned(), Vec::new()), |t| (t.name.clone(), t.shape.clone()));
        ConvertError::TensorShape { tensor, found, wanted, reason: reason.to_owned() }
    }

    /// Blocks of a stack, counted in the tensors.
    pub(super) fn blocks(&self, prefix: &str) -> Result<usize, ConvertError> {
        let found = self.names.groups(prefix);
        if found as u64 <= MAX_LAYERS {
            return Ok(found);
        }
        Err(ConvertError::Unsupported {
            what: format!("tensors {prefix}{}", found - 1),
            why: "a stack has at most 1024 blocks",
        })
    }

    /// Blocks of a stack as a key of the configuration says, which the tensors have to agree with.
    pub(super) fn blocks_as_in(
        &self,
        config: &Config,
        key: &str,
        of: &'static str,
        prefix: &str,
    ) -> Result<usize, ConvertError> {
        let wanted = config.count(key, of)?;
        match self.names.groups(prefix) {
            found if found == wanted => Ok(wanted),
            found => Err(config.block_count(key, wanted, &format!("{prefix}{{i}}"), found)),
        }
    }

    /// A number that the tensors say, unless the configuration has it and disagrees.
    pub(super) fn agreed(
        &self,
        config: &Config,
        key: &str,
        of: &'static str,
        says: usize,
        tensor: &str,
    ) -> Result<usize, ConvertError> {
        match config.count_opt(key, of)? {
            Some(found) if found != says => Err(config.contradicted(key, found, tensor, says)),
            _ => Ok(says),
        }
    }

    /// A number that only a hint can say, or the published file this is.
    pub(super) fn hinted(&self, hint: Hint) -> Result<usize, ConvertError> {
        let published = || self.published.and_then(|file| file.hint(hint));
        self.hints
            .get(hint)
            .or_else(published)
            .ok_or(ConvertError::MissingHint { hint: hint.word(), what: hint.what() })
    }

    /// Attention heads that only a hint can say: `usual` is what the published models of this width have.
    pub(super) fn hinted_heads(&self, hint: Hint, width: usize, usual: Option<usize>) -> Result<usize, ConvertError> {
        let heads = match (self.hints.get(hint), usual) {
            (Some(heads), _) | (None, Some(heads)) => heads,
            (None, None) => return Err(ConvertError::MissingHint { hint: hint.word(), what: hint.what() }),
        };
        if width.is_multiple_of(heads) {
            return Ok(heads);
        }
        let wanted = format!("a divisor of the width {width}");
        Err(ConvertError::HintValue { hint: hint.word().to_owned(), found: heads.to_string(), wanted })
    }
}

/// The side of a square of `patches`.
pub(super) fn side_of(patches: usize) -> Option<usize> {
    let side = patches.isqrt();
    (side * side == patches).then_some(side)
}
