//! From tensors to parameters.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use burn::module::ParamId;
use burn::tensor::{DType, Shape, TensorData};
use burn_store::{ApplyError, ApplyResult, TensorSnapshot};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::names::{is_linear, is_linear_bias, path_of, tensor_of};
use crate::error::GgufError;
use crate::file::Gguf;
use crate::tensor::TensorHandle;

/// Names in a message before it says how many more there are.
const NAMES: usize = 5;

/// One lazy snapshot per tensor below `prefix`, under its parameter's path.
pub(super) fn snapshots(
    file: &Arc<Gguf>,
    prefix: &str,
    dtype: DType,
) -> Result<BTreeMap<String, TensorSnapshot>, GgufError> {
    if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
        let problem = format!("parameters of type {dtype:?} were asked for, wanted f32, f16 or bf16");
        return Err(GgufError::Module { path: prefix.to_owned(), problem });
    }
    let inside = file.tensors().iter().filter_map(|t| Some((t.name().strip_prefix(prefix)?, t)));
    Ok(inside
        .map(|(name, info)| {
            let rank = info.shape().len();
            let path = path_of(name, of_norm(file, info.name(), rank));
            let linear = is_linear(name, rank);
            let dtype = if linear || is_linear_bias(&path, rank) { dtype } else { DType::F32 };
            let handle = TensorHandle::new(file, info.name()).expect("the name came from the file's table");
            let mut shape = info.shape().to_vec();
            if linear {
                shape.reverse();
            }
            let declared = Shape::from(shape.clone());
            let read = Rc::new(move || Ok(data(&handle, linear, shape.clone(), dtype)));
            let stack = path.split('.').map(str::to_owned).collect();
            (path, TensorSnapshot::from_closure(read, dtype, declared, stack, Vec::new(), ParamId::new()))
        })
        .collect())
}

/// Whether the layer of `tensor` is a norm: its weight is a vector.
fn of_norm(file: &Gguf, tensor: &str, rank: usize) -> bool {
    match tensor.strip_suffix("bias") {
        Some(layer) => file.tensor(&format!("{layer}weight")).is_some_and(|w| w.info().shape().len() == 1),
        None => rank == 1,
    }
}

/// The values of one parameter.
fn data(handle: &TensorHandle, transpose: bool, shape: Vec<usize>, dtype: DType) -> TensorData {
    let view = handle.view();
    let values = if transpose { view.to_f32_transposed() } else { view.to_f32() };
    match dtype {
        DType::F16 => {
            let mut narrow = vec![f16::ZERO; values.len()];
            narrow.convert_from_f32_slice(&values);
            TensorData::new(narrow, shape)
        }
        DType::BF16 => {
            let mut narrow = vec![bf16::ZERO; values.len()];
            narrow.convert_from_f32_slice(&values);
            TensorData::new(narrow, shape)
        }
        _ => TensorData::new(values, shape),
    }
}

/// What a module and the tensors below `prefix` disagree about, as an error that names tensors.
pub(super) fn verdict(result: &ApplyResult, prefix: &str, allow_partial: bool) -> Result<(), GgufError> {
    if let Some(first) = result.errors.first() {
        let (path, problem) = match first {
            ApplyError::ShapeMismatch { path, expected, found } => {
                let wanted: &[usize] = expected;
                let found: &[usize] = found;
                (path, format!("the file has shape {found:?}, the module wants {wanted:?}"))
            }
            ApplyError::DTypeMismatch { path, expected, found } => {
                (path, format!("the file has type {found:?}, the module wants {expected:?}"))
            }
            ApplyError::AdapterError { path, message } | ApplyError::LoadError { path, message } => {
                (path, format!("cannot be loaded: {message}"))
            }
        };
        return Err(GgufError::Module { path: format!("{prefix}{}", tensor_of(path)), problem });
    }
    if allow_partial {
        return Ok(());
    }
    if !result.missing.is_empty() {
        let names = listed(prefix, result.missing.iter().map(|(path, _)| path));
        return Err(GgufError::Module { path: names, problem: "the module wants it, the file has none".to_owned() });
    }
    if !result.unused.is_empty() {
        let names = listed(prefix, result.unused.iter());
        return Err(GgufError::Module {
            path: names,
            problem: "the file has it, the module has no place for it".to_owned(),
        });
    }
    Ok(())
}

fn listed<'a>(prefix: &str, paths: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = paths.len().saturating_sub(NAMES);
    let mut names: Vec<String> = paths.take(NAMES).map(|p| format!("{prefix}{}", tensor_of(p))).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}
