//! I-JEPA: Hugging Face's `IJepaModel` and `IJepaForImageClassification`, and Meta's training checkpoints.

use super::blocks::{
    HUB_CLASSIFIER, MEMORY_VIT, META_BLOCKS, META_ENCODER, META_PREDICTOR, META_PREDICTOR_BLOCKS, hub_vit,
};
use super::error::ConvertError;
use super::hints::Hint;
use super::names::{EncoderChoice, Naming};
use super::processor::{Processor, imagenet};
use super::registry::{Drop, Layout, picture_patches};
use super::rows::{Row, Take, row};
use super::sizes::{activation, classifier, has_predictor, masked, meta_encoder, meta_predictor, plain_encoder};
use super::source::{Source, side_of};
use crate::schema::{EncoderHparams, Family, Hparams, Modality, PosType, PredictorKind, Resample, ResizeMode};

const REPOSITORIES: &[&str] =
    &["facebook/ijepa_vith14_1k", "facebook/ijepa_vith16_1k", "facebook/ijepa_vith14_22k", "facebook/ijepa_vitg16_22k"];

const HUB_DROPS: &[Drop] = &[
    Drop("pooler.", "pooler that no reference output uses"),
    Drop("mask_token", "mask token of no use to the encoder"),
    Drop("embeddings.mask_token", "mask token of no use to the encoder"),
];

const META_TABLES: &[Row] = &[
    row("enc.pos_embed", Take::Table("encoder.pos_embed")),
    row("pred.mask_tokens", Take::Table("predictor.mask_token")),
    row("pred.pos_embed", Take::Table("predictor.predictor_pos_embed")),
];

/// As the Hub stores it, and as `save_pretrained` does.
pub(crate) const HUB: Layout = Layout {
    family: Family::Ijepa,
    name: "Hugging Face",
    repositories: REPOSITORIES,
    model_types: &["ijepa"],
    naming: Naming::Plain { strip: &["ijepa."], add: "" },
    marks: &[
        "embeddings.patch_embeddings.projection.weight",
        "embeddings.position_embeddings",
        "encoder.layer.0.layernorm_before.weight",
    ],
    without: &["embeddings.cls_token"],
    fits: None,
    rows: &[hub_vit!(""), HUB_CLASSIFIER],
    drops: HUB_DROPS,
    read: hub,
};

/// As transformers 5 names it in memory.
pub(super) const MEMORY: Layout = Layout {
    name: "transformers 5 in memory",
    marks: &[
        "embeddings.patch_embeddings.projection.weight",
        "embeddings.position_embeddings",
        "layers.0.layernorm_before.weight",
    ],
    rows: &[MEMORY_VIT, HUB_CLASSIFIER],
    ..HUB
};

/// Meta's `.pth.tar`.
pub(super) const META: Layout = Layout {
    family: Family::Ijepa,
    name: "Meta's training checkpoint",
    repositories: &["facebookresearch/ijepa"],
    model_types: &[],
    naming: Naming::Meta { default: EncoderChoice::Target },
    marks: &["encoder.patch_embed.proj.weight", "encoder.pos_embed", "encoder.blocks.0.norm1.weight"],
    without: &["encoder.cls_token", "encoder.patch_embed_img.proj.weight"],
    fits: Some(picture_patches),
    rows: &[META_ENCODER, META_BLOCKS, META_PREDICTOR, META_PREDICTOR_BLOCKS, META_TABLES],
    drops: &[],
    read: meta,
};

fn hub(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let config = source.config()?;
    let conv = source.patch_conv("embeddings.patch_embeddings.projection.weight")?;
    let embed_dim = config.count("hidden_size", "jepa.enc.embed_dim")?;
    let blocks = if source.names.any("layers.") { "layers." } else { "encoder.layer." };
    let enc = EncoderHparams {
        embed_dim,
        n_layer: source.blocks_as_in(config, "num_hidden_layers", "jepa.enc.n_layer", blocks)?,
        n_head: config.heads("num_attention_heads", "jepa.enc.n_head", embed_dim)?,
        ffn_dim: config.count("intermediate_size", "jepa.enc.ffn_dim")?,
        patch_size: config.count("patch_size", "jepa.enc.patch_size")?,
        img_size: config.count("image_size", "jepa.enc.img_size")?,
        in_chans: config.count_opt("num_channels", "jepa.enc.in_chans")?.unwrap_or(conv.chans),
        ln_eps: config.real("layer_norm_eps")?,
        act: activation(config)?,
        ..plain_encoder(conv, PosType::Sincos2d)
    };
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Ijepa,
        modality: Modality::Image,
        head: classifier(source, "classifier")?,
        pred: None,
        pre: Processor::Image.read(source.folder)?,
        enc,
    })
}

fn meta(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let enc = meta_encoder(source, Family::Ijepa, PosType::Sincos2d)?;
    let (patches, _) = source.table("encoder.pos_embed", "enc.pos_embed")?;
    let side = side_of(patches).ok_or_else(|| {
        source.misshaped("encoder.pos_embed", "a square number of rows".to_owned(), "patches of a square picture")
    })?;
    // A picture that is no whole number of patches has the same table.
    let hint = source.hints.get(Hint::ImgSize).filter(|img| img / enc.patch_size == side);
    let img_size = hint.unwrap_or(side.saturating_mul(enc.patch_size));
    let enc = EncoderHparams { img_size, ..enc };
    let pred = has_predictor(source)
        .then(|| meta_predictor(source, Family::Ijepa, &enc, PredictorKind::Masked(masked(&enc, 1))))
        .transpose()?;
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Ijepa,
        modality: Modality::Image,
        pred,
        head: None,
        pre: imagenet(img_size, img_size, Resample::Bilinear, ResizeMode::Squash),
        enc,
    })
}
