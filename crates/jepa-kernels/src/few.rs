//! Products of a few rows: there is too little to do with a weight to lay it out for it, so that rows of weights are read where they lie, once, and
//! multiplied as vectors of 16 inputs, or, where they are columns, of outputs. Operands are f32 at every precision, since reading takes the time.

use std::arch::x86_64::{__m512, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_reduce_add_ps, _mm512_setzero_ps};
use std::ops::Range;

use crate::source::{BF16, F16, F32, Layout, Q8_0, Source, sixteen};
use crate::tile::{PANEL, Words};
use crate::vector::mul_add;
use crate::weights::WeightRows;

/// Most rows of [`sums`].
pub(crate) const FEW: usize = 8;

/// Most rows for which this is faster, measured: bf16 pairs catch up earlier.
pub(crate) fn most_rows(words: Words) -> usize {
    if words == Words::Bf16Pairs { 5 } else { FEW }
}

/// Sums of all inputs, of up to 16 outputs from `first` on: `[rows][16]`.
///
/// **Shapes** `x` `[rows, inputs]`, at most [`FEW`] rows; `source` the rows of these outputs.
///
/// The caller runs on a machine with AVX-512.
pub(crate) fn sums(x: &[f32], source: Source<'_>, weights: &dyn WeightRows, first: usize) -> [[f32; PANEL]; FEW] {
    let inputs = weights.inputs();
    let rows = x.len() / inputs;
    let Layout { bytes, row_bytes, rows: outputs } = source.layout(inputs);
    assert!((1..=FEW).contains(&rows) && outputs <= PANEL, "few rows: sizes");
    let form = match source {
        Source::F32(_) => F32,
        Source::F16(_) => F16,
        Source::Bf16(_) => BF16,
        Source::Q8_0(_) => Q8_0,
    };
    let [ones, groups] = &KERNELS[usize::from(form)];
    // Of more rows than a kernel takes, the second half finds the weights in the first-level cache.
    let halves = if rows > ONCE { [0..HALF, HALF..rows] } else { [0..rows, rows..rows] };
    let group = GROUPS[halves[0].len() - 1];
    let mut sums = [[0.0; PANEL]; FEW];
    let mut j = 0;
    while j < outputs {
        let (kernels, n) = if j + group <= outputs { (groups, group) } else { (ones, 1) };
        for half in halves.iter().filter(|half| !half.is_empty()) {
            let (x, sums) = (&x[half.start * inputs..], &mut sums[half.start..]);
            // SAFETY: the machine has the instructions (the caller's promise); there are as many rows of x and of sums as the half has, and as many rows
            // of weights from `j` on as the kernel takes; it writes columns below 16.
            unsafe {
                let sums = sums.as_mut_ptr().cast::<f32>().add(j);
                kernels[half.len() - 1](x.as_ptr(), inputs, bytes.add(j * row_bytes), row_bytes, sums);
            }
        }
        j += n;
    }
    let tail = inputs - inputs % PANEL..inputs;
    if !tail.is_empty() {
        let mut row = [0.0; PANEL];
        let row = &mut row[..tail.len()];
        for j in 0..outputs {
            weights.row(first + j, tail.clone(), row);
            for (sums, x) in sums.iter_mut().zip(x.chunks_exact(inputs)) {
                sums[j] += x[tail.clone()].iter().zip(&*row).map(|(x, w)| x * w).sum::<f32>();
            }
        }
    }
    sums
}

/// Rows, values from one to the next, weights, bytes from one row of these to the next, and sums, rows of 16.
type Kernel = unsafe fn(*const f32, usize, *const u8, usize, *mut f32);

