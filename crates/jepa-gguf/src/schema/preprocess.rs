//! `jepa.pre.*`: reading the preprocessing keys.

use super::hparams::{EncoderHparams, PreprocessHparams, Resample, ResizeMode};
use super::reader::{Reader, bad_value};
use crate::error::GgufError;

/// Reads `jepa.pre.*`.
pub(super) fn read(keys: Reader<'_>, enc: &EncoderHparams) -> Result<PreprocessHparams, GgufError> {
    let crop = keys.count_opt("jepa.pre.crop")?.unwrap_or(enc.img_size);
    if crop < enc.patch_size {
        return Err(bad_value("jepa.pre.crop", crop, format!("at least jepa.enc.patch_size ({})", enc.patch_size)));
    }
    // Narrow first: an f64 may be finite and positive and still overflow or vanish as f32.
    let rescale = keys.real("jepa.pre.rescale")? as f32;
    if !rescale.is_normal() {
        return Err(bad_value("jepa.pre.rescale", rescale, "a finite f32 above 0"));
    }
    Ok(PreprocessHparams {
        mean: keys.channels("jepa.pre.mean")?,
        std: keys.channels("jepa.pre.std")?,
        resize_short: keys.count_opt("jepa.pre.resize_short")?.unwrap_or(crop),
        crop,
        resample: keys.word("jepa.pre.resample", Resample::from_word)?,
        resize_mode: keys.word("jepa.pre.resize_mode", ResizeMode::from_word)?,
        rescale,
    })
}
