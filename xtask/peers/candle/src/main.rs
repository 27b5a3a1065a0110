//! candle's side of `cargo xtask bench`: the encoder of one bundle, as its own ViTs are written, timed on request.
//!
//! `candle-vit MODEL.gguf INPUT.npy [TOKENS.npy]` reads a line from stdin, runs one pass in f32 and answers with its wall and its process CPU time in
//! ms. The number of threads is `RAYON_NUM_THREADS`.

use std::collections::HashMap;
use std::fs::File;
use std::io::stdin;
use std::time::Instant;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{D, Device, IndexOp, Result, Tensor};
use candle_nn::{LayerNorm, Linear, Module};
use cpu_time::ProcessTime;

struct Block {
    heads: usize,
    ln1: LayerNorm,
    attn_qkv: Linear,
    attn_out: Linear,
    ln2: LayerNorm,
    ffn_up: Linear,
    ffn_down: Linear,
}

impl Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (b, n, d) = x.dims3()?;
        let qkv = self.attn_qkv.forward(&self.ln1.forward(x)?)?;
        let qkv = qkv.reshape((b, n, 3, self.heads, d / self.heads))?.permute((2, 0, 3, 1, 4))?.contiguous()?;
        let (q, k, v) = (qkv.i(0)?, qkv.i(1)?, qkv.i(2)?);
        let scale = ((d / self.heads) as f64).powf(-0.5);
        let scores = ((q * scale)?.matmul(&k.t()?))?;
        let y = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&v)?;
        let y = y.transpose(1, 2)?.reshape((b, n, d))?;
        let x = (x + self.attn_out.forward(&y)?)?;
        let hidden = self.ffn_up.forward(&self.ln2.forward(&x)?)?.gelu_erf()?;
        x + self.ffn_down.forward(&hidden)?
    }
}

struct Encoder {
    patch: usize,
    tubelet: usize,
    patch_embed: Linear,
    cls_token: Option<Tensor>,
    pos_embed: Tensor,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

impl Encoder {
    fn open(path: &str) -> Result<Self> {
        let device = Device::Cpu;
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        let count = |key: &str| content.metadata[&format!("jepa.enc.{key}")].to_u32().map(|v| v as usize);
        let eps = f64::from(content.metadata["jepa.enc.ln_eps"].to_f32()?);
        let cls = matches!(content.metadata["jepa.enc.cls_token"], Value::Bool(true));
        let mut tensors = HashMap::new();
        for name in content.tensor_infos.keys() {
            tensors.insert(name.clone(), content.tensor(&mut file, name, &device)?.dequantize(&device)?);
        }
        let tensor = |name: &str| tensors[name].clone();
        let linear =
            |name: String| Linear::new(tensor(&format!("{name}.weight")), Some(tensor(&format!("{name}.bias"))));
        let norm =
            |name: String| LayerNorm::new(tensor(&format!("{name}.weight")), tensor(&format!("{name}.bias")), eps);
        let heads = count("n_head")?;
        let block = |i: usize| Block {
            heads,
            ln1: norm(format!("enc.blk.{i}.ln1")),
            attn_qkv: linear(format!("enc.blk.{i}.attn_qkv")),
            attn_out: linear(format!("enc.blk.{i}.attn_out")),
            ln2: norm(format!("enc.blk.{i}.ln2")),
            ffn_up: linear(format!("enc.blk.{i}.ffn_up")),
            ffn_down: linear(format!("enc.blk.{i}.ffn_down")),
        };
        Ok(Self {
            patch: count("patch_size")?,
            tubelet: count("tubelet_size")?,
            patch_embed: linear("enc.patch_embed".into()),
            cls_token: cls.then(|| tensor("enc.cls_token")),
            pos_embed: tensor("enc.pos_embed"),
            blocks: (0..count("n_layer")?).map(block).collect(),
            norm: norm("enc.norm".into()),
        })
    }

    fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let pixels = if pixels.rank() == 4 { pixels.unsqueeze(2)? } else { pixels.clone() };
        let (b, c, frames, height, width) = pixels.dims5()?;
        let (t, p) = (self.tubelet, self.patch);
        let x = pixels.reshape(&[b, c, frames / t, t, height / p, p, width / p, p][..])?;
        let x = x.permute(vec![0, 2, 4, 6, 1, 3, 5, 7])?.reshape((b, (), c * t * p * p))?;
        let mut x = self.patch_embed.forward(&x)?;
        if let Some(cls) = &self.cls_token {
            let cls = cls.reshape((1, 1, ()))?.broadcast_as((b, 1, x.dim(D::Minus1)?))?;
            x = Tensor::cat(&[&cls.contiguous()?, &x], 1)?;
        }
        let mut x = x.broadcast_add(&self.pos_embed)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.norm.forward(&x)
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, model, input, rest @ ..] = &args[..] else {
        eprintln!("candle-vit MODEL.gguf INPUT.npy [TOKENS.npy]");
        std::process::exit(2);
    };
    let encoder = Encoder::open(model)?;
    let pixels = Tensor::read_npy(input)?;
    if let [tokens] = rest {
        encoder.forward(&pixels)?.write_npy(tokens)?;
    }
    for line in stdin().lines() {
        line?;
        let (wall, cpu) = (Instant::now(), ProcessTime::now());
        encoder.forward(&pixels)?;
        println!("{} {}", wall.elapsed().as_secs_f64() * 1e3, cpu.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}
