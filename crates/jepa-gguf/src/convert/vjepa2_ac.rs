//! V-JEPA 2-AC: Meta's training checkpoints with the action-conditioned predictor. The family stays vjepa2.

use super::blocks::{META_BLOCKS, META_ENCODER, META_PREDICTOR, META_PREDICTOR_BLOCKS};
use super::error::ConvertError;
use super::hints::Hint;
use super::names::{EncoderChoice, Naming};
use super::processor::imagenet;
use super::registry::{Drop, Layout, clip_patches};
use super::rows::{Row, Take, row};
use super::sizes::{meta_predictor, meta_rope_encoder, rope, single};
use super::source::Source;
use super::vjepa2;
use crate::schema::{AcHparams, Family, Hparams, Modality, PredictorKind, Resample, ResizeMode, RopeLayout};

const CONDITIONS: &[Row] = &[
    row("pred.action_embed", Take::Layer("predictor.action_encoder")),
    row("pred.state_embed", Take::Layer("predictor.state_encoder")),
];

/// Epsilon of the norm between the steps, which the reference wrapper fixes.
const NORM_REPS_EPS: f64 = 1e-5;

/// Meta's `.pt`.
pub(super) const META: Layout = Layout {
    name: "Meta's training checkpoint of V-JEPA 2-AC",
    naming: Naming::Meta { default: EncoderChoice::Context },
    marks: &[
        "encoder.patch_embed.proj.weight",
        "encoder.norm.weight",
        "predictor.action_encoder.weight",
        "predictor.state_encoder.weight",
    ],
    without: &["encoder.cls_token", "encoder.patch_embed_img.proj.weight"],
    fits: Some(clip_patches),
    rows: &[META_ENCODER, META_BLOCKS, META_PREDICTOR, META_PREDICTOR_BLOCKS, CONDITIONS],
    drops: &[
        vjepa2::META_DROPS[0],
        vjepa2::META_DROPS[1],
        Drop("predictor.extrinsics_encoder.", "camera poses that no released model uses"),
    ],
    read,
    ..vjepa2::META
};

fn read(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let enc = meta_rope_encoder(source, Family::Vjepa2, RopeLayout::Tiled)?;
    let n_frames = enc.n_frames / enc.tubelet_size;
    if n_frames == 0 {
        return Err(ConvertError::HintValue {
            hint: Hint::NFrames.word().to_owned(),
            found: enc.n_frames.to_string(),
            wanted: format!("at least the {} frames of a token", enc.tubelet_size),
        });
    }
    let (_, action_dim) = source.matrix("predictor.action_encoder.weight", "pred.action_embed.weight")?;
    let (_, state_dim) = source.matrix("predictor.state_encoder.weight", "pred.state_embed.weight")?;
    let ac = AcHparams {
        rope: rope(RopeLayout::Tiled, enc.patch_size),
        grid_size: enc.img_size / enc.patch_size,
        action_dim,
        state_dim,
        frame_causal: true,
        n_frames,
        normalize_reps: true,
        norm_reps_eps: single(NORM_REPS_EPS),
    };
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Vjepa2,
        modality: Modality::Video,
        pred: Some(meta_predictor(source, Family::Vjepa2, &enc, PredictorKind::Ac(ac))?),
        head: None,
        pre: imagenet(enc.img_size, enc.img_size, Resample::Bilinear, ResizeMode::ShortestEdge),
        enc,
    })
}
