//! Linear layers against sums in f64.

use std::ops::Range;

use half::{bf16, f16};
use jepa_kernels::{
    Act, Bf16Rows, Epilogue, F16Rows, F32Columns, F32Rows, Isa, Precision, Q8_0Rows, Stored, WeightRows, linear,
};
use proptest::prelude::*;

#[allow(dead_code, reason = "shared by several tests")]
mod emulated;
#[allow(dead_code, reason = "shared by several tests")]
mod plain;
use emulated::sets;
use plain::{act, noise, product, rows_close};

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

/// A matrix of which the kernels know nothing but its rows, as an unknown quantised type.
struct ByRow<'a>(F32Rows<'a>);

impl WeightRows for ByRow<'_> {
    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        assert!(inputs.start.is_multiple_of(256), "blocks of 256 are never cut");
        self.0.row(output, inputs, out);
    }
}

/// q8_0 blocks of a matrix, and the values that they stand for.
fn quantised(w: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    for block in w.chunks(32) {
        let scale = f16::from_f32(block.iter().fold(0.0f32, |most, v| most.max(v.abs())) / 127.0);
        bytes.extend(scale.to_le_bytes());
        for v in block {
            let q = (v / scale.to_f32()).round().clamp(-128.0, 127.0) as i8;
            bytes.push(q.cast_unsigned());
            values.push(f32::from(q) * scale.to_f32());
        }
    }
    (bytes, values)
}

/// What `High` may be off by, relative to the root of the number of products: three times 2^-18 of a split one.
fn high_bar(isa: Isa) -> f64 {
    if isa.name() == "amx" { 1.5e-5 } else { 2e-6 }
}

