//! LayerNorm over rows.

use rayon::prelude::*;

use crate::isa::{Isa, compiled_for_each_isa};
use crate::vector::{mul_add, sum_of};

/// Values that one thread takes at a time, in whole rows: less is done before another thread wakes up.
const TASK: usize = 1 << 16;

/// Lanes of the running sums: independent chains that the compiler keeps in vector registers, enough to hide an addition's latency.
const LANES: usize = 64;

/// Normalises every row of `x` to mean 0 and variance 1, then multiplies by `gamma` and adds `beta`.
///
/// **Shapes** `x` and `out` `[rows, dim]`, `gamma` and `beta` `[dim]`. The mean first, then to twice its precision, so that a large one costs no
/// accuracy; the variance is the biased one.
///
/// # Panics
/// When the lengths do not fit together.
pub fn layer_norm(isa: Isa, x: &[f32], gamma: &[f32], beta: &[f32], eps: f32, out: &mut [f32]) {
    let dim = gamma.len();
    assert!(dim > 0 && beta.len() == dim && x.len().is_multiple_of(dim) && out.len() == x.len(), "layer_norm: lengths");
    if x.len() <= TASK || rayon::current_num_threads() == 1 {
        return rows(isa, x, gamma, beta, eps, out);
    }
    let task = TASK.div_ceil(dim) * dim;
    x.par_chunks(task).zip(out.par_chunks_mut(task)).for_each(|(x, out)| rows(isa, x, gamma, beta, eps, out));
}

compiled_for_each_isa!(fn rows(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32, out: &mut [f32]) = rows_body);

#[inline(always)]
fn rows_body<const SET: u8>(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32, out: &mut [f32]) {
    let dim = gamma.len();
    for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        let [sum] = sums(x, |v| [v]);
        let rough = sum / dim as f32;
        // What rounding left of the mean, which counts where it is large against the spread.
        let [rest, squares] = sums(x, |v| [v - rough, (v - rough) * (v - rough)]).map(|sum| sum / dim as f32);
        if !squares.is_finite() {
            // The squares are beyond f32: the row has values above 1e19, or some that are no numbers.
            in_f64(x, gamma, beta, eps, out);
            continue;
        }
        let variance = (squares - rest * rest).max(0.0);
        let scale = 1.0 / (variance + eps).sqrt();
        for (((out, &v), &g), &b) in out.iter_mut().zip(x).zip(gamma).zip(beta) {
            *out = mul_add::<SET>((v - rough - rest) * scale, g, b);
        }
    }
}

/// A row whose squares only f64 can hold. NaN when a value is none, or infinite.
#[cold]
fn in_f64(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32, out: &mut [f32]) {
    let dim = x.len() as f64;
    let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / dim;
    let variance = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / dim;
    let scale = 1.0 / (variance + f64::from(eps)).sqrt();
    for (((out, &v), &g), &b) in out.iter_mut().zip(x).zip(gamma).zip(beta) {
        *out = ((f64::from(v) - mean) * scale * f64::from(g) + f64::from(b)) as f32;
    }
}

/// Sums of `f` over a row in [`LANES`] chains.
#[inline(always)]
fn sums<const N: usize>(row: &[f32], f: impl Fn(f32) -> [f32; N]) -> [f32; N] {
    let (blocks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [[0.0f32; LANES]; N];
    for block in blocks {
        for i in 0..LANES {
            let terms = f(block[i]);
            for n in 0..N {
                lanes[n][i] += terms[n];
            }
        }
    }
    for (i, &v) in rest.iter().enumerate() {
        let terms = f(v);
        for n in 0..N {
            lanes[n][i] += terms[n];
        }
    }
    lanes.map(sum_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(x: &[f32], gamma: &[f32], beta: &[f32], eps: f64) -> Vec<f64> {
        let dim = gamma.len();
        let mut out = Vec::new();
        for row in x.chunks(dim) {
            let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / dim as f64;
            let variance = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / dim as f64;
            let normal = row.iter().map(|&v| (f64::from(v) - mean) / (variance + eps).sqrt());
            out.extend(normal.zip(gamma.iter().zip(beta)).map(|(v, (&g, &b))| v * f64::from(g) + f64::from(b)));
        }
        out
    }

    /// Neither the weights alone, which is what dividing by an infinite deviation leaves, nor numbers where there are none.
    #[test]
    fn rows_beyond_the_squares_of_f32_are_right_and_what_is_no_number_stays_none() {
        let (gamma, beta) = (vec![1.0; 70], vec![0.5; 70]);
        let row = |scale: f32| (0..70).map(|i| scale * (i as f32 - 20.0)).collect::<Vec<_>>();
        for isa in Isa::all() {
            let of = |x: &[f32]| {
                let mut out = vec![0.0; x.len()];
                layer_norm(isa, x, &gamma, &beta, 1e-6, &mut out);
                out
            };
            for scale in [1e18, 1e30, 4e36] {
                let wanted = plain(&row(scale), &gamma, &beta, 1e-6);
                let worst =
                    of(&row(scale)).iter().zip(&wanted).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max);
                assert!(worst < 1e-5, "{isa:?} {scale}: {worst}");
            }
            for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut x = row(1.0);
                x[3] = odd;
                assert!(of(&x).iter().all(|v| v.is_nan()), "{isa:?} {odd}");
            }
        }
    }

    proptest! {
        #[test]
        fn equals_the_plain_version(
            dim in 1usize..200, rows in 0usize..40, offset in -100.0f32..100.0, spread in 0.01f32..10.0, seed: u64,
        ) {
            let mut noise = crate::vector::tests::noise(seed);
            let x: Vec<f32> = (0..rows * dim).map(|_| offset + spread * noise()).collect();
            let (gamma, beta): (Vec<f32>, Vec<f32>) = (0..dim).map(|_| (noise(), noise())).unzip();
            let wanted = plain(&x, &gamma, &beta, 1e-6);
            for isa in Isa::all() {
                let mut out = vec![f32::NAN; x.len()];
                layer_norm(isa, &x, &gamma, &beta, 1e-6, &mut out);
                for (out, wanted) in out.iter().zip(&wanted) {
                    prop_assert!((f64::from(*out) - wanted).abs() <= 4e-6 * (1.0 + wanted.abs()), "{isa:?}: {out} {wanted}");
                }
            }
        }
    }
}
