//! q5_k: `d` and `dmin` f16, 12 bytes of scales and minima, 32 bytes of fifth bits, 128 bytes as in q4_k. Value `d · scale · q - dmin · min`.
//!
//! Bit `k` of the fifth-bit byte `j` belongs to value `j` of group `k`.

use super::fit_scale_min::Search;
use super::groups_of_32::groups;
use super::k_scales::scale_and_min;
use super::q4_k::four_bits;
use super::{Weighted, scale};

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

/// Packs one block.
pub(super) fn pack(x: &[f32; 256], weighted: Option<Weighted<'_, 256>>, block: &mut [u8; 176]) {
    let plain = Search { first: -0.5, step: 0.1, steps: 15, absolute: false };
    let fitted = groups(x, weighted, 31, plain);
    block[0..2].copy_from_slice(&fitted.scales[0].to_le_bytes());
    block[2..4].copy_from_slice(&fitted.scales[1].to_le_bytes());
    block[4..16].copy_from_slice(&fitted.packed);
    for (j, byte) in block[16..48].iter_mut().enumerate() {
        *byte = (0..8).fold(0, |bits, group| bits | (fitted.levels[32 * group + j] >> 4 << group));
    }
    block[48..].copy_from_slice(&four_bits(&fitted.levels));
}
