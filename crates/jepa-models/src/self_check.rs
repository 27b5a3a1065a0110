//! Whether a device computes what it should, at the shapes of one model: the operations that encoders are made of, against f64 on the host.
//!
//! Backends for GPUs choose among kernels by shape, and some of those are wrong on some devices. An operation runs at its full size; of its result
//! a sample is computed again, the last row and column among it, where kernels go wrong first.

use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::activation::gelu;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::encoder::EncoderConfig;
use crate::nn::{Block, BlockConfig, Visibility, as_type, attention, linear_in_burn, with_linears_as};
use crate::trace::Trace;

/// Most tokens that operations are checked with.
const TOKENS: usize = 2048;

/// Tokens of the block that is checked: all of its result is computed again.
const BLOCK_TOKENS: usize = 48;

/// Results of a matrix product, rows of a norm or queries of an attention that are computed again.
const SAMPLES: usize = 48;

/// Largest difference over the largest wanted value that counts as right: operands of a product may be rounded to ten bits (TF32, f16) or to seven
/// (bf16), a wrong kernel is off by about 1.
fn bar(dtype: DType) -> f64 {
    if dtype == DType::BF16 { 2e-2 } else { 5e-3 }
}

/// An operation that a device gets wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{op} of {shape} is off by {rel_max:.1e} of its largest value on this device, wanted at most {bar:.0e}")]
pub struct WrongOnDevice {
    /// The operation.
    pub op: &'static str,
    /// Its shape in words.
    pub shape: String,
    /// Largest difference over the largest wanted value; NaN when a result was no number.
    pub rel_max: f64,
    /// What would have been right.
    pub bar: f64,
}

/// Runs the check on `device` at the shapes of an encoder whose linear layers are of type `dtype`, which the device must be able to compute in. On a
/// GPU it compiles kernels and takes seconds.
///
/// # Errors
/// [`WrongOnDevice`] for the first operation that is wrong.
pub fn self_check<B: Backend>(config: &EncoderConfig, device: &B::Device, dtype: DType) -> Result<(), WrongOnDevice> {
    let hp = &config.hparams;
    let prefix = usize::from(hp.cls_token) + hp.n_registers;
    let tokens = (config.native_grid().tokens() + prefix).min(TOKENS);
    let (dim, ffn) = (hp.embed_dim, hp.ffn_dim);
    let mut check = Check::<B> { device, dtype, rng: ChaCha8Rng::seed_from_u64(0) };
    for (d_in, d_out) in [(dim, 3 * dim), (dim, ffn), (ffn, dim)] {
        check.linear(tokens, d_in, d_out)?;
    }
    check.attention(tokens, hp.n_head, dim / hp.n_head)?;
    check.layer_norm(tokens, dim, hp.ln_eps)?;
    check.gelu(tokens, ffn)?;
    check.block(&BlockConfig { layer_scale: false, qkv_fused: true, ..BlockConfig::from(hp) })
}

struct Check<'a, B: Backend> {
    device: &'a B::Device,
    dtype: DType,
    rng: ChaCha8Rng,
}

