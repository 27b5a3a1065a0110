//! Hyper-parameters that several families read in the same way.

use super::blocks::META_ENCODER;
use super::config::Config;
use super::error::ConvertError;
use super::hints::Hint;
use super::labels;
use super::published::{encoder_heads, predictor_heads};
use super::rows::Take;
use super::source::{PatchConv, Source};
use crate::schema::{
    Activation, EncoderHparams, Family, HeadHparams, HeadKind, MaskedHparams, PosType, PredictorHparams, PredictorKind,
    RopeHparams, RopeLayout,
};

/// A number as a file keeps it: in single precision.
pub(super) fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

/// Pixels along a side of the pictures that V-JEPA 2.1's rotary positions were trained on.
pub(super) const ROPE_REFERENCE_SIDE: usize = 256;

/// Rotary positions over integer places.
pub(super) fn rope(layout: RopeLayout, patch: usize) -> RopeHparams {
    RopeHparams { theta: 10_000.0, layout, interpolate: false, ref_grid: (ROPE_REFERENCE_SIDE / patch).max(1) }
}

/// An encoder with these patches and what most families have in common; the caller fills in the rest.
pub(super) fn plain_encoder(conv: PatchConv, pos_type: PosType) -> EncoderHparams {
    EncoderHparams {
        tubelet_size: conv.tubelet,
        in_chans: conv.chans,
        ln_eps: single(1e-6),
        pos_type,
        ..EncoderHparams::vit([conv.width, 0, 1, 0], conv.patch, conv.patch)
    }
}

/// `hidden_act` of Hugging Face's configurations, whose default is the error-function GELU in all of these models.
pub(super) fn activation(config: &Config) -> Result<Activation, ConvertError> {
    const KEY: &str = "hidden_act";
    match config.text_opt(KEY)? {
        None | Some("gelu") => Ok(Activation::GeluErf),
        Some("gelu_new" | "gelu_pytorch_tanh") => Ok(Activation::GeluTanh),
        Some("silu" | "swish") => Ok(Activation::Silu),
        Some(other) => Err(config.bad(KEY, format!("{other:.40?}"), "gelu, gelu_new, gelu_pytorch_tanh or silu")),
    }
}

/// The width of an MLP, read off its tensor; a ratio in the configuration has to lead to it.
pub(super) fn ffn_by_ratio(
    source: &Source<'_>,
    config: &Config,
    key: &str,
    width: usize,
    tensor: &str,
) -> Result<usize, ConvertError> {
    let found = source.rows(tensor, "ffn_dim")?;
    match config.ratio_opt(key)? {
        // The references round the product down, and it may fall short of a whole number by a rounding error.
        Some(ratio) if !(-1.0..=1e-3).contains(&(found as f64 - ratio * width as f64 - 1e-3)) => {
            Err(config.contradicted(key, ratio, tensor, format!("{found} / {width}")))
        }
        _ => Ok(found),
    }
}

/// A linear classifier called `classifier` in the tensors, when there is one.
pub(super) fn classifier(source: &Source<'_>, layer: &str) -> Result<Option<HeadHparams>, ConvertError> {
    if !source.names.any(&format!("{layer}.")) {
        return Ok(None);
    }
    let (n_classes, _) = source.matrix(&format!("{layer}.weight"), "head.cls.weight")?;
    let labels = source.config.map(|config| labels::read(config, n_classes)).transpose()?.flatten();
    Ok(Some(HeadHparams::new(HeadKind::LinearCls, n_classes, labels)))
}

/// The patches of an encoder of Meta's training code.
pub(super) fn meta_patches(source: &Source<'_>) -> Result<PatchConv, ConvertError> {
    let Take::Conv(conv) = META_ENCODER[0].from else { unreachable!("patches are cut by a convolution") };
    source.patch_conv(&format!("{conv}.weight"))
}

/// An encoder of Meta's training code: everything but its positions, picture size and frames.
pub(super) fn meta_encoder(
    source: &Source<'_>,
    family: Family,
    pos_type: PosType,
) -> Result<EncoderHparams, ConvertError> {
    let conv = meta_patches(source)?;
    Ok(EncoderHparams {
        n_layer: source.blocks("encoder.blocks.")?,
        n_head: source.hinted_heads(Hint::EncHeads, conv.width, encoder_heads(family, conv.width))?,
        ffn_dim: source.rows("encoder.blocks.0.mlp.fc1.weight", "jepa.enc.ffn_dim")?,
        ..plain_encoder(conv, pos_type)
    })
}

/// As [`meta_encoder`] with rotary positions: nothing in the file says for which pictures and clips.
pub(super) fn meta_rope_encoder(
    source: &Source<'_>,
    family: Family,
    layout: RopeLayout,
) -> Result<EncoderHparams, ConvertError> {
    let enc = meta_encoder(source, family, PosType::Rope3d)?;
    Ok(EncoderHparams {
        img_size: source.hinted(Hint::ImgSize)?,
        n_frames: source.hinted(Hint::NFrames)?,
        rope: Some(rope(layout, enc.patch_size)),
        ..enc
    })
}

/// The numbers that every predictor of Meta's training code has; the width of what it predicts is that of `predictor_proj`.
pub(super) fn meta_predictor(
    source: &Source<'_>,
    family: Family,
    enc: &EncoderHparams,
    kind: PredictorKind,
) -> Result<PredictorHparams, ConvertError> {
    let embed_dim = source.rows("predictor.predictor_norm.weight", "jepa.pred.embed_dim")?;
    let usual = predictor_heads(family, embed_dim, enc.n_head);
    let n_head = source.hinted_heads(Hint::PredHeads, embed_dim, usual)?;
    Ok(PredictorHparams {
        embed_dim,
        n_layer: source.blocks("predictor.predictor_blocks.")?,
        n_head,
        head_dim: embed_dim / n_head,
        ffn_dim: source.rows("predictor.predictor_blocks.0.mlp.fc1.weight", "jepa.pred.ffn_dim")?,
        out_dim: source.rows("predictor.predictor_proj.weight", "jepa.pred.out_dim")?,
        ln_eps: enc.ln_eps,
        act: Activation::GeluErf,
        qkv_bias: true,
        kind,
    })
}

/// A masked predictor with one input and nothing else set.
pub(super) fn masked(enc: &EncoderHparams, n_mask_tokens: usize) -> MaskedHparams {
    MaskedHparams {
        n_mask_tokens,
        rope: enc.rope.map(|r| rope(r.layout, enc.patch_size)),
        grid_size: enc.img_size / enc.patch_size,
        n_hier_in: 1,
        embed_hidden: None,
        modality_embed: false,
        context_proj: false,
    }
}

/// Whether a training checkpoint has a predictor.
pub(super) fn has_predictor(source: &Source<'_>) -> bool {
    source.names.any("predictor.")
}