/// As [`sums`], of columns `[inputs, outputs]`: `[rows][columns.len()]`. Some inputs at a time go through all these outputs, so that memory is read in
/// its own order.
#[inline(always)]
pub(crate) fn columns_sums<const SET: u8>(
    x: &[f32],
    inputs: usize,
    values: &[f32],
    columns: Range<usize>,
    sums: &mut [f32],
) {
    let (outputs, width) = (values.len() / inputs, columns.len());
    sums.fill(0.0);
    let mut k = 0;
    while k < inputs {
        // Missing inputs are any, times 0.
        let there = (inputs - k).min(TOGETHER);
        let rows: [&[f32]; TOGETHER] =
            std::array::from_fn(|i| &values[(k + i.min(there - 1)) * outputs..][columns.clone()]);
        for first in (0..width).step_by(CHUNK) {
            let part = first..(first + CHUNK).min(width);
            let [a, b, c, d] = rows.map(|row| &row[part.clone()]);
            for (sums, x) in sums.chunks_exact_mut(width).zip(x.chunks_exact(inputs)) {
                let v: [f32; TOGETHER] = std::array::from_fn(|i| if i < there { x[k + i] } else { 0.0 });
                let weights = a.iter().zip(b).zip(c.iter().zip(d));
                for (sum, ((&a, &b), (&c, &d))) in sums[part.clone()].iter_mut().zip(weights) {
                    let low = mul_add::<SET>(v[1], b, mul_add::<SET>(v[0], a, *sum));
                    *sum = mul_add::<SET>(v[3], d, mul_add::<SET>(v[2], c, low));
                }
            }
        }
        k += there;
    }
}

/// Inputs of a column that are taken together: a sum is loaded and stored once for them.
const TOGETHER: usize = 4;

/// Outputs whose weights stay in the first-level cache from row to row.
const CHUNK: usize = 512;

/// Most rows of a kernel, and rows of the first one where there are more.
const ONCE: usize = 6;
const HALF: usize = 4;

/// Outputs that are summed together, by number of rows less 1: enough chains of sums to hide an addition's latency, and few enough that the compiler
/// keeps them in registers. Both halves of more rows have the same number.
const GROUPS: [usize; ONCE] = [8, 4, 3, 3, 2, 2];

macro_rules! kernels {
    ($form:ident) => {
        [
            [
                sums_of::<$form, 1, 1>,
                sums_of::<$form, 2, 1>,
                sums_of::<$form, 3, 1>,
                sums_of::<$form, 4, 1>,
                sums_of::<$form, 5, 1>,
                sums_of::<$form, 6, 1>,
            ],
            [
                sums_of::<$form, 1, { GROUPS[0] }>,
                sums_of::<$form, 2, { GROUPS[1] }>,
                sums_of::<$form, 3, { GROUPS[2] }>,
                sums_of::<$form, 4, { GROUPS[3] }>,
                sums_of::<$form, 5, { GROUPS[4] }>,
                sums_of::<$form, 6, { GROUPS[5] }>,
            ],
        ]
    };
}

/// By form, whether there is one output or a group, and rows less 1.
const KERNELS: [[[Kernel; ONCE]; 2]; 4] = [kernels!(F32), kernels!(F16), kernels!(BF16), kernels!(Q8_0)];

/// # Safety
/// The machine has AVX-512; there are `ROWS` rows of `inputs` values, `OUTPUTS` rows of weights and sums for both.
#[target_feature(enable = "avx512f,f16c")]
unsafe fn sums_of<const FORM: u8, const ROWS: usize, const OUTPUTS: usize>(
    x: *const f32,
    inputs: usize,
    weights: *const u8,
    row_bytes: usize,
    out: *mut f32,
) {
    let mut sums = [[_mm512_setzero_ps(); OUTPUTS]; ROWS];
    for k in (0..inputs / PANEL * PANEL).step_by(PANEL) {
        let mut columns: [__m512; OUTPUTS] = [_mm512_setzero_ps(); OUTPUTS];
        for (j, column) in columns.iter_mut().enumerate() {
            // SAFETY: the caller's promise; `k` is 16 values before the end at most.
            *column = unsafe { sixteen::<FORM>(weights.add(j * row_bytes), k) };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as above.
            let v = unsafe { _mm512_loadu_ps(x.add(r * inputs + k)) };
            for (sum, &column) in sums.iter_mut().zip(&columns) {
                *sum = _mm512_fmadd_ps(v, column, *sum);
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        for (j, sum) in sums.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { *out.add(r * PANEL + j) = _mm512_reduce_add_ps(sum) };
        }
    }
}
