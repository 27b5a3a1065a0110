//! A checkpoint of the size of the published ViT-L, with random weights: something to measure converting and quantising with.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::json;

const DIM: usize = 1024;
const LAYERS: usize = 24;
const FFN: usize = 4096;

/// Writes a Hugging Face folder of V-JEPA 2 ViT-L/16 (encoder, 304 million parameters, 1.2 GB of f32) into `folder`. The same bytes every time.
pub(crate) fn vit_l(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let config = json!({
        "architectures": ["VJEPA2Model"], "model_type": "vjepa2", "hidden_size": DIM, "num_hidden_layers": LAYERS, "num_attention_heads": 16,
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
    let mut pair = |name: String, shape: &[usize]| {
        tensors.push((format!("{name}.weight"), shape.to_vec()));
        tensors.push((format!("{name}.bias"), vec![shape[0]]));
    };
    pair("encoder.embeddings.patch_embeddings.proj".into(), &[DIM, 3, 2, 16, 16]);
    for i in 0..LAYERS {
        let layer = |part: &str| format!("encoder.layer.{i}.{part}");
        for part in ["query", "key", "value", "proj"] {
            pair(layer(&format!("attention.{part}")), &[DIM, DIM]);
        }
        pair(layer("mlp.fc1"), &[FFN, DIM]);
        pair(layer("mlp.fc2"), &[DIM, FFN]);
        pair(layer("norm1"), &[DIM]);
        pair(layer("norm2"), &[DIM]);
    }
    pair("encoder.layernorm".into(), &[DIM]);
    tensors
}

/// The sum of two uniform draws, -1 to 1, from a xorshift generator: bell-shaped enough for weights, and quick.
fn triangular(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let uniform = |bits: u64| (bits & 0xff_ffff) as f32 / 16_777_216.0;
    uniform(*state) - uniform(*state >> 32)
}
