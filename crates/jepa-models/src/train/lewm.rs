use burn::module::Param;
use burn::nn::{Initializer, Linear};
use burn::prelude::*;
use rand::Rng;

use super::SigReg;
use crate::encoder::Encoder;
use crate::error::ModelError;
use crate::features::Pool;
use crate::nn::Pixels;
use crate::predictor::LewmPredictor;
use crate::trace::Trace;
use crate::world::{LewmWorld, WorldModel};

/// The loss that LeWorldModel is trained with, encoder and predictor at once and from nothing.
///
/// `prediction + weight · sigreg`: the mean squared error between what the predictor says after frame `t` and the embedding of frame `t + 1`,
/// through both of which gradients flow, and [`SigReg`] of the embeddings of every frame of the clips, without which all embeddings would collapse
/// to a point.
///
/// **Source** LeWorldModel (arXiv 2603.19312) and its training code. Two deviations, since the modules are those of finished files: projectors have no
/// batch norm (a file has it folded into the layer before it), and there is no dropout.
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
    /// Mean squared error of the next embedding.
    pub prediction: Tensor<B, 1>,
    /// Distance of the embeddings from N(0, I), not weighted.
    pub sigreg: Tensor<B, 1>,
}

impl LewmLoss {
    /// The loss of a batch of clips. `rng` draws the directions.
    ///
    /// **Shapes** `clips` `[batch, chans, frames, height, width]` of at least two frames and one more than the predictor's window at most, `actions`
    /// `[batch, frames - 1, action_dim]`, those that lead from frame to frame.
    ///
    /// # Errors
    /// As [`WorldModel::observe`] and [`crate::predictor::LewmPredictor::forward`].
    pub fn forward<B: Backend>(
        &self,
        world: &LewmWorld<B>,
        clips: Pixels<B>,
        actions: Tensor<B, 3>,
        rng: &mut impl Rng,
    ) -> Result<LewmTerms<B>, ModelError> {
        let embeddings = world.observe(clips)?.squeeze_dim::<3>(2); //              [b, T, d]
        let [_, frames, _] = embeddings.dims();
        let wanted = frames.checked_sub(1).filter(|&n| n > 0);
        let Some(steps) = wanted else {
            return Err(ModelError::Frames { what: format!("{frames} of them, wanted two or more") });
        };
        let seen = embeddings.clone().narrow(1, 0, steps);
        let predicted = world.predictor.forward(seen, actions, &mut Trace::none())?; // [b, T - 1, d]
        let next = embeddings.clone().narrow(1, 1, steps);
        let prediction = (predicted - next).powi_scalar(2).mean();
        let sigreg = self.sigreg.forward(embeddings.swap_dims(0, 1), rng); //       [T, b, d]
        let total = prediction.clone() + sigreg.clone() * self.weight;
        Ok(LewmTerms { total, prediction, sigreg })
    }
}

/// Makes every block of a fresh predictor the identity: what shifts, scales and gates starts at 0.
///
/// **Source** the zero of DiT's adaLN-zero, as LeWorldModel's training code has it.
pub fn start_gates_at_zero<B: Backend>(predictor: &mut LewmPredictor<B>) {
    for block in &mut predictor.blk {
        let device = block.adaln.weight.device();
        block.adaln.weight = Initializer::Zeros.init(block.adaln.weight.dims(), &device);
        block.adaln.bias = block.adaln.bias.as_ref().map(|bias| Initializer::Zeros.init(bias.dims(), &device));
    }
}

/// Spreads the states of a fresh encoder: over the pictures given, the hidden values of its projector and the states get mean 0 and variance 1.
///
/// The CLS token of an untrained ViT hardly depends on the picture. States that start as near to each other as that collapse to a point before the
/// regularisation, whose slope vanishes there, can spread them. LeWorldModel's batch norm in the projector keeps them apart; here it is enough that
/// they start apart, as batch norm would have them in the first step.
///
/// **Shapes** `clips` `[batch, chans, frames, height, width]`.
///
/// # Errors
/// As [`WorldModel::observe`].
pub fn spread_states<B: Backend>(encoder: &mut Encoder<B>, clips: Pixels<B>) -> Result<(), ModelError> {
    let cls = encoder.encode(clips.frames_alone())?.pooled(Pool::Cls)?; //        [b·T, d]
    if let Some((up, act, down)) = &mut encoder.proj {
        let hidden = act.forward(standardise(up, cls));
        standardise(down, hidden);
    }
    Ok(())
}

/// Gives the outputs of a layer mean 0 and variance 1 over these inputs, and returns them.
fn standardise<B: Backend>(layer: &mut Linear<B>, x: Tensor<B, 2>) -> Tensor<B, 2> {
    let y = layer.forward(x); //                                                 [n, out]
    let mean = y.clone().mean_dim(0); //                                         [1, out]
    let centred = y - mean.clone();
    let deviation = (centred.clone().powi_scalar(2).mean_dim(0) + 1e-12).sqrt();
    let fixed = |tensor: Tensor<B, 2>| tensor.detach();
    layer.weight = Param::from_tensor(fixed(layer.weight.val() / deviation.clone()));
    layer.bias = layer.bias.as_ref().map(|bias| {
        let bias = (bias.val().unsqueeze::<2>() - mean) / deviation.clone();
        Param::from_tensor(fixed(bias).squeeze_dim(0))
    });
    centred / deviation
}
