//! Our encoder inside a Burn module of your own, trained in a loop of your own: which colour is the square?
//!
//! ```sh
//! cargo run --release -p jepa-models --features train --example own_model
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::path::Path;

use burn::backend::Autodiff;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::prelude::*;
use burn::tensor::backend::AutodiffBackend;
use burn_flex::Flex;
use jepa_models::{Encoder, Jepa, ModelError, Pixels, Pool, Preprocess};
use jepa_pixels::Rgb8;

/// A module like any other: the encoder is one of its fields.
#[derive(Module, Debug)]
struct ColourModel<B: Backend> {
    encoder: Encoder<B>,
    head: Linear<B>,
}

impl<B: Backend> ColourModel<B> {
    /// **Shapes** `[batch, chans, 1, height, width]` → logits `[batch, COLOURS]`.
    fn forward(&self, pixels: Pixels<B>) -> Result<Tensor<B, 2>, ModelError> {
        let features = self.encoder.encode(pixels)?.pooled(Pool::Auto)?; // [batch, dim]
        Ok(self.head.forward(features))
    }
}

const COLOURS: [[u8; 3]; 3] = [[220, 40, 40], [40, 200, 60], [50, 70, 220]];

/// A square of one colour on gray, somewhere.
fn picture(colour: usize, at: usize) -> Result<Rgb8, Box<dyn Error>> {
    let mut samples = vec![128; 64 * 64 * 3];
    for y in 0..24 {
        for x in 0..24 {
            let pixel = (at + y) * 64 + at + x;
            samples[pixel * 3..pixel * 3 + 3].copy_from_slice(&COLOURS[colour]);
        }
    }
    Ok(Rgb8::new(64, 64, samples)?)
}

/// Pictures and their colours.
type Batch<B> = (Pixels<B>, Tensor<B, 1, Int>);

fn batch<B: Backend>(preprocess: &Preprocess, device: &B::Device) -> Result<Batch<B>, Box<dyn Error>> {
    let labels: Vec<usize> = (0..12).map(|i| i % COLOURS.len()).collect();
    let mut clips = Vec::new();
    for (i, &colour) in labels.iter().enumerate() {
        clips.push(preprocess.image::<B>(&picture(colour, 3 * i)?, device)?.into_tensor());
    }
    let labels: Vec<i64> = labels.into_iter().map(|label| label as i64).collect();
    let labels = Tensor::from_data(TensorData::from(labels.as_slice()), device);
    Ok((Pixels::from_normalised_clips(Tensor::cat(clips, 0)), labels))
}

/// Losses of all steps.
fn train<B: AutodiffBackend>(model_file: &Path, steps: usize) -> Result<Vec<f32>, Box<dyn Error>> {
    let device = B::Device::default();
    B::seed(&device, 1);
    let jepa = Jepa::<B>::open(model_file, &device)?;
    let dim = jepa.encoder().config().hparams.embed_dim;
    let mut model = ColourModel {
        encoder: jepa.encoder().clone().no_grad(), // frozen; leave `no_grad` out to train it too
        head: LinearConfig::new(dim, COLOURS.len()).init(&device),
    };
    let mut optimizer = AdamConfig::new().init();
    let loss_of = CrossEntropyLossConfig::new().init(&device);
    let (pixels, labels) = batch::<B>(jepa.preprocess(), &device)?;
    let mut losses = Vec::new();
    for _ in 0..steps {
        let loss = loss_of.forward(model.forward(pixels.clone())?, labels.clone());
        losses.push(loss.clone().into_scalar().elem());
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.01, model, grads);
    }
    Ok(losses)
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart/tiny.gguf");
    let losses = train::<Autodiff<Flex>>(&model, 60)?;
    for (step, loss) in losses.iter().enumerate().step_by(10) {
        println!("step {step:3}: loss {loss:.4}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_falls() {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/quickstart/tiny.gguf");
        let losses = train::<Autodiff<Flex>>(&model, 30).unwrap();
        assert!(losses[29] < 0.5 * losses[0], "{losses:?}");
    }
}
