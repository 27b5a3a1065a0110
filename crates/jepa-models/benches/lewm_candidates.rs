//! How much faster 64 candidates roll out in one batch than one after the other, for a LeWM of the published size with random weights:
//! `cargo bench -p jepa-models --bench lewm_candidates`.

#![allow(missing_docs, clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

use burn::prelude::*;
use burn::tensor::Distribution;
use burn_flex::Flex;
use jepa_gguf::schema::{Activation, LewmHparams, PredictorHparams, PredictorKind, ProjectorHparams};
use jepa_models::Trace;
use jepa_models::predictor::{LewmPredictor, LewmPredictorConfig};

const CANDIDATES: usize = 64;
const STEPS: usize = 5;
const ROUNDS: usize = 7;

fn main() {
    let lewm = LewmHparams {
        action_dim: 10,
        n_frames: 3,
        adaln_eps: 1e-6,
        action_hidden: 768,
        action_act: Activation::Silu,
        proj: ProjectorHparams { hidden: 2048, act: Activation::GeluErf },
    };
    let hparams = PredictorHparams {
        embed_dim: 192,
        n_layer: 6,
        n_head: 16,
        head_dim: 64,
        ffn_dim: 2048,
        out_dim: 192,
        ln_eps: 1e-5,
        act: Activation::GeluErf,
        qkv_bias: false,
        kind: PredictorKind::Lewm(lewm.clone()),
    };
    let device = Default::default();
    Flex::seed(&device, 1);
    let predictor: LewmPredictor<Flex> = LewmPredictorConfig { hparams, lewm }.init(&device);
    let random = |shape: [usize; 3]| Tensor::<Flex, 3>::random(shape, Distribution::Normal(0.0, 1.0), &device);
    let (states, actions) = (random([CANDIDATES, 3, 192]), random([CANDIDATES, 3, 10]));
    let roll = |states: &Tensor<Flex, 3>, actions: &Tensor<Flex, 3>| {
        for _ in 0..STEPS {
            predictor.forward(states.clone(), actions.clone(), &mut Trace::none()).expect("the shapes fit").into_data();
        }
    };
    let (mut batched, mut single) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        batched.push(timed(|| roll(&states, &actions)));
        single.push(timed(|| {
            for k in 0..CANDIDATES {
                roll(&states.clone().narrow(0, k, 1), &actions.clone().narrow(0, k, 1));
            }
        }));
    }
    let (batched, single) = (median(batched), median(single));
    println!(
        "{CANDIDATES} candidates, {STEPS} steps: {:.1} ms in one batch, {:.1} ms one by one, {:.2} times as fast",
        batched.as_secs_f64() * 1e3,
        single.as_secs_f64() * 1e3,
        single.as_secs_f64() / batched.as_secs_f64()
    );
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
