//! Gradients of the graphs, on a backend that tracks them.

use burn::module::Param;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn::tensor::backend::AutodiffBackend;
use jepa_cli::parity::Case;
use jepa_models::{Encoder, Pixels};

use crate::{fixtures, load};

/// Length of a step, in all directions together: short enough for a straight line, long enough to stand out of f32's rounding.
const STEP: f64 = 0.02;

/// Gradients of an encoder's tokens, weighted by noise, with respect to the pixels and to matrices of blocks: finite, not zero, and what central
/// differences on the backend below say, along the gradient and along a direction drawn at random.
pub fn gradients_are_those_of_central_differences<B: AutodiffBackend>() {
    for name in ["vjepa2", "levjepa", "hfvit_registers"] {
        check::<B>(name);
    }
}

fn check<B: AutodiffBackend>(name: &str) {
    let device = B::Device::default();
    let case = Case::read(&fixtures().join("cases").join(name)).expect("the committed cases are sound");
    let variant = case.variants(Some("f32")).expect("every case has an f32 model").remove(0);
    let tracked = load::<B>(&variant).encoder().clone();
    let plain = load::<B::InnerBackend>(&variant).encoder().clone();
    let h = &plain.config().hparams;
    B::seed(&device, 21);
    let shape = [1, h.in_chans, h.n_frames, h.img_size, h.img_size];
    let pixels = Tensor::<B::InnerBackend, 5>::random(shape, Distribution::Normal(0.0, 1.0), &device);
    let pull = plain.encode(Pixels::from_normalised_clips(pixels.clone())).expect("the native size fits").tokens;
    let pull = pull.random_like(Distribution::Normal(0.0, 1.0));

    let x = Tensor::<B, 5>::from_inner(pixels.clone()).require_grad();
    let tokens = tracked.encode(Pixels::from_normalised_clips(x.clone())).expect("the native size fits").tokens;
    let grads = (tokens * Tensor::from_inner(pull.clone())).sum().backward();
    let loss = |encoder: &Encoder<B::InnerBackend>, pixels: Tensor<B::InnerBackend, 5>| {
        let tokens = encoder.encode(Pixels::from_normalised_clips(pixels)).expect("the native size fits").tokens;
        tokens.into_data().iter::<f64>().zip(pull.to_data().iter::<f64>()).map(|(t, p)| t * p).sum::<f64>()
    };

    let gradient = x.grad(&grads).expect("the pixels are tracked");
    agree(&format!("{name}: pixels"), gradient, |step| loss(&plain, pixels.clone() + step));
    for (i, block) in tracked.blk.iter().enumerate() {
        let gradient = block.ffn_up.weight.val().grad(&grads).expect("weights are tracked");
        let weight = plain.blk[i].ffn_up.weight.val();
        agree(&format!("{name}: enc.blk.{i}.ffn_up.weight"), gradient, |step| {
            let mut moved = plain.clone();
            moved.blk[i].ffn_up.weight = Param::from_tensor(weight.clone() + step);
            loss(&moved, pixels.clone())
        });
    }
}

/// `loss` is the loss after a step.
fn agree<B: Backend, const D: usize>(what: &str, gradient: Tensor<B, D>, loss: impl Fn(Tensor<B, D>) -> f64) {
    let length = |x: &Tensor<B, D>| x.to_data().iter::<f64>().map(|v| v * v).sum::<f64>().sqrt();
    let size = length(&gradient);
    assert!(size.is_finite() && size > 0.0, "{what}: a gradient of length {size}");
    let random = gradient.random_like(Distribution::Normal(0.0, 1.0));
    for (direction, tolerance) in [(gradient.clone(), 1e-2), (random, 5e-2)] {
        let unit = direction.clone() / length(&direction);
        let slope = (gradient.clone() * unit.clone()).to_data().iter::<f64>().sum::<f64>();
        let difference = (loss(unit.clone() * STEP) - loss(unit * -STEP)) / (2.0 * STEP);
        let error = (slope - difference).abs();
        assert!(error <= tolerance * slope.abs(), "{what}: slope {slope}, by differences {difference}");
    }
}
