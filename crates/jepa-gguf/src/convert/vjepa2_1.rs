//! V-JEPA 2.1: Meta's training checkpoints.

use super::blocks::{META_BLOCKS, META_ENCODER, META_MASK_TOKENS, META_PREDICTOR, META_PREDICTOR_BLOCKS};
use super::error::ConvertError;
use super::hints::HIER_LAYERS;
use super::names::{EncoderChoice, Naming};
use super::processor::meta_video;
use super::registry::{Layout, clip_patches};
use super::rows::{Row, Take, row};
use super::sizes::{has_predictor, masked, meta_predictor, meta_rope_encoder};
use super::source::Source;
use super::vjepa2;
use crate::schema::{
    EncoderHparams, Family, Hparams, MaskedHparams, Modality, PredictorHparams, PredictorKind, RopeHparams, RopeLayout,
};

use Take::{Conv, Layer, Table};

const OWN: &[Row] = &[
    row("enc.patch_embed_img", Conv("encoder.patch_embed_img.proj")),
    row("enc.mod_embed_img", Table("encoder.img_mod_embed")),
    row("enc.mod_embed_video", Table("encoder.video_mod_embed")),
    row("enc.hier_norm.{i}", Layer("encoder.norms_block.{i}")),
    row("enc.norm", Layer("encoder.norms_block.{last}")),
    row("pred.embed.0", Layer("predictor.predictor_embed.0")),
    row("pred.embed.2", Layer("predictor.predictor_embed.2")),
    row("pred.mod_embed_img", Table("predictor.img_mod_embed")),
    row("pred.mod_embed_video", Table("predictor.video_mod_embed")),
    row("pred.proj_context", Layer("predictor.predictor_proj_context")),
];

/// Meta's `.pt`. Its own rows come first: this encoder's last norm is not called `norm`.
pub(super) const META: Layout = Layout {
    family: Family::Vjepa2_1,
    name: "Meta's training checkpoint",
    repositories: &["facebookresearch/vjepa2"],
    model_types: &[],
    naming: Naming::Meta { default: EncoderChoice::Target },
    marks: &["encoder.patch_embed.proj.weight", "encoder.norms_block.0.weight", "encoder.blocks.0.norm1.weight"],
    without: &["encoder.cls_token", "encoder.norm.weight"],
    fits: Some(clip_patches),
    rows: &[OWN, META_ENCODER, META_BLOCKS, META_PREDICTOR, META_PREDICTOR_BLOCKS, META_MASK_TOKENS],
    drops: vjepa2::META_DROPS,
    read,
};

fn read(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let enc = meta_rope_encoder(source, Family::Vjepa2_1, RopeLayout::Interleaved)?;
    let enc = EncoderHparams {
        rope: enc.rope.map(|rope| RopeHparams { interpolate: true, ..rope }),
        modality_embed: source.names.any("encoder.img_mod_embed"),
        image_patch_embed: source.names.any("encoder.patch_embed_img."),
        hier_layers: hier_layers(source, enc.n_layer)?,
        ..enc
    };
    let pred = has_predictor(source).then(|| predictor(source, &enc)).transpose()?;
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Vjepa2_1,
        modality: Modality::ImageAndVideo,
        pred,
        head: None,
        pre: meta_video(enc.img_size),
        enc,
    })
}

/// The blocks that have a norm of their own: a table by depth in the reference code, for other depths a hint.
fn hier_layers(source: &Source<'_>, n_layer: usize) -> Result<Vec<usize>, ConvertError> {
    let norms = source.names.groups("encoder.norms_block.");
    let layers: &[usize] = match (source.hints.hier_layers(), n_layer) {
        (Some(hint), _) => hint,
        (None, 12) => &[2, 5, 8, 11],
        (None, 24) => &[5, 11, 17, 23],
        (None, 40) => &[9, 19, 29, 39],
        (None, 48) => &[11, 23, 37, 47],
        (None, _) => {
            return Err(ConvertError::MissingHint { hint: HIER_LAYERS, what: "which blocks have a norm of their own" });
        }
    };
    match layers.len() == norms {
        true => Ok(layers.to_vec()),
        false => Err(ConvertError::HintContradicts {
            hint: HIER_LAYERS,
            found: format!("{layers:?}"),
            says: format!("{norms} norms (encoder.norms_block)"),
        }),
    }
}

fn predictor(source: &Source<'_>, enc: &EncoderHparams) -> Result<PredictorHparams, ConvertError> {
    const PROJ: &str = "predictor.predictor_proj.weight";
    let joined = source.names.any("predictor.predictor_embed.0.");
    let n_hier_in = if joined { enc.hier_layers.len() } else { 1 };
    let embed_hidden =
        joined.then(|| source.rows("predictor.predictor_embed.0.weight", "pred.embed.0.weight")).transpose()?;
    let masked = MaskedHparams {
        n_hier_in,
        embed_hidden,
        modality_embed: source.names.any("predictor.img_mod_embed"),
        context_proj: source.names.any("predictor.predictor_proj_context."),
        ..masked(enc, source.names.groups("predictor.mask_tokens."))
    };
    let pred = meta_predictor(source, Family::Vjepa2_1, enc, PredictorKind::Masked(masked))?;
    if !pred.out_dim.is_multiple_of(n_hier_in) {
        return Err(source.misshaped(PROJ, format!("a multiple of {n_hier_in} rows"), "jepa.pred.n_hier_in"));
    }
    Ok(PredictorHparams { out_dim: pred.out_dim / n_hier_in, ..pred })
}
