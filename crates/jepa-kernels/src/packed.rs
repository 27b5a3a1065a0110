//! Matrices whose panels are kept: as bf16 they take no more memory than the matrix, and a product need not lay it out again.

use std::ops::Range;
use std::sync::OnceLock;

use memmap2::{MmapMut, MmapOptions};
use rayon::prelude::*;

use crate::isa::{Isa, compiled_for_each_isa};
use crate::lines::Lines;
use crate::pack::{PIECE, panel_words, weights_panels};
use crate::tile::{DEPTH, PANEL, Panels, Words};
use crate::weights::WeightRows;

/// A place beside a matrix where it is kept as bf16, see [`WeightRows::packed`]: two bytes per weight.
///
/// The first product fills it that has bf16 weights for operands, as [`Precision::Medium`](crate::Precision::Medium) has on some machines. From then on
/// such products read it and not the matrix, with the same results, bit for bit. Where there is no memory for it, the matrix goes on being read.
#[derive(Default)]
pub struct PackedWeights(OnceLock<Option<MmapMut>>);

impl PackedWeights {
    /// Whether it holds the matrix.
    pub fn is_filled(&self) -> bool {
        matches!(self.0.get(), Some(Some(_)))
    }

    /// The panels of `weights`, which is the same matrix at every call.
    pub(crate) fn of(&self, isa: Isa, weights: &dyn WeightRows) -> Option<Packed<'_>> {
        // Two that come first together both lay it out and one result is dropped: to wait within a thread pool could be to wait for oneself.
        let memory = self.0.get().unwrap_or_else(|| {
            let memory = laid_out(isa, weights).ok();
            self.0.get_or_init(|| memory)
        });
        let words = bytemuck::cast_slice(memory.as_ref()?);
        Some(Packed { words, outputs: weights.outputs(), inputs: weights.inputs() })
    }
}

impl std::fmt::Debug for PackedWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedWeights").field("filled", &self.is_filled()).finish()
    }
}

/// All panels of a matrix: slice after slice of [`SLICE`] inputs, in each those of all outputs.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    words: &'a [f32],
    outputs: usize,
    inputs: usize,
}

impl<'a> Packed<'a> {
    /// The panels from that of output `first` on, from the input `input` to the end of its slice.
    pub(crate) fn panels(self, input: usize, first: usize) -> Panels<'a> {
        let start = input - input % SLICE;
        let words = &self.words[slice_start(self.outputs, start)..];
        let stride = panel_words(WORDS, SLICE.min(self.inputs - start));
        Panels { words, stride }.from(first / PANEL, (input - start) / WORDS.panel_values())
    }
}

/// How the words are laid out.
const WORDS: Words = Words::Bf16Pairs;

/// Inputs of a slice: those that a product sums at a time, once or twice.
const SLICE: usize = 2 * DEPTH;

/// Where the slice begins whose first input is `input`.
fn slice_start(outputs: usize, input: usize) -> usize {
    outputs.div_ceil(PANEL) * panel_words(WORDS, input)
}

/// Panels that a task lays out.
const TOGETHER: usize = 8;

fn laid_out(isa: Isa, weights: &dyn WeightRows) -> std::io::Result<MmapMut> {
    let (outputs, inputs) = (weights.outputs(), weights.inputs());
    let mut memory = MmapOptions::new().len(slice_start(outputs, inputs) * size_of::<f32>()).populate().map_anon()?;
    let mut words = bytemuck::cast_slice_mut::<u8, f32>(&mut memory);
    for start in (0..inputs).step_by(SLICE) {
        let slice = start..(start + SLICE).min(inputs);
        let stride = panel_words(WORDS, slice.len());
        let (panels, rest) = words.split_at_mut(outputs.div_ceil(PANEL) * stride);
        panels.par_chunks_mut(TOGETHER * stride).enumerate().for_each(|(task, panels)| {
            let first = task * TOGETHER * PANEL;
            panels_of(isa, weights, &(first..(first + TOGETHER * PANEL).min(outputs)), &slice, panels);
        });
        words = rest;
    }
    Ok(memory)
}

compiled_for_each_isa!(
    fn panels_of(weights: &dyn WeightRows, columns: &Range<usize>, slice: &Range<usize>, panels: &mut [f32]) =
        panels_body
);

#[inline(always)]
fn panels_body<const SET: u8>(
    weights: &dyn WeightRows,
    columns: &Range<usize>,
    slice: &Range<usize>,
    panels: &mut [f32],
) {
    let mut piece = Lines::default();
    piece.grow(PANEL * PIECE);
    let stride = panel_words(WORDS, slice.len());
    weights_panels::<SET>(WORDS, weights, columns.clone(), slice.clone(), panels, stride, &mut piece);
}
