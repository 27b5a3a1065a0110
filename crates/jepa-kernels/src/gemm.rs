//! Matrix products `x · Wᵀ` with everything that follows a linear layer done while the result is in registers.
//!
//! A task takes a block of outputs. It lays the weights of that block out in panels of 16 outputs, [`DEPTH`] inputs deep, and runs over all rows,
//! 6 at a time: a tile of 6 × 16 results stays in registers. Weights are unpacked in the panel, so a stored type costs its unpacking once for all
//! rows and nothing in memory. Every result is summed by one thread in one order, so it does not depend on their number.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use crate::activation::{Act, act_slice_body};
use crate::isa::{Isa, compiled_for_each_isa};
use crate::vector::mul_add;
use crate::weights::{PANEL, WeightRows};

/// Rows of a register tile: with 16 outputs, 12 of the 16 vector registers of AVX2.
const TILE: usize = 6;

/// Inputs of a panel: a block of panels stays in the second-level cache.
const DEPTH: usize = 512;

/// Outputs of a task, as long as every thread has some.
const BLOCK: usize = 8 * PANEL;

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
pub fn linear(isa: Isa, x: &[f32], weights: &dyn WeightRows, epilogue: Epilogue<'_>, out: &mut [f32]) {
    let (inputs, outputs) = (weights.inputs(), weights.outputs());
    assert!(inputs > 0 && outputs > 0 && x.len().is_multiple_of(inputs), "linear: {} values, {inputs} inputs", x.len());
    let rows = x.len() / inputs;
    assert_eq!(out.len(), rows * outputs, "linear: length of the result");
    assert!([epilogue.bias, epilogue.scale].iter().flatten().all(|v| v.len() == outputs), "linear: epilogue");
    let (scaled, added) = (epilogue.scale.is_some(), epilogue.add);
    assert!(epilogue.act.is_none() || !(scaled || added), "linear: an activated result is neither scaled nor added");
    let result = Output { values: out.as_mut_ptr(), stride: outputs };
    let threads = rayon::current_num_threads();
    // Small blocks when there are few, so that no thread waits for another's last one.
    let block = if outputs.div_ceil(BLOCK) >= 3 * threads { BLOCK } else { BLOCK / 2 };
    (0..outputs.div_ceil(block)).into_par_iter().for_each(|i| {
        let columns = i * block..(i * block + block).min(outputs);
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(block.next_multiple_of(PANEL) * DEPTH.min(inputs), 0.0);
            for start in (0..inputs).step_by(DEPTH) {
                let depth = start..(start + DEPTH).min(inputs);
                let size = depth.len() * PANEL;
                for (panel, first) in buffer.chunks_exact_mut(size).zip(columns.clone().step_by(PANEL)) {
                    weights.panel(first, depth.clone(), panel);
                }
                let step =
                    Step { first: start == 0, last: depth.end == inputs, depth, inputs, columns: columns.clone() };
                block_of(isa, x, buffer, &step, &epilogue, &result);
            }
        });
    });
}

thread_local! {
    /// Panels of the block that this thread works on; kept, so that a second product allocates nothing.
    static BUFFER: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Where results go: rows of `stride` values, of which a task writes its own columns.
struct Output {
    values: *mut f32,
    stride: usize,
}

// SAFETY: tasks write disjoint columns, see `linear`.
unsafe impl Sync for Output {}

impl Output {
    /// The columns `columns` of one row.
    ///
    /// # Safety
    /// The row and the columns exist, and nobody else holds them: a task asks for its own columns only, one row at a time.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "tasks share the result and write disjoint parts of it")]
    unsafe fn row(&self, row: usize, columns: Range<usize>) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.values.add(row * self.stride + columns.start), columns.len()) }
    }
}

/// One slice of the inputs for one block of outputs.
struct Step {
    first: bool,
    last: bool,
    depth: Range<usize>,
    inputs: usize,
    columns: Range<usize>,
}

