//! From parameters to tensors.

use std::path::Path;

use burn::tensor::DType;
use burn_store::TensorSnapshot;

use super::names::{is_linear, tensor_of};
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::transpose::transposed;
use crate::value::Metadata;
use crate::writer::GgufWriter;

/// Values turned into bytes at a time.
const ROUND: usize = 1 << 16;

/// Writes every parameter as an f32 tensor below `prefix`, in the order of the module's fields.
pub(super) fn write(
    snapshots: &[TensorSnapshot],
    prefix: &str,
    metadata: Metadata,
    path: &Path,
) -> Result<(), GgufError> {
    let mut head = GgufWriter::new(metadata);
    for s in snapshots {
        let parameter = s.full_path();
        if !matches!(s.dtype, DType::F64 | DType::F32 | DType::Flex32 | DType::F16 | DType::BF16) {
            let problem = format!("type {:?} cannot be saved, wanted a float", s.dtype);
            return Err(GgufError::Module { path: parameter, problem });
        }
        let mut shape: Vec<usize> = s.shape.to_vec();
        if is_linear(&parameter, shape.len()) {
            shape.reverse();
        }
        head.declare(&format!("{prefix}{}", tensor_of(&parameter)), &shape, GgmlType::F32)?;
    }
    let mut out = head.create(path)?;
    for s in snapshots {
        let parameter = s.full_path();
        let refused = |problem: String| GgufError::Module { path: parameter.clone(), problem };
        let data = s.to_data().map_err(|e| refused(format!("cannot be read: {e}")))?.convert_dtype(DType::F32);
        let values = data.as_slice::<f32>().map_err(|e| refused(format!("cannot be read: {e:?}")))?;
        let turned = is_linear(&parameter, s.shape.len()).then(|| transposed(values, s.shape[1]));
        out.start(&format!("{prefix}{}", tensor_of(&parameter)))?;
        let mut bytes = Vec::new();
        for round in turned.as_deref().unwrap_or(values).chunks(ROUND) {
            bytes.clear();
            bytes.extend(round.iter().flat_map(|v| v.to_le_bytes()));
            out.piece(&bytes)?;
        }
    }
    out.finish()
}
