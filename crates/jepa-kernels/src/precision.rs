//! How exactly the products of f32 values are formed.

use crate::isa::Isa;
use crate::tile::Words;

/// Precision of matrix products, in PyTorch's words for float32.
///
/// Linear layers of so few rows (up to 8, or 5 where operands would be bf16 pairs) that weights are better read in place are f32 at every precision.
/// Whatever is chosen, sums are f32, and everything besides matrix products (softmax, norms, activations, epilogues) is f32.
///
/// | | `portable`, `avx2` | `avx512` | `amx` |
/// |---|---|---|---|
/// | [`Highest`](Self::Highest) | f32 | f32 | f32, on AVX-512 |
/// | [`High`](Self::High) | f32 | f32 | two bf16 per value |
/// | [`Medium`](Self::Medium) | f32 | bf16 with AVX512-BF16, else f32 | bf16 |
///
/// Root mean square and largest errors, relative to the root mean square of the results, on normal random values: linear layers against f64,
/// attention of 197 tokens against `Highest`. Those of tiles were found by executing the instructions one by one, rounded as Intel's manual says, and
/// not on a processor that has them.
///
/// | | linear | attention |
/// |---|---|---|
/// | `Highest` | 4e-7, 3e-6 | |
/// | `High` on `amx` | 5e-6, 2e-5 (4e-5 where a channel is in the hundreds); with bf16 weights 3e-6, 1e-5 | 6e-6, 6e-5 |
/// | `Medium` | 2.4e-3, 1.4e-2 | 3.3e-3, 2.6e-2 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// IEEE f32 operands.
    Highest,
    /// Operands at nearly f32's accuracy. On AMX each is the sum of two bf16, the one next to it and the one next to what that leaves, 16 bits
    /// together, and all products of these but that of the two rests are summed. Elsewhere as [`Precision::Highest`].
    ///
    /// f16 and bf16 weights are exact in two bf16. As in [`Precision::Medium`] denormals are lost, and what a value below 6e-36 leaves is one. Finite
    /// operands stay finite up to f32's largest. A result that would not be finite in f32 is infinite or NaN.
    #[default]
    High,
    /// Operands rounded to bf16 (8 bits, to nearest, ties to even) where the machine multiplies bf16 faster than f32 (AMX, AVX512-BF16); elsewhere as
    /// [`Precision::Highest`].
    ///
    /// Both instructions take denormal operands for zero and flush denormal sums to zero, so what is below 1.2e-38 is lost. That of AVX-512 adds the
    /// two products of a pair one after the other; that of AMX sums the first products of all pairs of a step and the second, then both. Infinities
    /// and NaN stay what they are; what is above 3.39e38, bf16's largest, becomes infinite.
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
