//! The gradient of every parameter of every kind of block, head and predictor.

use std::collections::HashMap;

use burn::module::{AutodiffModule, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::prelude::*;
use burn::tensor::backend::AutodiffBackend;
use jepa_cli::parity::Case;
use jepa_models::predictor::{PredictInput, TrainedOn};
use jepa_models::{Head, Jepa, Predictor, TokenIds, Trace, nn};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{fixtures, load};

/// Lengths of steps: a norm behind small values bends the loss too much for a long one, a flat loss drowns a short one in f32's rounding.
const STEPS: [f64; 4] = [1e-2, 2e-3, 4e-4, 8e-5];

/// Every parameter of blocks (fused and split projections, layer scale, rotary positions), of an attentive head and of the three predictors has the
/// gradient of central differences.
pub fn every_parameter_has_the_gradient_of_central_differences<B: AutodiffBackend>() {
    for name in ["vjepa2", "ijepa_split", "hfvit_registers", "levjepa"] {
        blocks::<B>(name);
    }
    attentive_head::<B>();
    for name in ["ijepa", "vjepa2", "vjepa2_1"] {
        masked_predictor::<B>(name);
    }
    ac_predictor::<B>();
    lewm_predictor::<B>();
}

fn model<B: Backend>(name: &str) -> Jepa<B> {
    let case = Case::read(&fixtures().join("cases").join(name)).expect("the committed cases are sound");
    load::<B>(&case.variants(Some("f32")).expect("every case has an f32 model").remove(0))
}

/// Values from -1.5 to 1.5.
fn drawn<B: Backend, const D: usize>(shape: [usize; D], seed: u64) -> Tensor<B, D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.5..1.5)).collect();
    Tensor::from_data(TensorData::new(values, shape), &B::Device::default())
}

/// The loss: outputs weighted by noise.
fn pulled<B: Backend>(outputs: Tensor<B, 3>) -> Tensor<B, 1> {
    let pull = drawn(outputs.dims(), 77);
    (outputs * pull).sum()
}

/// The same, summed in f64.
fn pulled_exactly<B: Backend>(outputs: Tensor<B, 3>) -> f64 {
    let pull = drawn::<B, 3>(outputs.dims(), 77).into_data();
    outputs.into_data().iter::<f64>().zip(pull.iter::<f64>()).map(|(x, p)| x * p).sum()
}

fn blocks<B: AutodiffBackend>(name: &str) {
    let jepa = model::<B>(name);
    let enc = jepa.encoder().config().clone();
    let block = jepa.encoder().blk[0].clone();
    let grid = nn::Grid { frames: 2, rows: 2, cols: 2 };
    let x = drawn::<B, 3>([1, grid.tokens(), enc.hparams.embed_dim], 5);
    fn run<B: Backend>(
        block: &nn::Block<B>,
        x: Tensor<B, 3>,
        enc: &jepa_models::EncoderConfig,
        grid: nn::Grid,
    ) -> Tensor<B, 3> {
        let ids = vec![(0..grid.tokens()).collect::<Vec<_>>()];
        let rope = enc.hparams.rope.and_then(|rope| {
            let angles = nn::RopeAngles::new(rope, enc.hparams.embed_dim / enc.hparams.n_head);
            nn::Rope::of_ids(angles, &ids, grid, 0, &x.device())
        });
        block.forward(x, rope.as_ref(), &nn::Visibility::Full, &mut Trace::none(), "")
    }
    check(
        &format!("a block of {name}"),
        block,
        |block| pulled(run(block, x.clone(), &enc, grid)),
        |block| pulled_exactly(run(block, x.clone().inner(), &enc, grid)),
    );
}

fn attentive_head<B: AutodiffBackend>() {
    let jepa = model::<B>("vjepa2_cls");
    let Head::Attentive(head) = jepa.load_head().expect("the case has a head") else { panic!("the head is attentive") };
    let x = drawn::<B, 3>([2, 5, jepa.encoder().config().hparams.embed_dim], 6);
    check(
        "an attentive head",
        head,
        |head| pulled(head.forward(x.clone(), &mut Trace::none()).unsqueeze_dim(1)),
        |head| pulled_exactly(head.forward(x.clone().inner(), &mut Trace::none()).unsqueeze_dim(1)),
    );
}

fn masked_predictor<B: AutodiffBackend>(name: &str) {
    let jepa = model::<B>(name);
    let Predictor::Masked(predictor) = jepa.load_predictor().expect("the case has a predictor") else {
        panic!("the predictor is masked")
    };
    let config = predictor.config();
    let ids = |ids: &[usize]| TokenIds::shared(ids.to_vec()).expect("ids are distinct");
    let (context, targets) = (ids(&[0, 2, 3]), ids(&[1, 4]));
    let x = drawn::<B, 3>([1, 3, config.masked.n_hier_in * config.enc_dim], 7);
    let input = || PredictInput { context: &context, targets: &targets, mask_index: 0, modality: TrainedOn::Clip };
    check(
        &format!("the predictor of {name}"),
        predictor,
        |p| pulled(p.forward(x.clone(), input(), &mut Trace::none()).expect("the shapes fit").targets),
        |p| pulled_exactly(p.forward(x.clone().inner(), input(), &mut Trace::none()).expect("the shapes fit").targets),
    );
}