/// All forms of a weight, on all instruction sets. `spread` is the size of some channels of `x`, as real models have.
fn check(rows: usize, inputs: usize, outputs: usize, seed: u64, choice: usize, spread: f32) {
    let mut random = noise(seed);
    let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
    let (mut x, start) = (values(rows * inputs), values(rows * outputs));
    x.iter_mut().skip(inputs / 3).step_by(inputs).for_each(|v| *v *= spread);
    let (bias, scale) = (values(outputs), values(outputs));
    let raw = values(outputs * inputs);
    let epilogue = match choice {
        0 => Epilogue::default(),
        1 => Epilogue { bias: Some(&bias), ..Default::default() },
        2 => Epilogue { bias: Some(&bias), act: Some(Act::GeluErf), ..Default::default() },
        3 => Epilogue { bias: Some(&bias), add: true, ..Default::default() },
        4 => Epilogue { bias: Some(&bias), scale: Some(&scale), add: true, ..Default::default() },
        _ => Epilogue { act: Some(Act::Silu), ..Default::default() },
    };
    // Rows that are read where they lie, and others. Of few rows the sums of these run in other orders.
    let compare = |w: &[f32], forms: &[&dyn WeightRows], others: &[&dyn WeightRows]| {
        let wanted = by_hand(&x, w, inputs, &epilogue, &start);
        for isa in sets() {
            let (mut results, mut high) = (Vec::new(), Vec::new());
            for form in forms.iter().chain(others) {
                let mut out = start.clone();
                linear(isa, Precision::Highest, &x, *form, epilogue, &mut out);
                rows_close(&out, &wanted, outputs, 2e-6 * (inputs as f64).sqrt());
                results.push(out);
                let mut out = start.clone();
                linear(isa, Precision::High, &x, *form, epilogue, &mut out);
                rows_close(&out, &wanted, outputs, high_bar(isa) * (inputs as f64).sqrt());
                high.push(out);
            }
            for results in [results, high] {
                let same = &results[..if rows > 8 { results.len() } else { forms.len() }];
                assert!(same.windows(2).all(|pair| pair[0] == pair[1]), "{isa:?}: the form of a weight changes no bit");
            }
        }
    };
    let halves: Vec<f16> = raw.iter().map(|&w| f16::from_f32(w)).collect();
    let w: Vec<f32> = halves.iter().map(|w| w.to_f32()).collect();
    let columns: Vec<f32> = (0..inputs * outputs).map(|i| w[i % outputs * inputs + i / outputs]).collect();
    let whole = F32Rows { values: &w, inputs };
    compare(
        &w,
        &[&whole, &F16Rows { values: &halves, inputs }],
        &[&F32Columns { values: &columns, outputs }, &ByRow(whole)],
    );
    let brains: Vec<bf16> = raw.iter().map(|&w| bf16::from_f32(w)).collect();
    let w: Vec<f32> = brains.iter().map(|w| w.to_f32()).collect();
    compare(&w, &[&F32Rows { values: &w, inputs }, &Bf16Rows { values: &brains, inputs }], &[]);
    if inputs.is_multiple_of(32) {
        let (bytes, w) = quantised(&raw);
        compare(&w, &[&F32Rows { values: &w, inputs }, &Q8_0Rows { bytes: &bytes, inputs }], &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn equals_the_plain_sum(rows in 0usize..20, inputs in 1usize..100, outputs in 1usize..80, seed: u64, choice in 0usize..6) {
        check(rows, inputs, outputs, seed, choice, 1.0);
    }
}

#[test]
fn odd_sizes_of_real_models_equal_the_plain_sum() {
    let sizes = [
        (1, 1408, 176),
        (7, 588, 384),
        (197, 88, 257),
        (257, 176, 88),
        (3, 6144, 33),
        (13, 1025, 129),
        (1, 6144, 588),
        (7, 1408, 176),
        (197, 588, 88),
        (257, 1408, 48),
        (29, 96, 1408),
        (15, 1056, 176),
    ];
    for (i, (rows, inputs, outputs)) in sizes.into_iter().enumerate() {
        check(rows, inputs, outputs, i as u64 + 1, i % 6, 300.0);
    }
}

/// Bf16 products are those of the rounded operands, whatever the weights are stored in, and `High` is no less than f32.
#[test]
fn precisions_are_what_they_say() {
    for (rows, inputs, outputs) in [(9, 33, 17), (13, 588, 48), (197, 1440, 37), (30, 6144, 20)] {
        let mut random = noise(inputs as u64);
        let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
        let (x, raw, bias) = (values(rows * inputs), values(inputs * outputs), values(outputs));
        let halves: Vec<f16> = raw.iter().map(|&w| f16::from_f32(w)).collect();
        let w: Vec<f32> = halves.iter().map(|w| w.to_f32()).collect();
        let columns: Vec<f32> = (0..inputs * outputs).map(|i| w[i % outputs * inputs + i / outputs]).collect();
        let epilogue = Epilogue { bias: Some(&bias), ..Default::default() };
        let round = |v: &[f32]| v.iter().map(|&v| bf16::from_f32(v).to_f32()).collect::<Vec<f32>>();
        let rounded = by_hand(&round(&x), &round(&w), inputs, &epilogue, &[]);
        let whole = F32Rows { values: &w, inputs };
        let forms: [&dyn WeightRows; 4] =
            [&whole, &F16Rows { values: &halves, inputs }, &F32Columns { values: &columns, outputs }, &ByRow(whole)];
        for isa in sets() {
            let run = |precision, form: &dyn WeightRows| {
                let mut out = vec![f32::NAN; rows * outputs];
                linear(isa, precision, &x, form, epilogue, &mut out);
                out
            };
            let highest = run(Precision::Highest, &whole);
            let high = run(Precision::High, &whole);
            assert_eq!(highest == high, isa.name() != "amx", "{isa:?}: split on AMX alone");
            for form in forms {
                let medium = run(Precision::Medium, form);
                if multiplies_bf16(isa) {
                    rows_close(&medium, &rounded, outputs, 2e-6 * (inputs as f64).sqrt());
                    assert_ne!(medium, highest, "bf16 is not f32");
                } else {
                    assert_eq!(medium, highest);
                }
            }
        }
    }
}

/// Rows that are too few for laying out the weights are multiplied in f32 at every precision.
#[test]
fn few_rows_are_f32_where_weights_are_read_in_place() {
    for (rows, inputs, outputs) in [(1, 1024, 33), (2, 588, 48), (3, 15, 7), (4, 96, 64), (5, 1100, 19)] {
        let mut random = noise(rows as u64);
        let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
        let (x, w) = (values(rows * inputs), values(inputs * outputs));
        let form = F32Rows { values: &w, inputs };
        let columns: Vec<f32> = (0..inputs * outputs).map(|i| w[i % outputs * inputs + i / outputs]).collect();
        let by_column = F32Columns { values: &columns, outputs };
        let wanted = by_hand(&x, &w, inputs, &Epilogue::default(), &[]);
        for isa in sets() {
            let run = |precision, form: &dyn WeightRows| {
                let mut out = vec![f32::NAN; rows * outputs];
                linear(isa, precision, &x, form, Epilogue::default(), &mut out);
                out
            };
            let highest = run(Precision::Highest, &form);
            rows_close(&highest, &wanted, outputs, 3e-7 * (inputs as f64).sqrt());
            assert_eq!(highest, run(Precision::High, &form));
            assert_eq!(highest, run(Precision::Medium, &form));
            let highest = run(Precision::Highest, &by_column);
            rows_close(&highest, &wanted, outputs, 3e-7 * (inputs as f64).sqrt());
            assert_eq!(highest, run(Precision::Medium, &by_column));
            assert_eq!(highest != run(Precision::Medium, &ByRow(form)), multiplies_bf16(isa), "{isa:?} {rows}");
        }
    }
}

fn multiplies_bf16(isa: Isa) -> bool {
    #[cfg(target_arch = "x86_64")]
    return ["avx512", "amx"].contains(&isa.name()) && is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    isa.name().is_empty()
}

/// A form that claims more than it holds is refused, not read past its end.
#[test]
fn memory_that_is_too_short_is_not_read() {
    struct Liar<'a>(&'a [f32]);
    impl WeightRows for Liar<'_> {
        fn outputs(&self) -> usize {
            64
        }

        fn inputs(&self) -> usize {
            64
        }

        fn row(&self, _: usize, _: Range<usize>, out: &mut [f32]) {
            out.fill(1.0);
        }

        fn stored(&self) -> Stored<'_> {
            Stored::F32(self.0)
        }
    }
    let values = [2.0; 20 * 64];
    for isa in sets() {
        let mut out = [0.0; 64];
        linear(isa, Precision::Highest, &[1.0; 64], &Liar(&values), Epilogue::default(), &mut out);
        // Its second panel has only 4 rows of memory: there, and behind, `row` is asked.
        assert!(out[16..].iter().all(|&v| v == 64.0), "{isa:?}");
    }
}

