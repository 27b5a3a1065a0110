//! q5_0: `d` f16, 32 fifth bits, then 16 bytes as in q4_0. Value `d · (q - 16)`.

use super::nearest::truncated;
use super::{Weighted, fit_scale, put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    let fifth = u32::from_le_bytes([block[2], block[3], block[4], block[5]]);
    let (low, high) = out.split_at_mut(16);
    for (i, ((&q, low), high)) in block[6..].iter().zip(low).zip(high).enumerate() {
        let a = (q & 15) | (((fifth >> i) & 1) << 4) as u8;
        let b = (q >> 4) | (((fifth >> (i + 16)) & 1) << 4) as u8;
        *low = d * f32::from(a as i8 - 16);
        *high = d * f32::from(b as i8 - 16);
    }
}

/// Packs one block: the value of the largest magnitude on -16, the others cut after adding half a level.
pub(super) fn pack(x: &[f32; 32], weighted: Option<Weighted<'_, 32>>, block: &mut [u8; 22]) {
    let levels = match weighted {
        Some(weighted) => {
            let (d, levels) = fit_scale::signed(x, &weighted.in_row(x), 16);
            put_scale(block, 0, d);
            levels
        }
        None => {
            let (mut most, mut value) = (0.0, 0.0);
            for &v in x {
                if most < v.abs() {
                    (most, value) = (v.abs(), v);
                }
            }
            let d = value / -16.0;
            let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
            put_scale(block, 0, d);
            x.map(|v| (truncated(v * inverse + 16.5) as i8).min(31) as u8)
        }
    };
    block[2..].copy_from_slice(&five_bits(&levels));
}

/// 32 fifth bits, then the low halves, as q5_0 and q5_1 hold them.
pub(super) fn five_bits(levels: &[u8; 32]) -> [u8; 20] {
    let mut packed = [0; 20];
    let fifth = levels.iter().enumerate().fold(0u32, |bits, (i, l)| bits | (u32::from(l >> 4 & 1) << i));
    packed[..4].copy_from_slice(&fifth.to_le_bytes());
    for (i, byte) in packed[4..].iter_mut().enumerate() {
        *byte = (levels[i] & 15) | ((levels[i + 16] & 15) << 4);
    }
    packed
}
