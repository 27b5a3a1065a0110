//! q5_1: `d` and `m` f16, 32 fifth bits, then 16 bytes as in q4_0. Value `d · q + m`.

use super::scale;

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
