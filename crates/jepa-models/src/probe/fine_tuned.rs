//! A head together with the last blocks of its encoder, or with its norms.

use burn::prelude::*;

use super::Scores;
use crate::error::ModelError;
use crate::features::Pool;
use crate::head::{AttentiveHead, LinearHead};
use crate::tail::EncoderTail;
use crate::trace::Trace;

/// A head and the part of its encoder that is trained with it.
///
/// It reads what [`crate::Encoder::encode_until`] gives for the tail's first block: the frozen blocks run once, on the plain backend, and cost the training
/// nothing.
#[derive(Module, Debug)]
pub struct FineTuned<B: Backend, H> {
    /// The part of the encoder.
    pub tail: EncoderTail<B>,
    /// The head.
    pub head: H,
    #[module(skip)]
    pool: Pool,
}

impl<B: Backend, H> FineTuned<B, H> {
    /// `pool` is how tokens become the vector that a linear head reads.
    ///
    /// # Errors
    /// [`ModelError::Pool`] when the encoder has no such row.
    pub fn new(tail: EncoderTail<B>, head: H, pool: Pool) -> Result<Self, ModelError> {
        tail.config().check_pool(pool)?;
        Ok(Self { tail, head, pool })
    }
}

impl<B: Backend> Scores<B, 3> for FineTuned<B, LinearHead<B>> {
    fn scores(&self, inputs: Tensor<B, 3>) -> Tensor<B, 2> {
        let pooled = self.tail.forward(inputs).pooled(self.pool);
        self.head.forward(pooled.expect("the pool was checked when this was made"))
    }
}

impl<B: Backend> Scores<B, 3> for FineTuned<B, AttentiveHead<B>> {
    fn scores(&self, inputs: Tensor<B, 3>) -> Tensor<B, 2> {
        self.head.forward(self.tail.forward(inputs).tokens, &mut Trace::none())
    }
}
