//! DINOv2-style ViTs with a CLS token: lite_ssl's ViTv2 (LeJEPA), Hugging Face's Dinov2, Dinov2WithRegisters and ViT.

use super::blocks::{HUB_CLASSIFIER, MEMORY_VIT, hub_vit, timm_blocks};
use super::card::OWN_OBJECT;
use super::config::{Config, shown};
use super::error::ConvertError;
use super::names::Naming;
use super::processor::Processor;
use super::registry::{Drop, Layout, picture_patches};
use super::rows::{Row, Take, row};
use super::sizes::{activation, classifier, ffn_by_ratio, plain_encoder};
use super::source::Source;
use crate::schema::{EncoderHparams, Family, Hparams, Modality, PosInterp, PosType};

use Take::{Conv, Layer, Stack, Table};

const MASK_TOKEN: &str = "mask token of no use to the encoder";

const LITE_SSL_AROUND: &[Row] = &[
    row("enc.patch_embed", Conv("encoder.patch_embed.proj")),
    row("enc.cls_token", Table("encoder.cls_token")),
    row("enc.reg_tokens", Table("encoder.register_tokens")),
    row("enc.pos_embed", Table("encoder.pos_embed")),
    row("enc.blk.{i}.ls1", Table("encoder.blocks.{i}.ls1.gamma")),
    row("enc.blk.{i}.ls2", Table("encoder.blocks.{i}.ls2.gamma")),
    row("enc.norm", Layer("encoder.norm")),
    row("head.cls", Layer("encoder.head")),
];

const DINOV2_ROWS: &[Row] = &[
    row("enc.patch_embed", Conv("embeddings.patch_embeddings.projection")),
    row("enc.cls_token", Table("embeddings.cls_token")),
    row("enc.reg_tokens", Table("embeddings.register_tokens")),
    row("enc.pos_embed", Table("embeddings.position_embeddings")),
    row("enc.blk.{i}.ln1", Layer("encoder.layer.{i}.norm1")),
    row(
        "enc.blk.{i}.attn_qkv",
        Stack(&[
            "encoder.layer.{i}.attention.attention.query",
            "encoder.layer.{i}.attention.attention.key",
            "encoder.layer.{i}.attention.attention.value",
        ]),
    ),
    row("enc.blk.{i}.attn_out", Layer("encoder.layer.{i}.attention.output.dense")),
    row("enc.blk.{i}.ls1", Table("encoder.layer.{i}.layer_scale1.lambda1")),
    row("enc.blk.{i}.ln2", Layer("encoder.layer.{i}.norm2")),
    row("enc.blk.{i}.ffn_up", Layer("encoder.layer.{i}.mlp.fc1")),
    row("enc.blk.{i}.ffn_down", Layer("encoder.layer.{i}.mlp.fc2")),
    row("enc.blk.{i}.ls2", Table("encoder.layer.{i}.layer_scale2.lambda1")),
    row("enc.norm", Layer("layernorm")),
];

/// lite_ssl's ViTv2.
pub(super) const LITE_SSL: Layout = Layout {
    family: Family::Hfvit,
    name: "lite_ssl",
    repositories: &["OK-AI/lejepa-vits16-pretrain-in1k"],
    model_types: &[],
    naming: Naming::Plain { strip: &["backbone."], add: "encoder." },
    marks: &[
        "encoder.patch_embed.proj.weight",
        "encoder.cls_token",
        "encoder.pos_embed",
        "encoder.blocks.0.norm1.weight",
    ],
    without: &[],
    fits: Some(picture_patches),
    rows: &[LITE_SSL_AROUND, timm_blocks!("enc.blk.{i}", "encoder.blocks.{i}")],
    drops: &[
        Drop("encoder.cva_module_proj.", "projector of the training loss"),
        Drop("encoder.mask_token", MASK_TOKEN),
    ],
    read: lite_ssl,
};

/// Hugging Face's Dinov2 and Dinov2WithRegisters.
pub(crate) const DINOV2: Layout = Layout {
    family: Family::Hfvit,
    name: "Hugging Face Dinov2",
    repositories: &["facebook/dinov2-with-registers-small", "facebook/dinov2-small"],
    model_types: &["dinov2_with_registers", "dinov2"],
    naming: Naming::Plain { strip: &["dinov2_with_registers.", "dinov2."], add: "" },
    marks: &[
        "embeddings.patch_embeddings.projection.weight",
        "embeddings.cls_token",
        "encoder.layer.0.layer_scale1.lambda1",
    ],
    without: &[],
    fits: None,
    rows: &[DINOV2_ROWS, HUB_CLASSIFIER],
    drops: &[Drop("embeddings.mask_token", MASK_TOKEN)],
    read: dinov2,
};

/// Hugging Face's ViT.
pub(crate) const VIT: Layout = Layout {
    family: Family::Hfvit,
    name: "Hugging Face ViT",
    repositories: &["google/vit-base-patch16-224"],
    model_types: &["vit"],
    naming: Naming::Plain { strip: &["vit."], add: "" },
    marks: &[
        "embeddings.patch_embeddings.projection.weight",
        "embeddings.cls_token",
        "encoder.layer.0.layernorm_before.weight",
    ],
    without: &[],
    fits: None,
    rows: &[hub_vit!(""), HUB_CLASSIFIER],
    drops: &[Drop("embeddings.mask_token", MASK_TOKEN), Drop("pooler.", "pooler that is not part of the features")],
    read: vit,
};

