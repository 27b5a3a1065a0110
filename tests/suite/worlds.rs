//! What must hold of world models and planners, whatever their weights.

use burn::prelude::*;
use burn::tensor::Distribution;
use jepa_cli::parity::Case;
use jepa_models::plan::{Cem, Noise};
use jepa_models::world::{LewmWorld, Rollout, WorldModel};
use jepa_models::{Jepa, Predictor, Trace};

use crate::{fixtures, load};

fn model<B: Backend>(case: &str) -> Jepa<B> {
    let case = Case::read(&fixtures().join("cases").join(case)).expect("the committed cases are sound");
    load(&case.variants(Some("f32")).expect("every case has an f32 model")[0])
}

fn lewm<B: Backend>() -> LewmWorld<B> {
    let model = model::<B>("lewm");
    match model.load_predictor().expect("the case has a predictor") {
        Predictor::Lewm(predictor) => LewmWorld { encoder: model.encoder().clone(), predictor },
        other => panic!("a LeWM file with {other:?}"),
    }
}

fn random<B: Backend, const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &B::Device::default())
}

fn values<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

/// Another last frame leaves every prediction before it as it was, bit for bit: V-JEPA 2-AC and LeWM.
pub fn a_later_frame_changes_no_earlier_prediction<B: Backend>() {
    B::seed(&B::Device::default(), 5);
    let Predictor::Ac(ac) = model::<B>("vjepa2_ac").load_predictor().expect("the case has a predictor") else {
        panic!("an AC file with another predictor")
    };
    let (hw, width, config) = (ac.tokens_per_frame(), ac.config().enc_dim, ac.config().ac.clone());
    let frames = 3;
    let actions = random::<B, 3>([2, frames, config.action_dim]);
    let states = random::<B, 3>([2, frames, config.state_dim]);
    let latents = random::<B, 3>([2, frames * hw, width]);
    let changed = Tensor::cat(vec![latents.clone().narrow(1, 0, (frames - 1) * hw), random([2, hw, width])], 1);
    let predict =
        |latents| ac.forward(latents, actions.clone(), states.clone(), &mut Trace::none()).expect("the shapes fit");
    let (before, after) = (predict(latents), predict(changed));
    let earlier = |x: &Tensor<B, 3>| values(x.clone().narrow(1, 0, (frames - 1) * hw));
    assert_eq!(earlier(&before), earlier(&after));
    assert_ne!(values(before), values(after));

    let lewm = lewm::<B>().predictor;
    let (frames, width) = (lewm.config().lewm.n_frames, lewm.config().hparams.embed_dim);
    let actions = random::<B, 3>([2, frames, lewm.config().lewm.action_dim]);
    let states = random::<B, 3>([2, frames, width]);
    let changed = Tensor::cat(vec![states.clone().narrow(1, 0, frames - 1), random([2, 1, width])], 1);
    let predict = |states| lewm.forward(states, actions.clone(), &mut Trace::none()).expect("the shapes fit");
    let (before, after) = (predict(states), predict(changed));
    let earlier = |x: &Tensor<B, 3>| values(x.clone().narrow(1, 0, frames - 1));
    assert_eq!(earlier(&before), earlier(&after));
    assert_ne!(values(before), values(after));
}

/// A seeded plan is the same every time and better than a thousand random ones.
pub fn a_plan_is_reproducible_and_beats_random_ones<B: Backend>() {
    let world = lewm::<B>();
    let dim = world.predictor.config().hparams.embed_dim;
    B::seed(&B::Device::default(), 9);
    let (start, goal) = (random::<B, 3>([1, 1, dim]), random::<B, 3>([1, 1, dim]));
    let cem = Cem { horizon: 3, samples: 64, top_k: 8, iterations: 8, ..Cem::over_all(world.action_dim()) };
    let plan = |seed| {
        cem.plan(&world, start.clone(), goal.clone(), &[], &Noise::Seeded(seed)).expect("the planner makes sense")
    };
    let first = plan(1);
    assert_eq!(first, plan(1));
    assert_ne!(first.actions, plan(2).actions);

    let cost = |actions: Vec<Vec<f32>>| {
        let k = actions.len();
        let frames = start.clone().unsqueeze_dim::<4>(1).expand([k, 1, 1, dim]);
        let rollout = Rollout::start(&world, frames, vec![Vec::new(); k], Vec::new()).expect("one frame and no action");
        let rolled = rollout.run(&world, &actions).expect("the shapes fit").frames;
        let last = rolled.dims()[1] - 1;
        values(world.cost(rolled.narrow(1, last, 1).squeeze_dim(1), goal.clone()))
    };
    let planned = cost(vec![first.actions.concat()])[0];
    let width = 3 * world.action_dim();
    let drawn = values(random::<B, 2>([1000, width]));
    let best = cost(drawn.chunks_exact(width).map(<[f32]>::to_vec).collect()).into_iter().fold(f32::INFINITY, f32::min);
    assert!(planned < best, "planned {planned}, best of a thousand {best}");
}

/// Candidates rolled out together come out as they do alone.
pub fn candidates_in_one_batch_equal_single_rollouts<B: Backend>() {
    let world = lewm::<B>();
    let dim = world.predictor.config().hparams.embed_dim;
    B::seed(&B::Device::default(), 3);
    let frames = random::<B, 4>([4, 1, 1, dim]);
    let width = 5 * world.action_dim();
    let actions: Vec<Vec<f32>> = values(random::<B, 2>([4, width])).chunks_exact(width).map(<[f32]>::to_vec).collect();
    let run = |frames: Tensor<B, 4>, actions: &[Vec<f32>]| {
        let k = actions.len();
        let rollout = Rollout::start(&world, frames, vec![Vec::new(); k], Vec::new()).expect("one frame and no action");
        values(rollout.run(&world, actions).expect("the shapes fit").frames)
    };
    let together = run(frames.clone(), &actions);
    let alone: Vec<f32> = (0..4).flat_map(|i| run(frames.clone().narrow(0, i, 1), &actions[i..=i])).collect();
    let worst = together.iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-5, "{worst}");
}
