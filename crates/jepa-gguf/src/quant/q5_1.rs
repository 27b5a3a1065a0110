//! q5_1: `d` and `m` f16, 32 fifth bits, then 16 bytes as in q4_0. Value `d · q + m`.

use super::fit_scale_min::{WEIGHTED, fit};
use super::nearest::truncated;
use super::q5_0::five_bits;
use super::{Weighted, put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (scale(block, 0), scale(block, 2));
    let fifth = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    let (low, high) = out.split_at_mut(16);
    for (i, ((&q, low), high)) in block[8..].iter().zip(low).zip(high).enumerate() {
        let a = (q & 15) | (((fifth >> i) & 1) << 4) as u8;
        let b = (q >> 4) | (((fifth >> (i + 16)) & 1) << 4) as u8;
        *low = d * f32::from(a) + m;
        *high = d * f32::from(b) + m;
    }
}

/// Packs one block: the smallest value on 0, the largest on 31.
pub(super) fn pack(x: &[f32; 32], weighted: Option<Weighted<'_, 32>>, block: &mut [u8; 24]) {
    let (d, m, levels) = match weighted {
        Some(weighted) => {
            let (d, min, levels) = fit(x, &weighted.in_row(x), 31, WEIGHTED);
            (d, -min, levels)
        }
        None => {
            let (mut min, mut max) = (f32::MAX, f32::MIN);
            for &v in x {
                min = if v < min { v } else { min };
                max = if v > max { v } else { max };
            }
            let d = (max - min) / 31.0;
            let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
            (d, min, x.map(|v| truncated((v - min) * inverse + 0.5) as u8))
        }
    };
    put_scale(block, 0, d);
    put_scale(block, 2, m);
    block[4..].copy_from_slice(&five_bits(&levels));
}
