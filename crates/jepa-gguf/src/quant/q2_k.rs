//! q2_k: 16 bytes of 4-bit scales and minima, 64 bytes of 2-bit values, `d` and `dmin` f16. Value `d · scale · q - dmin · min`.
//!
//! Each half of 128 values takes 32 bytes; the byte at `j` holds values `j`, `j + 32`, `j + 64`, `j + 96` of its half, lowest bits first.

use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, dmin) = (scale(block, 80), scale(block, 82));
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let packed = block[group];
        let (dl, ml) = (d * f32::from(packed & 15), dmin * f32::from(packed >> 4));
        let (half, shift, start) = (group / 8, group % 8 / 2 * 2, group % 2 * 16);
        let bytes = &block[16 + half * 32 + start..][..16];
        for (&q, out) in bytes.iter().zip(out) {
            *out = dl * f32::from((q >> shift) & 3) - ml;
        }
    }
}
