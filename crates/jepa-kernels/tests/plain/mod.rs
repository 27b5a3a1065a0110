//! Plain versions in f64, how far a kernel may be from them, and what several tests run.

use jepa_kernels::{Act, Epilogue, Isa, Precision, WeightRows, linear};

/// Seeded values between -1 and 1.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

/// The error function, to 1e-15: its series for small arguments, the continued fraction of its complement for large ones.
pub(crate) fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let fraction = (1..200).rev().fold(x, |tail, n| x + f64::from(n) / 2.0 / tail);
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

pub(crate) fn act(act: Act, x: f64) -> f64 {
    match act {
        Act::GeluErf => x / 2.0 * erfc(-x / std::f64::consts::SQRT_2),
        Act::GeluTanh => x / (1.0 + (-2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).exp()),
        Act::Silu => x / (1.0 + (-x).exp()),
    }
}

/// Every value within `bar` of the largest of its row.
pub(crate) fn rows_close(found: &[f32], wanted: &[f64], width: usize, bar: f64) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.chunks(width).zip(wanted.chunks(width)) {
        let scale = wanted.iter().fold(1.0f64, |most, v| most.max(v.abs()));
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((f64::from(*found) - wanted).abs() <= bar * scale, "{found} {wanted} of {scale}");
        }
    }
}

/// `x · Wᵀ` on a kernel, and nothing else.
pub(crate) fn product(isa: Isa, precision: Precision, x: &[f32], weights: &dyn WeightRows) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() / weights.inputs() * weights.outputs()];
    linear(isa, precision, x, weights, Epilogue::default(), &mut out);
    out
}
