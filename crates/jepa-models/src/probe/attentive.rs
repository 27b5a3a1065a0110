//! The attentive probe: a learned query that pools the tokens, and one layer.

use burn::module::{ModuleMapper, Param};
use burn::prelude::*;
use jepa_gguf::schema::EncoderHparams;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use super::Scores;
use crate::head::{AttentiveHead, AttentiveHeadConfig};
use crate::trace::Trace;

/// Deviation of weights that are drawn, as in the reference.
const DEVIATION: f32 = 0.02;
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

/// A head whose matrices and query are drawn by `seed`, normal with standard deviation 0.02; biases are 0, norms do nothing yet.
pub fn attentive_probe<B: Backend>(config: &AttentiveHeadConfig, seed: u64, device: &B::Device) -> AttentiveHead<B> {
    let mut drawing = Drawing { random: ChaCha8Rng::seed_from_u64(seed), path: Vec::new() };
    config.init::<B>(device).map(&mut drawing)
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
                    let normal = Normal::new(0.0, DEVIATION).expect("the deviation is above 0");
                    let n = old.shape().num_elements();
                    let values: Vec<f32> = (0..n).map(|_| normal.sample(&mut self.random)).collect();
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
        let deviation = (up.iter().map(|v| v * v).sum::<f32>() / up.len() as f32).sqrt();
        assert!((deviation / DEVIATION - 1.0).abs() < 0.05, "{deviation}");
        let bias = head.cls.bias.unwrap().val().into_data().to_vec::<f32>().unwrap();
        assert!(bias.iter().all(|&b| b == 0.0));
        assert!(head.xattn.ln2.gamma.val().into_data().iter::<f32>().all(|g| g == 1.0));
    }
}
