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

/// Writes the panel of the outputs from `first` on: word `[k][j]` is the weight of output `first + j`, input `inputs.start + k` (or the pair of inputs
/// `inputs.start + 2k`). Outputs behind the last are 0, and so are inputs behind the range.
///
/// **Shapes** `panel` at least [`panel_words`]; `piece` 16 rows of [`PIECE`] values, scratch.
#[inline(always)]
pub(crate) fn weights_panel<const SET: u8>(
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
    if let Stored::Columns(values) = stored {
        return columns_panel::<SET>(words, &values[inputs.start * outputs..], outputs, depth, first, width, panel);
    }
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

/// Writes a panel from `depth` rows of f32, `row_stride` apart, whose values `first` to `first + width` are the panel's columns.
#[inline(always)]
pub(crate) fn columns_panel<const SET: u8>(
    words: Words,
    values: &[f32],
    row_stride: usize,
    depth: usize,
    first: usize,
    width: usize,
    panel: &mut [f32],
) {
    let (columns, _) = panel[..words.of(depth) * PANEL].as_chunks_mut::<PANEL>();
    for (k, column) in columns.iter_mut().enumerate() {
        let row = |k: usize| &values[k * row_stride + first..][..width];
        match words {
            Words::F32 => {
                column[..width].copy_from_slice(row(k));
                column[width..].fill(0.0);
            }
            Words::Bf16Pairs => {
                let mut pair = [[0.0f32; PANEL]; 2];
                pair[0][..width].copy_from_slice(row(2 * k));
                if 2 * k + 1 < depth {
                    pair[1][..width].copy_from_slice(row(2 * k + 1));
                }
                for (word, (&low, &high)) in column.iter_mut().zip(pair[0].iter().zip(&pair[1])) {
                    *word = f32::from_bits(bf16_bits(low) >> 16 | bf16_bits(high));
                }
            }
        }
    }
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
