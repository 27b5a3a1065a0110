//! How operands are laid out for the register tiles: panels of 16 columns, and rows of words.

use std::ops::Range;

use crate::isa::AVX512;
#[cfg(target_arch = "x86_64")]
use crate::source::Source;
use crate::tile::{PANEL, STRIDE, Words};
use crate::weights::{Stored, WeightRows};

/// Values of a row that are laid out at a time: a piece stays in the first-level cache. Blocks of quantised types are at most this long.
pub(crate) const PIECE: usize = 256;

/// Words of a panel that holds `values` values in depth: whole squares of 16 by 16 are written.
pub(crate) fn panel_words(words: Words, values: usize) -> usize {
    values.next_multiple_of(words.granule()) / words.panel_values() * PANEL
}

/// Writes the panels of the outputs `columns`, `stride` words from one to the next: word `[k][j]` of one is the weight of its output `j`, input
/// `inputs.start + k` (or the pair of inputs `inputs.start + 2k`). Outputs behind the last are 0, and so are inputs behind the range.
///
/// **Shapes** `panels` at least [`panel_words`] each; `piece` 16 rows of [`PIECE`] values, scratch.
#[inline(always)]
pub(crate) fn weights_panels<const SET: u8>(
    words: Words,
    weights: &dyn WeightRows,
    columns: Range<usize>,
    inputs: Range<usize>,
    panels: &mut [f32],
    stride: usize,
    piece: &mut [f32],
) {
    if let Stored::Columns(values) = weights.stored() {
        let outputs = weights.outputs();
        return columns_panels(
            words,
            &values[inputs.start * outputs..],
            outputs,
            inputs.len(),
            columns,
            panels,
            stride,
        );
    }
    for (panel, first) in panels.chunks_exact_mut(stride).zip(columns.step_by(PANEL)) {
        weights_panel::<SET>(words, weights, first, inputs.clone(), panel, piece);
    }
}

/// One panel of [`weights_panels`], from rows.
#[inline(always)]
fn weights_panel<const SET: u8>(
    words: Words,
    weights: &dyn WeightRows,
    first: usize,
    inputs: Range<usize>,
    panel: &mut [f32],
    piece: &mut [f32],
) {
    let (outputs, depth, total) = (weights.outputs(), inputs.len(), weights.inputs());
    let width = (outputs - first).min(PANEL);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if SET >= AVX512 && width == PANEL {
        done = depth - depth % words.granule();
        let part = inputs.start..inputs.start + done;
        match Source::of(weights, first..first + PANEL) {
            Some(source) => x86::rows_panel(words, source, total, part, panel),
            None => done = 0,
        }
    }
    for start in (done..depth).step_by(PIECE) {
        let len = PIECE.min(depth - start);
        let padded = len.next_multiple_of(words.granule());
        let at = inputs.start + start..inputs.start + start + len;
        for (j, row) in piece.chunks_exact_mut(PIECE).enumerate() {
            if j < width {
                weights.row(first + j, at.clone(), &mut row[..len]);
                row[len..padded].fill(0.0);
            } else {
                row[..padded].fill(0.0);
            }
        }
        rows_panel::<SET>(words, piece, PIECE, padded, &mut panel[panel_words(words, start)..]);
    }
}

/// Writes a panel from 16 rows of f32, `row_stride` apart. `depth` is whole granules.
#[inline(always)]
pub(crate) fn rows_panel<const SET: u8>(
    words: Words,
    rows: &[f32],
    row_stride: usize,
    depth: usize,
    panel: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if SET >= AVX512 {
        return x86::rows_panel(words, Source::F32(rows), row_stride, 0..depth, panel);
    }
    let _ = words;
    let (columns, _) = panel[..depth * PANEL].as_chunks_mut::<PANEL>();
    for (k, column) in columns.iter_mut().enumerate() {
        for (j, value) in column.iter_mut().enumerate() {
            *value = rows[j * row_stride + k];
        }
    }
}

