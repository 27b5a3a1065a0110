//! Linear layers against sums in f64.

use half::f16;
use jepa_kernels::{Act, Epilogue, F16Rows, F32Columns, F32Rows, Isa, Precision, WeightRows, linear};
use proptest::prelude::*;

mod plain;
use plain::{act, noise, rows_close};

/// `act(x wᵀ + bias)`, or `start + scale · (x wᵀ + bias)`.
fn by_hand(x: &[f32], w: &[f32], inputs: usize, epilogue: &Epilogue<'_>, start: &[f32]) -> Vec<f64> {
    let outputs = w.len() / inputs;
    let mut out = Vec::new();
    for (i, x) in x.chunks(inputs).enumerate() {
        for (j, w) in w.chunks(inputs).enumerate() {
            let mut sum: f64 = x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum();
            sum += epilogue.bias.map_or(0.0, |bias| f64::from(bias[j]));
            sum = epilogue.act.map_or(sum, |a| act(a, sum));
            sum *= epilogue.scale.map_or(1.0, |scale| f64::from(scale[j]));
            out.push(if epilogue.add { f64::from(start[i * outputs + j]) + sum } else { sum });
        }
    }
    out
}

fn check(rows: usize, inputs: usize, outputs: usize, seed: u64, choice: usize) {
    let mut random = noise(seed);
    let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
    let (x, start) = (values(rows * inputs), values(rows * outputs));
    let (bias, scale) = (values(outputs), values(outputs));
    let halves: Vec<f16> = values(outputs * inputs).into_iter().map(f16::from_f32).collect();
    let w: Vec<f32> = halves.iter().map(|w| w.to_f32()).collect();
    let columns: Vec<f32> = (0..inputs * outputs).map(|i| w[i % outputs * inputs + i / outputs]).collect();
    let epilogue = match choice {
        0 => Epilogue::default(),
        1 => Epilogue { bias: Some(&bias), ..Default::default() },
        2 => Epilogue { bias: Some(&bias), act: Some(Act::GeluErf), ..Default::default() },
        3 => Epilogue { bias: Some(&bias), add: true, ..Default::default() },
        4 => Epilogue { bias: Some(&bias), scale: Some(&scale), add: true, ..Default::default() },
        _ => Epilogue { act: Some(Act::Silu), ..Default::default() },
    };
    let wanted = by_hand(&x, &w, inputs, &epilogue, &start);
    let forms: [&dyn WeightRows; 3] = [
        &F32Rows { values: &w, inputs },
        &F16Rows { values: &halves, inputs },
        &F32Columns { values: &columns, outputs },
    ];
    for isa in Isa::all() {
        let mut results = Vec::new();
        for form in forms {
            let mut out = start.clone();
            linear(isa, Precision::Highest, &x, form, epilogue, &mut out);
            rows_close(&out, &wanted, outputs, 2e-6 * (inputs as f64).sqrt());
            results.push(out);
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{isa:?}: the form of a weight changes no bit");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn equals_the_plain_sum(rows in 0usize..20, inputs in 1usize..100, outputs in 1usize..80, seed: u64, choice in 0usize..6) {
        check(rows, inputs, outputs, seed, choice);
    }
}

#[test]
fn odd_sizes_of_real_models_equal_the_plain_sum() {
    for (i, (rows, inputs, outputs)) in
        [(1, 1408, 176), (7, 588, 384), (197, 88, 257), (257, 176, 88), (3, 6144, 33), (13, 1025, 129)]
            .into_iter()
            .enumerate()
    {
        check(rows, inputs, outputs, i as u64 + 1, i);
    }
}

/// One thread or many, the sums are the same.
#[test]
fn the_number_of_threads_changes_no_bit() {
    let (rows, inputs, outputs) = (50, 700, 900);
    let mut random = noise(9);
    let (x, w): (Vec<f32>, Vec<f32>) =
        ((0..rows * inputs).map(|_| random()).collect(), (0..inputs * outputs).map(|_| random()).collect());
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut out = vec![0.0; rows * outputs];
        pool.install(|| {
            let isa = *Isa::all().last().unwrap();
            linear(isa, Precision::Highest, &x, &F32Rows { values: &w, inputs }, Epilogue::default(), &mut out);
        });
        out
    };
    assert_eq!(run(1), run(3));
    assert_eq!(run(1), run(8));
}
