//! Matrix products `x · Wᵀ` with everything that follows a linear layer done while the result is in the cache.
//!
//! A task takes a block of outputs. It lays the weights of that block out in panels of 16 outputs, [`DEPTH`] words deep, which stay in the second-level
//! cache, and runs over all rows, a tile of rows at a time: those are copied next to each other (and rounded, where that is asked for) and meet all
//! panels. Weights are unpacked in the panel, so a stored type costs its unpacking once for all rows and nothing in memory. Every result is summed by
//! one thread in one order, so it does not depend on their number. Panels of bf16 may be kept for the next product, see `packed`. With AVX-512, weights
//! that only a few rows meet are read in place instead, see `few`.

use std::cell::RefCell;
use std::ops::Range;

use crate::activation::{Act, act_slice_body};
#[cfg(target_arch = "x86_64")]
use crate::few::{self, FEW};
use crate::isa::{AVX512, Isa, compiled_for_amx, compiled_for_each_isa};
use crate::lines::Lines;
use crate::pack::{PIECE, panel_words, row_words, rows_words, vector, weights_panels};
use crate::packed::Packed;
use crate::precision::Precision;
#[cfg(target_arch = "x86_64")]
use crate::source::Source;
use crate::threads::each;
use crate::tile::{DEPTH, MOST_ROWS, PANEL, Panels, Rows, STRIDE, Words, each_tile, shape, tile};
use crate::weights::{Stored, WeightRows};

/// Most words of the panels of a task: 512 KB, half or all of a second-level cache.
const BLOCK: usize = 1 << 17;

/// As [`BLOCK`], with AVX-512, whose processors have 1 MB and more: of 512, 768 and 1024 KB the second was fastest where it counts and leaves room.
const BLOCK_OF_AVX512: usize = 3 << 16;

/// As [`BLOCK`], with AMX, whose processors have 2 MB. Not measured.
const BLOCK_ON_TILES: usize = 1 << 18;

/// Most words of rows that tasks share: 64 MB.
const MOST_SHARED: usize = 1 << 24;

/// Fewest outputs of a task, where there are more: copying the rows should not show.
const NARROW: usize = 64;

/// Fewest rows of a task, where there are more: laying out the weights should not show.
const SHORT: usize = 128;

/// Values of a row of the widest tile.
const TILE_WIDTH: usize = 2 * PANEL;

/// What happens to `x · Wᵀ`. All lengths are the number of outputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Added to every row.
    pub bias: Option<&'a [f32]>,
    /// Applied after the bias. A layer has either this or what follows.
    pub act: Option<Act>,
    /// Multiplies every row, after the bias: layer scale.
    pub scale: Option<&'a [f32]>,
    /// Whether the result is added to what `out` holds, instead of replacing it.
    pub add: bool,
}

