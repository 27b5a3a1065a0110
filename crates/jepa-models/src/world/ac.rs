use burn::prelude::*;

use super::{POSE_DIM, WorldModel, update_pose};
use crate::encoder::Encoder;
use crate::error::ModelError;
use crate::memory::stack_bytes;
use crate::nn::{Pixels, normalise};
use crate::predictor::AcPredictor;
use crate::trace::Trace;

/// V-JEPA 2-AC as a world model: frames are token maps, actions and poses have seven values.
///
/// **Source** Meta's world-model wrapper: every frame is repeated to one tubelet and encoded alone; tokens are normalised without weights, and
/// so is every predicted frame before it is looked at again.
#[derive(Debug)]
pub struct AcWorld<B: Backend> {
    /// The encoder of the frames.
    pub encoder: Encoder<B>,
    /// The predictor.
    pub predictor: AcPredictor<B>,
}

impl<B: Backend> AcWorld<B> {
    fn normalised<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let ac = &self.predictor.config().ac;
        if ac.normalize_reps { normalise(x, ac.norm_reps_eps) } else { x }
    }
}

impl<B: Backend> WorldModel<B> for AcWorld<B> {
    fn action_dim(&self) -> usize {
        self.predictor.config().ac.action_dim
    }

    fn state_dim(&self) -> usize {
        self.predictor.config().ac.state_dim
    }

    fn window(&self) -> (usize, bool) {
        (self.predictor.config().ac.n_frames, false)
    }

    fn observe(&self, pixels: Pixels<B>) -> Result<Tensor<B, 4>, ModelError> {
        let [batch, _, frames, _, _] = pixels.dims();
        let tokens = self.encoder.encode(pixels.frames_alone())?.tokens; //     [b·T, hw, d]
        let [_, hw, dim] = tokens.dims();
        Ok(self.normalised(tokens).reshape([batch, frames, hw, dim]))
    }

    fn predict_next(
        &self,
        frames: Tensor<B, 4>,
        actions: Tensor<B, 3>,
        states: Tensor<B, 3>,
    ) -> Result<Tensor<B, 3>, ModelError> {
        let [_, n, hw, _] = frames.dims();
        let predicted = self.predictor.forward(frames.flatten(1, 2), actions, states, &mut Trace::none())?; // [k, n·hw, d]
        Ok(self.normalised(predicted.narrow(1, (n - 1) * hw, hw)))
    }

    /// Seven values are a pose; another width has no known meaning and stays as it is.
    fn next_state(&self, state: &[f32], action: &[f32]) -> Vec<f32> {
        let seven = |x: &[f32]| <[f32; POSE_DIM]>::try_from(x).ok().map(|x| x.map(f64::from));
        match (seven(state), seven(action)) {
            (Some(pose), Some(action)) => update_pose(&pose, &action).map(|x| x as f32).to_vec(),
            _ => state.to_vec(),
        }
    }

    fn step_bytes(&self, frames: usize) -> u64 {
        let rows = frames * (self.predictor.tokens_per_frame() + 2);
        stack_bytes(&self.predictor.config().hparams, rows)
    }

    /// Mean absolute difference over all values.
    fn cost(&self, frames: Tensor<B, 3>, goal: Tensor<B, 3>) -> Tensor<B, 1> {
        (frames - goal).abs().flatten::<2>(1, 2).mean_dim(1).squeeze_dim(1)
    }
}
