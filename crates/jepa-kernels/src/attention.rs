//! Softmax attention without the matrix of scores.
//!
//! A task is one head of one element and a block of queries. Keys come in blocks too: the scores of a block pair stay in the cache, and running
//! maxima and sums join the blocks (online softmax). What a query may not see is skipped by blocks of keys, and no mask is ever an array.

use std::cell::RefCell;

use rayon::prelude::*;

use crate::gemm::{Panels, tile_rows};
use crate::isa::{Isa, compiled_for_each_isa};
use crate::vector::{exp, mul_add};
use crate::weights::PANEL;

/// Queries of a task.
const QUERIES: usize = 48;

/// Keys that are scored at a time.
const KEYS: usize = 256;

/// Which keys a query sees.
#[derive(Clone, Copy, Debug)]
pub enum Mask<'a> {
    /// All of them.
    Full,
    /// Query `i` sees the first `seen[i]` keys behind the `prefix`, and not the prefix; a query of the prefix sees all keys.
    Leading {
        /// Leading tokens that see everything and are seen by none but themselves.
        prefix: usize,
        /// Per query behind the prefix, the number of keys behind the prefix that it sees: at least 1, and never less than the query before it.
        seen: &'a [usize],
    },
}

/// Tokens inside a larger array: of token `t`, the values from `t · stride + first` on.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// The array.
    pub values: &'a [f32],
    /// Values from one token to the next.
    pub stride: usize,
    /// Values of a token before those that are meant.
    pub first: usize,
}

/// Cosines and sines that turn queries and keys: `x · cos + r · sin` with `r[2k] = -x[2k + 1]`, `r[2k + 1] = x[2k]`.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a> {
    /// `[1 or batch, tokens, lanes]`; lanes behind these are not turned.
    pub cos: &'a [f32],
    /// As `cos`.
    pub sin: &'a [f32],
    /// Turned lanes of a head: even.
    pub lanes: usize,
}

/// Sizes of an attention.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Elements.
    pub batch: usize,
    /// Tokens of an element.
    pub tokens: usize,
    /// Heads, consecutive slices of a token.
    pub heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

/// `softmax(q kᵀ / √head_dim) v` for every head.
///
/// **Shapes** `q`, `k`, `v` `[batch · tokens]` tokens of `heads · head_dim` values; `out` `[batch · tokens, heads · head_dim]`.
///
/// # Panics
/// When the lengths do not fit together.
pub fn attention(
    isa: Isa,
    size: Heads,
    [q, k, v]: [Tokens<'_>; 3],
    turns: Option<Turns<'_>>,
    mask: Mask<'_>,
    out: &mut [f32],
) {
    let Heads { batch, tokens, heads, head_dim } = size;
    let width = heads * head_dim;
    assert_eq!(out.len(), batch * tokens * width, "attention: length of the result");
    for part in [q, k, v] {
        let needed = (batch * tokens).saturating_sub(1) * part.stride + part.first + width;
        assert!(part.stride >= width && part.values.len() >= needed, "attention: {} values", part.values.len());
    }
    if let Some(turns) = turns {
        let shared = tokens * turns.lanes;
        let fits = [shared, batch * shared].contains(&turns.cos.len()) && turns.sin.len() == turns.cos.len();
        assert!(fits && turns.lanes <= head_dim && turns.lanes.is_multiple_of(2), "attention: turns");
    }
    if let Mask::Leading { prefix, seen } = mask {
        let sound = seen.is_sorted() && seen.iter().all(|n| (1..=seen.len()).contains(n));
        assert!(prefix + seen.len() == tokens && sound, "attention: mask");
    }
    let result = Output { values: out.as_mut_ptr() };
    let work = Work { size, q, k, v, turns, mask };
    // Keys and values of a head are laid out once and shared by its blocks of queries, so a head is the unit where there are enough of them.
    let units = batch * heads;
    let blocks = tokens.div_ceil(QUERIES);
    let parts = if units >= 2 * rayon::current_num_threads() { 1 } else { blocks.min(rayon::current_num_threads()) };
    (0..units * parts).into_par_iter().for_each(|task| {
        let (unit, part) = (task / parts, task % parts);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(&size);
            let queries = blocks * part / parts * QUERIES..(blocks * (part + 1) / parts * QUERIES).min(tokens);
            let task = Task { element: unit / heads, head: unit % heads, queries };
            head_of(isa, &work, &task, scratch, &result);
        });
    });
}

struct Work<'a> {
    size: Heads,
    q: Tokens<'a>,
    k: Tokens<'a>,
    v: Tokens<'a>,
    turns: Option<Turns<'a>>,
    mask: Mask<'a>,
}