/// `out = epilogue(x · Wᵀ)`.
///
/// **Shapes** `x` `[rows, inputs]`, `out` `[rows, outputs]`.
///
/// # Panics
/// When the lengths do not fit together, or an activation meets a scale or `add`, which no layer needs.
pub fn linear(
    isa: Isa,
    precision: Precision,
    x: &[f32],
    weights: &dyn WeightRows,
    epilogue: Epilogue<'_>,
    out: &mut [f32],
) {
    let (inputs, outputs) = (weights.inputs(), weights.outputs());
    assert!(inputs > 0 && outputs > 0 && x.len().is_multiple_of(inputs), "linear: {} values, {inputs} inputs", x.len());
    let rows = x.len() / inputs;
    assert_eq!(out.len(), rows * outputs, "linear: length of the result");
    assert!([epilogue.bias, epilogue.scale].iter().flatten().all(|v| v.len() == outputs), "linear: epilogue");
    let (scaled, added) = (epilogue.scale.is_some(), epilogue.add);
    assert!(epilogue.act.is_none() || !(scaled || added), "linear: an activated result is neither scaled nor added");
    let words = match (precision.words(isa), weights.stored()) {
        (Words::Bf16Split, Stored::Bf16(values)) if values.len() >= outputs * inputs => Words::Bf16SplitRows,
        (words, _) => words,
    };
    #[cfg(target_arch = "x86_64")]
    let few = isa.set() == AVX512
        && (1..=few::most_rows(words)).contains(&rows)
        && match weights.stored() {
            Stored::Columns(values) => values.len() == inputs * outputs,
            _ => Source::of(weights, 0..outputs).is_some(),
        };
    #[cfg(not(target_arch = "x86_64"))]
    let few = false;
    let tiles = isa.has_tiles() && words != Words::F32 && !few;
    let place = weights.packed().filter(|_| words.panel_values() == 2 && !few);
    let packed = place.and_then(|place| place.of(isa, weights));
    let result = Output { values: out.as_mut_ptr(), stride: outputs };
    let words_of_block = match (isa.set(), tiles) {
        (_, true) => BLOCK_ON_TILES,
        (AVX512, _) => BLOCK_OF_AVX512,
        _ => BLOCK,
    };
    let block = if few { outputs } else { words_of_block / words.of(inputs).min(DEPTH) };
    let (width, height) = cut(rows, outputs, block, rayon::current_num_threads());
    let (across, down) = (outputs.div_ceil(width), rows.div_ceil(height));
    // Rows that many blocks of outputs meet as bf16 are turned into it once. Of two, each does it for itself as fast.
    let len = inputs.div_ceil(DEPTH * words.values()) * rows * STRIDE;
    let shared = (words != Words::F32 && across > 2 && len <= MOST_SHARED).then(|| {
        let mut shared = SHARED.take();
        shared.grow(len);
        let place = Output { values: shared.as_mut_ptr(), stride: STRIDE };
        each(rows.div_ceil(MOST_ROWS), |task| {
            let part = task * MOST_ROWS..((task + 1) * MOST_ROWS).min(rows);
            share(isa, words, x, inputs, &part, &place);
        });
        shared
    });
    let job = Job { words, few, x, inputs, shared: shared.as_deref(), weights, packed, epilogue, result };
    each(across * down, |i| {
        let (column, row) = (i / down * width, i % down * height);
        let part = Part { rows: row..(row + height).min(rows), columns: column..(column + width).min(outputs) };
        BUFFER.with_borrow_mut(|buffer| match tiles {
            true => part_on_tiles(isa, &job, &part, buffer),
            false => part_of(isa, &job, &part, buffer),
        });
    });
    if let Some(shared) = shared {
        SHARED.set(shared);
    }
}

/// Outputs and rows of a task: `block` outputs, fewer when threads would be idle, and fewer rows when even that leaves some.
fn cut(rows: usize, outputs: usize, block: usize, threads: usize) -> (usize, usize) {
    let blocks = outputs.div_ceil(block).next_multiple_of(threads);
    let width = outputs.div_ceil(blocks).next_multiple_of(TILE_WIDTH).max(NARROW);
    let down = threads / outputs.div_ceil(width).min(threads);
    (width, rows.div_ceil(down).max(SHORT))
}

/// A product, as all tasks see it.
struct Job<'a> {
    words: Words,
    /// Whether weights are read where they lie.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only x86 has it"))]
    few: bool,
    x: &'a [f32],
    inputs: usize,
    /// The rows as words, where they need not be made: rows of [`STRIDE`], first those of the first [`DEPTH`] words.
    shared: Option<&'a [f32]>,
    weights: &'a dyn WeightRows,
    /// The panels, where they need not be made.
    packed: Option<Packed<'a>>,
    epilogue: Epilogue<'a>,
    result: Output,
}

/// The part of the result that is one task's.
struct Part {
    rows: Range<usize>,
    columns: Range<usize>,
}

thread_local! {
    static BUFFER: RefCell<Buffer> = RefCell::default();

    /// Rows for all tasks of a product. Taken out while it runs: a thread that waits for its tasks may be given another product.
    static SHARED: RefCell<Lines> = RefCell::default();
}

/// Memory of one thread, kept, so that a second product allocates nothing.
#[derive(Default)]
struct Buffer {
    /// Panels of a block of outputs.
    panels: Lines,
    /// Weights before they are transposed.
    piece: Lines,
    /// Rows of a tile.
    rows: Lines,
}

impl Buffer {
    fn grow(&mut self, panels: usize) {
        self.panels.grow(panels);
        self.piece.grow(PANEL * PIECE);
        self.rows.grow(MOST_ROWS * STRIDE);
    }
}

/// Where results go: rows of `stride` values, of which a task writes its own part.
struct Output {
    values: *mut f32,
    stride: usize,
}

// SAFETY: tasks write disjoint parts, see `linear`.
unsafe impl Sync for Output {}

impl Output {
    /// The columns `columns` of one row.
    ///
    /// # Safety
    /// The row and the columns exist, and nobody else holds them: a task asks for its own part only, one row at a time.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "tasks share the result and write disjoint parts of it")]
    unsafe fn row(&self, row: usize, columns: Range<usize>) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.values.add(row * self.stride + columns.start), columns.len()) }
    }
}

