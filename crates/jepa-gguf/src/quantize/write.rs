//! Writes a plan: tensor after tensor, each in batches of rows, the rows of a batch on all cores.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::error::RoundingError;
use super::plan::{Plan, PlannedTensor};
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::quant;
use crate::tensor::TensorView;
use crate::writer::TensorWriter;

/// Values that are unpacked before the first of them is written.
const BATCH_VALUES: usize = 1 << 22;
/// Values that one thread takes at a time.
const TASK_VALUES: usize = 1 << 16;

/// A tensor that has been written.
#[derive(Clone, Copy, Debug)]
pub struct WrittenTensor<'a> {
    /// What it was and what it is.
    pub planned: &'a PlannedTensor<'a>,
    /// How far its values moved; zero for one that was copied.
    pub error: RoundingError,
}

/// A plan whose file has been opened.
///
/// Dropped before [`Quantization::finish`] it leaves nothing behind.
#[derive(Debug)]
pub struct Quantization<'p, 'a> {
    plan: &'p Plan<'a>,
    out: TensorWriter,
}

impl<'p, 'a> Quantization<'p, 'a> {
    pub(super) fn new(plan: &'p Plan<'a>, out: TensorWriter) -> Self {
        Self { plan, out }
    }

    /// The temporary file, for who has to remove it when the process is told to end.
    pub fn temporary_path(&self) -> &Path {
        self.out.temporary_path()
    }

    /// Writes all tensors, tells `written` after each, and gives the file its name. A file that had the name before is replaced.
    ///
    /// # Errors
    /// [`GgufError::WeightRange`] for a weight that its type cannot hold; or the file cannot be written. Then nothing
    /// appears under the name.
    pub fn finish(mut self, mut written: impl FnMut(WrittenTensor<'p>)) -> Result<(), GgufError>
    where
        'a: 'p,
    {
        for planned in &self.plan.tensors {
            let view = self.plan.bundle.gguf().tensor(planned.info.name()).expect("planned from this file");
            self.out.start(planned.info.name())?;
            let error = if planned.dtype == planned.info.dtype() {
                copy(&view, &mut self.out)?;
                RoundingError::default()
            } else {
                let read = |rows: Range<usize>, out: &mut [f32]| view.dequantize_rows(rows, out);
                let info = planned.info;
                let rows = Rows { tensor: info.name(), len: info.row_len(), count: info.row_count(), read: &read };
                pack(&rows, planned.dtype, planned.importance.as_deref(), &mut self.out)?
            };
            self.plan.bundle.gguf().release(planned.info.name());
            written(WrittenTensor { planned, error });
        }
        self.out.finish()
    }
}

/// Writes a tensor as it is stored.
pub(crate) fn copy(view: &TensorView<'_>, out: &mut TensorWriter) -> Result<(), GgufError> {
    view.bytes().chunks(BATCH_VALUES).try_for_each(|piece| out.piece(piece))
}

/// Gives the values of some rows of a tensor.
pub(crate) type ReadRows<'a> = dyn Fn(Range<usize>, &mut [f32]) -> Result<(), GgufError> + Sync + 'a;

/// A tensor of floats that is to be packed, whatever its values come from.
pub(crate) struct Rows<'a> {
    /// Name, for messages.
    pub(crate) tensor: &'a str,
    /// Values of a row.
    pub(crate) len: usize,
    pub(crate) count: usize,
    /// Gives the values of some rows.
    pub(crate) read: &'a ReadRows<'a>,
}

/// Packs a tensor, batch after batch, into the file that has been told of its start; gives what that cost.
pub(crate) fn pack(
    rows: &Rows<'_>,
    dtype: GgmlType,
    importance: Option<&[f32]>,
    out: &mut TensorWriter,
) -> Result<RoundingError, GgufError> {
    let row_bytes = rows.len / dtype.block_len() * dtype.block_bytes();
    let task_rows = (TASK_VALUES / rows.len).max(1);
    let batch_rows = (BATCH_VALUES / rows.len).next_multiple_of(task_rows).max(task_rows);
    let mut packed = vec![0; batch_rows.min(rows.count) * row_bytes];
    let mut error = RoundingError::default();
    for first in (0..rows.count).step_by(batch_rows) {
        let packed = &mut packed[..batch_rows.min(rows.count - first) * row_bytes];
        // Errors are collected and then added in the order of the rows: the sum is the same on any number of threads.
        let errors: Vec<_> = packed
            .par_chunks_mut(task_rows * row_bytes)
            .enumerate()
            .map_init(Buffers::default, |buffers, (task, packed)| {
                let start = first + task * task_rows;
                buffers.pack(rows, start..start + packed.len() / row_bytes, dtype, importance, packed)
            })
            .collect::<Result<_, _>>()?;
        error = errors.into_iter().fold(error, RoundingError::and);
        out.piece(packed)?;
    }
    Ok(error)
}

/// What one thread works in.
#[derive(Default)]
struct Buffers {
    values: Vec<f32>,
    rounded: Vec<f32>,
}

impl Buffers {
    /// Packs the rows `range` into `packed` and measures what that cost.
    fn pack(
        &mut self,
        rows: &Rows<'_>,
        range: Range<usize>,
        dtype: GgmlType,
        importance: Option<&[f32]>,
        packed: &mut [u8],
    ) -> Result<RoundingError, GgufError> {
        let first = range.start;
        let n = range.len() * rows.len;
        self.values.resize(n, 0.0);
        self.rounded.resize(n, 0.0);
        (rows.read)(range, &mut self.values)?;
        if let Some((at, found)) = quant::out_of_range(dtype, &self.values) {
            let (row, column) = (first + at / rows.len, at % rows.len);
            return Err(GgufError::WeightRange { tensor: rows.tensor.to_owned(), row, column, found, dtype });
        }
        quant::quantize(dtype, &self.values, rows.len, importance, packed)?;
        quant::dequantize(dtype, packed, &mut self.rounded)?;
        Ok(RoundingError::of(&self.values, &self.rounded))
    }
}
