use burn::nn::{Linear, LinearConfig};
use burn::prelude::*;

use crate::nn::linear;

/// What a [`LinearHead`] is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearHeadConfig {
    /// Width of the pooled vector.
    pub embed_dim: usize,
    /// Number of classes.
    pub n_classes: usize,
}

impl LinearHeadConfig {
    /// A head with Burn's default initialisation.
    pub fn init<B: Backend>(&self, device: &B::Device) -> LinearHead<B> {
        LinearHead { cls: LinearConfig::new(self.embed_dim, self.n_classes).init(device) }
    }
}

/// One layer on the family's pooled vector.
#[derive(Module, Debug)]
pub struct LinearHead<B: Backend> {
    /// Pooled vector to logits.
    pub cls: Linear<B>,
}

impl<B: Backend> LinearHead<B> {
    /// **Shapes** `[batch, embed_dim]` → logits `[batch, n_classes]`.
    pub fn forward(&self, pooled: Tensor<B, 2>) -> Tensor<B, 2> {
        linear(&self.cls, pooled)
    }
}
