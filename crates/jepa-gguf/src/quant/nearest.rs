//! Rounding as ggml's C code does it on x86, for every bit pattern.

/// The nearest integer, ties to even, for |x| below 2^22; beyond, the bits that ggml's trick of adding 1.5 · 2^23 leaves.
#[inline(always)]
pub(super) fn nearest(x: f32) -> i32 {
    ((x + 12_582_912.0).to_bits() as i32 & 0x007f_ffff) - 0x0040_0000
}

/// The integer part; what does not fit into an `i32` becomes its smallest value, as the processor's own conversion has it.
#[inline(always)]
pub(super) fn truncated(x: f32) -> i32 {
    if x.abs() < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}

/// The nearest integer, ties away from zero.
#[inline(always)]
pub(super) fn rounded(x: f32) -> i32 {
    let whole = truncated(x);
    let rest = x - whole as f32;
    if whole == i32::MIN { whole } else { whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_where_c_sends_them() {
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 1e6 + 0.5].map(nearest), [0, 2, 2, 0, -2, 1_000_000]);
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 0.499_999_97].map(rounded), [1, 2, 3, -1, -2, 0]);
        assert_eq!([f32::INFINITY, f32::NAN, -3.9, 3.9].map(truncated), [i32::MIN, i32::MIN, -3, 3]);
    }
}