/// The same as transformers 5 names it in memory.
pub(super) const VIT_MEMORY: Layout = Layout {
    name: "transformers 5 ViT in memory",
    marks: &[
        "embeddings.patch_embeddings.projection.weight",
        "embeddings.cls_token",
        "layers.0.layernorm_before.weight",
    ],
    rows: &[MEMORY_VIT, HUB_CLASSIFIER],
    ..VIT
};

fn bundle(source: &Source<'_>, enc: EncoderHparams, head: &str) -> Result<Hparams, ConvertError> {
    // A bundle of another origin that was exported into this layout keeps its own rule.
    let own = source.config.map(|c| c.object_opt(OWN_OBJECT)).transpose()?.flatten();
    let rule =
        own.map(|own| own.word_opt("pos_interp", "jepa.enc.pos_interp", PosInterp::from_word)).transpose()?.flatten();
    let enc = EncoderHparams { pos_interp: rule.unwrap_or(enc.pos_interp), ..enc };
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Hfvit,
        modality: Modality::Image,
        pred: None,
        head: classifier(source, head)?,
        pre: Processor::Image.read(source.folder)?,
        enc,
    })
}

fn lite_ssl(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let config = source.config()?;
    let conv = source.patch_conv("encoder.patch_embed.proj.weight")?;
    let embed_dim = config.count("embed_dim", "jepa.enc.embed_dim")?;
    let registers = match source.names.get("encoder.register_tokens") {
        Some(_) => source.table("encoder.register_tokens", "enc.reg_tokens")?.0,
        None => 0,
    };
    let enc = EncoderHparams {
        embed_dim,
        n_layer: source.blocks_as_in(config, "depth", "jepa.enc.n_layer", "encoder.blocks.")?,
        n_head: config.heads("num_heads", "jepa.enc.n_head", embed_dim)?,
        ffn_dim: ffn_by_ratio(source, config, "mlp_ratio", embed_dim, "encoder.blocks.0.mlp.fc1.weight")?,
        patch_size: config.count("patch_size", "jepa.enc.patch_size")?,
        img_size: config.count("img_size", "jepa.enc.img_size")?,
        pos_interp: PosInterp::Offset,
        cls_token: true,
        n_registers: config.count_opt("num_register_tokens", "jepa.enc.n_registers")?.unwrap_or(registers),
        layer_scale: layer_scale(source, config)?,
        ..plain_encoder(conv, PosType::Learned)
    };
    bundle(source, enc, "encoder.head")
}

/// `init_values`: null or 0 for no layer scale; where the key is absent the tensors tell.
fn layer_scale(source: &Source<'_>, config: &Config) -> Result<bool, ConvertError> {
    const KEY: &str = "init_values";
    match config.raw(KEY) {
        None => Ok(source.names.any("encoder.blocks.0.ls1.")),
        Some(value) => match value.as_f64() {
            Some(start) if start.is_finite() => Ok(start != 0.0),
            _ => Err(config.bad(KEY, shown(value), "a number or null")),
        },
    }
}

/// What ViT and Dinov2 spell in the same way.
fn hub_encoder(source: &Source<'_>, config: &Config, blocks: &str) -> Result<EncoderHparams, ConvertError> {
    let conv = source.patch_conv("embeddings.patch_embeddings.projection.weight")?;
    let embed_dim = config.count("hidden_size", "jepa.enc.embed_dim")?;
    Ok(EncoderHparams {
        embed_dim,
        n_layer: source.blocks_as_in(config, "num_hidden_layers", "jepa.enc.n_layer", blocks)?,
        n_head: config.heads("num_attention_heads", "jepa.enc.n_head", embed_dim)?,
        patch_size: config.count("patch_size", "jepa.enc.patch_size")?,
        img_size: config.count("image_size", "jepa.enc.img_size")?,
        in_chans: config.count_opt("num_channels", "jepa.enc.in_chans")?.unwrap_or(conv.chans),
        ln_eps: config.real("layer_norm_eps")?,
        act: activation(config)?,
        cls_token: true,
        ..plain_encoder(conv, PosType::Learned)
    })
}

fn dinov2(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let config = source.config()?;
    config.insist("use_swiglu_ffn", false)?;
    let enc = hub_encoder(source, config, "encoder.layer.")?;
    // The model with registers resizes its table with an antialias filter, the one without does not.
    let registers = config.text_opt("model_type")? == Some("dinov2_with_registers");
    let n_registers = if registers { config.count("num_register_tokens", "jepa.enc.n_registers")? } else { 0 };
    let enc = EncoderHparams {
        ffn_dim: ffn_by_ratio(source, config, "mlp_ratio", enc.embed_dim, "encoder.layer.0.mlp.fc1.weight")?,
        pos_interp: if registers { PosInterp::Antialias } else { PosInterp::Size },
        n_registers,
        layer_scale: true,
        ..enc
    };
    bundle(source, enc, "classifier")
}

fn vit(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let config = source.config()?;
    let blocks = if source.names.any("layers.") { "layers." } else { "encoder.layer." };
    let enc = hub_encoder(source, config, blocks)?;
    let enc = EncoderHparams { ffn_dim: config.count("intermediate_size", "jepa.enc.ffn_dim")?, ..enc };
    bundle(source, enc, "classifier")
}
