//! What must hold of world models and planners, whatever their weights.

use burn::prelude::*;
use burn::tensor::Distribution;
use jepa_cli::parity::Case;
use jepa_models::plan::{Cem, Noise, Observation};
use jepa_models::world::{LewmWorld, Rollout, WorldModel};
use jepa_models::{Jepa, ModelError, Predictor, Trace};

use crate::{fixtures, load};

fn model<B: Backend>(case: &str) -> Jepa<B> {
    let case = Case::read(&fixtures().join("cases").join(case)).expect("the committed cases are sound");
    load(&case.variants(Some("f32")).expect("every case has an f32 model")[0])
}

pub(crate) fn lewm<B: Backend>() -> LewmWorld<B> {
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

/// A pursuit does the first action of each plan and plans again from what is then seen, with new draws.
pub fn a_pursuit_replans_from_what_is_seen<B: Backend>() {
    let world = lewm::<B>();
    let dim = world.predictor.config().hparams.embed_dim;
    B::seed(&B::Device::default(), 11);
    let [start, goal, gust] = [(); 3].map(|()| random::<B, 3>([1, 1, dim]));
    let cem = Cem { horizon: 2, samples: 16, top_k: 4, iterations: 2, ..Cem::over_all(world.action_dim()) };
    // A world that the model does not quite know: something pushes every frame aside.
    let after = |frame: Tensor<B, 3>, action: &[f32]| {
        let rollout =
            Rollout::start(&world, frame.unsqueeze_dim(1), vec![Vec::new()], Vec::new()).expect("one frame, no action");
        let rolled = rollout.run(&world, &[action.to_vec()]).expect("one action").frames;
        rolled.squeeze_dim::<3>(1) + gust.clone().mul_scalar(0.1)
    };
    let pursue = || {
        let (mut frame, mut done) = (start.clone(), Vec::new());
        let seen = Observation { frame: start.clone(), state: Vec::new() };
        let plans = cem
            .pursue(&world, seen, goal.clone(), 3, 7, |action| {
                frame = after(frame.clone(), action);
                done.push(action.to_vec());
                Ok::<_, ModelError>(Observation { frame: frame.clone(), state: Vec::new() })
            })
            .expect("the planner makes sense");
        (plans, done)
    };
    let (plans, done) = pursue();
    assert_eq!((&plans, &done), (&pursue().0, &pursue().1));
    assert_eq!(done, plans.iter().map(|plan| plan.actions[0].clone()).collect::<Vec<_>>());

    let mut frame = start.clone();
    for (step, plan) in plans.iter().enumerate() {
        let noise = Noise::Seeded(7 + step as u64);
        let alone = cem.plan(&world, frame.clone(), goal.clone(), &[], &noise).expect("the planner makes sense");
        assert_eq!(*plan, alone, "step {step}");
        frame = after(frame, &plan.actions[0]);
    }
    let failed =
        cem.pursue(&world, Observation { frame: start.clone(), state: Vec::new() }, goal.clone(), 3, 7, |_| {
            Err::<Observation<B>, _>(ModelError::Planner { what: "the robot fell over".into() })
        });
    let error = failed.expect_err("the error of an action ends the pursuit");
    assert!(error.to_string().contains("fell over"));
}

/// An attentive head sees the segments of a view as one long clip; views are averaged as probabilities.
pub fn segments_are_attended_across_and_views_averaged<B: Backend>() {
    use jepa_models::{Head, Pixels, mean_probabilities};
    let model = model::<B>("vjepa2_cls");
    let Head::Attentive(head) = model.load_head().expect("the case has a head") else { panic!("another head") };
    let (enc, side) = (model.hparams().enc.clone(), model.preprocess().output_size());
    B::seed(&B::Device::default(), 4);
    let clips = random::<B, 5>([8, 3, enc.n_frames, side.0, side.1]);
    let pixels = |x| Pixels::from_normalised_clips(x);
    let classes = Head::Attentive(head.clone());
    let scores = model.classify_clips(&classes, pixels(clips.clone()), 2, 2).expect("8 clips are 2 inputs");
    assert_eq!(scores.dims()[..2], [2, 2]);

    let tokens = model.encode(pixels(clips.clone())).expect("sound pixels").tokens;
    let view =
        |i: usize| Tensor::cat(vec![tokens.clone().narrow(0, 2 * i, 1), tokens.clone().narrow(0, 2 * i + 1, 1)], 1);
    let by_hand: Vec<f32> = (0..4).flat_map(|i| values(head.forward(view(i), &mut Trace::none()))).collect();
    let worst = values(scores.clone()).iter().zip(&by_hand).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-5, "{worst}");

    let n = by_hand.len() / 4;
    let softmax = |row: &[f32]| {
        let sum: f32 = row.iter().map(|l| l.exp()).sum();
        row.iter().map(|l| l.exp() / sum).collect::<Vec<f32>>()
    };
    let mean = values(mean_probabilities(scores));
    for input in 0..2 {
        let (a, b) = (softmax(&by_hand[2 * input * n..][..n]), softmax(&by_hand[(2 * input + 1) * n..][..n]));
        for class in 0..n {
            assert!((mean[input * n + class] - (a[class] + b[class]) / 2.0).abs() < 1e-6);
        }
    }
    assert!(model.classify_clips(&classes, pixels(clips), 3, 1).is_err());
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
