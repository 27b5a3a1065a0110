//! What Meta's checkpoints do not say, said by the caller.

use std::collections::BTreeMap;

use super::error::ConvertError;
use crate::schema::{Hparams, KeyKind, key_spec};

/// Declares the hints with the key of the schema each one stands for.
macro_rules! hints {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $key:literal, $what:literal;)+) => {
        /// A number that a checkpoint may leave out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Hint { $($(#[$doc])* $variant),+ }

        impl Hint {
            /// Every hint.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word for it.
            pub const fn word(self) -> &'static str { match self { $(Self::$variant => $word),+ } }
            /// The key of the schema it stands for.
            pub const fn key(self) -> &'static str { match self { $(Self::$variant => $key),+ } }
            /// What it means.
            pub const fn what(self) -> &'static str { match self { $(Self::$variant => $what),+ } }
        }
    };
}

hints! {
    /// Side of the training crop in pixels.
    ImgSize = "img_size", "jepa.enc.img_size", "the side of the training crop in pixels";
    /// Side of a patch in pixels.
    PatchSize = "patch_size", "jepa.enc.patch_size", "the side of a patch in pixels";
    /// Frames of a training clip.
    NFrames = "n_frames", "jepa.enc.n_frames", "the frames of a training clip";
    /// Frames in one token.
    TubeletSize = "tubelet_size", "jepa.enc.tubelet_size", "the frames in one token";
    /// Attention heads of the encoder.
    EncHeads = "enc_n_head", "jepa.enc.n_head", "the encoder's attention heads";
    /// Attention heads of the predictor.
    PredHeads = "pred_n_head", "jepa.pred.n_head", "the predictor's attention heads";
}

/// The hint that is a list: which blocks of a V-JEPA 2.1 encoder have a norm of their own.
pub(super) const HIER_LAYERS: &str = "hier_layers";

/// Hints, each at most once.
///
/// ```
/// use jepa_gguf::convert::{Hint, Hints};
/// let mut hints = Hints::default();
/// hints.add("enc_n_head", "16")?;
/// assert_eq!(hints.get(Hint::EncHeads), Some(16));
/// assert!(hints.add("heads", "16").is_err());
/// # Ok::<(), jepa_gguf::convert::ConvertError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    values: BTreeMap<Hint, usize>,
    hier_layers: Option<Vec<usize>>,
}

impl Hints {
    /// Adds a hint as it was typed.
    ///
    /// # Errors
    /// [`ConvertError::UnknownHint`], [`ConvertError::HintValue`] for a value outside the schema's range or a second value.
    pub fn add(&mut self, word: &str, value: &str) -> Result<(), ConvertError> {
        let bad =
            |wanted: String| ConvertError::HintValue { hint: word.to_owned(), found: format!("{value:?}"), wanted };
        if word == HIER_LAYERS {
            let layers: Result<Vec<usize>, _> = value.split(',').map(|layer| layer.trim().parse()).collect();
            let layers = layers.map_err(|_| bad("blocks counted from 0, as in 2,5,8,11".to_owned()))?;
            return match self.hier_layers.replace(layers) {
                None => Ok(()),
                Some(_) => Err(bad("one value".to_owned())),
            };
        }
        let Some(&hint) = Hint::ALL.iter().find(|hint| hint.word() == word) else {
            let known = Hint::ALL.iter().map(|h| h.word()).chain([HIER_LAYERS]).collect::<Vec<_>>().join(", ");
            return Err(ConvertError::UnknownHint { hint: word.to_owned(), known });
        };
        let (min, max) = range(hint.key());
        let number = value.parse::<u64>().ok().filter(|n| (min..=max).contains(n));
        let number = number.ok_or_else(|| bad(format!("{min} to {max}")))?;
        match self.values.insert(hint, number as usize) {
            None => Ok(()),
            Some(_) => Err(bad("one value".to_owned())),
        }
    }

    /// The value of a hint.
    pub fn get(&self, hint: Hint) -> Option<usize> {
        self.values.get(&hint).copied()
    }

    /// The blocks named by `hier_layers`.
    pub fn hier_layers(&self) -> Option<&[usize]> {
        self.hier_layers.as_deref()
    }

    /// Refuses hints that the finished hyper-parameters contradict.
    pub(super) fn check(&self, hp: &Hparams) -> Result<(), ConvertError> {
        for (&hint, &found) in &self.values {
            let says = match hint {
                Hint::ImgSize => Some(hp.enc.img_size),
                Hint::PatchSize => Some(hp.enc.patch_size),
                Hint::NFrames => Some(hp.enc.n_frames),
                Hint::TubeletSize => Some(hp.enc.tubelet_size),
                Hint::EncHeads => Some(hp.enc.n_head),
                Hint::PredHeads => hp.pred.as_ref().map(|p| p.n_head),
            };
            if says != Some(found) {
                let says = says.map_or_else(|| "there is no predictor".to_owned(), |n| n.to_string());
                return Err(ConvertError::HintContradicts { hint: hint.word(), found: found.to_string(), says });
            }
        }
        match &self.hier_layers {
            Some(layers) if *layers != hp.enc.hier_layers => Err(ConvertError::HintContradicts {
                hint: HIER_LAYERS,
                found: format!("{layers:?}"),
                says: format!("{:?}", hp.enc.hier_layers),
            }),
            _ => Ok(()),
        }
    }
}

/// Range of an integer key of the schema.
pub(super) fn range(key: &str) -> (u64, u64) {
    match key_spec(key).map(|spec| spec.kind) {
        Some(KeyKind::Count { min, max }) => (min, max),
        _ => unreachable!("{key} is a count of the schema"),
    }
}