/// Writes panels from `depth` rows of f32, `row_stride` apart, whose values `columns` are the panels' columns. Rows may be far apart, so
/// that they are asked for before they are read.
#[inline(always)]
pub(crate) fn columns_panels(
    words: Words,
    values: &[f32],
    row_stride: usize,
    depth: usize,
    columns: Range<usize>,
    panels: &mut [f32],
    stride: usize,
) {
    if words == Words::F32 {
        // A few rows of one panel, then of the next: so many panels do not fit in the first-level cache at once.
        for k in (0..depth).step_by(AHEAD) {
            let rows = k..(k + AHEAD).min(depth);
            for k in rows.clone() {
                ahead(values, (k + AHEAD) * row_stride + columns.start, columns.len());
            }
            for (panel, first) in panels.chunks_exact_mut(stride).zip(columns.clone().step_by(PANEL)) {
                let (panel, _) = panel.as_chunks_mut::<PANEL>();
                for k in rows.clone() {
                    panel[k] = vector(&values[k * row_stride..][first..(first + PANEL).min(columns.end)]);
                }
            }
        }
        return;
    }
    // A row behind the last is 0.
    let part = |k: usize, first: usize| match k < depth {
        true => vector(&values[k * row_stride..][first..(first + PANEL).min(columns.end)]),
        false => [0.0; PANEL],
    };
    let granule = words.granule();
    for k in (0..depth.next_multiple_of(granule)).step_by(2) {
        let at = k / granule * (granule / words.panel_values()) + k % granule / 2;
        for k in [k, k + 1] {
            ahead(values, (k + AHEAD) * row_stride + columns.start, columns.len());
        }
        for (panel, first) in panels.chunks_exact_mut(stride).zip(columns.clone().step_by(PANEL)) {
            let (panel, _) = panel.as_chunks_mut::<PANEL>();
            let (low, high) = (part(k, first), part(k + 1, first));
            if words == Words::Bf16Split {
                pair_up(low.map(nearest), high.map(nearest), &mut panel[at]);
                pair_up(low.map(rest), high.map(rest), &mut panel[at + PANEL]);
            } else {
                pair_up(low, high, &mut panel[at]);
            }
        }
    }
}

/// Rows that are asked for before they are read: each begins in another page, where no processor looks by itself.
const AHEAD: usize = 8;

/// Asks for `len` values from `first` on, if they are there.
#[inline(always)]
fn ahead(values: &[f32], first: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if first + len <= values.len() {
        for line in (first..first + len).step_by(PANEL) {
            // SAFETY: asking for memory that is there; nothing is read.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(values.as_ptr().add(line).cast())
            };
        }
    }
}

#[inline(always)]
fn pair_up(low: [f32; PANEL], high: [f32; PANEL], out: &mut [f32; PANEL]) {
    for (word, (&low, &high)) in out.iter_mut().zip(low.iter().zip(&high)) {
        *word = f32::from_bits(bf16_bits(low) >> 16 | bf16_bits(high));
    }
}

/// 16 values or fewer, filled up with 0.
#[inline(always)]
pub(crate) fn vector(values: &[f32]) -> [f32; PANEL] {
    // A whole vector is a load and a store; of any other length, a call.
    <[f32; PANEL]>::try_from(values).unwrap_or_else(|_| {
        let mut vector = [0.0; PANEL];
        vector[..values.len()].copy_from_slice(values);
        vector
    })
}

/// Copies a row into words; bf16 is filled up with 0 to whole granules, for which `out` has room.
#[inline(always)]
pub(crate) fn row_words<const SET: u8>(words: Words, row: &[f32], out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if SET >= AVX512 && words != Words::F32 {
        let whole = row.len() - row.len() % words.granule();
        x86::row_words(words, &row[..whole], out);
        if whole < row.len() {
            let mut granule = [0.0; 2 * PANEL];
            granule[..row.len() - whole].copy_from_slice(&row[whole..]);
            x86::row_words(words, &granule, &mut out[words.of(whole)..]);
        }
        return;
    }
    let _ = words;
    out[..row.len()].copy_from_slice(row);
}

/// Copies `count` rows of `depth` values, `row_stride` apart, into rows of words, [`STRIDE`] apart.
#[inline(always)]
pub(crate) fn rows_words<const SET: u8>(
    words: Words,
    x: &[f32],
    row_stride: usize,
    count: usize,
    depth: Range<usize>,
    out: &mut [f32],
) {
    for (r, out) in out.chunks_mut(STRIDE).enumerate().take(count) {
        row_words::<SET>(words, &x[r * row_stride..][depth.clone()], out);
    }
}

/// The bf16 next to `x`, ties to even, as the upper half of 32 bits. NaN stays NaN.
#[inline(always)]
fn bf16_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    (if x.is_nan() { bits | 0x0040_0000 } else { rounded }) & 0xffff_0000
}

/// The bf16 that stands for most of a split value. Beyond the largest one it is that and not infinite: what it leaves of an infinite value is infinite
/// then, and their products are what those of f32 are.
#[inline(always)]
fn nearest(x: f32) -> f32 {
    f32::from_bits(bf16_bits(x.clamp(-LARGEST, LARGEST)))
}

/// What [`nearest`] leaves of a value, before it is rounded itself.
#[inline(always)]
fn rest(x: f32) -> f32 {
    x - nearest(x)
}

/// The largest finite bf16.
const LARGEST: f32 = f32::from_bits(0x7f7f_0000);

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;
