//! A checkpoint of the size of the published ViT-L, with random weights: something to measure converting and quantising with.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::json;

/// Width, layers and heads of encoder and predictor; the hidden layers are four times as wide.
const ENCODER: [usize; 3] = [1024, 24, 16];
const PREDICTOR: [usize; 3] = [384, 12, 12];
const MASK_TOKENS: usize = 10;

/// Writes a Hugging Face folder of V-JEPA 2 ViT-L/16 (326 million parameters, 1.3 GB of f32) into `folder`. The same bytes every time.
pub(crate) fn vit_l(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let config = json!({
        "architectures": ["VJEPA2Model"], "model_type": "vjepa2", "hidden_size": ENCODER[0], "num_hidden_layers": ENCODER[1], "num_attention_heads": ENCODER[2],
        "pred_hidden_size": PREDICTOR[0], "pred_num_hidden_layers": PREDICTOR[1], "pred_num_attention_heads": PREDICTOR[2], "pred_mlp_ratio": 4.0,
        "pred_num_mask_tokens": MASK_TOKENS,
        "mlp_ratio": 4.0, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "qkv_bias": true, "patch_size": 16, "tubelet_size": 2, "crop_size": 256,
        "image_size": 256, "frames_per_clip": 64, "in_chans": 3,
    });
    fs::write(folder.join("config.json"), serde_json::to_vec_pretty(&config)?)?;
    let processor = json!({
        "video_processor_type": "VJEPA2VideoProcessor", "do_resize": true, "do_center_crop": true, "do_rescale": true, "do_normalize": true,
        "resample": 2, "rescale_factor": 1.0 / 255.0, "size": {"shortest_edge": 292}, "crop_size": {"height": 256, "width": 256},
        "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
    });
    fs::write(folder.join("video_preprocessor_config.json"), serde_json::to_vec_pretty(&processor)?)?;
    weights(&folder.join("model.safetensors"))
}

fn weights(path: &Path) -> Result<(), Box<dyn Error>> {
    let tensors = tensors();
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, shape) in &tensors {
        let start = end;
        end += shape.iter().product::<usize>() * 4;
        header.insert(name.clone(), json!({"dtype": "F32", "shape": shape, "data_offsets": [start, end]}));
    }
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for (name, shape) in &tensors {
        let norm = name.contains("norm") && name.ends_with("weight");
        for _ in 0..shape.iter().product::<usize>() {
            let spread = triangular(&mut state) * 0.04;
            out.write_all(&(if norm { 1.0 + spread } else { spread }).to_le_bytes())?;
        }
    }
    Ok(out.flush()?)
}

/// Names and shapes, as HF writes them.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut tensors = Vec::new();
    let [dim, ..] = ENCODER;
    let [pred_dim, ..] = PREDICTOR;
    pair(&mut tensors, "encoder.embeddings.patch_embeddings.proj", &[dim, 3, 2, 16, 16]);
    stack(&mut tensors, "encoder", ENCODER);
    tensors.push(("predictor.embeddings.mask_tokens".into(), vec![MASK_TOKENS, 1, 1, pred_dim]));
    pair(&mut tensors, "predictor.embeddings.predictor_embeddings", &[pred_dim, dim]);
    stack(&mut tensors, "predictor", PREDICTOR);
    pair(&mut tensors, "predictor.proj", &[dim, pred_dim]);
    tensors
}

/// Weight and bias of a layer.
fn pair(tensors: &mut Vec<(String, Vec<usize>)>, name: &str, shape: &[usize]) {
    tensors.push((format!("{name}.weight"), shape.to_vec()));
    tensors.push((format!("{name}.bias"), vec![shape[0]]));
}

/// Blocks and the norm behind them.
fn stack(tensors: &mut Vec<(String, Vec<usize>)>, name: &str, [dim, layers, _]: [usize; 3]) {
    for i in 0..layers {
        let layer = |part: &str| format!("{name}.layer.{i}.{part}");
        for part in ["query", "key", "value", "proj"] {
            pair(tensors, &layer(&format!("attention.{part}")), &[dim, dim]);
        }
        pair(tensors, &layer("mlp.fc1"), &[4 * dim, dim]);
        pair(tensors, &layer("mlp.fc2"), &[dim, 4 * dim]);
        pair(tensors, &layer("norm1"), &[dim]);
        pair(tensors, &layer("norm2"), &[dim]);
    }
    pair(tensors, &format!("{name}.layernorm"), &[dim]);
}

/// The sum of two uniform draws, -1 to 1, from a xorshift generator: bell-shaped enough for weights, and quick.
pub(crate) fn triangular(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let uniform = |bits: u64| (bits & 0xff_ffff) as f32 / 16_777_216.0;
    uniform(*state) - uniform(*state >> 32)
}
