//! q8_0: `d` f16, then 32 signed bytes. Value `d · q`.

use super::nearest::rounded;
use super::{put_scale, scale};

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    for (&q, out) in block[2..].iter().zip(out) {
        *out = d * f32::from(q as i8);
    }
}

/// Packs one block: the largest magnitude on 127, ties away from zero.
pub(super) fn pack(x: &[f32; 32], block: &mut [u8; 34]) {
    let most = x.iter().fold(0.0f32, |most, v| if most > v.abs() { most } else { v.abs() });
    let d = most / 127.0;
    let inverse = if d != 0.0 { 1.0 / d } else { 0.0 };
    put_scale(block, 0, d);
    for (q, v) in block[2..].iter_mut().zip(x) {
        *q = rounded(v * inverse) as u8;
    }
}
