//! q2_k: 16 bytes of 4-bit scales and minima, 64 bytes of 2-bit values, `d` and `dmin` f16. Value `d · scale · q - dmin · min`.
//!
//! Each half of 128 values takes 32 bytes; the byte at `j` holds values `j`, `j + 32`, `j + 64`, `j + 96` of its half, lowest bits first.

use super::fit_scale_min::{Search, WEIGHTED, fit};
use super::nearest::nearest;
use super::{Weighted, fit_scale, put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, dmin) = (scale(block, 80), scale(block, 82));
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let packed = block[group];
        let (dl, ml) = (d * f32::from(packed & 15), dmin * f32::from(packed >> 4));
        let (half, shift, start) = (group / 8, group % 8 / 2 * 2, group % 2 * 16);
        let bytes = &block[16 + half * 32 + start..][..16];
        for (&q, out) in bytes.iter().zip(out) {
            *out = dl * f32::from((q >> shift) & 3) - ml;
        }
    }
}

/// The search without an importance matrix.
const PLAIN: Search = Search { first: -0.5, step: 0.1, steps: 15, absolute: true };

/// Packs one block.
pub(super) fn pack(x: &[f32; 256], weighted: Option<Weighted<'_, 256>>, block: &mut [u8; 84]) {
    let (groups, _) = x.as_chunks::<16>();
    let mut levels = [0u8; 256];
    let (mut scales, mut mins, mut sums) = ([0.0f32; 16], [0.0f32; 16], [0.0f32; 16]);
    let energy = x.iter().fold(0.0, |sum, v| sum + v * v) / 256.0;
    for (j, group) in groups.iter().enumerate() {
        let (weights, search) = match weighted {
            Some(Weighted { importance, .. }) => {
                let weights = std::array::from_fn(|i| importance[16 * j + i] * (energy + group[i] * group[i]).sqrt());
                (weights, WEIGHTED)
            }
            None => (group.map(f32::abs), PLAIN),
        };
        sums[j] = weights.iter().fold(0.0, |sum, w| sum + w);
        let fitted: [u8; 16];
        (scales[j], mins[j], fitted) = fit(group, &weights, 3, search);
        levels[16 * j..16 * (j + 1)].copy_from_slice(&fitted);
    }
    let fit_levels = |values: &[f32; 16]| match weighted {
        Some(_) => fit_scale::unsigned(values, &sums, 15),
        None => to_four_bits(values),
    };
    let ((d, scale_levels), (dmin, min_levels)) = (fit_levels(&scales), fit_levels(&mins));
    put_scale(block, 80, d);
    put_scale(block, 82, dmin);
    let (d, dmin) = (scale(block, 80), scale(block, 82));
    for (j, (group, levels)) in groups.iter().zip(levels.chunks_exact_mut(16)).enumerate() {
        block[j] = scale_levels[j] | (min_levels[j] << 4);
        let (scale, min) = (d * f32::from(block[j] & 15), dmin * f32::from(block[j] >> 4));
        if scale != 0.0 {
            levels.iter_mut().zip(group).for_each(|(l, v)| *l = nearest((v + min) / scale).clamp(0, 3) as u8);
        }
    }
    block[16..80].copy_from_slice(&two_bits(&levels));
}

/// The largest on 15, the others in proportion; nothing when none is above 0.
fn to_four_bits(values: &[f32; 16]) -> (f32, [u8; 16]) {
    let most = values.iter().fold(0.0, |most, &v| if v > most { v } else { most });
    if most > 0.0 { (most / 15.0, values.map(|v| nearest(15.0 / most * v) as u8)) } else { (0.0, [0; 16]) }
}

/// 64 bytes of 2-bit levels, as q2_k and q3_k hold them.
pub(super) fn two_bits(levels: &[u8; 256]) -> [u8; 64] {
    std::array::from_fn(|i| {
        let first = i / 32 * 128 + i % 32;
        (0..4).fold(0, |byte, k| byte | (levels[first + 32 * k] << (2 * k)))
    })
}
