//! Scales without a minimum: the factor that brings a group of values closest to integer levels.
//!
//! Each search does its sums in the order ggml does them, value by value in f32, so that ties fall the same way and the bits are the same.

use super::nearest::nearest;

/// Groups whose largest value is below this are taken for zero.
pub(super) const NOTHING: f32 = 1e-15;

/// Value with the largest magnitude, the first of equals.
fn extreme<const N: usize>(x: &[f32; N]) -> f32 {
    let (mut most, mut value) = (0.0, 0.0);
    for &v in x {
        if v.abs() > most {
            (most, value) = (v.abs(), v);
        }
    }
    value
}

/// Levels from `-limit` to `limit - 1` for values `scale · level`, by trying 19 scales about the one that puts the largest value on `-limit`.
///
/// Gives the scale with the smallest weighted square error and the levels, raised by `limit` so that they start at 0.
pub(super) fn signed<const N: usize>(x: &[f32; N], weights: &[f32; N], limit: i32) -> (f32, [u8; N]) {
    let extreme = extreme(x);
    if extreme.abs() < NOTHING {
        return (0.0, [0; N]);
    }
    let level = |inverse: f32, v: f32| nearest(inverse * v).clamp(-limit, limit - 1);
    let sums = |inverse: f32| {
        let (mut with_x, mut with_level) = (0.0f32, 0.0f32);
        for (&v, &w) in x.iter().zip(weights) {
            let l = level(inverse, v) as f32;
            with_x += w * v * l;
            with_level += w * l * l;
        }
        (with_x, with_level)
    };
    let mut chosen = -(limit as f32) / extreme;
    let (with_x, with_level) = sums(chosen);
    let mut scale = if with_level != 0.0 { with_x / with_level } else { 0.0 };
    let mut best = scale * with_x;
    for step in (-9..=9).filter(|&step| step != 0) {
        let inverse = -(limit as f32 + 0.1 * step as f32) / extreme;
        let (with_x, with_level) = sums(inverse);
        if with_level > 0.0 && with_x * with_x > best * with_level {
            chosen = inverse;
            scale = with_x / with_level;
            best = scale * with_x;
        }
    }
    (scale, x.map(|v| (level(chosen, v) + limit) as u8))
}

/// Levels from `-limit` to `limit - 1`, each moved in turn as long as that lowers the error, weighted by the squares of the values.
///
/// Gives the scale and the levels raised by `limit`.
pub(super) fn signed_by_moves<const N: usize>(x: &[f32; N], limit: i32) -> (f32, [u8; N]) {
    let extreme = extreme(x);
    if extreme.abs() < NOTHING {
        return (0.0, [0; N]);
    }
    let inverse = -(limit as f32) / extreme;
    let mut levels = x.map(|v| nearest(inverse * v).clamp(-limit, limit - 1));
    let (mut with_x, mut with_level) = (0.0f32, 0.0f32);
    for (&v, &l) in x.iter().zip(&levels) {
        let (w, l) = (v * v, l as f32);
        with_x += w * v * l;
        with_level += w * l * l;
    }
    for _ in 0..5 {
        let mut moved = false;
        for (&v, l) in x.iter().zip(&mut levels) {
            let (w, old) = (v * v, *l as f32);
            let mut x_without = with_x - w * v * old;
            if x_without > 0.0 {
                let mut level_without = with_level - w * old * old;
                let new = nearest(v * level_without / x_without).clamp(-limit, limit - 1);
                if new != *l {
                    x_without += w * v * new as f32;
                    level_without += w * new as f32 * new as f32;
                    if level_without > 0.0 && x_without * x_without * with_level > with_x * with_x * level_without {
                        (*l, with_x, with_level, moved) = (new, x_without, level_without, true);
                    }
                }
            }
        }
        if !moved {
            break;
        }
    }
    let scale = if with_level > 0.0 { with_x / with_level } else { 0.0 };
    (scale, levels.map(|l| (l + limit) as u8))
}

/// Levels from 0 to `top` for values that are not negative: nine scales are tried, then each level is moved as long as that helps.
pub(super) fn unsigned<const N: usize>(x: &[f32; N], weights: &[f32; N], top: i32) -> (f32, [u8; N]) {
    let most = x.iter().fold(0.0f32, |most, &v| if most > v { most } else { v });
    if most < NOTHING {
        return (0.0, [0; N]);
    }
    let error = |inverse: f32, highest: i32| {
        let scale = 1.0 / inverse;
        let mut sum = 0.0f32;
        for (&v, &w) in x.iter().zip(weights) {
            let rest = v - scale * nearest(inverse * v).min(highest) as f32;
            sum += w * rest * rest;
        }
        sum
    };
    let mut inverse = top as f32 / most;
    // The first scale puts the largest value on `top` by itself.
    let mut best = error(inverse, i32::MAX);
    for step in (-4..=4).filter(|&step| step != 0) {
        let tried = (0.1 * step as f32 + top as f32) / most;
        let error = error(tried, top);
        if error < best {
            (best, inverse) = (error, tried);
        }
    }
    let mut levels = x.map(|v| nearest(inverse * v).min(top));
    let (mut with_x, mut with_level) = (0.0f32, 0.0f32);
    for ((&v, &w), &l) in x.iter().zip(weights).zip(&levels) {
        with_x += w * v * l as f32;
        with_level += w * l as f32 * l as f32;
    }
    for _ in 0..5 {
        let mut moved = false;
        for ((&v, &w), l) in x.iter().zip(weights).zip(&mut levels) {
            let old = *l as f32;
            let (mut x_without, mut level_without) = (with_x - w * v * old, with_level - w * old * old);
            if x_without > 0.0 && level_without > 0.0 {
                let new = nearest(v * level_without / x_without).min(top);
                if new != *l {
                    x_without += w * v * new as f32;
                    level_without += w * new as f32 * new as f32;
                    if x_without * x_without * with_level > with_x * with_x * level_without {
                        (*l, with_x, with_level, moved) = (new, x_without, level_without, true);
                    }
                }
            }
        }
        if !moved {
            break;
        }
    }
    let scale = if with_level > 0.0 { with_x / with_level } else { 0.0 };
    (scale, levels.map(|l| l as u8))
}
