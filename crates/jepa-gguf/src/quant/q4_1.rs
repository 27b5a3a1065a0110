//! q4_1: `d` and `m` f16, then 16 bytes as in q4_0. Value `d · q + m`.

use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (scale(block, 0), scale(block, 2));
    let (low, high) = out.split_at_mut(16);
    for ((&q, low), high) in block[4..].iter().zip(low).zip(high) {
        *low = d * f32::from(q & 15) + m;
        *high = d * f32::from(q >> 4) + m;
    }
}
