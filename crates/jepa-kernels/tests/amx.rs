//! What AMX does that the other sets do not: values split into two bf16. Where the machine has none, its instructions are executed one by one.

#![allow(clippy::print_stdout, reason = "a test that says why it is skipped")]

use half::{bf16, f16};
use jepa_kernels::{Bf16Rows, F16Rows, F32Rows, Heads, Isa, Mask, Precision, Tokens, WeightRows, attention};

#[allow(dead_code, reason = "shared by several tests")]
mod emulated;
#[allow(dead_code, reason = "shared by several tests")]
mod plain;
use plain::{noise, product};

/// AMX, or a word on why not.
fn amx(test: &str) -> Option<Isa> {
    let amx = emulated::amx();
    if amx.is_none() {
        println!("skipped: {test}: {}", emulated::WITHOUT);
    }
    amx
}

/// Roughly normal values, of variance 1.
fn normal(seed: u64, n: usize) -> Vec<f32> {
    let mut random = noise(seed);
    (0..n).map(|_| (0..12).map(|_| random() / 2.0).sum::<f32>()).collect()
}

/// Root mean square and largest error, both relative to the root mean square of what is wanted.
fn errors(found: &[f32], wanted: &[f64]) -> (f64, f64) {
    let size = (wanted.iter().map(|v| v * v).sum::<f64>() / wanted.len() as f64).sqrt();
    let off: Vec<f64> = found.iter().zip(wanted).map(|(&f, w)| (f64::from(f) - w).abs() / size).collect();
    ((off.iter().map(|v| v * v).sum::<f64>() / off.len() as f64).sqrt(), off.into_iter().fold(0.0, f64::max))
}

/// Fails without either of the two small products: each is worth a thousandth of the result.
#[test]
fn split_products_are_nearly_those_of_f32() {
    let Some(isa) = amx("split_products_are_nearly_those_of_f32") else { return };
    for (rows, inputs, outputs, spread) in [(33, 1408, 48, 1.0), (9, 588, 176, 300.0), (40, 6144, 33, 1.0)] {
        let (mut x, w) = (normal(1, rows * inputs), normal(2, inputs * outputs));
        x.iter_mut().skip(inputs / 3).step_by(inputs).for_each(|v| *v *= spread);
        let halves: Vec<f16> = w.iter().map(|&v| f16::from_f32(v)).collect();
        let brains: Vec<bf16> = w.iter().map(|&v| bf16::from_f32(v)).collect();
        let forms: [&dyn WeightRows; 3] = [
            &F32Rows { values: &w, inputs },
            &F16Rows { values: &halves, inputs },
            &Bf16Rows { values: &brains, inputs },
        ];
        for form in forms {
            let mut row = vec![0.0; inputs];
            let mut wanted = vec![0.0f64; rows * outputs];
            for j in 0..outputs {
                form.row(j, 0..inputs, &mut row);
                for (i, x) in x.chunks(inputs).enumerate() {
                    wanted[i * outputs + j] = x.iter().zip(&row).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
                }
            }
            let of = |precision| errors(&product(isa, precision, &x, form), &wanted);
            let (highest, high, medium) = (of(Precision::Highest), of(Precision::High), of(Precision::Medium));
            let sizes = format!("{rows}x{inputs}x{outputs}: {highest:?} {high:?} {medium:?}");
            assert!(high.0 < 6e-6 && high.1 < 5e-5 && high.0 < 13.0 * highest.0, "{sizes}");
            assert!(medium.0 > 1e-3 && medium.0 < 3e-3, "{sizes}");
        }
    }
}

#[test]
fn split_attention_is_nearly_that_of_f32() {
    let Some(isa) = amx("split_attention_is_nearly_that_of_f32") else { return };
    for head_dim in [64, 88] {
        let size = Heads { batch: 1, tokens: 197, heads: 2, head_dim };
        let width = 2 * head_dim;
        let qkv = normal(3, 197 * 3 * width);
        let part = |i: usize| Tokens { values: &qkv, stride: 3 * width, first: i * width };
        let run = |precision| {
            let mut out = vec![f32::NAN; 197 * width];
            attention(isa, precision, size, [part(0), part(1), part(2)], None, Mask::Full, &mut out);
            out
        };
        let highest: Vec<f64> = run(Precision::Highest).into_iter().map(f64::from).collect();
        let (high, medium) = (errors(&run(Precision::High), &highest), errors(&run(Precision::Medium), &highest));
        assert!(high.0 < 9e-6 && high.1 < 1e-4, "{head_dim}: {high:?}");
        assert!(medium.0 > 1e-3 && medium.0 < 5e-3, "{head_dim}: {medium:?}");
    }
}

