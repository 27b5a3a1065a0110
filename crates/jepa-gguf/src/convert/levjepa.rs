//! LeVJEPA.

use super::blocks::{META_BLOCKS, META_ENCODER};
use super::error::ConvertError;
use super::names::Naming;
use super::processor::imagenet;
use super::registry::{Layout, clip_patches};
use super::rows::{Row, Take, row};
use super::sizes::{ffn_by_ratio, plain_encoder, rope};
use super::source::Source;
use crate::schema::{AttnMode, EncoderHparams, Family, Hparams, Modality, PosType, Resample, ResizeMode, RopeLayout};

const TOKENS: &[Row] = &[row("enc.cls_token", Take::Table("encoder.cls_token"))];

/// As its authors store it.
pub(super) const HUB: Layout = Layout {
    family: Family::Levjepa,
    name: "Hugging Face",
    repositories: &["galilai-group/LeVJEPA-VideoMix-Large"],
    model_types: &["levjepa"],
    naming: Naming::Plain { strip: &[], add: "" },
    marks: &["encoder.patch_embed.proj.weight", "encoder.cls_token", "encoder.blocks.0.norm1.weight"],
    without: &["encoder.pos_embed"],
    fits: Some(clip_patches),
    rows: &[META_ENCODER, META_BLOCKS, TOKENS],
    drops: &[],
    read,
};

fn read(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let config = source.config()?;
    config.insist("use_rope", true)?;
    config.insist("qkv_bias", true)?;
    let conv = source.patch_conv("encoder.patch_embed.proj.weight")?;
    let embed_dim = config.count("embed_dim", "jepa.enc.embed_dim")?;
    let img_size = config.count("img_size", "jepa.enc.img_size")?;
    let mode = config.word_opt("attn_mode", "jepa.enc.attn_mode", AttnMode::from_word)?;
    let enc = EncoderHparams {
        embed_dim,
        n_layer: source.blocks_as_in(config, "depth", "jepa.enc.n_layer", "encoder.blocks.")?,
        n_head: config.heads("num_heads", "jepa.enc.n_head", embed_dim)?,
        ffn_dim: ffn_by_ratio(source, config, "mlp_ratio", embed_dim, "encoder.blocks.0.mlp.fc1.weight")?,
        patch_size: config.count("patch_size", "jepa.enc.patch_size")?,
        tubelet_size: config.count("tubelet_size", "jepa.enc.tubelet_size")?,
        img_size,
        n_frames: config.count("num_frames", "jepa.enc.n_frames")?,
        in_chans: config.count_opt("in_chans", "jepa.enc.in_chans")?.unwrap_or(conv.chans),
        rope: Some(rope(RopeLayout::Tiled, conv.patch)),
        cls_token: true,
        attn_mode: mode.ok_or_else(|| config.bad("attn_mode", "nothing", AttnMode::WORDS.join(", ")))?,
        ..plain_encoder(conv, PosType::Rope3d)
    };
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Levjepa,
        modality: Modality::Video,
        pred: None,
        head: None,
        // The model card's, since the folder has no processor.
        pre: imagenet(img_size, img_size, Resample::Bicubic, ResizeMode::ShortestEdge),
        enc,
    })
}
