use burn::nn::Linear;
use burn::prelude::*;

/// A linear layer over many rows: on the kernels where the backend is the CPU's, as a Burn operation everywhere else.
///
/// **Shapes** `[.., in]` → `[.., out]`.
pub fn linear<B: Backend, const D: usize>(layer: &Linear<B>, x: Tensor<B, D>) -> Tensor<B, D> {
    #[cfg(feature = "cpu")]
    let x = match crate::cpu::linear(layer, x) {
        Ok(x) => return x,
        Err(x) => x,
    };
    layer.forward(x)
}
