//! From hyper-parameters to the keys of a file, in the order that the published files have.

use crate::dtype::GgmlType;
use crate::quant::VERSION;
use crate::schema::{
    EncoderHparams, Family, HeadHparams, HeadKind, HeadPool, Hparams, MaskedHparams, PosType, PredictorHparams,
    PredictorKind, PreprocessHparams, ResizeMode,
};
use crate::value::{Metadata, Value};

/// Keys being collected; a prefix stands in front of each.
struct Keys<'a> {
    metadata: &'a mut Metadata,
    prefix: &'static str,
}

impl Keys<'_> {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.metadata.set(format!("{}{key}", self.prefix), value);
    }

    fn count(&mut self, key: &str, value: usize) {
        self.put(key, u32::try_from(value).expect("every size was checked against a cap below 2^32"));
    }

    fn counts(&mut self, key: &str, values: &[usize]) {
        // Blocks are fewer than a cap far below 2^32.
        self.put(key, values.iter().map(|&value| value as u32).collect::<Vec<u32>>());
    }

    fn real(&mut self, key: &str, value: f64) {
        self.put(key, value as f32);
    }
}

/// All keys of a file whose large matrices are stored as `dtype`.
pub(crate) fn metadata(hp: &Hparams, dtype: GgmlType) -> Metadata {
    let mut metadata = Metadata::default();
    general(Keys { metadata: &mut metadata, prefix: "general." }, hp, dtype);
    let mut own = Keys { metadata: &mut metadata, prefix: "jepa." };
    own.put("schema_version", 1_u32);
    own.put("family", hp.family.word());
    own.put("modality", hp.modality.word());
    encoder(Keys { metadata: &mut metadata, prefix: "jepa.enc." }, &hp.enc, hp.family);
    if let Some(pred) = &hp.pred {
        predictor(Keys { metadata: &mut metadata, prefix: "jepa.pred." }, pred, &hp.enc, hp.family);
    }
    head_keys(&mut metadata, hp.head.as_ref());
    preprocess(Keys { metadata: &mut metadata, prefix: "jepa.pre." }, &hp.pre, hp.family);
    metadata
}

/// Adds the keys of a head, or the one that says that there is none.
pub(crate) fn head_keys(metadata: &mut Metadata, head: Option<&HeadHparams>) {
    let mut keys = Keys { metadata, prefix: "jepa.head." };
    let Some(head) = head else { return keys.put("kind", "none") };
    match head.kind {
        HeadKind::AttentivePool { n_pool_layers, .. } => {
            keys.put("kind", "attentive_pool");
            keys.count("n_classes", head.n_classes);
            keys.count("n_pool_layers", n_pool_layers);
        }
        HeadKind::LinearCls => {
            keys.put("kind", "linear_cls");
            keys.count("n_classes", head.n_classes);
        }
    }
    if let Some(labels) = &head.labels {
        keys.put("labels", labels.clone());
    }
    if head.pool != HeadPool::Auto {
        keys.put("pool", head.pool.word());
    }
    if !head.layers.is_empty() {
        keys.counts("layers", &head.layers);
    }
}

fn general(mut keys: Keys<'_>, hp: &Hparams, dtype: GgmlType) {
    keys.put("architecture", "jepa");
    keys.put("file_type", dtype.file_type());
    if !dtype.is_float() {
        keys.put("quantization_version", VERSION);
    }
    for (key, text) in [("name", &hp.name), ("license", &hp.license), ("source_url", &hp.source_url)] {
        if let Some(text) = text {
            keys.put(key, text.as_str());
        }
    }
}

fn encoder(mut keys: Keys<'_>, enc: &EncoderHparams, family: Family) {
    keys.count("embed_dim", enc.embed_dim);
    keys.count("n_layer", enc.n_layer);
    keys.count("n_head", enc.n_head);
    keys.count("ffn_dim", enc.ffn_dim);
    keys.count("patch_size", enc.patch_size);
    keys.count("tubelet_size", enc.tubelet_size);
    keys.count("img_size", enc.img_size);
    keys.count("n_frames", enc.n_frames);
    keys.count("in_chans", enc.in_chans);
    keys.real("ln_eps", enc.ln_eps);
    keys.put("act", enc.act.word());
    keys.put("pos_type", enc.pos_type.word());
    if enc.pos_interp != family.rules().pos_interp {
        keys.put("pos_interp", enc.pos_interp.word());
    }
    if let Some(rope) = enc.rope {
        keys.real("rope_theta", rope.theta);
        keys.put("rope_interpolate", rope.interpolate);
        keys.put("rope_freq_layout", rope.layout.word());
        if rope.interpolate {
            keys.count("rope_ref_grid", rope.ref_grid);
        }
    }
    keys.put("cls_token", enc.cls_token);
    keys.count("n_registers", enc.n_registers);
    keys.put("qkv_fused", enc.qkv_fused);
    if enc.pos_type == PosType::Rope3d {
        keys.put("modality_embed", enc.modality_embed);
        keys.put("image_patch_embed", enc.image_patch_embed);
    }
    if !enc.hier_layers.is_empty() {
        keys.counts("hier_layers", &enc.hier_layers);
    }
    keys.put("layer_scale", enc.layer_scale);
    if family.rules().block_causal {
        keys.put("attn_mode", enc.attn_mode.word());
    }
    if let Some(proj) = enc.proj {
        keys.put("proj_act", proj.act.word());
    }
}

