//! q4_1: `d` and `m` f16, then 16 bytes as in q4_0. Value `d · q + m`.

use super::fit_scale_min::{WEIGHTED, fit};
use super::nearest::truncated;
use super::{Weighted, put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (scale(block, 0), scale(block, 2));
    let (low, high) = out.split_at_mut(16);
    for ((&q, low), high) in block[4..].iter().zip(low).zip(high) {
        *low = d * f32::from(q & 15) + m;
        *high = d * f32::from(q >> 4) + m;
    }
}

/// Packs one block: the smallest value on 0, the largest on 15.
pub(super) fn pack(x: &[f32; 32], weighted: Option<Weighted<'_, 32>>, block: &mut [u8; 20]) {
    let (d, m, levels) = match weighted {
        Some(weighted) => {
            let (d, min, levels) = fit(x, &weighted.in_row(x), 15, WEIGHTED);
            (d, -min, levels)
        }
        None => {
            let (mut min, mut max) = (f32::MAX, f32::MIN);
            for &v in x {
                min = if v < min { v } else { min };
                max = if v > max { v } else { max };
            }
            let d = (max - min) / 15.0;
            let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
            (d, min, x.map(|v| (truncated((v - min) * inverse + 0.5) as i8).min(15) as u8))
        }
    };
    put_scale(block, 0, d);
    put_scale(block, 2, m);
    for (i, byte) in block[4..].iter_mut().enumerate() {
        *byte = levels[i] | (levels[i + 16] << 4);
    }
}
