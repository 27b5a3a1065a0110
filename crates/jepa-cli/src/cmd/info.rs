use std::fmt::Write;

use jepa_gguf::Bundle;
use jepa_gguf::schema::{HeadKind, Hparams, PosType, PredictorKind, ResizeMode};
use jepa_models::families::{self, About};
use serde::Serialize;
use serde_json::{Value, json};

use super::model::open_bundle;
use crate::args::{InfoArgs, Shared};
use crate::exit::{CliError, printable};
use crate::report::{self, Report};

/// Labels shown to people; scripts get all of them.
const LABELS_SHOWN: usize = 5;

pub(crate) fn run(args: &InfoArgs, shared: &Shared) -> Result<(), CliError> {
    let bundle = open_bundle(&args.model, args.no_mmap, shared)?;
    report::print(&Info::new(&bundle, args.tensors), shared)
}

/// What a bundle holds.
#[derive(Serialize)]
struct Info {
    name: Option<String>,
    family: &'static str,
    family_name: &'static str,
    made_for: &'static str,
    modality: &'static str,
    license: Option<String>,
    source_url: Option<String>,
    file: Value,
    encoder: Value,
    predictor: Option<Value>,
    head: Option<Value>,
    preprocess: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors: Option<Vec<TensorLine>>,
}

#[derive(Serialize)]
struct TensorLine {
    name: String,
    #[serde(rename = "type")]
    dtype: String,
    shape: Vec<usize>,
    bytes: u64,
}

impl Info {
    fn new(bundle: &Bundle, with_tensors: bool) -> Self {
        let h = bundle.hparams();
        let About { name: family_name, repository, pool, .. } = families::about(h.family);
        let gguf = bundle.gguf();
        let type_mix: serde_json::Map<_, _> = gguf
            .type_mix()
            .iter()
            .map(|share| (share.dtype.to_string(), json!({ "tensors": share.tensors, "bytes": share.bytes })))
            .collect();
        let tensors = with_tensors.then(|| {
            let line = |t: &jepa_gguf::TensorInfo| TensorLine {
                name: t.name().to_owned(),
                dtype: t.dtype().to_string(),
                shape: t.shape().to_vec(),
                bytes: t.byte_len(),
            };
            gguf.tensors().iter().map(line).collect()
        });
        Self {
            name: h.name.clone(),
            family: h.family.word(),
            family_name,
            made_for: repository,
            modality: h.modality.word(),
            license: h.license.clone(),
            source_url: h.source_url.clone(),
            file: json!({
                "gguf_version": gguf.version(),
                "bytes": gguf.byte_len(),
                "tensors": gguf.tensors().len(),
                "parameters": gguf.parameter_count(),
                "types": type_mix,
            }),
            encoder: encoder(h, &format!("{pool:?}").to_lowercase()),
            predictor: predictor(h),
            head: head(h),
            preprocess: preprocess(h),
            tensors,
        }
    }
}

fn encoder(h: &Hparams, pooling: &str) -> Value {
    let e = &h.enc;
    let mut value = json!({
        "embed_dim": e.embed_dim, "n_layer": e.n_layer, "n_head": e.n_head, "ffn_dim": e.ffn_dim,
        "patch_size": e.patch_size, "tubelet_size": e.tubelet_size, "img_size": e.img_size, "n_frames": e.n_frames,
        "in_chans": e.in_chans, "ln_eps": short(e.ln_eps), "act": e.act.word(), "pos_type": e.pos_type.word(),
        "pooling": pooling, "cls_token": e.cls_token, "n_registers": e.n_registers, "layer_scale": e.layer_scale,
        "attn_mode": e.attn_mode.word(),
    });
    let mut add = |key: &str, extra: Value| value[key] = extra;
    if matches!(e.pos_type, PosType::Sincos2d | PosType::Learned) {
        add("pos_interp", e.pos_interp.word().into());
    }
    if let Some(rope) = &e.rope {
        add("rope_theta", rope.theta.into());
        add("rope_freq_layout", rope.layout.word().into());
        if rope.interpolate {
            add("rope_ref_grid", rope.ref_grid.into());
        }
    }
    if !e.hier_layers.is_empty() {
        add("hier_layers", e.hier_layers.clone().into());
    }
    if let Some(proj) = e.proj {
        add("proj_hidden", proj.hidden.into());
        add("proj_act", proj.act.word().into());
    }
    value
}

