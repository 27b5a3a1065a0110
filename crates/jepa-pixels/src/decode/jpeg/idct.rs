//! The inverse cosine transform, in the integers that libjpeg calls "islow".
//!
//! It is the 12-multiplication scheme of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) with 13-bit constants: columns
//! first, keeping 2 extra bits, then rows. The rounding points are part of the result, so they stand where libjpeg has them.

use std::num::Wrapping;

/// Constants are scaled by 2^13.
const CONSTANT_BITS: usize = 13;
/// Extra bits between the passes.
const EXTRA_BITS: usize = 2;

/// Samples of one block, `[8, 8]` row-major, from its coefficients in row-major order.
///
/// Products wrap at 16 bits as in the SIMD code that everybody runs; no encoder makes coefficients that large.
pub(super) fn inverse(coefficients: &[i16; 64], quantisers: &[u16; 64]) -> [u8; 64] {
    let scaled = |i: usize| i32::from(coefficients[i].wrapping_mul(quantisers[i] as i16));
    if coefficients[1..].iter().all(|&c| c == 0) {
        // What both passes leave of a lone DC coefficient.
        let flat = ((scaled(0) << EXTRA_BITS) + (1 << (EXTRA_BITS + 2))) >> (EXTRA_BITS + 3);
        return [(flat + 128).clamp(0, 255) as u8; 64];
    }
    let mut columns = [[0i32; 8]; 8];
    for (x, column) in columns.iter_mut().enumerate() {
        let values: [i32; 8] = std::array::from_fn(|y| scaled(8 * y + x));
        // Most columns of most blocks are flat; the transform gives the same.
        *column = if values[1..] == [0; 7] {
            [values[0] << EXTRA_BITS; 8]
        } else {
            transform::<{ CONSTANT_BITS - EXTRA_BITS }>(values)
        };
    }
    let mut samples = [0u8; 64];
    for (y, row) in samples.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let values = std::array::from_fn(|x| columns[x][y]);
        *row = transform::<{ CONSTANT_BITS + EXTRA_BITS + 3 }>(values).map(|v| v.wrapping_add(128).clamp(0, 255) as u8);
    }
    samples
}

/// One 8-point transform; results are rounded and shifted down by `SHIFT`.
///
/// The constants are the factors beside them, times 2^13 and rounded.
#[inline(always)]
fn transform<const SHIFT: usize>(values: [i32; 8]) -> [i32; 8] {
    let [x0, x1, x2, x3, x4, x5, x6, x7] = values.map(Wrapping);
    let times = |v: Wrapping<i32>, constant: i32| v * Wrapping(constant);

    // Even half: one rotation, then two butterflies.
    let shared = times(x2 + x6, 4433); // 0.541196100
    let even2 = shared - times(x6, 15137); // 1.847759065
    let even3 = shared + times(x2, 6270); // 0.765366865
    let even0 = (x0 + x4) << CONSTANT_BITS;
    let even1 = (x0 - x4) << CONSTANT_BITS;
    let even = [even0 + even3, even1 + even2, even1 - even2, even0 - even3];

    // Odd half.
    let shared = times(x7 + x3 + x5 + x1, 9633); // 1.175875602
    let z1 = times(x7 + x1, -7373); // -0.899976223
    let z2 = times(x5 + x3, -20995); // -2.562915447
    let z3 = times(x7 + x3, -16069) + shared; // -1.961570560
    let z4 = times(x5 + x1, -3196) + shared; // -0.390180644
    let odd = [
        times(x1, 12299) + z1 + z4, // 1.501321110
        times(x3, 25172) + z2 + z3, // 3.072711026
        times(x5, 16819) + z2 + z4, // 2.053119869
        times(x7, 2446) + z1 + z3,  // 0.298631336
    ];

    let half = Wrapping(1i32 << (SHIFT - 1));
    std::array::from_fn(|i| {
        let sum = if i < 4 { even[i] + odd[i] } else { even[7 - i] - odd[7 - i] };
        ((sum + half) >> SHIFT).0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The transform by its definition, in f64.
    fn exact(coefficients: &[i16; 64]) -> [f64; 64] {
        let c = |k: usize| if k == 0 { (0.5f64).sqrt() } else { 1.0 };
        let wave = |k: usize, x: usize| ((2 * x + 1) as f64 * k as f64 * std::f64::consts::PI / 16.0).cos();
        std::array::from_fn(|i| {
            let (y, x) = (i / 8, i % 8);
            let sum: f64 = (0..64)
                .map(|j| f64::from(coefficients[j]) * c(j / 8) * c(j % 8) * wave(j / 8, y) * wave(j % 8, x) / 4.0)
                .sum();
            sum + 128.0
        })
    }

    #[test]
    fn stays_within_one_level_of_the_definition() {
        let mut state = 1u32;
        for _ in 0..500 {
            let mut coefficients = [0i16; 64];
            for (i, c) in coefficients.iter_mut().enumerate() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let size = 400 / (1 + i as i32);
                *c = ((state >> 8) as i32 % (2 * size + 1) - size) as i16;
            }
            let got = inverse(&coefficients, &[1; 64]);
            for (got, want) in got.iter().zip(exact(&coefficients)) {
                assert!((f64::from(*got) - want.clamp(0.0, 255.0)).abs() < 0.6, "{got} {want}");
            }
        }
    }

    #[test]
    fn lone_dc_takes_no_short_cut_in_value() {
        for dc in -1100..1100i16 {
            let mut coefficients = [0i16; 64];
            coefficients[0] = dc;
            let row = transform::<11>([i32::from(dc), 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(row, [i32::from(dc) << EXTRA_BITS; 8]);
            let want = transform::<18>([row[0], 0, 0, 0, 0, 0, 0, 0]).map(|v| (v + 128).clamp(0, 255) as u8);
            assert_eq!(inverse(&coefficients, &[1; 64]).as_chunks().0, [want; 8]);
        }
    }

    #[test]
    fn huge_coefficients_do_not_overflow() {
        for extreme in [i16::MIN, i16::MAX] {
            inverse(&[extreme; 64], &[u16::MAX; 64]);
            inverse(&[extreme; 64], &[1; 64]);
        }
    }
}
