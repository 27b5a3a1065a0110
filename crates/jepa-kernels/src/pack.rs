//! How operands are laid out for the register tiles: panels of 16 columns, and rows of words.

use std::ops::Range;

use crate::isa::AVX512;
use crate::tile::{PANEL, STRIDE, Words};
use crate::weights::{Q8_0_BYTES, Q8_0_VALUES, Stored, WeightRows};

/// Values of a row that are laid out at a time: a piece stays in the first-level cache. Blocks of quantised types are at most this long.
pub(crate) const PIECE: usize = 256;

/// Words of a panel that holds `values` values in depth: whole squares of 16 by 16 are written.
pub(crate) fn panel_words(words: Words, values: usize) -> usize {
    words.of(values).next_multiple_of(PANEL) * PANEL
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
    let stored = weights.stored();
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if SET == AVX512 && width == PANEL {
        done = depth - depth % (PANEL * words.values());
        let part = inputs.start..inputs.start + done;
        // Elements of the memory from the first row on, and of one row: all 16 rows must be there.
        let sixteen = |len: usize, row: usize| (first * row..(first + PANEL) * row, len >= (first + PANEL) * row);
        let known = match stored {
            Stored::F32(values) => match sixteen(values.len(), total) {
                (rows, true) => Some(x86::Source::F32(&values[rows])),
                _ => None,
            },
            Stored::F16(values) => match sixteen(values.len(), total) {
                (rows, true) => Some(x86::Source::F16(&values[rows])),
                _ => None,
            },
            Stored::Bf16(values) => match sixteen(values.len(), total) {
                (rows, true) => Some(x86::Source::Bf16(&values[rows])),
                _ => None,
            },
            Stored::Q8_0(bytes) if total.is_multiple_of(Q8_0_VALUES) => {
                match sixteen(bytes.len(), total / Q8_0_VALUES * Q8_0_BYTES) {
                    (rows, true) => Some(x86::Source::Q8_0(&bytes[rows])),
                    _ => None,
                }
            }
            _ => None,
        };
        match known {
            Some(source) => x86::rows_panel(words, source, total, part, panel),
            None => done = 0,
        }
    }
    for start in (done..depth).step_by(PIECE) {
        let len = PIECE.min(depth - start);
        let padded = len.next_multiple_of(PANEL * words.values());
        let at = inputs.start + start..inputs.start + start + len;
        for (j, row) in piece.chunks_exact_mut(PIECE).enumerate() {
            if j < width {
                weights.row(first + j, at.clone(), &mut row[..len]);
                row[len..padded].fill(0.0);
            } else {
                row[..padded].fill(0.0);
            }
        }
        rows_panel::<SET>(words, piece, PIECE, padded, &mut panel[words.of(start) * PANEL..]);
    }
}

/// Writes a panel from 16 rows of f32, `row_stride` apart. `depth` is a multiple of 16 words.
#[inline(always)]
pub(crate) fn rows_panel<const SET: u8>(
    words: Words,
    rows: &[f32],
    row_stride: usize,
    depth: usize,
    panel: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if SET == AVX512 {
        return x86::rows_panel(words, x86::Source::F32(rows), row_stride, 0..depth, panel);
    }
    let _ = words;
    let (columns, _) = panel[..depth * PANEL].as_chunks_mut::<PANEL>();
    for (k, column) in columns.iter_mut().enumerate() {
        for (j, value) in column.iter_mut().enumerate() {
            *value = rows[j * row_stride + k];
        }
    }
}

/// Writes panels from `depth` rows of f32, `row_stride` apart, whose values `columns` are the panels' columns. A row is read from end to end, since
/// the next one may be far away.
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
    let row = |k: usize| values[k * row_stride..][columns.clone()].chunks(PANEL);
    for k in 0..words.of(depth) {
        let out = panels.chunks_exact_mut(stride).map(|panel| &mut panel.as_chunks_mut::<PANEL>().0[k]);
        match words {
            Words::F32 => out.zip(row(k)).for_each(|(out, values)| *out = vector(values)),
            Words::Bf16Pairs if 2 * k + 1 < depth => {
                out.zip(row(2 * k).zip(row(2 * k + 1))).for_each(|(out, (low, high))| {
                    pair_up(vector(low), vector(high), out);
                });
            }
            Words::Bf16Pairs => out.zip(row(2 * k)).for_each(|(out, low)| pair_up(vector(low), [0.0; PANEL], out)),
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
fn vector(values: &[f32]) -> [f32; PANEL] {
    // A whole vector is a load and a store; of any other length, a call.
    <[f32; PANEL]>::try_from(values).unwrap_or_else(|_| {
        let mut vector = [0.0; PANEL];
        vector[..values.len()].copy_from_slice(values);
        vector
    })
}

/// Copies a row into words, the last one filled up with 0.
#[inline(always)]
pub(crate) fn row_words<const SET: u8>(words: Words, row: &[f32], out: &mut [f32]) {
    match words {
        Words::F32 => out[..row.len()].copy_from_slice(row),
        Words::Bf16Pairs => {
            let mut done = 0;
            #[cfg(target_arch = "x86_64")]
            if SET == AVX512 {
                done = row.len() / 32 * 32;
                x86::pairs(&row[..done], &mut out[..done / 2]);
            }
            for (word, pair) in out[done / 2..].iter_mut().zip(row[done..].chunks(2)) {
                let high = pair.get(1).map_or(0, |&v| bf16_bits(v));
                *word = f32::from_bits(bf16_bits(pair[0]) >> 16 | high);
            }
        }
    }
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

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;