impl<B: Backend> Check<'_, B> {
    fn normal<const D: usize>(&mut self, shape: [usize; D]) -> (Tensor<B, D>, Vec<f32>) {
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| StandardNormal.sample(&mut self.rng)).collect();
        (Tensor::from_data(TensorData::new(values.clone(), shape), self.device), values)
    }

    /// Numbers below `len`, the first and the last among them.
    fn sample(&mut self, len: usize) -> Vec<usize> {
        let random: Vec<usize> = (2..SAMPLES).map(|_| self.rng.random_range(0..len)).collect();
        [0, len - 1].into_iter().chain(random).collect()
    }

    fn linear(&mut self, tokens: usize, d_in: usize, d_out: usize) -> Result<(), WrongOnDevice> {
        let layer: Linear<B> = with_linears_as(LinearConfig::new(d_in, d_out).init(self.device), self.dtype);
        let (x, values) = self.normal([1, tokens, d_in]);
        let got = numbers(linear_in_burn(&layer, x));
        let weight = numbers(layer.weight.val());
        let bias = numbers(layer.bias.as_ref().expect("a layer has a bias unless it is told not to").val());
        let places: Vec<_> = self.sample(tokens).into_iter().zip(self.sample(d_out)).collect();
        let want = places.iter().map(|&(r, c)| {
            let products = (0..d_in).map(|k| f64::from(values[r * d_in + k]) * f64::from(weight[k * d_out + c]));
            products.sum::<f64>() + f64::from(bias[c])
        });
        let got = places.iter().map(|&(r, c)| got[r * d_out + c]);
        judge(bar(self.dtype), "a linear layer", || format!("[{tokens}, {d_in}] · [{d_in}, {d_out}]"), got, want)
    }

    fn attention(&mut self, tokens: usize, heads: usize, width: usize) -> Result<(), WrongOnDevice> {
        let shape = [1, heads, tokens, width];
        let [(q, qs), (k, ks), (v, vs)] = [(); 3].map(|()| self.normal(shape));
        let [q, k, v] = [q, k, v].map(|x| as_type(x, self.dtype));
        let got = numbers(attention(q, k, v, &Visibility::Full));
        let places: Vec<_> = self.sample(heads).into_iter().zip(self.sample(tokens)).collect();
        let want = places.iter().flat_map(|&(head, query)| {
            let row = |values: &[f32], token: usize| row_of(values, head * tokens + token, width);
            attended(&row(&qs, query), tokens, |token| row(&ks, token), |token| row(&vs, token))
        });
        let got = places.iter().flat_map(|&(head, query)| {
            let first = (head * tokens + query) * width;
            got[first..first + width].to_vec()
        });
        judge(bar(self.dtype), "attention", || format!("{heads} heads of {tokens} × {width}"), got, want)
    }

    fn layer_norm(&mut self, tokens: usize, dim: usize, eps: f64) -> Result<(), WrongOnDevice> {
        let norm: LayerNorm<B> = LayerNormConfig::new(dim).with_epsilon(eps).init(self.device);
        let (x, values) = self.normal([1, tokens, dim]);
        let got = numbers(norm.forward(x));
        let rows = self.sample(tokens);
        let want = rows.iter().flat_map(|&row| normalised(&row_of(&values, row, dim), eps));
        let got = rows.iter().flat_map(|&row| got[row * dim..(row + 1) * dim].to_vec());
        judge(bar(self.dtype), "a layer norm", || format!("[{tokens}, {dim}]"), got, want)
    }

    fn gelu(&mut self, tokens: usize, width: usize) -> Result<(), WrongOnDevice> {
        let (x, values) = self.normal([1, tokens, width]);
        let got = numbers(gelu(x));
        let rows = self.sample(tokens);
        let row = |values: &[f32], row: usize| values[row * width..(row + 1) * width].to_vec();
        let want = rows.iter().flat_map(|&r| row(&values, r)).map(|v| gelu_erf(v.into())).collect::<Vec<_>>();
        judge(
            bar(self.dtype),
            "GELU",
            || format!("[{tokens}, {width}]"),
            rows.iter().flat_map(|&r| row(&got, r)),
            want.into_iter(),
        )
    }

    fn block(&mut self, config: &BlockConfig) -> Result<(), WrongOnDevice> {
        let config = BlockConfig { act: jepa_gguf::schema::Activation::GeluErf, ..config.clone() };
        let (dim, ffn) = (config.embed_dim, config.ffn_dim);
        let block: Block<B> = with_linears_as(config.init(self.device), self.dtype);
        let (x, values) = self.normal([1, BLOCK_TOKENS, dim]);
        let got = numbers(block.forward(x, None, &Visibility::Full, &mut Trace::none(), "self_check"));
        let want = plain_block(&block, &config, &values);
        judge(
            bar(self.dtype),
            "a block",
            || format!("{BLOCK_TOKENS} tokens, width {dim}, {} heads, hidden {ffn}", config.n_head),
            got.into_iter(),
            want.into_iter(),
        )
    }
}

/// A block in f64, one row at a time.
fn plain_block<B: Backend>(block: &Block<B>, config: &BlockConfig, x: &[f32]) -> Vec<f64> {
    let (dim, width) = (config.embed_dim, config.head_dim);
    let inner = config.n_head * width;
    let qkv = Plain::of(block.attn_qkv.as_ref().expect("the config fuses the three"));
    let [attn_out, ffn_up, ffn_down] = [&block.attn_out, &block.ffn_up, &block.ffn_down].map(Plain::of);
    let rows: Vec<Vec<f64>> = (0..BLOCK_TOKENS).map(|row| row_of(x, row, dim)).collect();
    let projected: Vec<Vec<f64>> = rows.iter().map(|row| qkv.forward(&normalised(row, config.ln_eps))).collect();
    let part = |token: usize, part: usize, head: usize| {
        let first = part * inner + head * width;
        projected[token][first..first + width].to_vec()
    };
    let add = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f64>>();
    let mut out = Vec::new();
    for (token, row) in rows.iter().enumerate() {
        let heads: Vec<f64> = (0..config.n_head)
            .flat_map(|head| {
                let query = part(token, 0, head);
                attended(&query, BLOCK_TOKENS, |token| part(token, 1, head), |token| part(token, 2, head))
            })
            .collect();
        let row = add(row, &attn_out.forward(&heads));
        let hidden: Vec<f64> = ffn_up.forward(&normalised(&row, config.ln_eps)).into_iter().map(gelu_erf).collect();
        out.extend(add(&row, &ffn_down.forward(&hidden)));
    }
    out
}