compiled_for_each_isa!(
    fn block_of(x: &[f32], panels: &[f32], step: &Step, epilogue: &Epilogue<'_>, result: &Output) = block_body
);

#[inline(always)]
fn block_body<const FMA: bool>(x: &[f32], panels: &[f32], step: &Step, epilogue: &Epilogue<'_>, result: &Output) {
    let (inputs, depth) = (step.inputs, step.depth.len());
    let mut rows = x.chunks_exact(inputs * TILE);
    let mut done = 0;
    for x in rows.by_ref() {
        row_of_tiles::<FMA, TILE>(x, panels, depth, done, step, epilogue, result);
        done += TILE;
    }
    for x in rows.remainder().chunks_exact(inputs) {
        row_of_tiles::<FMA, 1>(x, panels, depth, done, step, epilogue, result);
        done += 1;
    }
}

#[inline(always)]
fn row_of_tiles<const FMA: bool, const ROWS: usize>(
    x: &[f32],
    panels: &[f32],
    depth: usize,
    row: usize,
    step: &Step,
    epilogue: &Epilogue<'_>,
    result: &Output,
) {
    let x: [&[f32]; ROWS] = std::array::from_fn(|r| &x[r * step.inputs..][step.depth.clone()]);
    for (panel, first) in panels.chunks_exact(depth * PANEL).zip(step.columns.clone().step_by(PANEL)) {
        let tile = multiply::<FMA, ROWS>(x, panel);
        let columns = first..(first + PANEL).min(step.columns.end);
        for (r, values) in tile.iter().enumerate() {
            // SAFETY: `linear` checked that `out` holds this row; the columns are this task's, and the borrow ends with this iteration.
            let out = unsafe { result.row(row + r, columns.clone()) };
            finish(values, out, columns.start, step, epilogue);
        }
    }
    // Over whole rows of the block, which vectorises where a single tile does not; they are still in the first-level cache.
    if let Some(act) = epilogue.act.filter(|_| step.last) {
        for r in 0..ROWS {
            // SAFETY: as above.
            act_slice_body::<FMA>(unsafe { result.row(row + r, step.columns.clone()) }, act);
        }
    }
}

/// Panels of 16 columns each, `panel_stride` values from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) panel_stride: usize,
}

/// `out = x · panels`, for callers that have laid out the panels themselves.
///
/// **Shapes** `x` rows of `depth` values, `x_stride` apart; `out` rows of `columns` values, `out_stride` apart; `columns` a multiple of 16.
#[inline(always)]
pub(crate) fn tile_rows<const FMA: bool>(
    x: &[f32],
    x_stride: usize,
    panels: Panels<'_>,
    depth: usize,
    columns: usize,
    out: &mut [f32],
    out_stride: usize,
) {
    let rows = (x.len() + x_stride - depth) / x_stride;
    let mut row = 0;
    while row + TILE <= rows {
        tiles_at::<FMA, TILE>(x, x_stride, panels, depth, columns, out, out_stride, row);
        row += TILE;
    }
    while row < rows {
        tiles_at::<FMA, 1>(x, x_stride, panels, depth, columns, out, out_stride, row);
        row += 1;
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "three matrices and their strides")]
fn tiles_at<const FMA: bool, const ROWS: usize>(
    x: &[f32],
    x_stride: usize,
    panels: Panels<'_>,
    depth: usize,
    columns: usize,
    out: &mut [f32],
    out_stride: usize,
    row: usize,
) {
    let x: [&[f32]; ROWS] = std::array::from_fn(|r| &x[(row + r) * x_stride..][..depth]);
    for column in (0..columns).step_by(PANEL) {
        let panel = &panels.values[column / PANEL * panels.panel_stride..][..depth * PANEL];
        let tile = multiply::<FMA, ROWS>(x, panel);
        for (r, values) in tile.iter().enumerate() {
            out[(row + r) * out_stride + column..][..PANEL].copy_from_slice(values);
        }
    }
}

