//! A world model built from its configuration alone, and many futures of one observation in one batch.
//!
//! ```sh
//! cargo run --release -p jepa-models --example rollout_without_files
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use burn::prelude::*;
use burn::tensor::Distribution;
use burn_flex::Flex;
use jepa_gguf::schema::{
    Activation, EncoderHparams, Family, LewmHparams, PredictorHparams, PredictorKind, ProjectorHparams,
};
use jepa_models::predictor::LewmPredictorConfig;
use jepa_models::world::{LewmWorld, Rollout, WorldModel};
use jepa_models::{EncoderConfig, ModelError, Pixels};

/// LeWM's shape, small: a ViT whose projected CLS token is the state, and a predictor that sees the last three of them.
fn world<B: Backend>(device: &B::Device) -> LewmWorld<B> {
    let proj = ProjectorHparams { hidden: 128, act: Activation::GeluErf };
    let enc = EncoderHparams { cls_token: true, proj: Some(proj), ..EncoderHparams::vit([64, 2, 4, 256], 8, 32) };
    let lewm = LewmHparams {
        action_dim: 2,
        n_frames: 3,
        adaln_eps: 1e-6,
        action_hidden: 64,
        action_act: Activation::Silu,
        proj,
    };
    let hparams = PredictorHparams {
        embed_dim: 64,
        n_layer: 2,
        n_head: 4,
        head_dim: 16,
        ffn_dim: 128,
        out_dim: 64,
        ln_eps: 1e-5,
        act: Activation::GeluErf,
        qkv_bias: false,
        kind: PredictorKind::Lewm(lewm.clone()),
    };
    LewmWorld {
        encoder: EncoderConfig { family: Family::Lewm, hparams: enc }.init(device),
        predictor: LewmPredictorConfig { hparams, lewm }.init(device),
    }
}

/// Where eight random courses of five actions each lead, and how far each ends from a goal.
fn futures<B: Backend>() -> Result<(Tensor<B, 4>, Tensor<B, 1>), ModelError> {
    let device = B::Device::default();
    B::seed(&device, 7);
    let world = world::<B>(&device);
    let seen = |shape| Pixels::from_normalised_images(Tensor::random(shape, Distribution::Normal(0.0, 1.0), &device));
    let start = world.observe(seen([1, 3, 32, 32]))?; //                       [1, 1, 1, dim]
    let goal = world.observe(seen([1, 3, 32, 32]))?.squeeze_dim(1); //         [1, 1, dim]

    let (candidates, steps) = (8, 5);
    let actions = |_| -> Vec<f32> {
        let drawn = Tensor::<B, 1>::random([steps * 2], Distribution::Uniform(-1.0, 1.0), &device);
        drawn.into_data().iter().collect()
    };
    let actions: Vec<Vec<f32>> = (0..candidates).map(actions).collect();
    let start = start.repeat_dim(0, candidates); //                            [8, 1, 1, dim]
    let rolled = Rollout::start(&world, start, vec![Vec::new(); candidates], Vec::new())?.run(&world, &actions)?;
    let last = rolled.frames.clone().narrow(1, steps - 1, 1).squeeze_dim(1); // [8, 1, dim]
    let cost = world.cost(last, goal); //                                      [8]
    Ok((rolled.frames, cost))
}

fn main() -> Result<(), ModelError> {
    let (frames, cost) = futures::<Flex>()?;
    println!("predicted states {:?}, squared distances to the goal:\n{cost}", frames.dims());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_actions_lead_elsewhere() {
        let (frames, cost) = futures::<Flex>().unwrap();
        assert_eq!((frames.dims(), cost.dims()), ([8, 5, 1, 64], [8]));
        let costs: Vec<f32> = cost.into_data().iter().collect();
        assert!(costs.iter().all(|c| c.is_finite()) && costs.windows(2).any(|pair| pair[0] != pair[1]), "{costs:?}");
    }
}
