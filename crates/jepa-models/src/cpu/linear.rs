//! A linear layer on the kernels.

use burn::nn::{LayerNorm, Linear};
use burn::prelude::*;
use jepa_kernels::{Epilogue, F32Columns, Isa};

use super::float32_matmul_precision;
use super::values::Values;

/// `x · W + b`; gives `x` back when it is not for the kernels.
pub(crate) fn linear<B: Backend, const D: usize>(
    layer: &Linear<B>,
    x: Tensor<B, D>,
) -> Result<Tensor<B, D>, Tensor<B, D>> {
    let (Ok(isa), Some(layer)) = (Isa::chosen(), Layer::of(layer)) else { return Err(x) };
    let mut shape = x.dims().to_vec();
    let x = Values::of(x)?;
    shape[D - 1] = layer.outputs();
    Ok(Values::filled(&shape, |out| layer.forward(isa, x.as_slice(), Epilogue::default(), out)).into_tensor())
}

/// A linear layer's numbers.
pub(super) struct Layer {
    weight: Values,
    bias: Option<Values>,
    outputs: usize,
}

impl Layer {
    /// `None` when its numbers are not f32 in this process.
    pub(super) fn of<B: Backend>(layer: &Linear<B>) -> Option<Self> {
        let weight = layer.weight.val();
        let outputs = weight.dims()[1];
        let bias = layer.bias.as_ref().map(|bias| Values::of(bias.val()).ok());
        Some(Self { weight: Values::of(weight).ok()?, bias: bias.map_or(Some(None), |bias| bias.map(Some))?, outputs })
    }

    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// **Shapes** `x` `[rows, inputs]`, `out` `[rows, outputs]`. The epilogue's bias is the layer's.
    pub(super) fn forward(&self, isa: Isa, x: &[f32], epilogue: Epilogue<'_>, out: &mut [f32]) {
        let weights = F32Columns { values: self.weight.as_slice(), outputs: self.outputs };
        let epilogue = Epilogue { bias: self.bias.as_ref().map(Values::as_slice), ..epilogue };
        jepa_kernels::linear(isa, float32_matmul_precision(), x, &weights, epilogue, out);
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

    /// **Shapes** `x` and `out` `[rows, dim]`.
    pub(super) fn forward(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        jepa_kernels::layer_norm(isa, x, self.gamma.as_slice(), self.beta.as_slice(), self.eps, out);
    }
}
