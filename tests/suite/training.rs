//! What must hold of the losses that models are trained with, on a backend that tracks gradients.

use burn::module::{AutodiffModule, Param};
use burn::prelude::*;
use burn::tensor::backend::AutodiffBackend;
use jepa_models::Pixels;
use jepa_models::train::{LewmLoss, LewmTrainee, SigReg};
use jepa_models::world::{LewmWorld, Rollout, WorldModel};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::worlds::lewm;

const CLIPS: usize = 6;
/// Length of a step: the loss bends much along the patches, since a batch norm makes much of how little an untrained encoder's CLS tokens differ.
const STEP: f64 = 3e-4;

/// Clips and actions for a model, the same in every call.
fn batch<B: Backend>(world: &LewmWorld<B>) -> (Pixels<B>, Tensor<B, 3>) {
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    let (enc, frames) = (&world.encoder.config().hparams, world.predictor.config().lewm.n_frames + 1);
    let clips = drawn([CLIPS, enc.in_chans, frames, enc.img_size, enc.img_size], &mut rng);
    (Pixels::from_normalised_clips(clips), drawn([CLIPS, frames - 1, world.action_dim()], &mut rng))
}

/// Values from -1.5 to 1.5. Burn's own generator is one for the whole process, and other tests draw from it.
fn drawn<B: Backend, const D: usize>(shape: [usize; D], rng: &mut ChaCha8Rng) -> Tensor<B, D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.5..1.5)).collect();
    Tensor::from_data(TensorData::new(values, shape), &B::Device::default())
}

fn loss<B: Backend>(trainee: &LewmTrainee<B>) -> Tensor<B, 1> {
    let (clips, actions) = batch(&trainee.world);
    let loss = LewmLoss { sigreg: SigReg { directions: 16, ..SigReg::default() }, ..LewmLoss::default() };
    loss.forward(trainee, clips, actions, &mut ChaCha8Rng::seed_from_u64(2)).expect("the native size fits").total
}

/// The gradient of LeWM's loss is that of central differences, in the encoder too, which the loss sees from two sides: nothing is cut off.
pub fn the_loss_of_lewm_has_its_whole_gradient<B: AutodiffBackend>() {
    let trainee = LewmTrainee::new(lewm::<B>()).expect("the encoder has a projector");
    let gradients = loss(&trainee).backward();
    type Layer<B> = fn(&mut LewmTrainee<B>) -> &mut Param<Tensor<B, 2>>;
    let layers: [(&str, Layer<B>); 4] = [
        ("enc.patch_embed", |trainee| &mut trainee.world.encoder.patch_embed.weight),
        ("enc.blk.0.ffn_up", |trainee| &mut trainee.world.encoder.blk[0].ffn_up.weight),
        ("pred.blk.0.adaln", |trainee| &mut trainee.world.predictor.blk[0].adaln.weight),
        ("pred.proj.0", |trainee| &mut trainee.world.predictor.proj.0.weight),
    ];
    for (name, weight) in layers {
        let at = weight(&mut trainee.clone()).val();
        let gradient = at.grad(&gradients).expect("the weight is tracked");
        let length = gradient.clone().powi_scalar(2).sum().sqrt().into_scalar().elem::<f64>();
        assert!(length.is_finite() && length > 0.0, "{name}: a gradient of length {length}");
        let step = gradient * (STEP / length);
        let moved = |by: f64| {
            let mut trainee = trainee.clone();
            *weight(&mut trainee) = Param::from_tensor(Tensor::from_inner(at.clone().inner() + step.clone() * by));
            loss(&trainee).into_scalar().elem::<f64>()
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * STEP);
        assert!((slope / length - 1.0).abs() < 2e-2, "{name}: {length}, by differences {slope}");
    }
}

/// A finished LeWM says what its trainee says once the batch norms use what they have seen.
pub fn a_finished_lewm_is_its_trainee<B: AutodiffBackend>() {
    let trainee = LewmTrainee::new(lewm::<B>()).expect("the encoder has a projector");
    for _ in 0..5 {
        loss(&trainee);
    }
    let settled = trainee.valid();
    let (clips, actions) = batch(&settled.world);
    let (states, expected) = settled.forward(clips.clone(), actions.clone()).expect("the native size fits");
    let world = settled.finish();
    let frames = world.observe(clips).expect("the native size fits"); //        [b, T, 1, d]
    close(&frames.clone().squeeze_dim(2), &states);

    let first: Vec<Vec<f32>> = actions
        .narrow(1, 0, 1)
        .into_data()
        .iter::<f32>()
        .collect::<Vec<_>>()
        .chunks(world.action_dim())
        .map(<[_]>::to_vec)
        .collect();
    let nothing = vec![Vec::new(); CLIPS];
    let rollout = Rollout::start(&world, frames.narrow(1, 0, 1), nothing.clone(), nothing).expect("the counts fit");
    let rolled = rollout.run(&world, &first).expect("the counts fit").frames;
    close(&rolled.squeeze_dim(2), &expected.narrow(1, 0, 1));
}

fn close<B: Backend>(found: &Tensor<B, 3>, wanted: &Tensor<B, 3>) {
    let most = wanted.clone().abs().max().into_scalar().elem::<f64>();
    let off = (found.clone() - wanted.clone()).abs().max().into_scalar().elem::<f64>();
    assert!(most > 0.0 && off < 1e-4 * most, "{off} off, of {most}");
}