struct Task {
    element: usize,
    head: usize,
    queries: std::ops::Range<usize>,
}

/// The result; tasks write disjoint rows of disjoint heads.
struct Output {
    values: *mut f32,
}

// SAFETY: see `attention`: a task writes the rows of its queries at the columns of its head, and no two tasks share both.
unsafe impl Sync for Output {}

/// Memory of one thread, kept from call to call.
#[derive(Default)]
struct Scratch {
    /// Keys of a head in panels of 16 keys: `[tokens / 16][head_dim][16]`.
    keys: Vec<f32>,
    /// Values of a head in panels of 16 lanes: `[head_dim / 16][tokens][16]`.
    values: Vec<f32>,
    /// Turned and scaled queries, `[QUERIES, head_dim]`.
    queries: Vec<f32>,
    /// Scores of a block, `[QUERIES, KEYS]`.
    scores: Vec<f32>,
    /// Results of a block of queries, `[QUERIES, lanes]`.
    sums: Vec<f32>,
    /// Results of a block pair.
    part: Vec<f32>,
}

impl Scratch {
    fn resize(&mut self, size: &Heads) {
        let (tokens, lanes) = (size.tokens.next_multiple_of(PANEL), size.head_dim.next_multiple_of(PANEL));
        self.keys.resize(tokens * size.head_dim, 0.0);
        self.values.resize(lanes * size.tokens, 0.0);
        self.queries.resize(QUERIES * size.head_dim, 0.0);
        self.scores.resize(QUERIES * KEYS, 0.0);
        self.sums.resize(QUERIES * lanes, 0.0);
        self.part.resize(QUERIES * lanes, 0.0);
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

compiled_for_each_isa!(fn head_of(work: &Work<'_>, task: &Task, scratch: &mut Scratch, result: &Output) = head_body);

#[inline(always)]
fn head_body<const FMA: bool>(work: &Work<'_>, task: &Task, scratch: &mut Scratch, result: &Output) {
    let Heads { tokens, head_dim, .. } = work.size;
    let lanes = head_dim.next_multiple_of(PANEL);
    let (column, first) = (task.head * head_dim, task.element * tokens);
    let vector = |part: &Tokens<'_>, token: usize| {
        // The borrow is the array's, whose length `attention` checked.
        let start = (first + token) * part.stride + part.first + column;
        start..start + head_dim
    };

    let mut turned = [0.0f32; MAX_TURNED];
    for (token, panel, lane) in (0..tokens).map(|t| (t, t / PANEL * PANEL * head_dim, t % PANEL)) {
        let key = turn(&work.k.values[vector(&work.k, token)], work.turns, task.element, token, tokens, &mut turned);
        for (k, &value) in key.iter().enumerate() {
            scratch.keys[panel + k * PANEL + lane] = value;
        }
        let value = &work.v.values[vector(&work.v, token)];
        for (panel, values) in value.chunks(PANEL).enumerate() {
            let at = (panel * tokens + token) * PANEL;
            scratch.values[at..at + values.len()].copy_from_slice(values);
        }
    }
    for lane in tokens..tokens.next_multiple_of(PANEL) {
        let panel = lane / PANEL * PANEL * head_dim;
        (0..head_dim).for_each(|k| scratch.keys[panel + k * PANEL + lane % PANEL] = 0.0);
    }

    let scale = 1.0 / (head_dim as f32).sqrt();
    let mut start = task.queries.start;
    while start < task.queries.end {
        let end = block_end(work, start, task.queries.end);
        let n = end - start;
        for (token, row) in (start..end).zip(scratch.queries.chunks_exact_mut(head_dim)) {
            let query =
                turn(&work.q.values[vector(&work.q, token)], work.turns, task.element, token, tokens, &mut turned);
            row.iter_mut().zip(query).for_each(|(out, &v)| *out = v * scale);
        }
        let mut running = [(f32::NEG_INFINITY, 0.0f32); QUERIES];
        scratch.sums[..n * lanes].fill(0.0);
        let (low, high) = visible(work, end - 1);
        let mut from = low / PANEL * PANEL;
        while from < high {
            let to = (from + KEYS).min(high);
            let wide = (to - from).next_multiple_of(PANEL);
            let keys = Panels { values: &scratch.keys[from * head_dim..], panel_stride: head_dim * PANEL };
            tile_rows::<FMA>(
                &scratch.queries[..n * head_dim],
                head_dim,
                keys,
                head_dim,
                wide,
                &mut scratch.scores,
                KEYS,
            );
            for (i, (row, (max, sum))) in scratch.scores.chunks_exact_mut(KEYS).zip(&mut running).take(n).enumerate() {
                let (low, high) = visible(work, start + i);
                let row = &mut row[..wide];
                row[..low.saturating_sub(from).min(wide)].fill(f32::NEG_INFINITY);
                row[high.saturating_sub(from).min(wide)..].fill(f32::NEG_INFINITY);
                let rescale = softmax_step::<FMA>(row, max, sum);
                if rescale != 1.0 {
                    scratch.sums[i * lanes..(i + 1) * lanes].iter_mut().for_each(|v| *v *= rescale);
                }
            }
            let values = Panels { values: &scratch.values[from * PANEL..], panel_stride: tokens * PANEL };
            let depth = to - from;
            tile_rows::<FMA>(
                &scratch.scores[..(n - 1) * KEYS + depth],
                KEYS,
                values,
                depth,
                lanes,
                &mut scratch.part,
                lanes,
            );
            scratch.sums[..n * lanes].iter_mut().zip(&scratch.part).for_each(|(sum, &v)| *sum += v);
            from = to;
        }
        for (i, (_, sum)) in running.iter().enumerate().take(n) {
            let at = (first + start + i) * work.size.heads * head_dim + column;
            // SAFETY: `attention` checked the length of the result, and this row of this head is this task's alone.
            let out = unsafe { std::slice::from_raw_parts_mut(result.values.add(at), head_dim) };
            out.iter_mut().zip(&scratch.sums[i * lanes..]).for_each(|(out, &v)| *out = v / sum);
        }
        start = end;
    }
}

/// Widest head whose turned copy fits on the stack.
const MAX_TURNED: usize = 256;

/// End of a block of queries: queries of the prefix have a block of their own, since they see other keys.
fn block_end(work: &Work<'_>, start: usize, end: usize) -> usize {
    let full = (start + QUERIES).min(end);
    match work.mask {
        Mask::Leading { prefix, .. } if start < prefix => full.min(prefix),
        _ => full,
    }
}

/// First key that a query sees, and one past the last.
#[inline(always)]
fn visible(work: &Work<'_>, query: usize) -> (usize, usize) {
    match work.mask {
        Mask::Leading { prefix, seen } if query >= prefix => (prefix, prefix + seen[query - prefix]),
        _ => (0, work.size.tokens),
    }
}

/// A query or key, turned.
#[inline(always)]
fn turn<'a>(
    x: &'a [f32],
    turns: Option<Turns<'_>>,
    element: usize,
    token: usize,
    tokens: usize,
    turned: &'a mut [f32; MAX_TURNED],
) -> &'a [f32] {
    let Some(Turns { cos, sin, lanes }) = turns else { return x };
    let row = if cos.len() > tokens * lanes { element * tokens + token } else { token };
    let (cos, sin) = (&cos[row * lanes..][..lanes], &sin[row * lanes..][..lanes]);
    let turned = &mut turned[..x.len()];
    turned.copy_from_slice(x);
    for ((out, x), (cos, sin)) in
        turned[..lanes].chunks_exact_mut(2).zip(x.chunks_exact(2)).zip(cos.chunks_exact(2).zip(sin.chunks_exact(2)))
    {
        out[0] = x[0] * cos[0] - x[1] * sin[0];
        out[1] = x[1] * cos[1] + x[0] * sin[1];
    }
    turned
}

/// Turns a row of scores into weights relative to the running maximum, which it raises; gives the factor for what was summed before.
#[inline(always)]
fn softmax_step<const FMA: bool>(row: &mut [f32], max: &mut f32, sum: &mut f32) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; PANEL];
    let (blocks, _) = row.as_chunks_mut::<PANEL>();
    for block in blocks.iter() {
        for (lane, &v) in lanes.iter_mut().zip(block) {
            *lane = if v > *lane { v } else { *lane };
        }
    }
    let highest = lanes.iter().fold(*max, |a, &b| if b > a { b } else { a });
    if highest == f32::NEG_INFINITY {
        row.fill(0.0);
        return 1.0;
    }
    let rescale = exp::<FMA>(*max - highest);
    let mut sums = [0.0f32; PANEL];
    for block in blocks {
        for (lane, v) in sums.iter_mut().zip(block) {
            *v = if *v == f32::NEG_INFINITY { 0.0 } else { exp::<FMA>(*v - highest) };
            *lane += *v;
        }
    }
    *sum = mul_add::<FMA>(*sum, rescale, sums.iter().sum());
    *max = highest;
    rescale
}