/// A tile of products. Every row of `x` is as long as the panel is deep.
#[inline(always)]
fn multiply<const FMA: bool, const ROWS: usize>(x: [&[f32]; ROWS], panel: &[f32]) -> [[f32; PANEL]; ROWS] {
    #[cfg(target_arch = "x86_64")]
    if FMA {
        let depth = panel.len() / PANEL;
        assert!(x.iter().all(|row| row.len() >= depth));
        // SAFETY: bodies with `FMA` are compiled for, and run on, machines with AVX2 and FMA only; the rows are long enough.
        return unsafe { multiply_avx2(x, panel) };
    }
    multiply_plain::<FMA, ROWS>(x, panel)
}

#[inline(always)]
fn multiply_plain<const FMA: bool, const ROWS: usize>(x: [&[f32]; ROWS], panel: &[f32]) -> [[f32; PANEL]; ROWS] {
    let mut tile = [[0.0f32; PANEL]; ROWS];
    let (columns, _) = panel.as_chunks::<PANEL>();
    let x = x.map(|row| &row[..columns.len()]);
    for (k, weights) in columns.iter().enumerate() {
        for r in 0..ROWS {
            let v = x[r][k];
            for j in 0..PANEL {
                tile[r][j] = mul_add::<FMA>(v, weights[j], tile[r][j]);
            }
        }
    }
    tile
}

/// [`multiply`] with the tile in registers, which the compiler does not manage by itself.
///
/// # Safety
/// The machine has AVX2 and FMA, and every row of `x` is as long as the panel is deep.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn multiply_avx2<const ROWS: usize>(x: [&[f32]; ROWS], panel: &[f32]) -> [[f32; PANEL]; ROWS] {
    use std::arch::x86_64::{
        _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps,
    };
    let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
    let depth = panel.len() / PANEL;
    let x = x.map(<[f32]>::as_ptr);
    let panel = panel.as_ptr();
    for k in 0..depth {
        // SAFETY: `k` is below the depth, so both halves of the panel's column and one value of every row are there.
        unsafe {
            let low = _mm256_loadu_ps(panel.add(k * PANEL));
            let high = _mm256_loadu_ps(panel.add(k * PANEL + 8));
            for r in 0..ROWS {
                let v = _mm256_broadcast_ss(&*x[r].add(k));
                sums[r][0] = _mm256_fmadd_ps(v, low, sums[r][0]);
                sums[r][1] = _mm256_fmadd_ps(v, high, sums[r][1]);
            }
        }
    }
    let mut tile = [[0.0; PANEL]; ROWS];
    for (row, [low, high]) in tile.iter_mut().zip(sums) {
        // SAFETY: a row of the tile is two vectors long.
        unsafe {
            _mm256_storeu_ps(row.as_mut_ptr(), low);
            _mm256_storeu_ps(row.as_mut_ptr().add(8), high);
        }
    }
    tile
}

/// Brings one row of a tile into the result.
#[inline(always)]
fn finish(values: &[f32; PANEL], out: &mut [f32], first: usize, step: &Step, epilogue: &Epilogue<'_>) {
    let mut row = *values;
    let carried = !step.first && !epilogue.add;
    if carried {
        row.iter_mut().zip(out.iter()).for_each(|(v, &o)| *v += o);
    }
    let part = first..first + out.len();
    if let Some(bias) = epilogue.bias.filter(|_| step.last) {
        row.iter_mut().zip(&bias[part.clone()]).for_each(|(v, &b)| *v += b);
    }
    // A scale is applied to the finished sum, or, when the result is added to, to each part of it.
    if let Some(scale) = epilogue.scale.filter(|_| step.last || epilogue.add) {
        row.iter_mut().zip(&scale[part]).for_each(|(v, &s)| *v *= s);
    }
    if epilogue.add {
        out.iter_mut().zip(&row).for_each(|(o, &v)| *o += v);
    } else {
        out.copy_from_slice(&row[..out.len()]);
    }
}
