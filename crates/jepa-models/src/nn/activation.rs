use burn::prelude::*;
use burn::tensor::{DType, activation};
use jepa_gguf::schema::Activation;

use super::{as_type, is_reduced};

/// An activation as a module without parameters, so that it can stand in a tuple between two layers.
///
/// **Shapes** any → the same.
#[derive(Module, Clone, Debug)]
pub struct Act {
    #[module(skip)]
    function: Activation,
}

impl Act {
    /// The module that computes `function`.
    pub fn new(function: Activation) -> Self {
        Self { function }
    }

    /// The kernel of the function.
    #[cfg(feature = "cpu")]
    pub(crate) fn on_cpu(&self) -> jepa_kernels::Act {
        match self.function {
            Activation::GeluErf => jepa_kernels::Act::GeluErf,
            Activation::GeluTanh => jepa_kernels::Act::GeluTanh,
            Activation::Silu => jepa_kernels::Act::Silu,
        }
    }

    /// Applies the function to every element, in f32 where `x` is f16 or bf16: `1 + erf` would lose most of its digits left of 0.
    pub fn forward<B: Backend, const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let own = x.dtype();
        if is_reduced(own) {
            return as_type(self.forward(as_type(x, DType::F32)), own);
        }
        match self.function {
            Activation::GeluErf => activation::gelu(x),
            Activation::GeluTanh => activation::gelu_approximate(x),
            Activation::Silu => activation::silu(x),
        }
    }
}
