//! Arithmetic that the compiler turns into vector code: no branches, no library calls.

use crate::isa::PORTABLE;

/// `a · b + c`, in one instruction where `SET` has one.
#[inline(always)]
pub(crate) fn mul_add<const SET: u8>(a: f32, b: f32, c: f32) -> f32 {
    if SET == PORTABLE { a * b + c } else { a.mul_add(b, c) }
}

/// A polynomial by Horner's rule, highest power first.
#[inline(always)]
pub(crate) fn polynomial<const SET: u8, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut y = coefficients[0];
    let mut i = 1;
    while i < N {
        y = mul_add::<SET>(y, x, coefficients[i]);
        i += 1;
    }
    y
}

/// 1.5 · 2^23: adding it to a small number leaves that number, rounded to an integer, in the low bits.
const ROUNDER: f32 = 12_582_912.0;

/// Below it, `e^x`, or a third of it, is a denormal.
pub(crate) const SMALLEST: f32 = -86.0;

/// `e^x` within 2 ulp for x from -87 to 88; below, 0 or a value under 2e-38, and above, `e^88`. NaN stays NaN.
///
/// `x = n · ln 2 + r` with |r| ≤ ln 2 / 2, a polynomial for `e^r`, and `2^n` made in the exponent.
#[inline(always)]
pub(crate) fn exp<const SET: u8>(x: f32) -> f32 {
    let x = x.clamp(-87.5, 88.0);
    let shifted = mul_add::<SET>(x, std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    // ln 2 in two parts, the first with so few bits that n times it is exact.
    let r = mul_add::<SET>(n, -0.693_359_4, x);
    let r = mul_add::<SET>(n, 2.121_944_4e-4, r);
    let tail =
        polynomial::<SET, 6>(r, [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_6e-1, 0.5]);
    let y = mul_add::<SET>(tail, r * r, r) + 1.0;
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    y * scale
}

/// The sum of all, in pairs of halves.
#[inline(always)]
pub(crate) fn sum_of<const N: usize>(mut values: [f32; N]) -> f32 {
    let mut width = N / 2;
    while width > 0 {
        for i in 0..width {
            values[i] += values[i + width];
        }
        width /= 2;
    }
    values[0]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::isa::AVX2;

    /// Seeded values between -1 and 1.
    pub(crate) fn noise(seed: u64) -> impl FnMut() -> f32 {
        let mut state = seed | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        }
    }

    #[test]
    fn exp_is_within_two_ulp() {
        for i in -87_000..88_000 {
            let x = i as f32 / 1000.0;
            let wanted = f64::from(x).exp();
            let bar = 2.0 * f64::from(f32::EPSILON) * wanted + 1e-38;
            for found in [exp::<PORTABLE>(x), exp::<AVX2>(x)] {
                assert!((f64::from(found) - wanted).abs() <= bar, "{x}: {found} {wanted}");
            }
        }
        assert!(exp::<PORTABLE>(f32::NAN).is_nan() && exp::<PORTABLE>(-1e9) < 2e-38 && exp::<PORTABLE>(0.0) == 1.0);
    }
}
