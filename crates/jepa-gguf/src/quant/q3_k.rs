//! q3_k: 32 bytes of third bits, 64 bytes of 2-bit values as in q2_k, 12 bytes of 6-bit scales, `d` f16. Value `d · (scale - 32) · (q - 4)`.
//!
//! Bit `k` of the third-bit byte `j` belongs to value `32·k + j`. Scale `i` has its low four bits in byte `i % 8` (low half for i < 8) and its
//! upper two in byte `8 + i % 4`, at bit `i / 4 · 2`.

use super::nearest::nearest;
use super::q2_k::two_bits;
use super::{Weighted, fit_scale, put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = scale(block, 108);
    let (thirds, rest) = block.split_at(32);
    let (pairs, scales) = rest.split_at(64);
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let low = (scales[group % 8] >> (group / 8 * 4)) & 15;
        let top = (scales[8 + group % 4] >> (group / 4 * 2)) & 3;
        let dl = d * f32::from((low | (top << 4)) as i8 - 32);
        let (half, shift, start) = (group / 8, group % 8 / 2 * 2, group % 2 * 16);
        let pairs = &pairs[half * 32 + start..][..16];
        let thirds = &thirds[start..][..16];
        for ((&q, &t), out) in pairs.iter().zip(thirds).zip(out) {
            let third = ((t >> (group / 2)) & 1) << 2;
            *out = dl * f32::from((((q >> shift) & 3) | third) as i8 - 4);
        }
    }
}

/// Packs one block.
pub(super) fn pack(x: &[f32; 256], weighted: Option<Weighted<'_, 256>>, block: &mut [u8; 110]) {
    let (groups, _) = x.as_chunks::<16>();
    let mut levels = [0u8; 256];
    let (mut scales, mut sums) = ([0.0f32; 16], [0.0f32; 16]);
    let energy = 2.0 * x.iter().fold(0.0, |sum, v| sum + v * v) / 256.0;
    for (j, group) in groups.iter().enumerate() {
        let fitted: [u8; 16];
        (scales[j], fitted) = match weighted {
            Some(Weighted { importance, .. }) => {
                let weights = std::array::from_fn(|i| importance[16 * j + i] * (energy + group[i] * group[i]).sqrt());
                sums[j] = weights.iter().fold(0.0, |sum, w| sum + w);
                fit_scale::signed(group, &weights, 4)
            }
            None => fit_scale::signed_by_moves(group, 4),
        };
        levels[16 * j..16 * (j + 1)].copy_from_slice(&fitted);
    }
    let (d, scale_levels) = match weighted {
        Some(_) => fit_scale::signed(&scales, &sums, 32),
        None => to_six_bits(&scales),
    };
    put_scale(block, 108, d);
    let d = scale(block, 108);
    block[96..108].fill(0);
    for (j, (group, levels)) in groups.iter().zip(levels.chunks_exact_mut(16)).enumerate() {
        let packed = scale_levels[j];
        block[96 + j % 8] |= (packed & 15) << (j / 8 * 4);
        block[104 + j % 4] |= packed >> 4 << (j / 4 * 2);
        let scale = d * f32::from(packed as i8 - 32);
        if scale != 0.0 {
            levels.iter_mut().zip(group).for_each(|(l, v)| *l = (nearest(v / scale).clamp(-4, 3) + 4) as u8);
        }
    }
    for (j, byte) in block[..32].iter_mut().enumerate() {
        *byte = (0..8).fold(0, |bits, k| bits | (u8::from(levels[32 * k + j] > 3) << k));
    }
    block[32..96].copy_from_slice(&two_bits(&levels.map(|l| l & 3)));
}

/// The scale of the largest magnitude on -32, the others in proportion, raised by 32; nothing when all are 0.
fn to_six_bits(scales: &[f32; 16]) -> (f32, [u8; 16]) {
    let (mut most, mut value) = (0.0, 0.0);
    for &scale in scales {
        if scale.abs() > most {
            (most, value) = (scale.abs(), scale);
        }
    }
    if value == 0.0 {
        // Six bits of 0 stand for -32, and with `d` = 0 for nothing.
        return (0.0, [0; 16]);
    }
    let inverse = -32.0 / value;
    (1.0 / inverse, scales.map(|scale| ((nearest(inverse * scale) as i8).clamp(-32, 31) + 32) as u8))
}
