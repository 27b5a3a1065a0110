//! Attention against a softmax in f64.

use jepa_kernels::{Heads, Mask, Precision, Tokens, Turns, attention};
use proptest::prelude::*;

#[allow(dead_code, reason = "shared by several tests")]
mod emulated;
#[allow(dead_code, reason = "shared by several tests")]
mod plain;
use emulated::sets;
use plain::{noise, rows_close};

fn turned(x: &[f32], turns: Option<&Turns<'_>>, row: usize) -> Vec<f64> {
    let mut out: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    if let Some(turns) = turns {
        for lane in 0..turns.lanes {
            let other = if lane % 2 == 0 { -f64::from(x[lane + 1]) } else { f64::from(x[lane - 1]) };
            let (cos, sin) = (turns.cos[row * turns.lanes + lane], turns.sin[row * turns.lanes + lane]);
            out[lane] = f64::from(x[lane]) * f64::from(cos) + other * f64::from(sin);
        }
    }
    out
}

fn by_hand(size: Heads, qkv: &[f32], turns: Option<&Turns<'_>>, mask: Mask<'_>) -> Vec<f64> {
    let Heads { batch, tokens, heads, head_dim } = size;
    let width = heads * head_dim;
    let mut out = vec![0.0; batch * tokens * width];
    for b in 0..batch {
        for h in 0..heads {
            let part = |i: usize, t: usize| &qkv[((b * tokens + t) * 3 + i) * width + h * head_dim..][..head_dim];
            let row = |t: usize| match turns {
                Some(turns) if turns.cos.len() > tokens * turns.lanes => b * tokens + t,
                _ => t,
            };
            for q in 0..tokens {
                let keys = match mask {
                    Mask::Leading { prefix, seen } if q >= prefix => prefix..prefix + seen[q - prefix],
                    _ => 0..tokens,
                };
                let query = turned(part(0, q), turns, row(q));
                let scores: Vec<f64> = keys
                    .clone()
                    .map(|k| {
                        let key = turned(part(1, k), turns, row(k));
                        query.iter().zip(&key).map(|(a, b)| a * b).sum::<f64>() / (head_dim as f64).sqrt()
                    })
                    .collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|s| (s - most).exp()).sum();
                for (k, s) in keys.zip(&scores) {
                    for (lane, &v) in part(2, k).iter().enumerate() {
                        out[(b * tokens + q) * width + h * head_dim + lane] += (s - most).exp() / sum * f64::from(v);
                    }
                }
            }
        }
    }
    out
}

