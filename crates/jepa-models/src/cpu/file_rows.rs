//! A matrix as it lies in the file.

use std::ops::Range;

use bytemuck::try_cast_slice;
use half::{bf16, f16};
use jepa_gguf::{GgmlType, TensorView, quant};
use jepa_kernels::{Stored, WeightRows};

/// Rows `[outputs, inputs]` of a tensor in any type, read where they are.
pub(super) struct FileRows<'a>(pub(super) TensorView<'a>);

impl WeightRows for FileRows<'_> {
    fn outputs(&self) -> usize {
        self.0.info().row_count()
    }

    fn inputs(&self) -> usize {
        self.0.info().row_len()
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        let dtype = self.0.info().dtype();
        let bytes = |columns: usize| columns / dtype.block_len() * dtype.block_bytes();
        let row = &self.0.bytes()[output * self.0.info().row_bytes()..][..self.0.info().row_bytes()];
        quant::dequantize(dtype, &row[bytes(inputs.start)..bytes(inputs.end)], out)
            .expect("pieces of a row begin at whole blocks and end so, or with the row");
    }

    fn stored(&self) -> Stored<'_> {
        let bytes = self.0.bytes();
        // Files align their tensors; one that was read into memory may lie anywhere, and is then read value by value.
        let seen = match self.0.info().dtype() {
            GgmlType::F32 => try_cast_slice::<u8, f32>(bytes).ok().map(Stored::F32),
            GgmlType::F16 => try_cast_slice::<u8, f16>(bytes).ok().map(Stored::F16),
            GgmlType::Bf16 => try_cast_slice::<u8, bf16>(bytes).ok().map(Stored::Bf16),
            GgmlType::Q8_0 => Some(Stored::Q8_0(bytes)),
            _ => None,
        };
        seen.unwrap_or(Stored::Otherwise)
    }
}
