//! A linear layer on the kernels.

use std::sync::Arc;

use burn::nn::Linear;
use burn::prelude::*;
use jepa_kernels::{Epilogue, F32Columns, Isa};

use super::file_rows::FileRows;
use super::precision_of_layer;
use super::values::{Values, is_flex};
use crate::nn::StoredMatrix;

/// `x · W + b`; gives `x` back when it is not for the kernels.
pub(crate) fn linear<B: Backend, const D: usize>(
    layer: &Linear<B>,
    x: Tensor<B, D>,
) -> Result<Tensor<B, D>, Tensor<B, D>> {
    if !is_flex::<B>() {
        return Err(x);
    }
    let (Ok(isa), Some(layer)) = (Isa::chosen(), Layer::of(layer, None)) else { return Err(x) };
    let mut shape = x.dims().to_vec();
    let x = Values::of(x)?;
    shape[D - 1] = layer.outputs();
    Ok(Values::filled(&shape, |out| layer.forward(isa, x.as_slice(), Epilogue::default(), out)).into_tensor())
}

/// A linear layer's numbers.
pub(super) struct Layer {
    weight: Weight,
    bias: Option<Values>,
}

/// A matrix: a Burn parameter, `[inputs, outputs]`, or what the file has, `[outputs, inputs]`.
enum Weight {
    Param { values: Values, outputs: usize },
    File(Arc<StoredMatrix>),
}

impl Layer {
    /// A weight that nobody has asked for yet is `stored`, where it is. `None` when the numbers are not f32 in this process.
    pub(super) fn of<B: Backend>(layer: &Linear<B>, stored: Option<&Arc<StoredMatrix>>) -> Option<Self> {
        let weight = match stored.filter(|_| !layer.weight.is_initialized()) {
            Some(matrix) => Weight::File(Arc::clone(matrix)),
            None => {
                let weight = layer.weight.val();
                let outputs = weight.dims()[1];
                Weight::Param { values: Values::of(weight).ok()?, outputs }
            }
        };
        let bias = match &layer.bias {
            Some(bias) => Some(Values::of(bias.val()).ok()?),
            None => None,
        };
        Some(Self { weight, bias })
    }

    pub(super) fn outputs(&self) -> usize {
        match &self.weight {
            Weight::Param { outputs, .. } => *outputs,
            Weight::File(matrix) => matrix.handle.info().row_count(),
        }
    }

    /// **Shapes** `x` `[rows, inputs]`, `out` `[rows, outputs]`. The epilogue's bias is the layer's.
    pub(super) fn forward(&self, isa: Isa, x: &[f32], epilogue: Epilogue<'_>, out: &mut [f32]) {
        let epilogue = Epilogue { bias: self.bias.as_ref().map(Values::as_slice), ..epilogue };
        match &self.weight {
            Weight::Param { values, outputs } => {
                let precision = precision_of_layer(values.as_slice().len());
                let weights = F32Columns { values: values.as_slice(), outputs: *outputs };
                jepa_kernels::linear(isa, precision, x, &weights, epilogue, out);
            }
            Weight::File(matrix) => {
                let precision = precision_of_layer(matrix.handle.info().element_count());
                let was_packed = matrix.packed.is_filled();
                jepa_kernels::linear(isa, precision, x, &FileRows::of(matrix), epilogue, out);
                if !was_packed && matrix.packed.is_filled() {
                    matrix.handle.gguf().release(matrix.handle.info().name());
                }
            }
        }
    }
}
