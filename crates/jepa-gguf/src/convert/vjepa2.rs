//! V-JEPA 2: Hugging Face's `VJEPA2Model` and `VJEPA2ForVideoClassification`, and Meta's training checkpoints.

use super::blocks::{
    HUB_CLASSIFIER, META_BLOCKS, META_ENCODER, META_MASK_TOKENS, META_PREDICTOR, META_PREDICTOR_BLOCKS,
};
use super::config::Config;
use super::error::ConvertError;
use super::labels;
use super::names::{EncoderChoice, Naming};
use super::processor::{Processor, meta_video};
use super::registry::{Drop, Layout, clip_patches};
use super::rows::{Row, Take, row};
use super::sizes::{
    activation, ffn_by_ratio, has_predictor, masked, meta_predictor, meta_rope_encoder, plain_encoder, rope,
};
use super::source::Source;
use crate::schema::{
    EncoderHparams, Family, HeadHparams, HeadKind, Hparams, Modality, PosType, PredictorHparams, PredictorKind,
    RopeLayout,
};

use Take::{Conv, Layer, Stack, Table};

/// Encoder and predictor name their blocks in the same way.
macro_rules! hub_blocks {
    ($to:literal, $from:literal) => {
        &[
            row(concat!($to, ".ln1"), Layer(concat!($from, ".norm1"))),
            row(
                concat!($to, ".attn_qkv"),
                Stack(&[
                    concat!($from, ".attention.query"),
                    concat!($from, ".attention.key"),
                    concat!($from, ".attention.value"),
                ]),
            ),
            row(concat!($to, ".attn_out"), Layer(concat!($from, ".attention.proj"))),
            row(concat!($to, ".ln2"), Layer(concat!($from, ".norm2"))),
            row(concat!($to, ".ffn_up"), Layer(concat!($from, ".mlp.fc1"))),
            row(concat!($to, ".ffn_down"), Layer(concat!($from, ".mlp.fc2"))),
        ]
    };
}

const HUB_BLOCKS: &[Row] = hub_blocks!("enc.blk.{i}", "encoder.layer.{i}");
const HUB_PREDICTOR_BLOCKS: &[Row] = hub_blocks!("pred.blk.{i}", "predictor.layer.{i}");

const HUB_AROUND: &[Row] = &[
    row("enc.patch_embed", Conv("encoder.embeddings.patch_embeddings.proj")),
    row("enc.norm", Layer("encoder.layernorm")),
    row("pred.embed", Layer("predictor.embeddings.predictor_embeddings")),
    row("pred.mask_tokens", Table("predictor.embeddings.mask_tokens")),
    row("pred.norm", Layer("predictor.layernorm")),
    row("pred.proj", Layer("predictor.proj")),
];

const HUB_POOLER: &[Row] = &[
    row("head.query", Table("pooler.query_tokens")),
    row("head.blk.{i}.ln1", Layer("pooler.self_attention_layers.{i}.layer_norm1")),
    row(
        "head.blk.{i}.attn_qkv",
        Stack(&[
            "pooler.self_attention_layers.{i}.self_attn.q_proj",
            "pooler.self_attention_layers.{i}.self_attn.k_proj",
            "pooler.self_attention_layers.{i}.self_attn.v_proj",
        ]),
    ),
    row("head.blk.{i}.attn_out", Layer("pooler.self_attention_layers.{i}.self_attn.out_proj")),
    row("head.blk.{i}.ln2", Layer("pooler.self_attention_layers.{i}.layer_norm2")),
    row("head.blk.{i}.ffn_up", Layer("pooler.self_attention_layers.{i}.mlp.fc1")),
    row("head.blk.{i}.ffn_down", Layer("pooler.self_attention_layers.{i}.mlp.fc2")),
    row("head.xattn.ln_kv", Layer("pooler.cross_attention_layer.layer_norm1")),
    row("head.xattn.q", Layer("pooler.cross_attention_layer.cross_attn.q_proj")),
    row("head.xattn.k", Layer("pooler.cross_attention_layer.cross_attn.k_proj")),
    row("head.xattn.v", Layer("pooler.cross_attention_layer.cross_attn.v_proj")),
    row("head.xattn.ln2", Layer("pooler.cross_attention_layer.layer_norm2")),
    row("head.xattn.ffn_up", Layer("pooler.cross_attention_layer.mlp.fc1")),
    row("head.xattn.ffn_down", Layer("pooler.cross_attention_layer.mlp.fc2")),
];

/// As the Hub stores it.
pub(crate) const HUB: Layout = Layout {
    family: Family::Vjepa2,
    name: "Hugging Face",
    repositories: &[
        "facebook/vjepa2-vitl-fpc64-256",
        "facebook/vjepa2-vith-fpc64-256",
        "facebook/vjepa2-vitg-fpc64-256",
        "facebook/vjepa2-vitg-fpc64-384",
        "facebook/vjepa2-vitl-fpc16-256-ssv2",
    ],
    model_types: &["vjepa2"],
    naming: Naming::Plain { strip: &["vjepa2."], add: "" },
    marks: &["encoder.embeddings.patch_embeddings.proj.weight", "encoder.layer.0.norm1.weight"],
    without: &[],
    fits: None,
    rows: &[HUB_BLOCKS, HUB_PREDICTOR_BLOCKS, HUB_AROUND, HUB_POOLER, HUB_CLASSIFIER],
    drops: &[],
    read: hub,
};

