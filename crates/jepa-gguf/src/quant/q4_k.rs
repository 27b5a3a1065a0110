//! q4_k: `d` and `dmin` f16, 12 bytes of scales and minima, 128 bytes of 4-bit values. Value `d · scale · q - dmin · min`.
//!
//! 32 bytes hold two groups of 32 values: the low halves are the first, the high halves the second.

use super::fit_scale_min::Search;
use super::groups_of_32::groups;
use super::k_scales::scale_and_min;
use super::{Weighted, scale};

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

/// Packs one block.
pub(super) fn pack(x: &[f32; 256], weighted: Option<Weighted<'_, 256>>, block: &mut [u8; 144]) {
    let plain = Search { first: -1.0, step: 0.1, steps: 20, absolute: false };
    let fitted = groups(x, weighted, 15, plain);
    block[0..2].copy_from_slice(&fitted.scales[0].to_le_bytes());
    block[2..4].copy_from_slice(&fitted.scales[1].to_le_bytes());
    block[4..16].copy_from_slice(&fitted.packed);
    block[16..].copy_from_slice(&four_bits(&fitted.levels));
}

/// 128 bytes of the low four bits of every level, as q4_k and q5_k hold them.
pub(super) fn four_bits(levels: &[u8; 256]) -> [u8; 128] {
    std::array::from_fn(|i| {
        let first = i / 32 * 64 + i % 32;
        (levels[first] & 15) | ((levels[first + 32] & 15) << 4)
    })
}
