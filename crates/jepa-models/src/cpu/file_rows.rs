//! A matrix as it lies in the file.

use std::ops::Range;

use bytemuck::try_cast_slice;
use half::{bf16, f16};
use jepa_gguf::{GgmlType, TensorView, quant};
use jepa_kernels::{PackedWeights, Stored, WeightRows};

use crate::nn::StoredMatrix;

/// Rows `[outputs, inputs]` of a tensor in any type, read where they are.
pub(super) struct FileRows<'a> {
    tensor: TensorView<'a>,
    packed: Option<&'a PackedWeights>,
}

impl<'a> FileRows<'a> {
    pub(super) fn of(matrix: &'a StoredMatrix) -> Self {
        let tensor = matrix.handle.view();
        // The words take the place of the file's pages, which are let go. Those of a smaller type would take more, those of a file in memory both.
        let replaces = matches!(tensor.info().dtype(), GgmlType::F32 | GgmlType::F16 | GgmlType::Bf16);
        Self { tensor, packed: Some(&matrix.packed).filter(|_| replaces && matrix.handle.gguf().is_mapped()) }
    }
}

impl WeightRows for FileRows<'_> {
    fn outputs(&self) -> usize {
        self.tensor.info().row_count()
    }

    fn inputs(&self) -> usize {
        self.tensor.info().row_len()
    }

    fn row(&self, output: usize, inputs: Range<usize>, out: &mut [f32]) {
        let dtype = self.tensor.info().dtype();
        let bytes = |columns: usize| columns / dtype.block_len() * dtype.block_bytes();
        let row = &self.tensor.bytes()[output * self.tensor.info().row_bytes()..][..self.tensor.info().row_bytes()];
        quant::dequantize(dtype, &row[bytes(inputs.start)..bytes(inputs.end)], out)
            .expect("pieces of a row begin at whole blocks and end so, or with the row");
    }

    fn stored(&self) -> Stored<'_> {
        let bytes = self.tensor.bytes();
        // Files align their tensors; one that was read into memory may lie anywhere, and is then read value by value.
        let seen = match self.tensor.info().dtype() {
            GgmlType::F32 => try_cast_slice::<u8, f32>(bytes).ok().map(Stored::F32),
            GgmlType::F16 => try_cast_slice::<u8, f16>(bytes).ok().map(Stored::F16),
            GgmlType::Bf16 => try_cast_slice::<u8, bf16>(bytes).ok().map(Stored::Bf16),
            GgmlType::Q8_0 => Some(Stored::Q8_0(bytes)),
            _ => None,
        };
        seen.unwrap_or(Stored::Otherwise)
    }

    fn packed(&self) -> Option<&PackedWeights> {
        self.packed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jepa_gguf::{Access, Gguf};

    use super::*;
    use crate::nn::StoredMatrices;

    #[test]
    fn bf16_is_kept_where_it_takes_no_more_memory_than_it_gives_back() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/cases/ijepa");
        for (dtype, access, kept) in [
            ("f32", Access::Map, true),
            ("f16", Access::Map, true),
            ("q8_0", Access::Map, false),
            ("f32", Access::Read, false),
        ] {
            let file = Gguf::open_with(format!("{folder}/model-{dtype}.gguf"), access).unwrap();
            let matrices = StoredMatrices::of(&Arc::new(file), "enc.blk.0");
            let rows = FileRows::of(matrices.get("ffn_up").unwrap());
            assert_eq!(rows.packed().is_some(), kept, "{dtype} {access:?}");
        }
    }
}
