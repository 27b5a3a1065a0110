//! One head of an attention: scores, softmax and the weighted sum of values, a block of queries and a block of keys at a time.

use std::cell::RefCell;

use crate::attention::{Task, Turns, Work};
use crate::isa::{AMX, Isa, compiled_for_amx, compiled_for_each_isa};
use crate::lines::Lines;
use crate::pack::{columns_panels, panel_words, row_words, rows_panel};
use crate::tile::{DEPTH, PANEL, Panels, Rows, STRIDE, Words, each_tile, shape, tile};
use crate::vector::{SMALLEST, exp, mul_add, sum_of};

/// Most queries of a block: full tiles of 32 rows.
const QUERIES: usize = 64;

/// Queries of a block: full tiles, of 14 rows where there are no larger ones.
pub(crate) fn queries(tiles: bool) -> usize {
    if tiles { QUERIES } else { 56 }
}

/// Keys that are scored at a time: as many words as a row of a tile holds.
const KEYS: usize = DEPTH;

/// Memory of one thread, kept from call to call.
#[derive(Default)]
struct Scratch {
    /// Keys of a head in panels of 16 keys: words `[tokens / 16][head_dim][16]`.
    keys: Lines,
    /// Values of a head in panels of 16 lanes: words `[head_dim / 16][tokens][16]`.
    values: Lines,
    /// 16 turned keys, or one turned query.
    turned: Lines,
    /// Turned and scaled queries, in slices of [`DEPTH`] words of a head: `[head_dim / DEPTH][QUERIES][STRIDE]`.
    queries: Lines,
    /// Scores of a block, `[QUERIES][STRIDE]`, then the weights in words.
    scores: Lines,
    /// Results of a block of queries, `[QUERIES][lanes]`.
    sums: Lines,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Attends with the queries of a task and writes their results.
pub(crate) fn head(isa: Isa, work: &Work<'_>, task: &Task) {
    let sizes = Sizes::of(work);
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { keys, values, turned, queries, scores, sums } = scratch;
        let tokens = work.size.tokens.next_multiple_of(PANEL);
        for (buffer, len) in [
            (keys, tokens / PANEL * sizes.key_panel),
            (values, sizes.lanes / PANEL * sizes.value_panel),
            (turned, PANEL * sizes.padded),
            (queries, sizes.slices * QUERIES * STRIDE),
            (scores, QUERIES * STRIDE),
            (sums, QUERIES * sizes.lanes),
        ] {
            buffer.grow(len);
        }
        match work.tiles {
            true => head_on_tiles(isa, work, task, &sizes, scratch),
            false => head_of(isa, work, task, &sizes, scratch),
        }
    });
}

/// Sizes in scratch memory.
struct Sizes {
    /// Width of a head in whole vectors.
    lanes: usize,
    /// Width of a head in whole squares of a panel.
    padded: usize,
    /// Words of a head.
    deep: usize,
    /// Slices of a head that a tile sums over.
    slices: usize,
    /// Words of a panel of keys.
    key_panel: usize,
    /// Words of a panel of values.
    value_panel: usize,
}

impl Sizes {
    fn of(work: &Work<'_>) -> Self {
        let (words, width) = (work.words, work.size.head_dim);
        let deep = words.of(width);
        Self {
            lanes: width.next_multiple_of(PANEL),
            padded: width.next_multiple_of(words.granule()),
            deep,
            slices: deep.div_ceil(DEPTH),
            key_panel: panel_words(words, width),
            value_panel: panel_words(words, work.size.tokens),
        }
    }
}

