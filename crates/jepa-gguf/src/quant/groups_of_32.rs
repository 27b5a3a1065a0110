//! What q4_k and q5_k have in common: eight groups of 32 values, each with a 6-bit scale and a 6-bit minimum.

use half::f16;

use super::Weighted;
use super::fit_scale;
use super::fit_scale_min::{Search, WEIGHTED, fit};
use super::k_scales::{pack, scale_and_min};
use super::nearest::nearest;

/// A block before its levels are packed.
pub(super) struct Groups {
    /// `d` and `dmin`.
    pub(super) scales: [f16; 2],
    /// The 12 bytes of [`super::k_scales`].
    pub(super) packed: [u8; 12],
    pub(super) levels: [u8; 256],
}

/// Fits levels from 0 to `top` to a block. `plain` is the search without an importance matrix.
pub(super) fn groups(x: &[f32; 256], weighted: Option<Weighted<'_, 256>>, top: i32, plain: Search) -> Groups {
    let (groups, _) = x.as_chunks::<32>();
    let mut levels = [0u8; 256];
    let (mut scales, mut mins, mut sums) = ([0.0f32; 8], [0.0f32; 8], [0.0f32; 8]);
    let energy = 2.0 * x.iter().fold(0.0, |sum, v| sum + v * v) / 256.0;
    for (j, group) in groups.iter().enumerate() {
        let (weights, search) = match weighted {
            Some(Weighted { importance, .. }) => {
                let weights = std::array::from_fn(|i| importance[32 * j + i] * (energy + group[i] * group[i]).sqrt());
                (weights, WEIGHTED)
            }
            None => {
                let average = (group.iter().fold(0.0, |sum, v| sum + v * v) / 32.0).sqrt();
                (group.map(|v| average + v.abs()), plain)
            }
        };
        sums[j] = weights.iter().fold(0.0, |sum, w| sum + w);
        let fitted: [u8; 32];
        (scales[j], mins[j], fitted) = fit(group, &weights, top, search);
        levels[32 * j..32 * (j + 1)].copy_from_slice(&fitted);
    }
    let (d, dmin, scale_levels, min_levels) = if weighted.is_some() {
        let (d, scale_levels) = fit_scale::unsigned(&scales, &sums, 63);
        let (dmin, min_levels) = fit_scale::unsigned(&mins, &sums, 63);
        (d, dmin, scale_levels, min_levels)
    } else {
        let (d, scale_levels) = to_six_bits(&scales);
        let (dmin, min_levels) = to_six_bits(&mins);
        (d, dmin, scale_levels, min_levels)
    };
    let packed = pack(&scale_levels, &min_levels);
    let scales = [f16::from_f32(d), f16::from_f32(dmin)];
    let (d, dmin) = (scales[0].to_f32(), scales[1].to_f32());
    for (j, (group, levels)) in groups.iter().zip(levels.chunks_exact_mut(32)).enumerate() {
        let (scale, min) = scale_and_min(&packed, j);
        let (scale, min) = (d * scale, dmin * min);
        if scale != 0.0 {
            levels.iter_mut().zip(group).for_each(|(l, v)| *l = nearest((v + min) / scale).clamp(0, top) as u8);
        }
    }
    Groups { scales, packed, levels }
}

/// The largest on 63, the others in proportion.
fn to_six_bits(values: &[f32; 8]) -> (f32, [u8; 8]) {
    let most = values.iter().fold(0.0, |most, &v| if v > most { v } else { most });
    let inverse = if most > 0.0 { 63.0 / most } else { 0.0 };
    (most / 63.0, values.map(|v| (nearest(inverse * v) as u8).min(63)))
}
