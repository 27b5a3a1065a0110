//! LeWorldModel: `weights.pt` of its training code, with `config.json` beside it or with hints.

use super::blocks::hub_vit;
use super::config::Config;
use super::error::ConvertError;
use super::hints::Hint;
use super::names::Naming;
use super::processor::imagenet;
use super::registry::{Drop, Layout};
use super::rows::{Row, Take, row};
use super::sizes::{activation, plain_encoder, single};
use super::source::{Source, side_of};
use crate::schema::{
    Activation, EncoderHparams, Family, Hparams, LewmHparams, Modality, PosType, PredictorHparams, PredictorKind,
    ProjectorHparams, Resample, ResizeMode,
};

use Take::{After, Layer, Normed, Table};

const OWN: &[Row] = &[
    row("enc.proj.0", Normed { linear: "projector.net.0", norm: "projector.net.1" }),
    row("enc.proj.2", Layer("projector.net.3")),
    row("pred.pos_embed", Table("predictor.pos_embedding")),
    row("pred.blk.{i}.adaln", Layer("predictor.transformer.layers.{i}.adaLN_modulation.1")),
    row("pred.blk.{i}.ln1", Layer("predictor.transformer.layers.{i}.attn.norm")),
    row("pred.blk.{i}.attn_qkv", Layer("predictor.transformer.layers.{i}.attn.to_qkv")),
    row("pred.blk.{i}.attn_out", Layer("predictor.transformer.layers.{i}.attn.to_out.0")),
    row("pred.blk.{i}.ln2", Layer("predictor.transformer.layers.{i}.mlp.net.0")),
    row("pred.blk.{i}.ffn_up", Layer("predictor.transformer.layers.{i}.mlp.net.1")),
    row("pred.blk.{i}.ffn_down", Layer("predictor.transformer.layers.{i}.mlp.net.4")),
    row("pred.norm", Layer("predictor.transformer.norm")),
    row("pred.action_embed.0", After { conv: "action_encoder.patch_embed", linear: "action_encoder.embed.0" }),
    row("pred.action_embed.2", Layer("action_encoder.embed.2")),
    row("pred.proj.0", Normed { linear: "pred_proj.net.0", norm: "pred_proj.net.1" }),
    row("pred.proj.2", Layer("pred_proj.net.3")),
];

const COUNTER: &str = "batch counter of the training";

/// `weights.pt`.
pub(super) const WEIGHTS: Layout = Layout {
    family: Family::Lewm,
    name: "LeWM training code",
    repositories: &["quentinll/lewm-pusht"],
    model_types: &[],
    naming: Naming::Plain { strip: &[], add: "" },
    marks: &[
        "encoder.embeddings.patch_embeddings.projection.weight",
        "predictor.transformer.norm.weight",
        "projector.net.0.weight",
        "action_encoder.patch_embed.weight",
    ],
    without: &[],
    fits: None,
    rows: &[hub_vit!("encoder."), OWN],
    drops: &[
        Drop("encoder.embeddings.mask_token", "mask token of no use to the encoder"),
        Drop("encoder.pooler.", "pooler that is not part of the features"),
        Drop("projector.net.1.num_batches_tracked", COUNTER),
        Drop("pred_proj.net.1.num_batches_tracked", COUNTER),
    ],
    read,
};

/// Epsilons that the training code fixes: ViT's default, the norms with and those without weights.
const VIT_EPS: f64 = 1e-12;
const AFFINE_EPS: f64 = 1e-5;
const ADALN_EPS: f64 = 1e-6;

/// The encoder's heads are this wide in every size of the ViT it takes.
const VIT_HEAD: usize = 64;

fn read(source: &Source<'_>) -> Result<Hparams, ConvertError> {
    let part = |key: &str| source.config.map(|c| c.object_opt(key)).transpose().map(Option::flatten);
    let enc = encoder(source, part("encoder")?.as_ref())?;
    let pred = predictor(source, part("predictor")?.as_ref(), enc.embed_dim)?;
    Ok(Hparams {
        name: None,
        license: None,
        source_url: None,
        family: Family::Lewm,
        modality: Modality::Image,
        pred: Some(pred),
        head: None,
        pre: imagenet(enc.img_size, enc.img_size, Resample::Bilinear, ResizeMode::Squash),
        enc,
    })
}

