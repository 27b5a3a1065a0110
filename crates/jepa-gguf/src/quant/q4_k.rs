//! q4_k: `d` and `dmin` f16, 12 bytes of scales and minima, 128 bytes of 4-bit values. Value `d · scale · q - dmin · min`.
//!
//! 32 bytes hold two groups of 32 values: the low halves are the first, the high halves the second.

use super::k_scales::scale_and_min;
use super::scale;

/// Unpacks one block.
pub(super) fn unpack(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (scale(block, 0), scale(block, 2));
    for (group, out) in out.chunks_exact_mut(32).enumerate() {
        let (sc, m) = scale_and_min(&block[4..16], group);
        let (dl, ml) = (d * sc, dmin * m);
        let shift = group % 2 * 4;
        for (&q, out) in block[16 + group / 2 * 32..][..32].iter().zip(out) {
            *out = dl * f32::from((q >> shift) & 15) - ml;
        }
    }
}
