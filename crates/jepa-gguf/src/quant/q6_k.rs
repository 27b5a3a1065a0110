//! q6_k: 128 bytes of low four bits, 64 bytes of upper two bits, 16 signed scales, `d` f16. Value `d · scale · (q - 32)`.
//!
//! Each half of 128 values has 64 low bytes and 32 upper bytes. Quarter `k` of 32 values in it takes low bytes `k % 2 · 32 ..`, their low halves
//! for k < 2, and bits `2·k` of the upper bytes.

use super::nearest::nearest;
use super::{Weighted, fit_scale, put_scale, scale};

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

/// Packs one block.
pub(super) fn pack(x: &[f32; 256], weighted: Option<Weighted<'_, 256>>, block: &mut [u8; 210]) {
    let (groups, _) = x.as_chunks::<16>();
    let mut levels = [0u8; 256];
    let mut scales = [0.0f32; 16];
    for (j, group) in groups.iter().enumerate() {
        let weights = match weighted {
            Some(Weighted { importance, .. }) => std::array::from_fn(|i| importance[16 * j + i]),
            None => group.map(|v| v * v),
        };
        let fitted: [u8; 16];
        (scales[j], fitted) = fit_scale::signed(group, &weights, 32);
        levels[16 * j..16 * (j + 1)].copy_from_slice(&fitted);
    }
    let (mut most, mut value) = (0.0, 0.0);
    for &scale in &scales {
        if scale.abs() > most {
            (most, value) = (scale.abs(), scale);
        }
    }
    block.fill(0);
    if most < fit_scale::NOTHING {
        return;
    }
    let inverse = -128.0 / value;
    put_scale(block, 208, 1.0 / inverse);
    let d = scale(block, 208);
    for (j, (group, levels)) in groups.iter().zip(levels.chunks_exact_mut(16)).enumerate() {
        let packed = nearest(inverse * scales[j]).min(127) as i8;
        block[192 + j] = packed as u8;
        let scale = d * f32::from(packed);
        if scale != 0.0 {
            levels.iter_mut().zip(group).for_each(|(l, v)| *l = (nearest(v / scale).clamp(-32, 31) + 32) as u8);
        }
    }
    for half in 0..2 {
        let quarters: [&[u8]; 4] = std::array::from_fn(|k| &levels[128 * half + 32 * k..][..32]);
        for j in 0..32 {
            let [a, b, c, d] = quarters.map(|quarter| quarter[j]);
            block[64 * half + j] = (a & 15) | ((c & 15) << 4);
            block[64 * half + 32 + j] = (b & 15) | ((d & 15) << 4);
            block[128 + 32 * half + j] = (a >> 4) | (b >> 4 << 2) | (c >> 4 << 4) | (d >> 4 << 6);
        }
    }
}
