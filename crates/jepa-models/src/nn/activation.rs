use burn::prelude::*;
use burn::tensor::activation;
use jepa_gguf::schema::Activation;

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

    /// Applies the function to every element.
    pub fn forward<B: Backend, const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        match self.function {
            Activation::GeluErf => activation::gelu(x),
            Activation::GeluTanh => activation::gelu_approximate(x),
            Activation::Silu => activation::silu(x),
        }
    }
}