const UNUSED_TABLE: &str = "position table that rotary positions replace";

/// Position tables that Meta's files carry and rotary models do not use.
pub(super) const META_DROPS: &[Drop] =
    &[Drop("encoder.pos_embed", UNUSED_TABLE), Drop("predictor.predictor_pos_embed", UNUSED_TABLE)];

/// Meta's `.pt`.
pub(super) const META: Layout = Layout {
    family: Family::Vjepa2,
    name: "Meta's training checkpoint",
    repositories: &["facebookresearch/vjepa2"],
    model_types: &[],
    naming: Naming::Meta { default: EncoderChoice::Target },
    marks: &["encoder.patch_embed.proj.weight", "encoder.norm.weight", "encoder.blocks.0.norm1.weight"],
    without: &["encoder.cls_token", "encoder.patch_embed_img.proj.weight", "predictor.action_encoder.weight"],
    fits: Some(clip_patches),
    rows: &[META_ENCODER, META_BLOCKS, META_PREDICTOR, META_PREDICTOR_BLOCKS, META_MASK_TOKENS],
    drops: META_DROPS,
    read: meta,
};

fn hub(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let config = source.config()?;
    config.insist("qkv_bias", true)?;
    let conv = source.patch_conv("encoder.embeddings.patch_embeddings.proj.weight")?;
    let embed_dim = config.count("hidden_size", "jepa.enc.embed_dim")?;
    let enc = EncoderHparams {
        embed_dim,
        n_layer: source.blocks_as_in(config, "num_hidden_layers", "jepa.enc.n_layer", "encoder.layer.")?,
        n_head: config.heads("num_attention_heads", "jepa.enc.n_head", embed_dim)?,
        ffn_dim: ffn_by_ratio(source, config, "mlp_ratio", embed_dim, "encoder.layer.0.mlp.fc1.weight")?,
        patch_size: config.count("patch_size", "jepa.enc.patch_size")?,
        tubelet_size: config.count("tubelet_size", "jepa.enc.tubelet_size")?,
        img_size: config.count("crop_size", "jepa.enc.img_size")?,
        n_frames: config.count("frames_per_clip", "jepa.enc.n_frames")?,
        in_chans: config.count_opt("in_chans", "jepa.enc.in_chans")?.unwrap_or(conv.chans),
        ln_eps: config.real("layer_norm_eps")?,
        act: activation(config)?,
        rope: Some(rope(RopeLayout::Tiled, conv.patch)),
        ..plain_encoder(conv, PosType::Rope3d)
    };
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Vjepa2,
        modality: Modality::Video,
        pred: Some(hub_predictor(source, config, &enc)?),
        head: attentive_head(source, config)?,
        pre: Processor::Video.read(source.folder)?,
        enc,
    })
}

fn hub_predictor(source: &Source<'_>, config: &Config, enc: &EncoderHparams) -> Result<PredictorHparams, ConvertError> {
    let embed_dim = config.count("pred_hidden_size", "jepa.pred.embed_dim")?;
    let n_head = config.heads("pred_num_attention_heads", "jepa.pred.n_head", embed_dim)?;
    let n_mask_tokens = config.count("pred_num_mask_tokens", "jepa.pred.n_mask_tokens")?;
    Ok(PredictorHparams {
        embed_dim,
        n_layer: source.blocks_as_in(config, "pred_num_hidden_layers", "jepa.pred.n_layer", "predictor.layer.")?,
        n_head,
        head_dim: embed_dim / n_head,
        ffn_dim: ffn_by_ratio(source, config, "pred_mlp_ratio", embed_dim, "predictor.layer.0.mlp.fc1.weight")?,
        out_dim: enc.embed_dim,
        ln_eps: enc.ln_eps,
        act: enc.act,
        qkv_bias: true,
        kind: PredictorKind::Masked(masked(enc, n_mask_tokens)),
    })
}

fn attentive_head(source: &Source<'_>, config: &Config) -> Result<Option<HeadHparams>, ConvertError> {
    if !source.names.any("pooler.") && !source.names.any("classifier.") {
        return Ok(None);
    }
    let blocks = "pooler.self_attention_layers.";
    let n_pool_layers = source.blocks_as_in(config, "num_pooler_layers", "jepa.head.n_pool_layers", blocks)?;
    let width = |tensor: &str| source.rows(tensor, "width of an MLP of the head");
    let xattn_ffn_dim = width("pooler.cross_attention_layer.mlp.fc1.weight")?;
    let ffn_dim = match n_pool_layers {
        0 => xattn_ffn_dim,
        _ => width("pooler.self_attention_layers.0.mlp.fc1.weight")?,
    };
    let (n_classes, _) = source.matrix("classifier.weight", "head.cls.weight")?;
    let kind = HeadKind::AttentivePool { n_pool_layers, ffn_dim, xattn_ffn_dim };
    Ok(Some(HeadHparams::new(kind, n_classes, labels::read(config, n_classes)?)))
}

fn meta(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let enc = meta_rope_encoder(source, Family::Vjepa2, RopeLayout::Tiled)?;
    let kind = PredictorKind::Masked(masked(&enc, source.names.groups("predictor.mask_tokens.")));
    let pred = has_predictor(source).then(|| meta_predictor(source, Family::Vjepa2, &enc, kind)).transpose()?;
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Vjepa2,
        modality: Modality::Video,
        pred,
        head: None,
        pre: meta_video(enc.img_size),
        enc,
    })
}
