use burn::prelude::*;

use super::WorldModel;
use crate::encoder::Encoder;
use crate::error::ModelError;
use crate::features::Pool;
use crate::memory::stack_bytes;
use crate::nn::Pixels;
use crate::predictor::LewmPredictor;
use crate::trace::Trace;

/// LeWorldModel: a frame is one state vector, a prediction looks at the last few of them.
///
/// **Source** both published rollouts: a sliding window whose positions start at row 0 again.
#[derive(Module, Debug)]
pub struct LewmWorld<B: Backend> {
    /// The encoder of the frames.
    pub encoder: Encoder<B>,
    /// The predictor.
    pub predictor: LewmPredictor<B>,
}

impl<B: Backend> WorldModel<B> for LewmWorld<B> {
    fn action_dim(&self) -> usize {
        self.predictor.config().lewm.action_dim
    }

    fn state_dim(&self) -> usize {
        0
    }

    fn window(&self) -> (usize, bool) {
        (self.predictor.config().lewm.n_frames, true)
    }

    fn observe(&self, pixels: Pixels<B>) -> Result<Tensor<B, 4>, ModelError> {
        let [batch, _, frames, _, _] = pixels.dims();
        let state = self.encoder.encode(pixels.frames_alone())?.pooled(Pool::State)?; // [b·T, d]
        let dim = state.dims()[1];
        Ok(state.reshape([batch, frames, 1, dim]))
    }

    fn predict_next(
        &self,
        frames: Tensor<B, 4>,
        actions: Tensor<B, 3>,
        _: Tensor<B, 3>,
    ) -> Result<Tensor<B, 3>, ModelError> {
        let n = frames.dims()[1];
        let predicted = self.predictor.forward(frames.squeeze_dim(2), actions, &mut Trace::none())?; // [k, n, d]
        Ok(predicted.narrow(1, n - 1, 1))
    }

    fn next_state(&self, _: &[f32], _: &[f32]) -> Vec<f32> {
        Vec::new()
    }

    fn step_bytes(&self, frames: usize) -> u64 {
        let config = self.predictor.config();
        stack_bytes(&config.hparams, frames.min(config.lewm.n_frames))
    }

    /// Squared distance, summed.
    fn cost(&self, frames: Tensor<B, 3>, goal: Tensor<B, 3>) -> Tensor<B, 1> {
        (frames - goal).powi_scalar(2).flatten::<2>(1, 2).sum_dim(1).squeeze_dim(1)
    }
}