fn predictor(mut keys: Keys<'_>, pred: &PredictorHparams, enc: &EncoderHparams, family: Family) {
    let kind = match &pred.kind {
        PredictorKind::Masked(_) => "masked",
        PredictorKind::Ac(_) => "ac",
        PredictorKind::Lewm(_) => "lewm",
    };
    keys.put("kind", kind);
    keys.count("embed_dim", pred.embed_dim);
    keys.count("n_layer", pred.n_layer);
    keys.count("n_head", pred.n_head);
    if pred.n_head.checked_mul(pred.head_dim) != Some(pred.embed_dim) {
        keys.count("head_dim", pred.head_dim);
    }
    keys.count("ffn_dim", pred.ffn_dim);
    match &pred.kind {
        PredictorKind::Masked(masked) => masked_predictor(keys, pred, masked, enc, family),
        PredictorKind::Ac(ac) => {
            keys.count("out_dim", pred.out_dim);
            keys.count("action_dim", ac.action_dim);
            keys.count("state_dim", ac.state_dim);
            keys.put("frame_causal", ac.frame_causal);
            keys.count("grid_size", ac.grid_size);
            keys.put("rope_freq_layout", ac.rope.layout.word());
            keys.count("n_cond_tokens", 2);
            keys.put("cond_order", "action,state");
            keys.count("n_frames", ac.n_frames);
            keys.put("rope_interpolate", ac.rope.interpolate);
            keys.real("ln_eps", pred.ln_eps);
            keys.put("act", pred.act.word());
            keys.put("qkv_bias", pred.qkv_bias);
            keys.put("normalize_reps", ac.normalize_reps);
            keys.real("norm_reps_eps", ac.norm_reps_eps);
        }
        PredictorKind::Lewm(lewm) => {
            keys.count("n_frames", lewm.n_frames);
            keys.count("action_dim", lewm.action_dim);
            keys.count("state_dim", 0);
            keys.put("frame_causal", true);
            keys.real("ln_eps", pred.ln_eps);
            keys.real("adaln_eps", lewm.adaln_eps);
            keys.put("act", pred.act.word());
            keys.put("qkv_bias", pred.qkv_bias);
            keys.put("action_act", lewm.action_act.word());
            keys.put("proj_act", lewm.proj.act.word());
        }
    }
}

fn masked_predictor(
    mut keys: Keys<'_>,
    pred: &PredictorHparams,
    masked: &MaskedHparams,
    enc: &EncoderHparams,
    family: Family,
) {
    keys.count("n_mask_tokens", masked.n_mask_tokens);
    keys.count("out_dim", pred.out_dim);
    if family.rules().hierarchical {
        keys.count("n_hier_in", masked.n_hier_in);
        keys.put("modality_embed", masked.modality_embed);
        keys.put("context_proj", masked.context_proj);
        keys.put("rope_interpolate", masked.rope.is_some_and(|rope| rope.interpolate));
    }
    if family.rules().hierarchical || masked.grid_size != enc.img_size / enc.patch_size {
        keys.count("grid_size", masked.grid_size);
    }
    if let Some(rope) = masked.rope {
        keys.put("rope_freq_layout", rope.layout.word());
    }
    // Absent keys mean the encoder's values.
    if pred.ln_eps != enc.ln_eps {
        keys.real("ln_eps", pred.ln_eps);
    }
    if pred.act != enc.act {
        keys.put("act", pred.act.word());
    }
    if !pred.qkv_bias {
        keys.put("qkv_bias", false);
    }
}

fn preprocess(mut keys: Keys<'_>, pre: &PreprocessHparams, family: Family) {
    keys.put("mean", pre.mean.to_vec());
    keys.put("std", pre.std.to_vec());
    keys.count("resize_short", pre.resize_short);
    keys.count("crop", pre.crop);
    keys.put("resample", pre.resample.word());
    // The published files of Meta's video families leave the default out.
    let silent = matches!(family, Family::Vjepa | Family::Vjepa2 | Family::Vjepa2_1);
    if !silent || pre.resize_mode != ResizeMode::ShortestEdge {
        keys.put("resize_mode", pre.resize_mode.word());
    }
    keys.put("rescale", pre.rescale);
}