compiled_for_each_isa!(
    fn share(words: Words, x: &[f32], inputs: usize, rows: &Range<usize>, place: &Output) = share_body
);

/// Turns some rows into words, for all tasks.
#[inline(always)]
fn share_body<const SET: u8>(words: Words, x: &[f32], inputs: usize, rows: &Range<usize>, place: &Output) {
    for (slice, values) in (0..inputs).step_by(DEPTH * words.values()).enumerate() {
        let depth = values..(values + DEPTH * words.values()).min(inputs);
        for row in rows.clone() {
            // SAFETY: `linear` made room for all rows of each slice; these are this task's, and the borrow ends with this iteration.
            let out = unsafe { place.row(slice * (x.len() / inputs) + row, 0..STRIDE) };
            row_words::<SET>(words, &x[row * inputs..][depth.clone()], out);
        }
    }
}

compiled_for_each_isa!(fn part_of(job: &Job<'_>, part: &Part, buffer: &mut Buffer) = part_body);
compiled_for_amx!(fn part_on_tiles(job: &Job<'_>, part: &Part, buffer: &mut Buffer) = part_body);

#[inline(always)]
fn part_body<const SET: u8>(job: &Job<'_>, part: &Part, buffer: &mut Buffer) {
    let Job { words, inputs, .. } = *job;
    #[cfg(target_arch = "x86_64")]
    if SET == AVX512 && job.few {
        return few_rows::<SET>(job, part.columns.clone(), buffer);
    }
    let (columns, x) = (part.columns.clone(), &job.x[part.rows.start * inputs..part.rows.end * inputs]);
    let deep = DEPTH * words.values();
    let count = columns.len().div_ceil(PANEL);
    buffer.grow(if job.packed.is_some() { 0 } else { count * panel_words(words, deep.min(inputs)) });
    for start in (0..inputs).step_by(deep) {
        let depth = start..(start + deep).min(inputs);
        let Buffer { panels, piece, rows } = buffer;
        let panels = match job.packed {
            Some(packed) => packed.panels(depth.start, columns.start),
            None => {
                let stride = panel_words(words, depth.len());
                weights_panels::<SET>(words, job.weights, columns.clone(), depth.clone(), panels, stride, piece);
                Panels { words: panels, stride }
            }
        };
        let step = Step { first: start == 0, last: depth.end == inputs, depth };
        each_tile::<SET>(part.rows.len(), |first, n| {
            let x = &x[first * inputs..(first + n) * inputs];
            let operands = match job.shared {
                Some(shared) => &shared[(start / deep * (job.x.len() / inputs) + part.rows.start + first) * STRIDE..],
                None => {
                    rows_words::<SET>(words, x, inputs, n, step.depth.clone(), rows);
                    &**rows
                }
            };
            let rows = Rows { words: operands, count: n, depth: words.of(step.depth.len()) };
            row_of_tiles::<SET>(job, &step, rows, panels, part.rows.start + first, columns.clone());
        });
    }
}

/// All rows, without panels.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn few_rows<const SET: u8>(job: &Job<'_>, columns: Range<usize>, buffer: &mut Buffer) {
    let step = Step { first: true, last: true, depth: 0..job.inputs };
    let (rows, width) = (job.x.len() / job.inputs, columns.len());
    let of_columns = if let Stored::Columns(values) = job.weights.stored() {
        buffer.grow(rows * width);
        let sums = &mut buffer.panels[..rows * width];
        few::columns_sums::<SET>(job.x, job.inputs, values, columns.clone(), sums);
        Some(&*sums)
    } else {
        None
    };
    for first in columns.clone().step_by(PANEL) {
        let part = first..(first + PANEL).min(columns.end);
        let sums = if let Some(all) = of_columns {
            let mut sums = [[0.0; PANEL]; FEW];
            for (sums, all) in sums.iter_mut().zip(all.chunks_exact(width)) {
                sums[..part.len()].copy_from_slice(&all[part.start - columns.start..part.end - columns.start]);
            }
            sums
        } else {
            let source = Source::of(job.weights, part.clone()).expect("`linear` found that all rows are there");
            few::sums(job.x, source, job.weights, first)
        };
        let finish = Finish::of(&job.epilogue, &step, part.clone());
        // SAFETY: `linear` checked that `out` holds these rows; the columns are this task's, and each borrow ends with its iteration.
        finish.bring(
            sums.iter().enumerate().take(rows).map(|(r, sums)| (sums, unsafe { job.result.row(r, part.clone()) })),
        );
    }
    activate::<SET>(job, 0..rows, columns);
}

/// One slice of the inputs.
struct Step {
    first: bool,
    last: bool,
    depth: Range<usize>,
}

/// Sums of a tile, whose rows are whole cache lines.
#[repr(align(64))]
struct Sums([f32; MOST_ROWS * TILE_WIDTH]);

/// The rows of a tile against all panels; `row` and `columns` are their place in the result.
#[inline(always)]
fn row_of_tiles<const SET: u8>(
    job: &Job<'_>,
    step: &Step,
    rows: Rows<'_>,
    panels: Panels<'_>,
    row: usize,
    columns: Range<usize>,
) {
    let most = const { shape::<SET>() }.1;
    let count = columns.len().div_ceil(PANEL);
    let Sums(sums) = &mut Sums([0.0; MOST_ROWS * TILE_WIDTH]);
    for panel in (0..count).step_by(most) {
        let n = most.min(count - panel);
        tile::<SET>(job.words, rows, panels.from(panel, 0), n, sums, TILE_WIDTH, false);
        for i in 0..n {
            let first = columns.start + (panel + i) * PANEL;
            let part = first..(first + PANEL).min(columns.end);
            let finish = Finish::of(&job.epilogue, step, part.clone());
            let rows = sums.as_chunks::<TILE_WIDTH>().0.iter().enumerate().take(rows.count);
            finish.bring(rows.map(|(r, sums)| {
                // SAFETY: `linear` checked that `out` holds this row; row and columns are this task's, and the borrow ends with this iteration.
                let out = unsafe { job.result.row(row + r, part.clone()) };
                (&sums.as_chunks::<PANEL>().0[i], out)
            }));
        }
    }
    // Over whole rows of the block, which vectorises where a single tile does not; they are still in the cache.
    if step.last {
        activate::<SET>(job, row..row + rows.count, columns);
    }
}

/// Applies the activation to the finished sums of a task.
#[inline(always)]
fn activate<const SET: u8>(job: &Job<'_>, rows: Range<usize>, columns: Range<usize>) {
    if let Some(act) = job.epilogue.act {
        for row in rows {
            // SAFETY: `linear` checked that `out` holds this row; row and columns are this task's, and the borrow ends with this iteration.
            act_slice_body::<SET>(unsafe { job.result.row(row, columns.clone()) }, act);
        }
    }
}

/// How the sums of one panel come into the result: whole vectors, of anything where a panel has no column.
struct Finish {
    /// Whether the result holds the sums of the inputs before.
    carried: bool,
    /// Whether the result is added to.
    add: bool,
    /// 0 without one, and before the last inputs.
    bias: [f32; PANEL],
    /// 1 without one.
    scale: [f32; PANEL],
}

impl Finish {
    #[inline(always)]
    fn of(epilogue: &Epilogue<'_>, step: &Step, columns: Range<usize>) -> Self {
        // A scale is applied to the finished sum, or, when the result is added to, to each part of it.
        let scale = epilogue.scale.filter(|_| step.last || epilogue.add);
        Self {
            carried: !step.first && !epilogue.add,
            add: epilogue.add,
            bias: epilogue.bias.filter(|_| step.last).map_or([0.0; PANEL], |bias| vector(&bias[columns.clone()])),
            scale: scale.map_or([1.0; PANEL], |scale| vector(&scale[columns.clone()])),
        }
    }

    /// Sums of some rows and their place in the result, of a panel's width or less, which becomes what it should.
    #[inline(always)]
    fn bring<'a>(&self, rows: impl Iterator<Item = (&'a [f32; PANEL], &'a mut [f32])>) {
        let Self { bias, scale, .. } = self;
        // What earlier parts of a sum left is below the bias and the scale; what the result is added to is not.
        match (self.carried, self.add) {
            (true, _) => each_lane(rows, |j, sum, before| (sum + before + bias[j]) * scale[j]),
            (_, true) => each_lane(rows, |j, sum, before| (sum + bias[j]) * scale[j] + before),
            _ => each_lane(rows, |j, sum, _| (sum + bias[j]) * scale[j]),
        }
    }
}

/// Every value of the result becomes `f(column, sum, value)`.
#[inline(always)]
fn each_lane<'a>(rows: impl Iterator<Item = (&'a [f32; PANEL], &'a mut [f32])>, f: impl Fn(usize, f32, f32) -> f32) {
    for (sums, out) in rows {
        if let [out] = out.as_chunks_mut::<PANEL>().0 {
            *out = std::array::from_fn(|j| f(j, sums[j], out[j]));
        } else {
            out.iter_mut().zip(sums).enumerate().for_each(|(j, (out, &sum))| *out = f(j, sum, *out));
        }
    }
}
