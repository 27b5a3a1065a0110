//! Scale and minimum: values `scale · level - min` with levels from 0.
//!
//! The sums are ggml's, value by value in f32 and in its order, so that the bits are the same.

use super::nearest::nearest;

/// How scales are tried: `(first + step · i + top) / range` for i from 0 to `steps`.
#[derive(Clone, Copy)]
pub(super) struct Search {
    pub(super) first: f32,
    pub(super) step: f32,
    pub(super) steps: i32,
    /// Whether errors count by their magnitude, not by their square.
    pub(super) absolute: bool,
}

/// The search with an importance matrix, for every format.
pub(super) const WEIGHTED: Search = Search { first: -0.9, step: 0.05, steps: 36, absolute: false };

/// Scale, minimum (as a positive number to subtract) and levels from 0 to `top` with the smallest weighted error.
pub(super) fn fit<const N: usize>(x: &[f32; N], weights: &[f32; N], top: i32, search: Search) -> (f32, f32, [u8; N]) {
    let (mut min, mut max) = (x[0], x[0]);
    let mut sum_w = weights[0];
    let mut sum_x = sum_w * x[0];
    for (&v, &w) in x.iter().zip(weights).skip(1) {
        if v < min {
            min = v;
        }
        if v > max {
            max = v;
        }
        sum_w += w;
        sum_x += w * v;
    }
    if min > 0.0 {
        min = 0.0;
    }
    if max <= min {
        return (0.0, -min, [0; N]);
    }
    let error = |scale: f32, min: f32, levels: &[f32; N]| {
        let mut sum = 0.0f32;
        for ((&v, &w), &l) in x.iter().zip(weights).zip(levels) {
            let rest = scale * l + min - v;
            sum += w * if search.absolute { rest.abs() } else { rest * rest };
        }
        sum
    };
    let levels_at = |inverse: f32, min: f32| x.map(|v| nearest(inverse * (v - min)).clamp(0, top) as f32);
    let mut levels = levels_at(top as f32 / (max - min), min);
    let mut scale = 1.0 / (top as f32 / (max - min));
    let mut best = error(scale, min, &levels);
    for i in 0..=search.steps {
        // The next scale is tried from the best minimum so far, not from the smallest value.
        let tried = levels_at((search.first + search.step * i as f32 + top as f32) / (max - min), min);
        let (mut sum_l, mut sum_l2, mut sum_xl) = (0.0f32, 0.0f32, 0.0f32);
        for ((&v, &w), &l) in x.iter().zip(weights).zip(&tried) {
            sum_l += w * l;
            sum_l2 += w * l * l;
            sum_xl += w * l * v;
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        if determinant > 0.0 {
            let mut this_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
            let mut this_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
            if this_min > 0.0 {
                this_min = 0.0;
                this_scale = sum_xl / sum_l2;
            }
            let error = error(this_scale, this_min, &tried);
            if error < best {
                (best, scale, min, levels) = (error, this_scale, this_min, tried);
            }
        }
    }
    (scale, -min, levels.map(|l| l as u8))
}
