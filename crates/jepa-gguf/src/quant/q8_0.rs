//! q8_0: `d` f16, then 32 signed bytes. Value `d · q`.

use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    for (&q, out) in block[2..].iter().zip(out) {
        *out = d * f32::from(q as i8);
    }
}
