//! What a smaller file costs: its features against those of the file it was made from, on the same pixels.

use burn::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::agreement::Agreement;
use crate::bundle::Jepa;
use crate::encoder::EncoderConfig;
use crate::error::ModelError;
use crate::features::Pool;
use crate::nn::Pixels;

/// How well rows agree, over any number of batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowAgreement {
    /// Rows compared.
    pub rows: usize,
    /// Mean cosine of a row with the wanted one.
    pub cos_mean: f64,
    /// Smallest cosine; NaN when a row held something that is no number.
    pub cos_min: f64,
    /// Largest absolute difference over the largest absolute wanted value, the worst of all batches.
    pub rel_max: f64,
}

impl Default for RowAgreement {
    fn default() -> Self {
        Self { rows: 0, cos_mean: 1.0, cos_min: 1.0, rel_max: 0.0 }
    }
}

impl RowAgreement {
    fn add(&mut self, got: &TensorData, wanted: &TensorData) {
        let row = wanted.shape.last().copied().unwrap_or(1);
        let values = |data: &TensorData| data.iter::<f64>().collect::<Vec<_>>();
        let new = Agreement::of(&values(got), &values(wanted), row);
        let rows = wanted.num_elements() / row;
        let worse = |a: f64, b: f64, smaller: bool| match (a.is_nan() || b.is_nan(), smaller) {
            (true, _) => f64::NAN,
            (false, true) => a.min(b),
            (false, false) => a.max(b),
        };
        self.cos_mean = (self.cos_mean * self.rows as f64 + new.cos_mean * rows as f64) / (self.rows + rows) as f64;
        self.cos_min = worse(self.cos_min, new.cos_min, true);
        self.rel_max = worse(self.rel_max, new.rel_max, false);
        self.rows += rows;
    }
}

/// Agreement of the features of two models.
///
/// ```no_run
/// use burn_flex::Flex; // any Burn backend
/// use jepa_models::{Fidelity, Jepa, noise};
///
/// let device = Default::default();
/// let exact = Jepa::<Flex>::open("ijepa_vith14_1k-f32.gguf", &device)?;
/// let small = Jepa::<Flex>::open("ijepa_vith14_1k-q4_k.gguf", &device)?;
/// let mut fidelity = Fidelity::default();
/// fidelity.add(&exact, &small, noise(exact.encoder().config(), 4, 8, 0, &device))?;
/// println!("worst token: cosine {:.4}", fidelity.tokens.cos_min);
/// # Ok::<(), jepa_models::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fidelity {
    /// Pooled vectors, one for an input, pooled as the family does.
    pub pooled: RowAgreement,
    /// Tokens after the final norm.
    pub tokens: RowAgreement,
}

impl Fidelity {
    /// Encodes `pixels` with both models and adds how well `got` agrees with `wanted`.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]`.
    ///
    /// # Errors
    /// As [`Jepa::encode`].
    pub fn add<B: Backend>(&mut self, wanted: &Jepa<B>, got: &Jepa<B>, pixels: Pixels<B>) -> Result<(), ModelError> {
        let wanted = wanted.encode(pixels.clone())?;
        let got = got.encode(pixels)?;
        self.pooled.add(&got.pooled(Pool::Auto)?.into_data(), &wanted.pooled(Pool::Auto)?.into_data());
        self.tokens.add(&got.tokens.into_data(), &wanted.tokens.into_data());
        Ok(())
    }
}

/// `batch` inputs of `frames` frames of standard normal noise at an encoder's native size; the same for the same seed on every device.
///
/// **Shapes** → `[batch, chans, frames, height, width]`.
pub fn noise<B: Backend>(
    config: &EncoderConfig,
    batch: usize,
    frames: usize,
    seed: u64,
    device: &B::Device,
) -> Pixels<B> {
    let hp = &config.hparams;
    let shape = [batch, hp.in_chans, frames, hp.img_size, hp.img_size];
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| StandardNormal.sample(&mut rng)).collect();
    Pixels::from_normalised_clips(Tensor::from_data(TensorData::new(values, shape), device))
}
