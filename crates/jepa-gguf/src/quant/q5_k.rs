//! q5_k: `d` and `dmin` f16, 12 bytes of scales and minima, 32 bytes of fifth bits, 128 bytes as in q4_k. Value `d · scale · q - dmin · min`.
//!
//! Bit `k` of the fifth-bit byte `j` belongs to value `j` of group `k`.

use super::k_scales::scale_and_min;
use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (scale(block, 0), scale(block, 2));
    for (group, out) in out.chunks_exact_mut(32).enumerate() {
        let (sc, m) = scale_and_min(&block[4..16], group);
        let (dl, ml) = (d * sc, dmin * m);
        let shift = group % 2 * 4;
        let fourths = &block[48 + group / 2 * 32..][..32];
        for ((&q, &h), out) in fourths.iter().zip(&block[16..48]).zip(out) {
            *out = dl * f32::from(((q >> shift) & 15) | (((h >> group) & 1) << 4)) - ml;
        }
    }
}
