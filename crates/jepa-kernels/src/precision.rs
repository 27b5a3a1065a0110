//! How exactly the products of f32 values are formed.

use crate::isa::Isa;
use crate::tile::Words;

/// Precision of matrix products, in PyTorch's words for float32.
///
/// Whatever is chosen, sums are f32, and everything besides matrix products (softmax, norms, activations, epilogues) is f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// IEEE f32 operands.
    Highest,
    /// Operands at f32's accuracy. The kernels that exist compute it as [`Precision::Highest`].
    #[default]
    High,
    /// Operands rounded to bf16 (8 bits, to nearest, ties to even) where the machine multiplies bf16 faster than f32 (AVX512-BF16); elsewhere as
    /// [`Precision::Highest`].
    ///
    /// Measured on normal random values against f64: a linear layer is off by 0.23 % of its results' size (root mean square), an attention by
    /// at most 0.8 % of its largest result.
    ///
    /// The instruction takes denormal operands for zero and flushes denormal sums to zero, so what is below 1.2e-38 is lost; it adds the two products
    /// of a step one after the other, each rounded to nearest. Infinities and NaN stay what they are.
    Medium,
}

impl Precision {
    /// What operands are turned into on this instruction set.
    pub(crate) fn words(self, isa: Isa) -> Words {
        match self {
            Self::Medium if isa.has_bf16() => Words::Bf16Pairs,
            Self::High if isa.has_tiles() => Words::Bf16Split,
            _ => Words::F32,
        }
    }
}
