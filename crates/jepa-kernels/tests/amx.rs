//! What AMX does that the other sets do not: values split into two bf16. Where the machine has none, its instructions are executed one by one.

#![allow(clippy::print_stdout, reason = "a test that says why it is skipped")]

use half::{bf16, f16};
use jepa_kernels::{
    Bf16Rows, Epilogue, F16Rows, F32Rows, Heads, Isa, Mask, Precision, Tokens, WeightRows, attention, linear,
};

#[allow(dead_code, reason = "shared by several tests")]
mod emulated;
#[allow(dead_code, reason = "shared by several tests")]
mod plain;
use plain::noise;

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

fn product(isa: Isa, precision: Precision, x: &[f32], weights: &dyn WeightRows) -> Vec<f32> {
    let mut out = vec![f32::NAN; x.len() / weights.inputs() * weights.outputs()];
    linear(isa, precision, x, weights, Epilogue::default(), &mut out);
    out
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
    for (rows, inputs, outputs, spread) in [(33, 1408, 48, 1.0), (7, 588, 176, 300.0), (40, 6144, 33, 1.0)] {
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
            println!("{rows}x{inputs}x{outputs}: highest {highest:?}, high {high:?}, medium {medium:?}");
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
        println!("{head_dim}: high {high:?}, medium {medium:?}");
    }
}
