//! One tensor of a file: what the table says, and its bytes.

use std::ops::Range;
use std::sync::Arc;

use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::file::Gguf;
use crate::quant;

/// What the tensor table says about one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: GgmlType,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl TensorInfo {
    /// Checks that a tensor of this shape has a size: no dimension of 0, whole blocks in a row, all products in range.
    ///
    /// `shape` has the rows first, as in PyTorch; `offset` counts from the start of the tensor data.
    pub(crate) fn new(name: String, shape: Vec<u64>, dtype: GgmlType, offset: u64) -> Result<Self, GgufError> {
        if shape.contains(&0) {
            return Err(GgufError::ZeroDimension { tensor: name, shape });
        }
        let (&row, outer) = shape.split_last().ok_or_else(|| GgufError::Rank { tensor: name.clone(), found: 0 })?;
        let block = dtype.block_len() as u64;
        if row % block != 0 {
            return Err(GgufError::RowLength { tensor: name, row, dtype, block });
        }
        // The element count has to fit as well: a type of less than one byte per value has more elements than bytes.
        let rows = outer.iter().try_fold(1_u64, |n, &d| n.checked_mul(d));
        let bytes = rows.zip(dtype.row_bytes(row)).and_then(|(n, r)| n.checked_mul(r));
        let elements = rows.and_then(|n| n.checked_mul(row)).filter(|&n| isize::try_from(n).is_ok());
        let sizes: Option<Vec<usize>> = shape.iter().map(|&d| usize::try_from(d).ok()).collect();
        match (bytes, elements, sizes) {
            (Some(bytes), Some(_), Some(shape)) if isize::try_from(bytes).is_ok() => {
                Ok(Self { name, shape, dtype, offset, bytes })
            }
            _ => Err(GgufError::TooManyElements { tensor: name, shape }),
        }
    }

    /// The tensor's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sizes with the rows first, as in PyTorch; the last one is ggml's `ne[0]`.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How its values are stored.
    pub fn dtype(&self) -> GgmlType {
        self.dtype
    }

    /// Where it starts, counted from the start of the tensor data.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes it has.
    pub fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// How many values it has.
    pub fn element_count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Values in one row: the last size.
    pub fn row_len(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// How many rows it has: the product of all sizes but the last.
    pub fn row_count(&self) -> usize {
        self.element_count() / self.row_len()
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.row_len() / self.dtype.block_len() * self.dtype.block_bytes()
    }
}

/// A tensor of an open file: its description and its bytes, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    pub(crate) info: &'a TensorInfo,
    pub(crate) bytes: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// What the tensor table says.
    pub fn info(&self) -> &'a TensorInfo {
        self.info
    }

    /// The tensor as it is stored. No alignment in memory is promised.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Rows `rows` as f32, into a buffer of exactly that many values.
    ///
    /// Rows are independent of each other, so a tensor can be streamed through a small buffer.
    ///
    /// # Errors
    /// [`GgufError::RowRange`] for rows that do not exist, [`GgufError::BufferLength`] for a buffer of another length.
    pub fn dequantize_rows(&self, rows: Range<usize>, out: &mut [f32]) -> Result<(), GgufError> {
        quant::dequantize(self.info.dtype, self.row_bytes_of(rows)?, out)
    }

    /// The stored bytes of rows `rows`.
    ///
    /// # Errors
    /// [`GgufError::RowRange`] for rows that do not exist.
    pub fn row_bytes_of(&self, rows: Range<usize>) -> Result<&'a [u8], GgufError> {
        let width = self.info.row_bytes();
        let there = rows.start <= rows.end && rows.end <= self.info.row_count();
        there.then(|| self.bytes.get(rows.start * width..rows.end * width)).flatten().ok_or(GgufError::RowRange {
            start: rows.start,
            end: rows.end,
            rows: self.info.row_count(),
        })
    }

    /// All values as f32, row after row.
    pub fn to_f32(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.info.element_count()];
        quant::dequantize(self.info.dtype, self.bytes, &mut out).expect("the buffer was made for this tensor");
        out
    }
}

/// A tensor of an open file that keeps the file open: what a lazy weight holds on to.
#[derive(Clone, Debug)]
pub struct TensorHandle {
    file: Arc<Gguf>,
    index: usize,
}

impl TensorHandle {
    /// A handle for the tensor called `name`; `None` when the file has none.
    pub fn new(file: &Arc<Gguf>, name: &str) -> Option<Self> {
        file.index_of(name).map(|index| Self { file: Arc::clone(file), index })
    }

    /// Description and bytes.
    pub fn view(&self) -> TensorView<'_> {
        self.file.view(self.index)
    }

    /// What the tensor table says.
    pub fn info(&self) -> &TensorInfo {
        &self.file.tensors()[self.index]
    }

    /// The file it belongs to.
    pub fn gguf(&self) -> &Arc<Gguf> {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(shape: &[u64], dtype: GgmlType) -> Result<TensorInfo, GgufError> {
        TensorInfo::new("t".to_owned(), shape.to_vec(), dtype, 0)
    }

    #[test]
    fn sizes_follow_from_shape_and_type() {
        let t = info(&[3, 2, 64], GgmlType::Q8_0).unwrap();
        assert_eq!((t.row_count(), t.row_len(), t.row_bytes(), t.byte_len()), (6, 64, 68, 408));
    }

    #[test]
    fn refuses_sizes_that_wrap_or_vanish() {
        assert!(matches!(info(&[1 << 62], GgmlType::F32), Err(GgufError::TooManyElements { .. })));
        assert!(matches!(info(&[1 << 32, 1 << 32], GgmlType::F32), Err(GgufError::TooManyElements { .. })));
        assert!(matches!(info(&[1 << 31, 1 << 32], GgmlType::Q2K), Err(GgufError::TooManyElements { .. })));
        assert!(matches!(info(&[4, 0], GgmlType::F32), Err(GgufError::ZeroDimension { .. })));
        assert!(matches!(info(&[4, 48], GgmlType::Q4_0), Err(GgufError::RowLength { .. })));
        assert!(matches!(info(&[], GgmlType::F32), Err(GgufError::Rank { .. })));
    }
}
