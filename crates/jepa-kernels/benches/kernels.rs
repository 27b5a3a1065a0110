//! Rates of the kernels, on one thread, for every instruction set of the machine: `cargo bench -p jepa-kernels [-- REGEX]`.
//!
//! Throughput is in products and sums for matrices (elements are flops), in values elsewhere.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench may panic")]

use std::time::Duration;

use criterion::{Criterion, Throughput};
use half::f16;
use jepa_kernels::{
    Act, Epilogue, F16Rows, F32Columns, F32Rows, Heads, Isa, Mask, Precision, Q8_0Rows, Tokens, WeightRows, attention,
    layer_norm, linear,
};

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    // With one thread nothing leaves the caller's.
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    for isa in Isa::all() {
        let mut bench = Bench { isa, criterion: &mut criterion };
        for size in [
            (1, 1024, 4096),
            (4, 1024, 4096),
            (8, 1024, 4096),
            (197, 384, 1536),
            (197, 1536, 384),
            (256, 1280, 5120),
            (2048, 1024, 4096),
            (2048, 4096, 1024),
        ] {
            linears(&mut bench, size);
        }
        for (tokens, heads, head_dim) in [(197, 6, 64), (256, 16, 80), (2048, 16, 64)] {
            attentions(&mut bench, Heads { batch: 1, tokens, heads, head_dim });
        }
        rows(&mut bench);
    }
    criterion.final_summary();
}

struct Bench<'a> {
    isa: Isa,
    criterion: &'a mut Criterion,
}

impl Bench<'_> {
    fn run(&mut self, name: &str, elements: usize, mut f: impl FnMut()) {
        let mut group = self.criterion.benchmark_group(self.isa.name());
        group.throughput(Throughput::Elements(elements as u64)).bench_function(name, |bencher| bencher.iter(&mut f));
        group.finish();
    }
}

fn noise(n: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Those that are computed differently.
fn precisions(isa: Isa) -> Vec<Precision> {
    let amx = (isa.name() == "amx").then_some(Precision::High);
    [Some(Precision::Highest), amx, Some(Precision::Medium)].into_iter().flatten().collect()
}

fn linears(bench: &mut Bench<'_>, (rows, inputs, outputs): (usize, usize, usize)) {
    let isa = bench.isa;
    let (x, w, bias) = (noise(rows * inputs), noise(inputs * outputs), noise(outputs));
    let halves: Vec<f16> = w.iter().map(|&v| f16::from_f32(v)).collect();
    // Any bytes are a q8_0 block, but for its scale.
    let mut bytes: Vec<u8> = w.chunks(32).flat_map(|c| (0..34).map(|i| (c[i % 32] * 127.0) as i8 as u8)).collect();
    bytes.chunks_mut(34).for_each(|block| block[..2].copy_from_slice(&f16::from_f32(0.01).to_le_bytes()));
    let mut out = vec![0.0; rows * outputs];
    let flops = 2 * rows * inputs * outputs;
    let forms: [(&str, &dyn WeightRows); 4] = [
        ("f32", &F32Rows { values: &w, inputs }),
        ("f16", &F16Rows { values: &halves, inputs }),
        ("q8_0", &Q8_0Rows { bytes: &bytes, inputs }),
        ("columns", &F32Columns { values: &w, outputs }),
    ];
    let plain = Epilogue { bias: Some(&bias), ..Default::default() };
    let gelu = Epilogue { act: Some(Act::GeluErf), ..plain };
    for precision in precisions(isa) {
        for (form, weights) in forms {
            for (name, epilogue) in [("bias", plain), ("gelu", gelu)] {
                bench.run(&format!("linear {rows}x{inputs}x{outputs} {form} {name} {precision:?}"), flops, || {
                    linear(isa, precision, &x, weights, epilogue, &mut out);
                });
            }
        }
    }
}

fn attentions(bench: &mut Bench<'_>, size: Heads) {
    let isa = bench.isa;
    let Heads { tokens, heads, head_dim, .. } = size;
    let width = heads * head_dim;
    let (qkv, mut out) = (noise(tokens * 3 * width), vec![0.0; tokens * width]);
    let part = |i: usize| Tokens { values: &qkv, stride: 3 * width, first: i * width };
    let flops = 4 * tokens * tokens * width;
    for precision in precisions(isa) {
        bench.run(&format!("attention {tokens}x{heads}x{head_dim} {precision:?}"), flops, || {
            attention(isa, precision, size, [part(0), part(1), part(2)], None, Mask::Full, &mut out);
        });
    }
}

fn rows(bench: &mut Bench<'_>) {
    let isa = bench.isa;
    for (rows, dim) in [(197, 384), (2048, 1024)] {
        let (x, g) = (noise(rows * dim), noise(dim));
        let mut out = vec![0.0; x.len()];
        bench.run(&format!("layer_norm {rows}x{dim}"), x.len(), || {
            layer_norm(isa, &x, &g, &g, 1e-6, &mut out);
        });
    }
    let values = noise(1 << 18);
    let mut out = values.clone();
    for act in [Act::GeluErf, Act::GeluTanh, Act::Silu] {
        bench.run(&format!("{act:?}"), values.len(), || {
            out.copy_from_slice(&values);
            act.apply(isa, &mut out);
        });
    }
}