fn ac_predictor<B: AutodiffBackend>() {
    let jepa = model::<B>("vjepa2_ac");
    let Predictor::Ac(predictor) = jepa.load_predictor().expect("the case has a predictor") else {
        panic!("the predictor is action-conditioned")
    };
    let config = predictor.config();
    let (n, ac) = (predictor.tokens_per_frame(), config.ac.clone());
    let latents = drawn::<B, 3>([1, 2 * n, config.enc_dim], 8);
    let (actions, states) = (drawn::<B, 3>([1, 2, ac.action_dim], 9), drawn::<B, 3>([1, 2, ac.state_dim], 10));
    check(
        "the predictor of V-JEPA 2-AC",
        predictor,
        |p| {
            let y = p.forward(latents.clone(), actions.clone(), states.clone(), &mut Trace::none());
            pulled(y.expect("the shapes fit"))
        },
        |p| {
            let [latents, actions, states] = [&latents, &actions, &states].map(|x| x.clone().inner());
            pulled_exactly(p.forward(latents, actions, states, &mut Trace::none()).expect("the shapes fit"))
        },
    );
}

fn lewm_predictor<B: AutodiffBackend>() {
    let jepa = model::<B>("lewm");
    let Predictor::Lewm(predictor) = jepa.load_predictor().expect("the case has a predictor") else {
        panic!("the predictor is LeWM's")
    };
    let config = predictor.config();
    let states = drawn::<B, 3>([2, 2, config.hparams.embed_dim], 11);
    let actions = drawn::<B, 3>([2, 2, config.lewm.action_dim], 12);
    check(
        "the predictor of LeWM",
        predictor,
        |p| pulled(p.forward(states.clone(), actions.clone(), &mut Trace::none()).expect("the shapes fit")),
        |p| {
            let y = p.forward(states.clone().inner(), actions.clone().inner(), &mut Trace::none());
            pulled_exactly(y.expect("the shapes fit"))
        },
    );
}

/// Moves every parameter along its gradient and back, and compares the slope that the gradient promises with the one there is.
fn check<B: AutodiffBackend, M: AutodiffModule<B>>(
    what: &str,
    module: M,
    loss: impl Fn(&M) -> Tensor<B, 1>,
    plain_loss: impl Fn(&M::InnerModule) -> f64,
) {
    let grads = GradientsParams::from_grads(loss(&module).backward(), &module);
    let mut found = Gradients { grads, of: HashMap::new(), path: Vec::new(), names: HashMap::new() };
    module.visit(&mut found);
    let plain = module.valid();
    let whole = found.of.values().flat_map(|g| g.iter::<f64>().collect::<Vec<_>>()).map(|v| v * v).sum::<f64>().sqrt();
    assert!(whole.is_finite() && whole > 0.0, "{what}: a gradient of length {whole}");
    let mut moved = 0;
    for (id, gradient) in &found.of {
        let name = &found.names[id];
        let length = gradient.iter::<f64>().map(|v| v * v).sum::<f64>().sqrt();
        // A key's bias adds the same to all scores of a query: there is nothing to compare.
        if length < 1e-4 * whole {
            continue;
        }
        moved += 1;
        let by = |distance: f64| {
            let mut step = Step { id: *id, gradient: gradient.clone(), scale: distance / length };
            plain_loss(&plain.clone().map(&mut step))
        };
        let slopes = STEPS.map(|step| (by(step) - by(-step)) / (2.0 * step));
        let agrees = slopes.iter().any(|slope| (slope / length - 1.0).abs() < 2e-2);
        assert!(agrees, "{what}, {name}: {length}, by differences {slopes:?}");
    }
    assert!(moved * 4 > found.of.len() * 3, "{what}: only {moved} of {} parameters matter", found.of.len());
}

struct Gradients {
    grads: GradientsParams,
    of: HashMap<ParamId, TensorData>,
    path: Vec<String>,
    names: HashMap<ParamId, String>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Gradients {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        // What the input does not reach has no gradient.
        if let Some(gradient) = self.grads.get::<B::InnerBackend, D>(param.id) {
            self.of.insert(param.id, gradient.into_data());
            self.names.insert(param.id, self.path.join("."));
        }
    }
}

/// Moves one parameter.
struct Step {
    id: ParamId,
    gradient: TensorData,
    scale: f64,
}

impl<B: Backend> ModuleMapper<B> for Step {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        if param.id != self.id {
            return param;
        }
        param.map(|x| {
            let step = Tensor::from_data(self.gradient.clone(), &x.device());
            x + step * self.scale
        })
    }
}
