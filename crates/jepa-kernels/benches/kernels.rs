//! Rates of the kernels: `cargo bench -p jepa-kernels`.

#![allow(missing_docs, clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::Instant;

use jepa_kernels::{Act, Epilogue, F32Rows, Heads, Isa, Mask, Precision, Tokens, attention, layer_norm, linear};

fn main() {
    let mut state = 1u64;
    let mut noise = |n: usize| -> Vec<f32> {
        (0..n)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / 8_388_608.0 - 1.0
            })
            .collect()
    };
    for isa in Isa::all() {
        for (rows, inputs, outputs) in
            [(197, 384, 1536), (197, 1536, 384), (256, 1280, 5120), (2048, 1024, 4096), (2048, 4096, 1024)]
        {
            let (x, w, bias) = (noise(rows * inputs), noise(inputs * outputs), noise(outputs));
            let mut out = vec![0.0; rows * outputs];
            let weights = F32Rows { values: &w, inputs };
            for (name, act) in [("plain", None), ("gelu", Some(Act::GeluErf))] {
                let epilogue = Epilogue { bias: Some(&bias), act, ..Default::default() };
                let ms = best(|| linear(isa, Precision::Highest, &x, &weights, epilogue, &mut out));
                let flops = 2.0 * (rows * inputs * outputs) as f64;
                println!(
                    "{} linear {rows}x{inputs}x{outputs} {name}: {ms:.2} ms, {:.0} GF/s",
                    isa.name(),
                    flops / ms / 1e6
                );
            }
        }
        for (tokens, heads, head_dim) in [(197, 6, 64), (256, 16, 80), (2048, 16, 64)] {
            let width = heads * head_dim;
            let (qkv, mut out) = (noise(tokens * 3 * width), vec![0.0; tokens * width]);
            let part = |i: usize| Tokens { values: &qkv, stride: 3 * width, first: i * width };
            let size = Heads { batch: 1, tokens, heads, head_dim };
            let ms = best(|| {
                attention(isa, Precision::Highest, size, [part(0), part(1), part(2)], None, Mask::Full, &mut out)
            });
            let flops = 4.0 * (tokens * tokens * width) as f64;
            println!("{} attention {tokens}x{heads}x{head_dim}: {ms:.2} ms, {:.0} GF/s", isa.name(), flops / ms / 1e6);
        }
        let (x, g) = (noise(2048 * 1024), noise(1024));
        let mut out = vec![0.0; x.len()];
        let ms = best(|| layer_norm(isa, &x, &g, &g, 1e-6, &mut out));
        println!("{} layer_norm 2048x1024: {ms:.2} ms", isa.name());
        let mut values = noise(1 << 21);
        let ms = best(|| Act::GeluErf.apply(isa, &mut values));
        println!("{} gelu_erf 2M: {ms:.2} ms", isa.name());
    }
}

fn best(mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    best
}
