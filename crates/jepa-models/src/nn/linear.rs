use burn::nn::Linear;
use burn::prelude::*;
use burn::tensor::DType;

/// A linear layer over many rows: on the kernels where the backend is the CPU's, as a Burn operation everywhere else.
///
/// It multiplies in the type of its weight and answers in the type of `x`.
///
/// **Shapes** `[.., in]` → `[.., out]`.
pub fn linear<B: Backend, const D: usize>(layer: &Linear<B>, x: Tensor<B, D>) -> Tensor<B, D> {
    #[cfg(feature = "cpu")]
    let x = match crate::cpu::linear(layer, x) {
        Ok(x) => return x,
        Err(x) => x,
    };
    linear_in_burn(layer, x)
}

/// [`linear`] as a Burn operation on every backend.
pub(crate) fn linear_in_burn<B: Backend, const D: usize>(layer: &Linear<B>, x: Tensor<B, D>) -> Tensor<B, D> {
    let own = x.dtype();
    as_type(layer.forward(as_type(x, layer.weight.val().dtype())), own)
}

/// `x` as `dtype`; itself where it is that already.
///
/// **Shapes** any → the same.
pub(crate) fn as_type<B: Backend, const D: usize>(x: Tensor<B, D>, dtype: DType) -> Tensor<B, D> {
    if x.dtype() == dtype { x } else { x.cast(dtype) }
}

/// Whether numbers of this type are shorter than f32.
pub(crate) fn is_reduced(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}
