//! A layer norm on the kernels.

use burn::nn::LayerNorm;
use burn::prelude::*;
use jepa_kernels::Isa;

use super::values::{Values, is_flex};

/// The normalised rows, multiplied and shifted by the norm's weights; gives `x` back when it is not for the kernels.
pub(crate) fn layer_norm<B: Backend, const D: usize>(
    norm: &LayerNorm<B>,
    eps: f64,
    x: Tensor<B, D>,
) -> Result<Tensor<B, D>, Tensor<B, D>> {
    if !is_flex::<B>() {
        return Err(x);
    }
    match Norm::of(norm, eps) {
        Some(norm) => norm.of_tensor(x),
        None => Err(x),
    }
}

/// The normalised rows; gives `x` back when it is not for the kernels.
pub(crate) fn normalise<B: Backend, const D: usize>(x: Tensor<B, D>, eps: f64) -> Result<Tensor<B, D>, Tensor<B, D>> {
    match x.dims()[D - 1] {
        dim if dim > 0 && is_flex::<B>() => Norm::without_weights(dim, eps).of_tensor(x),
        _ => Err(x),
    }
}

/// A norm's numbers.
pub(super) struct Norm {
    gamma: Values,
    beta: Values,
    eps: f32,
}

impl Norm {
    /// `None` when its numbers are not f32 in this process.
    pub(super) fn of<B: Backend>(norm: &LayerNorm<B>, eps: f64) -> Option<Self> {
        let beta = norm.beta.as_ref()?.val();
        Some(Self { gamma: Values::of(norm.gamma.val()).ok()?, beta: Values::of(beta).ok()?, eps: eps as f32 })
    }

    /// A norm that leaves rows of `dim` values as they are once they have mean 0 and variance 1.
    pub(super) fn without_weights(dim: usize, eps: f64) -> Self {
        let filled = |value| Values::filled(&[dim], |values| values.fill(value));
        Self { gamma: filled(1.0), beta: filled(0.0), eps: eps as f32 }
    }

    /// **Shapes** `x` and `out` `[rows, dim]`.
    pub(super) fn forward(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        jepa_kernels::layer_norm(isa, x, self.gamma.as_slice(), self.beta.as_slice(), self.eps, out);
    }

    fn of_tensor<B: Backend, const D: usize>(&self, x: Tensor<B, D>) -> Result<Tensor<B, D>, Tensor<B, D>> {
        let Ok(isa) = Isa::chosen() else { return Err(x) };
        let shape = x.dims();
        let x = Values::of(x)?;
        Ok(Values::filled(&shape, |out| self.forward(isa, x.as_slice(), out)).into_tensor())
    }
}