compiled_for_each_isa!(
    fn head_of(work: &Work<'_>, task: &Task, sizes: &Sizes, scratch: &mut Scratch) = head_body
);

compiled_for_amx!(
    fn head_on_tiles(work: &Work<'_>, task: &Task, sizes: &Sizes, scratch: &mut Scratch) = head_body
);

#[inline(always)]
fn head_body<const SET: u8>(work: &Work<'_>, task: &Task, sizes: &Sizes, scratch: &mut Scratch) {
    lay_out_keys::<SET>(work, task, sizes, scratch);
    lay_out_values(work, task, sizes, scratch);
    let granule = work.words.granule();
    let mut start = task.queries.start;
    while start < task.queries.end {
        let end = work.block_end(start, task.queries.end);
        let n = end - start;
        lay_out_queries::<SET>(work, task, scratch, start, n);
        let mut running = [(f32::NEG_INFINITY, 0.0f32); QUERIES];
        scratch.sums[..n * sizes.lanes].fill(0.0);
        let (low, high) = work.visible(end - 1);
        let mut from = low / granule * granule;
        while from < high {
            let to = (from + KEYS).min(high);
            score::<SET>(work.words, sizes, scratch, n, from, to);
            for (i, (max, sum)) in running.iter_mut().enumerate().take(n) {
                let (low, high) = work.visible(start + i);
                let row = &mut scratch.scores[i * STRIDE..][..(to - from).next_multiple_of(granule)];
                let seen = low.saturating_sub(from).min(row.len())..high.saturating_sub(from).min(row.len());
                let rescale = softmax_step::<SET>(row, seen, max, sum);
                if rescale != 1.0 {
                    scratch.sums[i * sizes.lanes..(i + 1) * sizes.lanes].iter_mut().for_each(|v| *v *= rescale);
                }
                if work.words != Words::F32 {
                    row_words_in_place::<SET>(work.words, row);
                }
            }
            weigh::<SET>(work.words, sizes, scratch, n, from, to);
            from = to;
        }
        for (i, (_, sum)) in running.iter().enumerate().take(n) {
            // SAFETY: the query is this task's, and the borrow ends with this iteration.
            let out = unsafe { work.result(task, start + i) };
            out.iter_mut().zip(&scratch.sums[i * sizes.lanes..]).for_each(|(out, &v)| *out = v / sum);
        }
        start = end;
    }
}

#[inline(always)]
fn lay_out_keys<const SET: u8>(work: &Work<'_>, task: &Task, sizes: &Sizes, scratch: &mut Scratch) {
    let (tokens, width) = (work.size.tokens, work.size.head_dim);
    for (first, panel) in (0..tokens).step_by(PANEL).zip(scratch.keys.chunks_exact_mut(sizes.key_panel)) {
        for (j, row) in scratch.turned.chunks_exact_mut(sizes.padded).enumerate().take(PANEL) {
            let token = first + j;
            if token < tokens {
                let key = &work.k.values[work.place(&work.k, task, token)..][..width];
                turn(key, work.turns, task.element, token, tokens, &mut row[..width]);
                row[width..].fill(0.0);
            } else {
                row.fill(0.0);
            }
        }
        rows_panel::<SET>(work.words, &scratch.turned, sizes.padded, sizes.padded, panel);
    }
}

#[inline(always)]
fn lay_out_values(work: &Work<'_>, task: &Task, sizes: &Sizes, scratch: &mut Scratch) {
    let (tokens, width) = (work.size.tokens, work.size.head_dim);
    let values = &work.v.values[work.place(&work.v, task, 0)..];
    columns_panels(work.words, values, work.v.stride, tokens, 0..width, &mut scratch.values, sizes.value_panel);
}

#[inline(always)]
fn lay_out_queries<const SET: u8>(work: &Work<'_>, task: &Task, scratch: &mut Scratch, start: usize, n: usize) {
    let (tokens, width) = (work.size.tokens, work.size.head_dim);
    let scale = 1.0 / (width as f32).sqrt();
    for i in 0..n {
        let query = &work.q.values[work.place(&work.q, task, start + i)..][..width];
        let turned = &mut scratch.turned[..width];
        turn(query, work.turns, task.element, start + i, tokens, turned);
        turned.iter_mut().for_each(|v| *v *= scale);
        for (slice, values) in turned.chunks(DEPTH * work.words.values()).enumerate() {
            row_words::<SET>(work.words, values, &mut scratch.queries[(slice * QUERIES + i) * STRIDE..]);
        }
    }
}

/// Scores of `n` queries against the keys from `from`, a multiple of 16, to `to`.
#[inline(always)]
fn score<const SET: u8>(words: Words, sizes: &Sizes, scratch: &mut Scratch, n: usize, from: usize, to: usize) {
    let keys = Panels { words: &scratch.keys, stride: sizes.key_panel };
    let panels = (to - from).div_ceil(PANEL);
    each_pair::<SET>(n, panels, |row, rows, panel, count| {
        let out = &mut scratch.scores[row * STRIDE + panel * PANEL..];
        for slice in 0..sizes.slices {
            let depth = (sizes.deep - slice * DEPTH).min(DEPTH);
            let x = Rows { words: &scratch.queries[(slice * QUERIES + row) * STRIDE..], count: rows, depth };
            let panels = keys.from(from / PANEL + panel, slice * DEPTH);
            tile::<SET>(words, x, panels, count, out, STRIDE, slice > 0);
        }
    });
}

/// Runs `f(first row, rows, first panel, panels)` over tiles of `rows` rows and `panels` panels.
#[inline(always)]
fn each_pair<const SET: u8>(rows: usize, panels: usize, mut f: impl FnMut(usize, usize, usize, usize)) {
    let most = const { shape::<SET>() }.1;
    let pairs = (0..panels).step_by(most).map(|panel| (panel, most.min(panels - panel)));
    if SET == AMX {
        // Panels inside: loading the shapes of tiles for each pair of panels would show.
        each_tile::<SET>(rows, |row, rows| pairs.clone().for_each(|(panel, count)| f(row, rows, panel, count)));
    } else {
        // Panels outside: a pair of them serves all rows from the first-level cache.
        pairs.for_each(|(panel, count)| each_tile::<SET>(rows, |row, rows| f(row, rows, panel, count)));
    }
}

/// Adds the values of the keys from `from` to `to`, weighted.
#[inline(always)]
fn weigh<const SET: u8>(words: Words, sizes: &Sizes, scratch: &mut Scratch, n: usize, from: usize, to: usize) {
    let values = Panels { words: &scratch.values, stride: sizes.value_panel };
    each_pair::<SET>(n, sizes.lanes / PANEL, |row, rows, panel, count| {
        let x = Rows { words: &scratch.scores[row * STRIDE..], count: rows, depth: words.of(to - from) };
        let out = &mut scratch.sums[row * sizes.lanes + panel * PANEL..];
        tile::<SET>(words, x, values.from(panel, words.of(from)), count, out, sizes.lanes, true);
    });
}

/// A query or key, turned.
#[inline(always)]
fn turn(x: &[f32], turns: Option<Turns<'_>>, element: usize, token: usize, tokens: usize, turned: &mut [f32]) {
    turned.copy_from_slice(x);
    let Some(Turns { cos, sin, lanes }) = turns else { return };
    let row = if cos.len() > tokens * lanes { element * tokens + token } else { token };
    let (cos, sin) = (&cos[row * lanes..][..lanes], &sin[row * lanes..][..lanes]);
    for ((out, x), (cos, sin)) in
        turned[..lanes].chunks_exact_mut(2).zip(x.chunks_exact(2)).zip(cos.chunks_exact(2).zip(sin.chunks_exact(2)))
    {
        out[0] = x[0] * cos[0] - x[1] * sin[0];
        out[1] = x[1] * cos[1] + x[0] * sin[1];
    }
}

/// Turns whole granules of a row into bf16 words, in their own place.
#[inline(always)]
fn row_words_in_place<const SET: u8>(words: Words, row: &mut [f32]) {
    for at in (0..row.len()).step_by(2 * PANEL) {
        let mut granule = [0.0f32; 2 * PANEL];
        granule.copy_from_slice(&row[at..at + 2 * PANEL]);
        // As many words or half as many, none of which is read again.
        row_words::<SET>(words, &granule, &mut row[words.of(at)..]);
    }
}

/// Turns a row of scores, whole vectors, into weights relative to the running maximum, which it raises; gives the factor for what was summed before.
/// What is not seen gets no weight.
#[inline(always)]
fn softmax_step<const SET: u8>(row: &mut [f32], seen: std::ops::Range<usize>, max: &mut f32, sum: &mut f32) -> f32 {
    row[..seen.start].fill(f32::NEG_INFINITY);
    row[seen.end..].fill(f32::NEG_INFINITY);
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
    let mut sums = [0.0f32; PANEL];
    for block in blocks {
        for (lane, v) in sums.iter_mut().zip(block) {
            let below = *v - highest;
            *v = if below < SMALLEST { 0.0 } else { exp::<SET>(below) };
            *lane += *v;
        }
    }
    // Nothing was summed before the first score.
    let rescale = if *max == highest || *sum == 0.0 { 1.0 } else { exp::<SET>(*max - highest) };
    *sum = mul_add::<SET>(*sum, rescale, sum_of(sums));
    *max = highest;
    rescale
}