fn predictor(h: &Hparams) -> Option<Value> {
    let p = h.pred.as_ref()?;
    let mut value = json!({
        "kind": match p.kind { PredictorKind::Masked(_) => "masked", PredictorKind::Ac(_) => "ac", PredictorKind::Lewm(_) => "lewm" },
        "embed_dim": p.embed_dim, "n_layer": p.n_layer, "n_head": p.n_head, "head_dim": p.head_dim, "ffn_dim": p.ffn_dim,
        "out_dim": p.out_dim, "ln_eps": short(p.ln_eps),
    });
    let extra = match &p.kind {
        PredictorKind::Masked(m) => {
            json!({ "n_mask_tokens": m.n_mask_tokens, "grid_size": m.grid_size, "n_hier_in": m.n_hier_in, "context_proj": m.context_proj })
        }
        PredictorKind::Ac(a) => {
            json!({ "action_dim": a.action_dim, "state_dim": a.state_dim, "n_frames": a.n_frames, "grid_size": a.grid_size })
        }
        PredictorKind::Lewm(l) => json!({ "action_dim": l.action_dim, "n_frames": l.n_frames }),
    };
    if let (Value::Object(value), Value::Object(extra)) = (&mut value, extra) {
        value.extend(extra);
    }
    Some(value)
}

fn head(h: &Hparams) -> Option<Value> {
    let head = h.head.as_ref()?;
    let mut value = match head.kind {
        HeadKind::AttentivePool { n_pool_layers, .. } => {
            json!({ "kind": "attentive_pool", "n_pool_layers": n_pool_layers })
        }
        HeadKind::LinearCls => json!({ "kind": "linear_cls" }),
    };
    value["n_classes"] = head.n_classes.into();
    value["labels"] = head.labels.clone().into();
    Some(value)
}

fn preprocess(h: &Hparams) -> Value {
    let p = &h.pre;
    let mut value = json!({
        "resize_mode": p.resize_mode.word(), "crop": p.crop, "resample": p.resample.word(), "rescale": short(p.rescale.into()),
        "mean": p.mean.map(|v| short(v.into())), "std": p.std.map(|v| short(v.into())),
    });
    if p.resize_mode == ResizeMode::ShortestEdge {
        value["resize_short"] = p.resize_short.into();
    }
    value
}

/// A number of the file in the fewest digits that give its f32 back.
fn short(value: f64) -> f64 {
    (value as f32).to_string().parse().unwrap_or(value)
}

impl Report for Info {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key:12} {}", printable(value));
        };
        line("name", self.name.as_deref().unwrap_or("not given"));
        line("family", &format!("{} ({}), made for {}", self.family, self.family_name, self.made_for));
        line("modality", self.modality);
        line("license", self.license.as_deref().unwrap_or("not given"));
        if let Some(url) = &self.source_url {
            line("source", url);
        }
        line("parameters", &self.file["parameters"].to_string());
        line(
            "file",
            &format!(
                "{} bytes, {} tensors, GGUF v{}",
                self.file["bytes"], self.file["tensors"], self.file["gguf_version"]
            ),
        );
        let types: Vec<_> = self.file["types"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, share)| format!("{name} × {}", share["tensors"]))
            .collect();
        line("types", &types.join(", "));
        line("encoder", &words(&self.encoder));
        line("predictor", &self.predictor.as_ref().map_or("none".into(), words));
        line("head", &self.head.as_ref().map_or("none".into(), words));
        line("preprocess", &words(&self.preprocess));
        for t in self.tensors.iter().flatten() {
            let _ = writeln!(text, "{:40} {:6} {:?}", t.name, t.dtype, t.shape);
        }
        text
    }
}

/// `key value, key value …`.
fn words(value: &Value) -> String {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.len() > LABELS_SHOWN => {
            let shown: Vec<_> = items
                .iter()
                .take(LABELS_SHOWN)
                .map(|item| item.as_str().map_or(item.to_string(), str::to_owned))
                .collect();
            format!("[{}, … {} in all]", shown.join(", "), items.len())
        }
        other => other.to_string(),
    };
    let pairs: Vec<_> =
        value.as_object().into_iter().flatten().map(|(key, value)| format!("{key} {}", word(value))).collect();
    pairs.join(", ")
}
