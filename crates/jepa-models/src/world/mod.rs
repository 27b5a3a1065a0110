//! World models: what will be seen when this is done.
//!
//! A [`WorldModel`] encodes observations into latent frames and predicts the next frame from frames, actions and, where it has them, states.
//! [`Rollout`] steps any of them for many candidates in one batch; [`crate::plan`] plans with it.

mod ac;
mod lewm;
mod pose;
mod rollout;

use burn::prelude::*;

use crate::error::ModelError;
use crate::nn::Pixels;

pub use ac::AcWorld;
pub use lewm::LewmWorld;
pub use pose::{POSE_DIM, pose_rotation, update_pose};
pub use rollout::{RolledOut, Rollout, candidates_at_once};

/// A model of the world under actions.
///
/// Latent frames are `[candidates, frames, tokens, dim]`; LeWM's state is one token.
pub trait WorldModel<B: Backend> {
    /// Width of an action.
    fn action_dim(&self) -> usize;

    /// Width of a state; 0 for a model that takes none.
    fn state_dim(&self) -> usize;

    /// Most frames that a prediction looks at, and whether more are an error (`false`) or only the last ones are looked at (`true`).
    fn window(&self) -> (usize, bool);

    /// Encodes observations, every frame for itself.
    ///
    /// **Shapes** `[batch, chans, frames, height, width]` → `[batch, frames, tokens, dim]`.
    ///
    /// # Errors
    /// As [`crate::Encoder::encode`].
    fn observe(&self, pixels: Pixels<B>) -> Result<Tensor<B, 4>, ModelError>;

    /// Predicts the frame after the last one.
    ///
    /// **Shapes** `frames` `[candidates, n, tokens, dim]`, `actions` `[candidates, n, action_dim]`, `states` `[candidates, n, state_dim]`
    /// (ignored by a model without states) → `[candidates, tokens, dim]`.
    ///
    /// # Errors
    /// [`ModelError::Shape`] and [`ModelError::TooManyFrames`].
    fn predict_next(
        &self,
        frames: Tensor<B, 4>,
        actions: Tensor<B, 3>,
        states: Tensor<B, 3>,
    ) -> Result<Tensor<B, 3>, ModelError>;

    /// The state after an action; empty for a model that takes none.
    fn next_state(&self, state: &[f32], action: &[f32]) -> Vec<f32>;

    /// About how many bytes of activations one candidate takes in a prediction from `frames` frames.
    fn step_bytes(&self, frames: usize) -> u64;

    /// How far predicted frames are from a goal.
    ///
    /// **Shapes** `frames` `[candidates, tokens, dim]`, `goal` `[1 or candidates, tokens, dim]` → `[candidates]`.
    fn cost(&self, frames: Tensor<B, 3>, goal: Tensor<B, 3>) -> Tensor<B, 1>;
}