/// A linear layer's numbers on the host.
struct Plain {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Plain {
    fn of<B: Backend>(layer: &Linear<B>) -> Self {
        let bias = layer.bias.as_ref().map(|bias| numbers(bias.val()));
        let weight = numbers(layer.weight.val());
        let outputs = layer.weight.dims()[1];
        Self { weight, bias: bias.unwrap_or_else(|| vec![0.0; outputs]) }
    }

    fn forward(&self, x: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = self.bias.iter().map(|&b| b.into()).collect();
        for (&x, weights) in x.iter().zip(self.weight.chunks_exact(self.bias.len())) {
            out.iter_mut().zip(weights).for_each(|(out, &w)| *out += x * f64::from(w));
        }
        out
    }
}

fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

fn row_of(values: &[f32], row: usize, width: usize) -> Vec<f64> {
    values[row * width..(row + 1) * width].iter().map(|&v| v.into()).collect()
}

/// A row without its mean and with variance 1, as a norm that has not been trained gives it.
fn normalised(row: &[f64], eps: f64) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    row.iter().map(|v| (v - mean) / (variance + eps).sqrt()).collect()
}

/// Softmax attention of one query.
fn attended(
    query: &[f64],
    tokens: usize,
    key: impl Fn(usize) -> Vec<f64>,
    value: impl Fn(usize) -> Vec<f64>,
) -> Vec<f64> {
    let scale = (query.len() as f64).sqrt();
    let scores: Vec<f64> =
        (0..tokens).map(|token| query.iter().zip(key(token)).map(|(q, k)| q * k).sum::<f64>() / scale).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut out = vec![0.0; query.len()];
    for (token, weight) in weights.iter().enumerate() {
        out.iter_mut().zip(value(token)).for_each(|(out, v)| *out += weight / total * v);
    }
    out
}

fn gelu_erf(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))
}

fn judge(
    bar: f64,
    op: &'static str,
    shape: impl FnOnce() -> String,
    got: impl Iterator<Item = f32>,
    want: impl Iterator<Item = f64>,
) -> Result<(), WrongOnDevice> {
    let (mut worst, mut largest) = (0.0f64, f64::MIN_POSITIVE);
    for (got, want) in got.zip(want) {
        let off = (f64::from(got) - want).abs();
        // Not `max`, which would drop a NaN.
        worst = if worst.is_nan() || off <= worst { worst } else { off };
        largest = largest.max(want.abs());
    }
    let rel_max = worst / largest;
    if rel_max <= bar { Ok(()) } else { Err(WrongOnDevice { op, shape: shape(), rel_max, bar }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_flex::Flex;

    fn small() -> EncoderConfig {
        let mut config = EncoderConfig::of_shape("vit-s").unwrap();
        let hp = &mut config.hparams;
        (hp.embed_dim, hp.n_head, hp.ffn_dim, hp.img_size) = (66, 3, 88, 64);
        config
    }

    #[test]
    fn a_sound_device_passes() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            assert_eq!(self_check::<Flex>(&small(), &Default::default(), dtype), Ok(()), "{dtype:?}");
        }
    }

    /// What a wrong kernel gives is seen, wherever it is wrong.
    #[test]
    fn wrong_numbers_are_named_with_their_shape() {
        let shape = || "[2, 2]".to_owned();
        let judged =
            |got: [f32; 4]| judge(bar(DType::F32), "an op", shape, got.into_iter(), [1.0, 2.0, 3.0, 4.0].into_iter());
        assert_eq!(judged([1.0, 2.0, 3.0, 4.0]), Ok(()));
        assert_eq!(judged([1.0, 2.0, 3.001, 4.0]), Ok(()));
        for got in
            [[0.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.1], [f32::NAN, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, f32::INFINITY]]
        {
            let error = judged(got).expect_err("it is off").to_string();
            assert!(error.contains("an op of [2, 2] is off by"), "{error}");
        }
    }
}
