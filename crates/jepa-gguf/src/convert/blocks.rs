//! Transformer blocks as the published implementations name their tensors: one mapping table per naming, used by every family that has it.

use super::rows::{Row, Take, row};

/// timm's names, which all of Meta's code, lite_ssl and LeVJEPA keep.
macro_rules! timm_blocks {
    ($to:literal, $from:literal) => {{
        use $crate::convert::rows::{Row, Take::Layer, row};
        const ROWS: &[Row] = &[
            row(concat!($to, ".ln1"), Layer(concat!($from, ".norm1"))),
            row(concat!($to, ".attn_qkv"), Layer(concat!($from, ".attn.qkv"))),
            row(concat!($to, ".attn_out"), Layer(concat!($from, ".attn.proj"))),
            row(concat!($to, ".ln2"), Layer(concat!($from, ".norm2"))),
            row(concat!($to, ".ffn_up"), Layer(concat!($from, ".mlp.fc1"))),
            row(concat!($to, ".ffn_down"), Layer(concat!($from, ".mlp.fc2"))),
        ];
        ROWS
    }};
}
pub(super) use timm_blocks;

/// A ViT encoder of Hugging Face with everything around its blocks, as the Hub stores it.
macro_rules! hub_vit {
    ($prefix:literal) => {{
        use $crate::convert::rows::{
            Row,
            Take::{Conv, Layer, Stack, Table},
            row,
        };
        const ROWS: &[Row] = &[
            row("enc.patch_embed", Conv(concat!($prefix, "embeddings.patch_embeddings.projection"))),
            row("enc.cls_token", Table(concat!($prefix, "embeddings.cls_token"))),
            row("enc.pos_embed", Table(concat!($prefix, "embeddings.position_embeddings"))),
            row("enc.blk.{i}.ln1", Layer(concat!($prefix, "encoder.layer.{i}.layernorm_before"))),
            row(
                "enc.blk.{i}.attn_qkv",
                Stack(&[
                    concat!($prefix, "encoder.layer.{i}.attention.attention.query"),
                    concat!($prefix, "encoder.layer.{i}.attention.attention.key"),
                    concat!($prefix, "encoder.layer.{i}.attention.attention.value"),
                ]),
            ),
            row("enc.blk.{i}.attn_out", Layer(concat!($prefix, "encoder.layer.{i}.attention.output.dense"))),
            row("enc.blk.{i}.ln2", Layer(concat!($prefix, "encoder.layer.{i}.layernorm_after"))),
            row("enc.blk.{i}.ffn_up", Layer(concat!($prefix, "encoder.layer.{i}.intermediate.dense"))),
            row("enc.blk.{i}.ffn_down", Layer(concat!($prefix, "encoder.layer.{i}.output.dense"))),
            row("enc.norm", Layer(concat!($prefix, "layernorm"))),
        ];
        ROWS
    }};
}
pub(super) use hub_vit;

use Take::{Conv, Layer, Stack, Table};

/// The same encoder under the names that transformers 5 has in memory.
pub(super) const MEMORY_VIT: &[Row] = &[
    row("enc.patch_embed", Conv("embeddings.patch_embeddings.projection")),
    row("enc.cls_token", Table("embeddings.cls_token")),
    row("enc.pos_embed", Table("embeddings.position_embeddings")),
    row("enc.blk.{i}.ln1", Layer("layers.{i}.layernorm_before")),
    row(
        "enc.blk.{i}.attn_qkv",
        Stack(&["layers.{i}.attention.q_proj", "layers.{i}.attention.k_proj", "layers.{i}.attention.v_proj"]),
    ),
    row("enc.blk.{i}.attn_out", Layer("layers.{i}.attention.o_proj")),
    row("enc.blk.{i}.ln2", Layer("layers.{i}.layernorm_after")),
    row("enc.blk.{i}.ffn_up", Layer("layers.{i}.mlp.fc1")),
    row("enc.blk.{i}.ffn_down", Layer("layers.{i}.mlp.fc2")),
    row("enc.norm", Layer("layernorm")),
];

/// The classifier of Hugging Face's models.
pub(super) const HUB_CLASSIFIER: &[Row] = &[row("head.cls", Layer("classifier"))];

/// An encoder of Meta's training code.
pub(super) const META_ENCODER: &[Row] =
    &[row("enc.patch_embed", Conv("encoder.patch_embed.proj")), row("enc.norm", Layer("encoder.norm"))];

/// Its blocks.
pub(super) const META_BLOCKS: &[Row] = timm_blocks!("enc.blk.{i}", "encoder.blocks.{i}");

/// A predictor of Meta's training code.
pub(super) const META_PREDICTOR: &[Row] = &[
    row("pred.embed", Layer("predictor.predictor_embed")),
    row("pred.norm", Layer("predictor.predictor_norm")),
    row("pred.proj", Layer("predictor.predictor_proj")),
];

/// Its blocks.
pub(super) const META_PREDICTOR_BLOCKS: &[Row] = timm_blocks!("pred.blk.{i}", "predictor.predictor_blocks.{i}");

/// The mask tokens of Meta's video predictors.
pub(super) const META_MASK_TOKENS: &[Row] = &[row("pred.mask_tokens", Take::Rows("predictor.mask_tokens.{j}"))];