/// One thread or many, the sums are the same, however rows and outputs are dealt out.
#[test]
fn the_number_of_threads_changes_no_bit() {
    for (rows, inputs, outputs) in [(50, 700, 900), (700, 90, 40), (1, 1100, 33)] {
        let mut random = noise(9);
        let (x, w): (Vec<f32>, Vec<f32>) =
            ((0..rows * inputs).map(|_| random()).collect(), (0..inputs * outputs).map(|_| random()).collect());
        for isa in sets() {
            let run = |threads: usize, precision| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut out = vec![0.0; rows * outputs];
                pool.install(|| {
                    linear(isa, precision, &x, &F32Rows { values: &w, inputs }, Epilogue::default(), &mut out);
                });
                out
            };
            for precision in [Precision::Highest, Precision::High, Precision::Medium] {
                assert_eq!(run(1, precision), run(3, precision));
                assert_eq!(run(1, precision), run(8, precision));
            }
        }
    }
}

/// Blocks of outputs are tasks of their own, which share what is made of the rows.
#[test]
fn an_output_does_not_depend_on_how_many_there_are() {
    let (rows, inputs, outputs) = (33, 1100, 1600);
    let mut random = noise(5);
    let mut values = |n: usize| (0..n).map(|_| random()).collect::<Vec<f32>>();
    let (x, w) = (values(rows * inputs), values(outputs * inputs));
    for isa in sets() {
        for precision in [Precision::Highest, Precision::High, Precision::Medium] {
            let of = |w: &[f32]| product(isa, precision, &x, &F32Rows { values: w, inputs });
            let all = of(&w);
            for (part, w) in w.chunks(320 * inputs).enumerate() {
                for (all, few) in all.chunks(outputs).zip(of(w).chunks(320)) {
                    assert_eq!(&all[part * 320..][..320], few, "{isa:?} {precision:?}");
                }
            }
        }
    }
}