/// Its 11 bits are in two times 8, and its range is inside that of bf16, denormals included.
#[test]
fn every_f16_is_exact_when_split() {
    let Some(isa) = amx("every_f16_is_exact_when_split") else { return };
    let finite: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|v| v.is_finite()).collect();
    let identity: Vec<f32> = (0..32 * 32).map(|i| if i % 33 == 0 { 1.0 } else { 0.0 }).collect();
    let out = product(isa, Precision::High, &identity, &F16Rows { values: &finite, inputs: 32 });
    for (i, value) in finite.iter().enumerate() {
        assert_eq!(out[i % 32 * (finite.len() / 32) + i / 32], value.to_f32());
    }
}

/// What is finite in f32 is finite, up to the largest value, and what is not is not.
#[test]
fn what_is_not_finite_stays_so_and_what_is_finite_too() {
    let Some(isa) = amx("what_is_not_finite_stays_so_and_what_is_finite_too") else { return };
    let times = |precision, x: f32, w: f32| {
        // Fewer rows would be multiplied in f32.
        let (mut rows, mut weights) = ([0.0; 9 * 40], [0.0; 3 * 40]);
        (rows[8 * 40 + 33], weights[40 + 33]) = (x, w);
        let split = product(isa, precision, &rows, &F32Rows { values: &weights, inputs: 40 });
        let brains: Vec<bf16> = weights.iter().map(|&w| bf16::from_f32(w)).collect();
        let exact = brains[73].to_f32() == w || w.is_nan();
        let plain = product(isa, precision, &rows, &Bf16Rows { values: &brains, inputs: 40 });
        if exact {
            assert_eq!(split[8 * 3 + 1].is_finite(), plain[8 * 3 + 1].is_finite(), "{x} {w}");
        }
        split[8 * 3 + 1]
    };
    for (x, w) in [(f32::MAX, 0.5), (0.25, f32::MAX), (-f32::MAX, 0.37), (3.395e38, -1.0), (1e30, 1e8)] {
        let found = times(Precision::High, x, w);
        assert!((found / (x * w) - 1.0).abs() < 2e-5, "{x} {w}: {found}");
    }
    let infinite = f32::INFINITY;
    for (x, w) in [(infinite, 1.0), (-infinite, 1.01), (2.0, infinite), (infinite, -infinite)] {
        assert_eq!(times(Precision::High, x, w), x * w);
    }
    for (x, w) in [(f32::NAN, 1.0), (1.0, f32::NAN), (infinite, 0.0), (0.0, infinite)] {
        assert!(times(Precision::High, x, w).is_nan(), "{x} {w}");
        assert!(times(Precision::Medium, x, w).is_nan(), "{x} {w}");
    }
    // Too large for f32, of which the small products may be the one infinity and the large one the other.
    assert!(!times(Precision::High, 1e30, 1e30).is_finite());
    // As bf16 rounds.
    assert_eq!(times(Precision::Medium, f32::MAX, 0.5), infinite);
}

/// Shapes that a thread keeps would have the kernel save its tiles at every switch; and `Highest` needs none.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn tiles_are_used_where_bf16_is_multiplied_and_given_back() {
    let Some(isa) = amx("tiles_are_used_where_bf16_is_multiplied_and_given_back") else { return };
    if Isa::all().contains(&isa) {
        return println!("skipped: the processor does not count its products");
    }
    let (x, w) = (normal(1, 9 * 96), normal(2, 96 * 48));
    // Steps of 32 inputs, 3 panels of 16 outputs, rows that fit a tile; all three products of split values but that of two rests.
    for (precision, products) in [(Precision::Highest, 0), (Precision::Medium, 3 * 3), (Precision::High, 3 * 3 * 3)] {
        let before = emulated::machine::multiplied();
        product(isa, precision, &x, &F32Rows { values: &w, inputs: 96 });
        assert_eq!(emulated::machine::multiplied() - before, products, "{precision:?}");
        assert!(emulated::machine::given_back());
    }
    let brains: Vec<bf16> = w.iter().map(|&v| bf16::from_f32(v)).collect();
    let before = emulated::machine::multiplied();
    product(isa, Precision::High, &x, &Bf16Rows { values: &brains, inputs: 96 });
    assert_eq!(emulated::machine::multiplied() - before, 3 * 3 * 2, "bf16 weights leave nothing to multiply");
}
