//! What a run may be held to: numbers shorter than f32 cost digits, whatever else is right.

use burn::prelude::*;
use burn::tensor::DType;
use jepa_models::Bar;

/// The widest numbers that the operands of products have in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// IEEE f32.
    F32,
    /// f32 with ten bits after the point, what tensor cores of NVIDIA multiply f32 in.
    Tf32,
    /// f16.
    F16,
    /// bf16.
    Bf16,
}

impl Tier {
    /// The tier of a backend that runs linear layers of type `dtype`.
    pub fn of<B: Backend>(device: &B::Device, dtype: DType) -> Self {
        match dtype {
            DType::F16 => Self::F16,
            DType::BF16 => Self::Bf16,
            _ if B::name(device).contains("cuda") => Self::Tf32,
            _ => Self::F32,
        }
    }

    /// The bar of a test that wants `bar` of f32; a prediction that is fed back into its model may be further off.
    ///
    /// The tiny models of cases are harder than trained ones here: with widths of 32 to 96 there is little to average roundings out.
    pub fn bar(self, bar: Bar, fed_back: bool) -> Bar {
        let (cos_min, rel_max) = match (self, fed_back) {
            (Self::F32, _) => return bar,
            (Self::Tf32, _) => (0.99999, 1e-3),
            (Self::F16, false) => (0.9999, 1e-2),
            (Self::F16, true) => (0.999, 5e-2),
            (Self::Bf16, false) => (0.99, 1e-1),
            (Self::Bf16, true) => (0.9, 3e-1),
        };
        Bar { cos_min: bar.cos_min.min(cos_min), rel_max: bar.rel_max.max(rel_max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_loosens_a_bar_and_never_tightens_it() {
        let (strict, loose) = (Bar { cos_min: 0.99999, rel_max: 1e-4 }, Bar { cos_min: 0.5, rel_max: 1.0 });
        assert_eq!(Tier::F32.bar(strict, true), strict);
        for (tier, fed_back) in [(Tier::Tf32, false), (Tier::F16, false), (Tier::F16, true), (Tier::Bf16, true)] {
            let bar = tier.bar(strict, fed_back);
            assert!(bar.rel_max > strict.rel_max && bar.cos_min <= strict.cos_min);
            assert_eq!(tier.bar(loose, fed_back), loose);
        }
    }
}
