//! The attentive probe: a learned query that pools the tokens, and one layer.

use burn::module::{ModuleMapper, Param};
use burn::prelude::*;
use jepa_gguf::schema::EncoderHparams;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use super::{Features, Scores, Standardiser};
use crate::head::{AttentiveHead, AttentiveHeadConfig};
use crate::trace::Trace;

/// Deviation of the query that is drawn, as in the reference.
const QUERY_DEVIATION: f64 = 0.02;
/// Hidden width of the MLP, in widths of a token.
const MLP_RATIO: usize = 4;

impl<B: Backend> Scores<B, 3> for AttentiveHead<B> {
    fn scores(&self, inputs: Tensor<B, 3>) -> Tensor<B, 2> {
        self.forward(inputs, &mut Trace::none())
    }
}

/// The attentive probe of an encoder: cross-attention with an MLP behind it, no blocks before it.
///
/// **Source** `AttentiveClassifier` of depth 1 in V-JEPA's evaluations.
pub fn attentive_config(enc: &EncoderHparams, n_classes: usize) -> AttentiveHeadConfig {
    let hidden = enc.embed_dim * MLP_RATIO;
    AttentiveHeadConfig { enc: enc.clone(), n_pool_layers: 0, ffn_dim: hidden, xattn_ffn_dim: hidden, n_classes }
}

/// A head whose matrices and query are drawn by `seed`; biases are 0, norms do nothing yet ([`standardise_tokens`] changes that).
///
/// **Source** V-JEPA's evaluations, except for the matrices: there they are drawn with standard deviation 0.02 whatever their size, which leaves narrow
/// encoders almost without a signal. Here it is Glorot's, the root of 2 / (inputs + outputs).
pub fn attentive_probe<B: Backend>(config: &AttentiveHeadConfig, seed: u64, device: &B::Device) -> AttentiveHead<B> {
    let mut drawing = Drawing { random: ChaCha8Rng::seed_from_u64(seed), path: Vec::new() };
    config.init::<B>(device).map(&mut drawing)
}

/// Lets the norm that `head` reads its tokens through begin as one after which every channel of the rows `indices` has mean 0 and deviation 1.
///
/// What all tokens share says nothing about a class, and in many encoders it is most of a token. The norm goes on learning from there; the head
/// has no part that others have not.
pub fn standardise_tokens<B: Backend>(
    head: &mut AttentiveHead<B>,
    config: &AttentiveHeadConfig,
    features: &Features,
    indices: &[usize],
) {
    let dim = config.enc.embed_dim;
    let normed = |token: &[f32]| {
        let mean = token.iter().map(|&v| f64::from(v)).sum::<f64>() / dim as f64;
        let variance = token.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / dim as f64;
        let scale = 1.0 / (variance + config.enc.ln_eps).sqrt();
        token.iter().map(|&v| (f64::from(v) - mean) * scale).collect::<Vec<_>>()
    };
    let tokens = indices.iter().flat_map(|&index| features.row(index).chunks_exact(dim));
    let Standardiser { mean, inverse } = Standardiser::over(dim, tokens.map(normed));
    let gamma = inverse.iter().map(|&scale| scale as f32).collect();
    let beta = mean.iter().zip(&inverse).map(|(mean, scale)| (-mean * scale) as f32).collect();
    let device = head.query.device();
    let param = |values: Vec<f32>| Param::from_tensor(Tensor::from_data(TensorData::new(values, [dim]), &device));
    head.xattn.ln_kv.gamma = param(gamma);
    head.xattn.ln_kv.beta = Some(param(beta));
}

/// Replaces parameters by draws of a generator that gives the same everywhere and in any order of tests.
struct Drawing {
    random: ChaCha8Rng,
    path: Vec<String>,
}

impl<B: Backend> ModuleMapper<B> for Drawing {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let bias = self.path.last().is_some_and(|name| name == "bias");
        param.map(|old| {
            let new = match D {
                1 if bias => old.zeros_like(),
                1 => return old,
                _ => {
                    let query = self.path.last().is_some_and(|name| name == "query");
                    let sides: usize = old.dims().iter().sum();
                    let deviation = if query { QUERY_DEVIATION } else { (2.0 / sides as f64).sqrt() };
                    let normal = Normal::new(0.0, deviation).expect("the deviation is above 0");
                    let n = old.shape().num_elements();
                    let values: Vec<f32> = (0..n).map(|_| normal.sample(&mut self.random) as f32).collect();
                    Tensor::from_data(TensorData::new(values, old.shape()), &old.device())
                }
            };
            if old.is_require_grad() { new.require_grad() } else { new }
        })
    }
}

#[cfg(test)]
mod tests {
    use burn_flex::Flex;
    use jepa_gguf::Bundle;

    use super::*;
    use crate::probe::Examples;

    #[test]
    fn the_seed_decides_every_weight() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/quickstart/tiny.gguf");
        let config = attentive_config(&Bundle::open(path).unwrap().hparams().enc, 3);
        let device = Default::default();
        let draw = |seed| {
            let head = attentive_probe::<Flex>(&config, seed, &device);
            let values = |p: Tensor<Flex, 2>| p.into_data().to_vec::<f32>().unwrap();
            (values(head.query.val()), values(head.xattn.ffn_up.weight.val()), head)
        };
        let (query, up, head) = draw(5);
        assert_eq!((&query, &up), (&draw(5).0, &draw(5).1));
        assert_ne!(query, draw(6).0);
        let deviation = |values: &[f32]| (values.iter().map(|v| v * v).sum::<f32>() / values.len() as f32).sqrt();
        // 64 inputs and 256 outputs.
        assert!((deviation(&up) / (2.0_f32 / 320.0).sqrt() - 1.0).abs() < 0.05, "{}", deviation(&up));
        assert!((deviation(&query) / 0.02 - 1.0).abs() < 0.3, "{}", deviation(&query));
        let bias = head.cls.bias.unwrap().val().into_data().to_vec::<f32>().unwrap();
        assert!(bias.iter().all(|&b| b == 0.0));
        assert!(head.xattn.ln2.gamma.val().into_data().iter::<f32>().all(|g| g == 1.0));
    }

    #[test]
    fn standardised_tokens_have_mean_zero_and_deviation_one_behind_the_norm() {
        let enc = EncoderHparams { n_head: 1, ..EncoderHparams::vit([6, 1, 1, 6], 8, 8) };
        let config = attentive_config(&enc, 2);
        let mut head = attentive_probe::<Flex>(&config, 1, &Default::default());
        // Four rows of two tokens, the last row far off.
        let value =
            |i: usize| ((i * i * 7 + 3 * i) % 13) as f32 + if i >= 36 { 1e3 } else { 0.0 } + (i % 6) as f32 * 50.0;
        let features = Features::new((0..48).map(value).collect(), vec![2, 6], vec![0, 1, 0, 1]).unwrap();
        standardise_tokens(&mut head, &config, &features, &[0, 1, 2]);
        let tokens: Tensor<Flex, 3> = Tensor::from_data(features.batch(&[0, 1, 2]).unwrap(), &Default::default());
        let normed = crate::nn::layer_norm(&head.xattn.ln_kv, enc.ln_eps, tokens).reshape([6, 6]);
        let largest = |t: Tensor<Flex, 2>| t.abs().max().into_scalar();
        assert!(largest(normed.clone().mean_dim(0)) < 1e-4);
        assert!(largest(normed.powi_scalar(2).mean_dim(0) - 1.0) < 1e-3);
    }
}
