//! q4_0: `d` f16, then 16 bytes whose low halves are values 0..16 and high halves values 16..32. Value `d · (q - 8)`.

use super::nearest::truncated;
use super::{Weighted, fit_scale, put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    let (low, high) = out.split_at_mut(16);
    for ((&q, low), high) in block[2..].iter().zip(low).zip(high) {
        *low = d * f32::from((q & 15) as i8 - 8);
        *high = d * f32::from((q >> 4) as i8 - 8);
    }
}

/// Packs one block: the value of the largest magnitude on -8, the others cut after adding half a level.
pub(super) fn pack(x: &[f32; 32], weighted: Option<Weighted<'_, 32>>, block: &mut [u8; 18]) {
    let levels = match weighted {
        Some(weighted) => {
            let (d, levels) = fit_scale::signed(x, &weighted.in_row(x), 8);
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
            let d = value / -8.0;
            let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
            put_scale(block, 0, d);
            x.map(|v| (truncated(v * inverse + 8.5) as i8).min(15) as u8)
        }
    };
    for (i, byte) in block[2..].iter_mut().enumerate() {
        *byte = levels[i] | (levels[i + 16] << 4);
    }
}