fn check(size: Heads, spread: f32, seed: u64, with_turns: usize, mask: Mask<'_>) {
    let Heads { batch, tokens, heads, head_dim } = size;
    let width = heads * head_dim;
    let mut random = noise(seed);
    let qkv: Vec<f32> = (0..batch * tokens * 3 * width).map(|_| spread * random()).collect();
    let lanes = head_dim / 6 * 6;
    let angles: Vec<f32> = (0..batch.min(with_turns.max(1)) * tokens * lanes).map(|_| 3.0 * random()).collect();
    let (cos, sin): (Vec<f32>, Vec<f32>) = angles.iter().map(|a| (a.cos(), a.sin())).unzip();
    let turns = (with_turns > 0 && lanes > 0).then_some(Turns { cos: &cos, sin: &sin, lanes });
    let wanted = by_hand(size, &qkv, turns.as_ref(), mask);
    let part = |i: usize| Tokens { values: &qkv, stride: 3 * width, first: i * width };
    for isa in sets() {
        let mut out = vec![f32::NAN; batch * tokens * width];
        attention(isa, Precision::Highest, size, [part(0), part(1), part(2)], turns, mask, &mut out);
        rows_close(&out, &wanted, width, 3e-6 * f64::from(spread.max(1.0)).powi(2));
        attention(isa, Precision::High, size, [part(0), part(1), part(2)], turns, mask, &mut out);
        let bar = if isa.name() == "amx" { 2e-5 } else { 3e-6 };
        rows_close(&out, &wanted, width, bar * f64::from(spread.max(1.0)).powi(2));
        if spread <= 1.0 {
            // Operands of 8 bits: an error of 2^-9 in each weight and value, and in the scores.
            attention(isa, Precision::Medium, size, [part(0), part(1), part(2)], turns, mask, &mut out);
            rows_close(&out, &wanted, width, 0.02);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn equals_the_plain_softmax(
        batch in 1usize..3, tokens in 1usize..70, heads in 1usize..4, head_dim in 1usize..40, seed: u64, turns in 0usize..3,
    ) {
        check(Heads { batch, tokens, heads, head_dim }, 1.0, seed, turns, Mask::Full);
    }

    #[test]
    fn a_frame_sees_itself_and_what_was_before(
        frames in prop::collection::vec(1usize..30, 1..8), prefix in 0usize..3, head_dim in 1usize..20, seed: u64,
    ) {
        let mut seen = Vec::new();
        for frame in &frames {
            let end = seen.len() + frame;
            seen.resize(end, end);
        }
        let size = Heads { batch: 2, tokens: prefix + seen.len(), heads: 2, head_dim };
        check(size, 1.0, seed, 1, Mask::Leading { prefix, seen: &seen });
    }
}

/// Several blocks of keys and of queries, at the widths of real heads; scores in the hundreds.
#[test]
fn long_sequences_and_large_scores_equal_the_plain_softmax() {
    for (tokens, head_dim) in [(1, 64), (7, 88), (197, 64), (257, 80), (600, 64), (513, 88), (300, 22)] {
        check(Heads { batch: 1, tokens, heads: 2, head_dim }, 1.0, 5, 1, Mask::Full);
        check(Heads { batch: 1, tokens, heads: 1, head_dim }, 12.0, 6, 0, Mask::Full);
    }
    let seen: Vec<usize> = (0..600).map(|i| (i / 100 + 1) * 100).collect();
    check(Heads { batch: 1, tokens: 601, heads: 2, head_dim: 64 }, 1.0, 7, 1, Mask::Leading { prefix: 1, seen: &seen });
}

/// What is not seen has no influence, bit for bit.
#[test]
fn a_later_frame_changes_no_earlier_one() {
    let size = Heads { batch: 1, tokens: 300, heads: 2, head_dim: 24 };
    let seen: Vec<usize> = (0..300).map(|i| (i / 100 + 1) * 100).collect();
    let mut random = noise(3);
    let mut qkv: Vec<f32> = (0..300 * 3 * 48).map(|_| random()).collect();
    let run = |qkv: &[f32], isa, precision| {
        let part = |i: usize| Tokens { values: qkv, stride: 144, first: i * 48 };
        let mut out = vec![0.0; 300 * 48];
        let mask = Mask::Leading { prefix: 0, seen: &seen };
        attention(isa, precision, size, [part(0), part(1), part(2)], None, mask, &mut out);
        out
    };
    for (isa, precision) in
        sets().into_iter().flat_map(|isa| [(isa, Precision::Highest), (isa, Precision::High), (isa, Precision::Medium)])
    {
        let before = run(&qkv, isa, precision);
        qkv[200 * 144..].iter_mut().for_each(|v| *v = 5.0 * random());
        let after = run(&qkv, isa, precision);
        assert_eq!(before[..200 * 48], after[..200 * 48]);
        assert_ne!(before[200 * 48..], after[200 * 48..]);
    }
}

/// Heads wider than a tile is deep are summed in slices.
#[test]
fn no_head_is_too_wide() {
    for head_dim in [257, 512, 600, 1100] {
        check(Heads { batch: 1, tokens: 37, heads: 2, head_dim }, 1.0, head_dim as u64, 1, Mask::Full);
    }
}

/// One thread or many, also where a head is dealt out to several.
#[test]
fn the_number_of_threads_changes_no_bit() {
    let mut random = noise(11);
    let size = Heads { batch: 1, tokens: 257, heads: 3, head_dim: 24 };
    let qkv: Vec<f32> = (0..257 * 3 * 72).map(|_| random()).collect();
    for isa in sets() {
        let run = |threads: usize, precision| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = vec![0.0; 257 * 72];
            let part = |i: usize| Tokens { values: &qkv, stride: 216, first: i * 72 };
            let parts = [part(0), part(1), part(2)];
            pool.install(|| attention(isa, precision, size, parts, None, Mask::Full, &mut out));
            out
        };
        for precision in [Precision::Highest, Precision::High, Precision::Medium] {
            assert_eq!(run(1, precision), run(2, precision));
            assert_eq!(run(1, precision), run(7, precision));
        }
    }
}
