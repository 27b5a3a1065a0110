use burn::module::Param;
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear};
use burn::prelude::*;
use rand::Rng;

use super::SigReg;
use crate::encoder::Projector;
use crate::error::ModelError;
use crate::features::Pool;
use crate::nn::Pixels;
use crate::trace::Trace;
use crate::world::LewmWorld;

/// A LeWorldModel while it is trained: with the batch norms in both projectors that a finished file has folded in.
///
/// Without them training ends at once with all states in one point. An untrained ViT's CLS token hardly depends on the picture, and at a point the
/// slope of [`SigReg`] vanishes.
///
/// **Source** LeWorldModel (arXiv 2603.19312) and its training code; there is no dropout here.
#[derive(Module, Debug)]
pub struct LewmTrainee<B: Backend> {
    /// Encoder and predictor.
    pub world: LewmWorld<B>,
    /// Between the layers of the encoder's projector.
    pub state_norm: BatchNorm<B>,
    /// Between the layers of the predictor's projector.
    pub next_norm: BatchNorm<B>,
}

impl<B: Backend> LewmTrainee<B> {
    /// Prepares fresh modules for training. What shifts, scales and gates in the predictor is set to 0, so that every block starts as the identity:
    /// the zero of DiT's adaLN-zero.
    ///
    /// # Errors
    /// [`ModelError::MissingPart`] for an encoder without a projector.
    pub fn new(mut world: LewmWorld<B>) -> Result<Self, ModelError> {
        for block in &mut world.predictor.blk {
            let device = block.adaln.weight.device();
            block.adaln.weight = Initializer::Zeros.init(block.adaln.weight.dims(), &device);
            block.adaln.bias = block.adaln.bias.as_ref().map(|bias| Initializer::Zeros.init(bias.dims(), &device));
        }
        let norm = |(up, ..): &Projector<B>| {
            let [_, hidden] = up.weight.dims();
            BatchNormConfig::new(hidden).init(&up.weight.device())
        };
        let state_norm = norm(world.encoder.part(&world.encoder.proj, "enc.proj.0.weight")?);
        let next_norm = norm(&world.predictor.proj);
        Ok(Self { world, state_norm, next_norm })
    }

    /// States of the frames of clips, and the states that the predictor expects after each frame but the last.
    ///
    /// **Shapes** `clips` `[batch, chans, frames, height, width]`, `actions` `[batch, frames - 1, action_dim]` → `[batch, frames, dim]`,
    /// `[batch, frames - 1, dim]`.
    ///
    /// # Errors
    /// As [`crate::Encoder::encode`] and [`crate::predictor::LewmPredictor::forward`]; [`ModelError::Frames`] for clips of one frame.
    pub fn forward(&self, clips: Pixels<B>, actions: Tensor<B, 3>) -> Result<(Tensor<B, 3>, Tensor<B, 3>), ModelError> {
        let [batch, _, frames, _, _] = clips.dims();
        if frames < 2 {
            return Err(ModelError::Frames { what: format!("{frames} in a clip to train on, wanted two or more") });
        }
        let LewmWorld { encoder, predictor } = &self.world;
        let cls = encoder.encode(clips.frames_alone())?.pooled(Pool::Cls)?; //       [b·T, d]
        let proj = encoder.part(&encoder.proj, "enc.proj.0.weight")?;
        let states = through(proj, &self.state_norm, cls); //                        [b·T, d]
        let dim = states.dims()[1];
        let states = states.reshape([batch, frames, dim]);
        let rows = predictor.rows(states.clone().narrow(1, 0, frames - 1), actions, &mut Trace::none())?;
        let expected = through(&predictor.proj, &self.next_norm, rows.flatten(0, 1)); // [b·(T - 1), d]
        Ok((states, expected.reshape([batch, frames - 1, dim])))
    }

    /// The finished model: batch norms, with the means and variances that they have seen, folded into the layers before them.
    pub fn finish(self) -> LewmWorld<B> {
        let Self { mut world, state_norm, next_norm } = self;
        if let Some((up, ..)) = &mut world.encoder.proj {
            fold(up, &state_norm);
        }
        fold(&mut world.predictor.proj.0, &next_norm);
        world
    }
}

/// `down(act(norm(up(x))))`.
///
/// **Shapes** `[rows, in]` → `[rows, out]`.
fn through<B: Backend>((up, act, down): &Projector<B>, norm: &BatchNorm<B>, x: Tensor<B, 2>) -> Tensor<B, 2> {
    down.forward(act.forward(norm.forward(up.forward(x))))
}

/// Makes `layer` do what it did with `norm` behind it: `s = γ/√(var + ε)` scales its outputs, and its bias becomes `(b - mean)∘s + β`.
fn fold<B: Backend>(layer: &mut Linear<B>, norm: &BatchNorm<B>) {
    let (mean, variance) = (norm.running_mean.value_sync(), norm.running_var.value_sync());
    let scale = norm.gamma.val() / (variance + norm.epsilon).sqrt(); //              [out]
    let bias = layer.bias.as_ref().map_or_else(|| mean.zeros_like(), |bias| bias.val());
    let weight = layer.weight.val() * scale.clone().unsqueeze(); //                   [in, out]
    // Detached, since a parameter is nothing that was computed.
    layer.weight = Param::from_tensor(weight.detach());
    layer.bias = Some(Param::from_tensor(((bias - mean) * scale + norm.beta.val()).detach()));
}

/// The loss that LeWorldModel is trained with, encoder and predictor at once and from nothing.
///
/// `prediction + weight · sigreg`: the mean squared error between what the predictor expects after frame `t` and the state of frame `t + 1`, through
/// both of which gradients flow, and [`SigReg`] of the states at each place of the clips, without which all states would collapse to a point.
///
/// **Source** as for [`LewmTrainee`].
#[derive(Clone, Debug, PartialEq)]
pub struct LewmLoss {
    /// Share of the regularisation.
    pub weight: f64,
    /// The regularisation.
    pub sigreg: SigReg,
}

impl Default for LewmLoss {
    /// The weight of the training code, 0.09; the paper's text says 0.1.
    fn default() -> Self {
        Self { weight: 0.09, sigreg: SigReg::default() }
    }
}

/// The terms of a [`LewmLoss`], each `[1]`.
#[derive(Clone, Debug)]
pub struct LewmTerms<B: Backend> {
    /// What is minimised.
    pub total: Tensor<B, 1>,
    /// Mean squared error of the next state.
    pub prediction: Tensor<B, 1>,
    /// Distance of the states from N(0, I), not weighted.
    pub sigreg: Tensor<B, 1>,
}

impl LewmLoss {
    /// The loss of a batch of clips, at most one frame longer than the predictor's window. `rng` draws the directions.
    ///
    /// **Shapes** as [`LewmTrainee::forward`] takes them.
    ///
    /// # Errors
    /// As [`LewmTrainee::forward`].
    pub fn forward<B: Backend>(
        &self,
        trainee: &LewmTrainee<B>,
        clips: Pixels<B>,
        actions: Tensor<B, 3>,
        rng: &mut impl Rng,
    ) -> Result<LewmTerms<B>, ModelError> {
        let (states, expected) = trainee.forward(clips, actions)?;
        let next = states.clone().narrow(1, 1, expected.dims()[1]); //              [b, T - 1, d]
        let prediction = (expected - next).powi_scalar(2).mean();
        let sigreg = self.sigreg.forward(states.swap_dims(0, 1), rng); //           [T, b, d]
        let total = prediction.clone() + sigreg.clone() * self.weight;
        Ok(LewmTerms { total, prediction, sigreg })
    }
}