fn encoder(source: &Source<'_>, config: Option<&Config>) -> Result<EncoderHparams, ConvertError> {
    const CONV: &str = "encoder.embeddings.patch_embeddings.projection.weight";
    const TABLE: &str = "encoder.embeddings.position_embeddings";
    const UP: &str = "encoder.encoder.layer.0.intermediate.dense.weight";
    let conv = source.patch_conv(CONV)?;
    let n_layer = source.blocks("encoder.encoder.layer.")?;
    let ffn_dim = source.rows(UP, "jepa.enc.ffn_dim")?;
    let (rows, _) = source.table(TABLE, "enc.pos_embed")?;
    let side = rows.checked_sub(1).and_then(side_of).filter(|&side| side > 0).ok_or_else(|| {
        source.misshaped(TABLE, "a square number of rows and one for CLS".to_owned(), "patches of a square picture")
    })?;
    let fits = |img: &usize| img / conv.patch == side;
    let mut img_size = source.hints.get(Hint::ImgSize).filter(fits).unwrap_or(side.saturating_mul(conv.patch));
    let mut enc = plain_encoder(conv, PosType::Learned);
    enc.ln_eps = single(VIT_EPS);
    if let Some(config) = config {
        source.agreed(config, "patch_size", "jepa.enc.patch_size", conv.patch, CONV)?;
        source.agreed(config, "hidden_size", "jepa.enc.embed_dim", conv.width, CONV)?;
        source.agreed(config, "intermediate_size", "jepa.enc.ffn_dim", ffn_dim, UP)?;
        if let Some(wanted) = config.count_opt("num_hidden_layers", "jepa.enc.n_layer")?.filter(|&n| n != n_layer) {
            return Err(config.block_count("num_hidden_layers", wanted, "encoder.encoder.layer.{i}", n_layer));
        }
        if let Some(img) = config.count_opt("image_size", "jepa.enc.img_size")? {
            if !fits(&img) {
                return Err(config.contradicted("image_size", img, TABLE, format!("{side} x {side} patches")));
            }
            img_size = img;
        }
        enc.ln_eps = config.real_opt("layer_norm_eps")?.unwrap_or(enc.ln_eps);
        enc.act = activation(config)?;
    }
    let stated = match config {
        Some(config) if config.has("num_attention_heads") => {
            Some(config.heads("num_attention_heads", "jepa.enc.n_head", conv.width)?)
        }
        // A size in words stands for a ViT whose heads are all as wide.
        Some(config) if config.has("size") && conv.width.is_multiple_of(VIT_HEAD) => Some(conv.width / VIT_HEAD),
        _ => None,
    };
    let n_head = match stated {
        Some(heads) => heads,
        None => source.hinted_heads(Hint::EncHeads, conv.width, None)?,
    };
    let hidden = source.rows("projector.net.0.weight", "enc.proj.0.weight")?;
    Ok(EncoderHparams {
        n_layer,
        n_head,
        ffn_dim,
        img_size,
        cls_token: true,
        proj: Some(ProjectorHparams { hidden, act: Activation::GeluErf }),
        ..enc
    })
}

fn predictor(source: &Source<'_>, config: Option<&Config>, width: usize) -> Result<PredictorHparams, ConvertError> {
    const TABLE: &str = "predictor.pos_embedding";
    const QKV: &str = "predictor.transformer.layers.0.attn.to_qkv.weight";
    const UP: &str = "predictor.transformer.layers.0.mlp.net.1.weight";
    const ACTION: &str = "action_encoder.patch_embed.weight";
    let (n_frames, embed_dim) = source.table(TABLE, "pred.pos_embed")?;
    let n_layer = source.blocks("predictor.transformer.layers.")?;
    let ffn_dim = source.rows(UP, "jepa.pred.ffn_dim")?;
    let action_dim = match *source.shape(ACTION, "pred.action_embed.0.weight")? {
        [_, actions] | [_, actions, 1] => actions,
        _ => return Err(source.misshaped(ACTION, "[n, actions, 1]".to_owned(), "jepa.pred.action_dim")),
    };
    let inner = source.rows(QKV, "jepa.pred.n_head")? / 3;
    let n_head = match config {
        Some(config) => {
            source.agreed(config, "num_frames", "jepa.pred.n_frames", n_frames, TABLE)?;
            source.agreed(config, "hidden_dim", "jepa.pred.embed_dim", embed_dim, TABLE)?;
            source.agreed(config, "mlp_dim", "jepa.pred.ffn_dim", ffn_dim, UP)?;
            if let Some(wanted) = config.count_opt("depth", "jepa.pred.n_layer")?.filter(|&n| n != n_layer) {
                return Err(config.block_count("depth", wanted, "predictor.transformer.layers.{i}", n_layer));
            }
            let heads = config.heads("heads", "jepa.pred.n_head", inner)?;
            source.agreed(config, "dim_head", "jepa.pred.head_dim", inner / heads, QKV)?;
            heads
        }
        None => source.hinted_heads(Hint::PredHeads, inner, None)?,
    };
    let lewm = LewmHparams {
        action_dim,
        n_frames,
        adaln_eps: single(ADALN_EPS),
        action_hidden: source.rows("action_encoder.embed.0.weight", "pred.action_embed.0.weight")?,
        action_act: Activation::Silu,
        proj: ProjectorHparams {
            hidden: source.rows("pred_proj.net.0.weight", "pred.proj.0.weight")?,
            act: Activation::GeluErf,
        },
    };
    Ok(PredictorHparams {
        embed_dim,
        n_layer,
        n_head,
        head_dim: inner / n_head,
        ffn_dim,
        out_dim: width,
        ln_eps: single(AFFINE_EPS),
        act: Activation::GeluErf,
        qkv_bias: false,
        kind: PredictorKind::Lewm(lewm),
    })
}
