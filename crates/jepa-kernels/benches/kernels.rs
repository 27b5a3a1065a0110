//! Rates of the kernels, on one thread: `cargo bench -p jepa-kernels [-- WORD…]`, where every word must be part of a line's name.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its figures")]

use std::time::Instant;

use half::f16;
use jepa_kernels::{
    Act, Epilogue, F16Rows, F32Columns, F32Rows, Heads, Isa, Mask, Precision, Q8_0Rows, Tokens, WeightRows, attention,
    layer_norm, linear,
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for isa in Isa::all() {
            let bench = Bench { isa, words: &words };
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
                linears(&bench, size);
            }
            for (tokens, heads, head_dim) in [(197, 6, 64), (256, 16, 80), (2048, 16, 64)] {
                attentions(&bench, Heads { batch: 1, tokens, heads, head_dim });
            }
            rows(&bench);
        }
    });
}

struct Bench<'a> {
    isa: Isa,
    words: &'a [String],
}

impl Bench<'_> {
    /// The median and the best of some runs, if the name is asked for.
    fn run(&self, name: &str, flops: f64, mut f: impl FnMut()) {
        let name = format!("{} {name}", self.isa.name());
        if !self.words.iter().all(|word| name.contains(word.as_str())) {
            return;
        }
        f();
        let mut times = [0.0; 9];
        for time in &mut times {
            let start = Instant::now();
            f();
            *time = start.elapsed().as_secs_f64();
        }
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[times.len() / 2], times[0]);
        println!(
            "{name}: {:.3} ms, {:.0} GF/s; best {:.3} ms, {:.0} GF/s",
            median * 1e3,
            flops / median / 1e9,
            best * 1e3,
            flops / best / 1e9
        );
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

fn linears(bench: &Bench<'_>, (rows, inputs, outputs): (usize, usize, usize)) {
    let (x, w, bias) = (noise(rows * inputs), noise(inputs * outputs), noise(outputs));
    let halves: Vec<f16> = w.iter().map(|&v| f16::from_f32(v)).collect();
    // Any bytes are a q8_0 block, but for its scale.
    let mut bytes: Vec<u8> = w.chunks(32).flat_map(|c| (0..34).map(|i| (c[i % 32] * 127.0) as i8 as u8)).collect();
    bytes.chunks_mut(34).for_each(|block| block[..2].copy_from_slice(&f16::from_f32(0.01).to_le_bytes()));
    let mut out = vec![0.0; rows * outputs];
    let flops = 2.0 * (rows * inputs * outputs) as f64;
    let forms: [(&str, &dyn WeightRows); 4] = [
        ("f32", &F32Rows { values: &w, inputs }),
        ("f16", &F16Rows { values: &halves, inputs }),
        ("q8_0", &Q8_0Rows { bytes: &bytes, inputs }),
        ("columns", &F32Columns { values: &w, outputs }),
    ];
    let plain = Epilogue { bias: Some(&bias), ..Default::default() };
    let gelu = Epilogue { act: Some(Act::GeluErf), ..plain };
    for precision in precisions(bench.isa) {
        for (form, weights) in forms {
            for (name, epilogue) in [("bias", plain), ("gelu", gelu)] {
                bench.run(&format!("linear {rows}x{inputs}x{outputs} {form} {name} {precision:?}"), flops, || {
                    linear(bench.isa, precision, &x, weights, epilogue, &mut out);
                });
            }
        }
    }
}

fn attentions(bench: &Bench<'_>, size: Heads) {
    let Heads { tokens, heads, head_dim, .. } = size;
    let width = heads * head_dim;
    let (qkv, mut out) = (noise(tokens * 3 * width), vec![0.0; tokens * width]);
    let part = |i: usize| Tokens { values: &qkv, stride: 3 * width, first: i * width };
    let flops = 4.0 * (tokens * tokens * width) as f64;
    for precision in precisions(bench.isa) {
        bench.run(&format!("attention {tokens}x{heads}x{head_dim} {precision:?}"), flops, || {
            attention(bench.isa, precision, size, [part(0), part(1), part(2)], None, Mask::Full, &mut out);
        });
    }
}

fn rows(bench: &Bench<'_>) {
    for (rows, dim) in [(197, 384), (2048, 1024)] {
        let (x, g) = (noise(rows * dim), noise(dim));
        let mut out = vec![0.0; x.len()];
        bench.run(&format!("layer_norm {rows}x{dim}"), 8.0 * x.len() as f64, || {
            layer_norm(bench.isa, &x, &g, &g, 1e-6, &mut out);
        });
    }
    let values = noise(1 << 18);
    let mut out = values.clone();
    for act in [Act::GeluErf, Act::GeluTanh, Act::Silu] {
        bench.run(&format!("{act:?}"), values.len() as f64, || {
            out.copy_from_slice(&values);
            act.apply(bench.isa, &mut out);
        });
    }
}
