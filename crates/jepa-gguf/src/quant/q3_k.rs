//! q3_k: 32 bytes of third bits, 64 bytes of 2-bit values as in q2_k, 12 bytes of 6-bit scales, `d` f16. Value `d · (scale - 32) · (q - 4)`.
//!
//! Bit `k` of the third-bit byte `j` belongs to value `32·k + j`. Scale `i` has its low four bits in byte `i % 8` (low half for i < 8) and its
//! upper two in byte `8 + i % 4`, at bit `i / 4 · 2`.

use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = scale(block, 108);
    let (thirds, rest) = block.split_at(32);
    let (pairs, scales) = rest.split_at(64);
    for (group, out) in out.chunks_exact_mut(16).enumerate() {
        let low = (scales[group % 8] >> (group / 8 * 4)) & 15;
        let top = (scales[8 + group % 4] >> (group / 4 * 2)) & 3;
        let dl = d * f32::from((low | (top << 4)) as i8 - 32);
        let (half, shift, start) = (group / 8, group % 8 / 2 * 2, group % 2 * 16);
        let pairs = &pairs[half * 32 + start..][..16];
        let thirds = &thirds[start..][..16];
        for ((&q, &t), out) in pairs.iter().zip(thirds).zip(out) {
            let third = ((t >> (group / 2)) & 1) << 2;
            *out = dl * f32::from((((q >> shift) & 3) | third) as i8 - 4);
        }
    }
}
