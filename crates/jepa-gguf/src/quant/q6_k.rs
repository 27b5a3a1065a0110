//! q6_k: 128 bytes of low four bits, 64 bytes of upper two bits, 16 signed scales, `d` f16. Value `d · scale · (q - 32)`.
//!
//! Each half of 128 values has 64 low bytes and 32 upper bytes. Quarter `k` of 32 values in it takes low bytes `k % 2 · 32 ..`, their low halves
//! for k < 2, and bits `2·k` of the upper bytes.

use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 210], out: &mut [f32; 256]) {
    let d = scale(block, 208);
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let dl = d * f32::from(block[192 + group] as i8);
        let (half, quarter, start) = (group / 8, group % 8 / 2, group % 2 * 16);
        let low = &block[half * 64 + quarter % 2 * 32 + start..][..16];
        let top = &block[128 + half * 32 + start..][..16];
        for ((&l, &t), out) in low.iter().zip(top).zip(out) {
            let q = ((l >> (quarter / 2 * 4)) & 15) | (((t >> (quarter * 2)) & 3) << 4);
            *out = dl * f32::from(q as i8 - 32);
        }
    }
}
