//! q4_0: `d` f16, then 16 bytes whose low halves are values 0..16 and high halves values 16..32. Value `d · (q - 8)`.

use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    let (low, high) = out.split_at_mut(16);
    for ((&q, low), high) in block[2..].iter().zip(low).zip(high) {
        *low = d * f32::from((q & 15) as i8 - 8);
        *high = d * f32::from((q >> 4) as i8 - 8);
    }
}
