//! q5_0: `d` f16, 32 fifth bits, then 16 bytes as in q4_0. Value `d · (q - 16)`.

use super::scale;

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
