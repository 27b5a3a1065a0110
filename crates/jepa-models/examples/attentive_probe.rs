//! An attentive probe on cached features: the encoder runs once, on the plain backend, and only the probe is trained under autodiff.
//!
//! ```sh
//! cargo run --release -p jepa-models --features train --example attentive_probe
//! ```
//!
//! The question, up or down, needs attention: the two halves of a picture have the same mean in both classes.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::path::Path;

use burn::backend::Autodiff;
use burn::module::AutodiffModule;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams, Optimizer};
use burn::prelude::*;
use burn_flex::Flex;
use jepa_models::head::AttentiveHeadConfig;
use jepa_models::{Jepa, Trace};
use jepa_pixels::Rgb8;

type Train = Autodiff<Flex>;

/// Stripes that lean to one side or the other.
fn picture(leans_left: bool, phase: usize) -> Result<Rgb8, Box<dyn Error>> {
    let stripe = |x: usize, y: usize| (if leans_left { x + y } else { x + 64 - y } + phase) % 16 < 8;
    let samples = (0..64 * 64).flat_map(|i| [if stripe(i % 64, i / 64) { 230 } else { 30 }; 3]).collect();
    Ok(Rgb8::new(64, 64, samples)?)
}

/// Tokens `[pictures, tokens, dim]` on the host, and the class of each picture.
fn features(model: &Jepa<Flex>, pictures: usize) -> Result<(TensorData, Vec<i64>), Box<dyn Error>> {
    let device = Default::default();
    let (mut tokens, mut classes) = (Vec::new(), Vec::new());
    for i in 0..pictures {
        let pixels = model.preprocess().image(&picture(i % 2 == 0, i)?, &device)?;
        tokens.push(model.encode(pixels)?.tokens);
        classes.push((i % 2) as i64);
    }
    Ok((Tensor::cat(tokens, 0).into_data(), classes))
}

/// Losses of all steps, and the share of the pictures that are named rightly in the end.
fn probe(model_file: &Path, steps: usize) -> Result<(Vec<f32>, f64), Box<dyn Error>> {
    let device = Default::default();
    let model = Jepa::<Flex>::open(model_file, &device)?;
    let (tokens, classes) = features(&model, 16)?;

    <Train as Backend>::seed(&device, 3);
    let enc = model.hparams().enc.clone();
    let config =
        AttentiveHeadConfig { ffn_dim: enc.ffn_dim, xattn_ffn_dim: enc.ffn_dim, n_pool_layers: 1, n_classes: 2, enc };
    let mut head = config.init::<Train>(&device);
    let mut optimizer = AdamWConfig::new().init();
    let loss_of = CrossEntropyLossConfig::new().init(&device);
    let tokens = Tensor::<Train, 3>::from_data(tokens, &device);
    let labels = Tensor::<Train, 1, Int>::from_data(TensorData::from(classes.as_slice()), &device);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let loss = loss_of.forward(head.forward(tokens.clone(), &mut Trace::none()), labels.clone());
        losses.push(loss.clone().into_scalar().elem());
        let grads = GradientsParams::from_grads(loss.backward(), &head);
        head = optimizer.step(1e-3, head, grads);
    }

    // `valid` gives the head on the plain backend, where it runs on the kernels.
    let logits = head.valid().forward(tokens.inner(), &mut Trace::none());
    let right = logits.argmax(1).squeeze_dim::<1>(1).equal(labels.inner()).int().sum().into_scalar();
    Ok((losses, f64::from(right) / classes.len() as f64))
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart/tiny.gguf");
    let (losses, accuracy) = probe(&model, 40)?;
    println!("loss {:.3} → {:.3}, {:.0} % right", losses[0], losses[losses.len() - 1], accuracy * 100.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_learns_what_it_sees() {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart/tiny.gguf");
        let (losses, accuracy) = probe(&model, 40).unwrap();
        assert!(losses[39] < 0.5 * losses[0] && accuracy > 0.9, "{accuracy}: {losses:?}");
    }
}
