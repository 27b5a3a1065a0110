//! The JSON files of the folder.

use serde_json::{Map, Value, json};

use super::class::Class;
use crate::convert::OWN_OBJECT;
use crate::convert::labels::placeholder;
use crate::schema::{Activation, HeadKind, Hparams, PredictorKind, PreprocessHparams, Resample, ResizeMode};

/// A number of the file in the fewest digits that give its f32 back.
fn short(value: f64) -> Value {
    let digits = (value as f32).to_string();
    digits.parse::<f64>().map_or(Value::Null, Value::from)
}

fn activation(act: Activation) -> &'static str {
    match act {
        Activation::GeluErf => "gelu",
        Activation::GeluTanh => "gelu_pytorch_tanh",
        Activation::Silu => "silu",
    }
}

/// The ratio that leads to `ffn`: the classes multiply and round down.
fn ratio(ffn: usize, width: usize) -> Value {
    if ffn.is_multiple_of(width) {
        return (ffn / width).into();
    }
    let mut ratio = ffn as f64 / width as f64;
    while ((width as f64 * ratio) as usize) < ffn {
        ratio = ratio.next_up();
    }
    ratio.into()
}

/// `config.json`.
pub(super) fn config(hp: &Hparams, class: Class) -> Value {
    let enc = &hp.enc;
    let mut config = json!({
        "architectures": [class.architecture(hp.head.is_some()).0],
        "model_type": class.model_type(),
        "dtype": "float32",
        "hidden_size": enc.embed_dim,
        "num_hidden_layers": enc.n_layer,
        "num_attention_heads": enc.n_head,
        "hidden_act": activation(enc.act),
        "layer_norm_eps": short(enc.ln_eps),
        "patch_size": enc.patch_size,
        "qkv_bias": true,
    });
    let own = match class {
        Class::Ijepa | Class::Vit => {
            json!({ "image_size": enc.img_size, "num_channels": enc.in_chans, "intermediate_size": enc.ffn_dim })
        }
        Class::Dinov2 | Class::Dinov2WithRegisters => json!({
            "image_size": enc.img_size,
            "num_channels": enc.in_chans,
            "mlp_ratio": ratio(enc.ffn_dim, enc.embed_dim),
            "use_swiglu_ffn": false,
        }),
        Class::Vjepa2 => json!({
            "crop_size": enc.img_size,
            "image_size": enc.img_size,
            "frames_per_clip": enc.n_frames,
            "tubelet_size": enc.tubelet_size,
            "in_chans": enc.in_chans,
            "mlp_ratio": ratio(enc.ffn_dim, enc.embed_dim),
        }),
    };
    extend(&mut config, own);
    if class == Class::Dinov2WithRegisters {
        extend(&mut config, json!({ "num_register_tokens": enc.n_registers }));
    }
    if let (Class::Vjepa2, Some(pred)) = (class, &hp.pred)
        && let PredictorKind::Masked(masked) = &pred.kind
    {
        extend(
            &mut config,
            json!({
                "pred_hidden_size": pred.embed_dim,
                "pred_num_hidden_layers": pred.n_layer,
                "pred_num_attention_heads": pred.n_head,
                "pred_mlp_ratio": ratio(pred.ffn_dim, pred.embed_dim),
                "pred_num_mask_tokens": masked.n_mask_tokens,
            }),
        );
    }
    head(&mut config, hp);
    extend(&mut config, json!({ OWN_OBJECT: own_object(hp, class) }));
    config
}

fn extend(config: &mut Value, more: Value) {
    if let (Value::Object(config), Value::Object(more)) = (config, more) {
        config.extend(more);
    }
}

fn head(config: &mut Value, hp: &Hparams) {
    let Some(head) = &hp.head else { return };
    if let HeadKind::AttentivePool { n_pool_layers, .. } = head.kind {
        extend(config, json!({ "num_pooler_layers": n_pool_layers }));
    }
    let label = |number: usize| {
        head.labels.as_ref().and_then(|labels| labels.get(number).cloned()).unwrap_or_else(|| placeholder(number))
    };
    let id2label: Map<_, _> = (0..head.n_classes).map(|n| (n.to_string(), label(n).into())).collect();
    let label2id: Map<_, _> = (0..head.n_classes).map(|n| (label(n), n.into())).collect();
    extend(config, json!({ "id2label": id2label, "label2id": label2id }));
}

/// What Hugging Face has no key for. It is always there, so that a conversion does not look elsewhere for what the bundle does not say.
fn own_object(hp: &Hparams, class: Class) -> Value {
    let mut own = Map::new();
    for (key, text) in [("name", &hp.name), ("license", &hp.license), ("source_url", &hp.source_url)] {
        if let Some(text) = text {
            own.insert(key.to_owned(), text.as_str().into());
        }
    }
    if hp.enc.pos_interp != class.pos_interp() {
        own.insert("pos_interp".to_owned(), hp.enc.pos_interp.word().into());
    }
    own.into()
}

/// Name and content of the processor's file.
pub(super) fn processor(pre: &PreprocessHparams, class: Class) -> (&'static str, Value) {
    let square = |side: usize| json!({ "height": side, "width": side });
    let resample = match pre.resample {
        Resample::Bilinear => 2,
        Resample::Bicubic => 3,
    };
    let crops = pre.resize_mode == ResizeMode::ShortestEdge;
    let mut config = json!({
        "do_resize": true,
        "do_center_crop": crops,
        "do_rescale": true,
        "do_normalize": true,
        "size": if crops { json!({ "shortest_edge": pre.resize_short }) } else { square(pre.crop) },
        "resample": resample,
        "rescale_factor": short(f64::from(pre.rescale)),
        "image_mean": pre.mean.map(|v| short(f64::from(v))),
        "image_std": pre.std.map(|v| short(f64::from(v))),
    });
    if crops {
        extend(&mut config, json!({ "crop_size": square(pre.crop) }));
    }
    let (file, kind, name) = match (class, crops) {
        (Class::Vjepa2, _) => ("video_preprocessor_config.json", "video_processor_type", "VJEPA2VideoProcessor"),
        (_, true) => ("preprocessor_config.json", "image_processor_type", "BitImageProcessor"),
        (_, false) => ("preprocessor_config.json", "image_processor_type", "ViTImageProcessor"),
    };
    extend(&mut config, json!({ kind: name }));
    (file, config)
}
