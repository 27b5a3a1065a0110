//! From parameters to tensors.

use std::path::Path;

use burn::tensor::DType;
use burn_store::TensorSnapshot;

use super::names::{is_linear, tensor_of};
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::transpose::transposed;
use crate::value::Metadata;
use crate::writer::{GgufWriter, TensorWriter};

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
    for parameter in snapshots {
        declare(&mut head, &tensor_name(prefix, parameter), parameter)?;
    }
    let mut out = head.create(path)?;
    for parameter in snapshots {
        put(&mut out, &tensor_name(prefix, parameter), parameter)?;
    }
    out.finish()
}

/// The tensor of a parameter of a module that is saved below `prefix`.
pub(super) fn tensor_name(prefix: &str, parameter: &TensorSnapshot) -> String {
    format!("{prefix}{}", tensor_of(&parameter.full_path()))
}

/// Declares a parameter as an f32 tensor.
pub(super) fn declare(head: &mut GgufWriter, tensor: &str, parameter: &TensorSnapshot) -> Result<(), GgufError> {
    let path = parameter.full_path();
    if !matches!(parameter.dtype, DType::F64 | DType::F32 | DType::Flex32 | DType::F16 | DType::BF16) {
        let problem = format!("type {:?} cannot be saved, wanted a float", parameter.dtype);
        return Err(GgufError::Module { path, problem });
    }
    let mut shape: Vec<usize> = parameter.shape.to_vec();
    if is_linear(&path, shape.len()) {
        shape.reverse();
    }
    head.declare(tensor, &shape, GgmlType::F32)
}

/// Writes the values of a parameter that has been declared.
pub(super) fn put(out: &mut TensorWriter, tensor: &str, parameter: &TensorSnapshot) -> Result<(), GgufError> {
    let path = parameter.full_path();
    let refused = |problem: String| GgufError::Module { path: path.clone(), problem };
    let data = parameter.to_data().map_err(|e| refused(format!("cannot be read: {e}")))?.convert_dtype(DType::F32);
    let values = data.as_slice::<f32>().map_err(|e| refused(format!("cannot be read: {e:?}")))?;
    let turned = is_linear(&path, parameter.shape.len()).then(|| transposed(values, parameter.shape[1]));
    out.start(tensor)?;
    let mut bytes = Vec::new();
    for round in turned.as_deref().unwrap_or(values).chunks(ROUND) {
        bytes.clear();
        bytes.extend(round.iter().flat_map(|v| v.to_le_bytes()));
        out.piece(&bytes)?;
    }
    Ok(())
}
