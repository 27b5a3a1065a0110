//! V-JEPA (1): Meta's training checkpoints.

use super::blocks::{META_BLOCKS, META_ENCODER, META_MASK_TOKENS, META_PREDICTOR, META_PREDICTOR_BLOCKS};
use super::error::ConvertError;
use super::hints::Hint;
use super::names::{EncoderChoice, Naming};
use super::processor::meta_video;
use super::registry::{Layout, clip_patches};
use super::rows::{Row, Take, row};
use super::sizes::{has_predictor, masked, meta_encoder, meta_predictor};
use super::source::{Source, side_of};
use crate::schema::{EncoderHparams, Family, Hparams, Modality, PosType, PredictorKind};

const TABLES: &[Row] = &[
    row("enc.pos_embed", Take::Table("encoder.pos_embed")),
    row("pred.pos_embed", Take::Table("predictor.predictor_pos_embed")),
];

/// Meta's `.pth.tar`.
pub(super) const META: Layout = Layout {
    family: Family::Vjepa,
    name: "Meta's training checkpoint",
    repositories: &["facebookresearch/jepa"],
    model_types: &[],
    naming: Naming::Meta { default: EncoderChoice::Target },
    marks: &["encoder.patch_embed.proj.weight", "encoder.pos_embed", "encoder.blocks.0.norm1.weight"],
    without: &["encoder.cls_token", "encoder.patch_embed_img.proj.weight", "predictor.action_encoder.weight"],
    fits: Some(clip_patches),
    rows: &[META_ENCODER, META_BLOCKS, META_PREDICTOR, META_PREDICTOR_BLOCKS, META_MASK_TOKENS, TABLES],
    drops: &[],
    read,
};

fn read(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let enc = meta_encoder(source, Family::Vjepa, PosType::Sincos3d)?;
    let (img_size, n_frames) = clip(source, &enc)?;
    let enc = EncoderHparams { img_size, n_frames, ..enc };
    let n_mask_tokens = source.names.groups("predictor.mask_tokens.");
    let kind = PredictorKind::Masked(masked(&enc, n_mask_tokens));
    let pred = has_predictor(source).then(|| meta_predictor(source, Family::Vjepa, &enc, kind)).transpose()?;
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Vjepa,
        modality: Modality::Video,
        pred,
        head: None,
        pre: meta_video(img_size),
        enc,
    })
}

/// Side and frames of the training clip. The table has their product, so one of them has to be known; the other follows.
fn clip(source: &Source<'_>, enc: &EncoderHparams) -> Result<(usize, usize), ConvertError> {
    const TABLE: &str = "encoder.pos_embed";
    let (rows, _) = source.table(TABLE, "enc.pos_embed")?;
    let (patch, tubelet) = (enc.patch_size, enc.tubelet_size);
    let misfit = |what: String| source.misshaped(TABLE, what, "the hints on img_size and n_frames");
    let frames_for = |img: usize| -> Result<usize, ConvertError> {
        let side = img / patch;
        let area = side.saturating_mul(side);
        let slots = if area > 0 && rows.is_multiple_of(area) { rows / area } else { 0 };
        if slots == 0 {
            return Err(misfit(format!("a multiple of {area} rows, the patches of a {img} x {img} picture")));
        }
        let hint = source.hints.get(Hint::NFrames).filter(|frames| frames / tubelet == slots);
        Ok(hint.unwrap_or(slots.saturating_mul(tubelet)))
    };
    if let Some(img) = source.hints.get(Hint::ImgSize) {
        return Ok((img, frames_for(img)?));
    }
    if let Some(frames) = source.hints.get(Hint::NFrames) {
        let slots = (frames / tubelet).max(1);
        let side = if rows.is_multiple_of(slots) { side_of(rows / slots) } else { None };
        let side = side.ok_or_else(|| misfit(format!("{slots} times a square number of rows")))?;
        return Ok((side.saturating_mul(patch), frames));
    }
    let img = source.hinted(Hint::ImgSize)?;
    Ok((img, frames_for(img)?))
}
