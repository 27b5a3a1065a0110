//! The mapping tables of conversion, read backwards.

use std::ops::Range;

use super::class::Class;
use super::error::ExportError;
use crate::convert::{Take, fill, find};
use crate::schema::{Hparams, expected_tensors};

/// One tensor of the folder: rows of one tensor of the bundle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExportedTensor {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    /// Tensor of the bundle.
    pub(super) from: String,
    pub(super) rows: Range<usize>,
}

/// The tensors of the folder, and the tensors of the bundle that the class has no place for.
pub(super) fn tensors(hp: &Hparams, class: Class) -> Result<(Vec<ExportedTensor>, Vec<String>), ExportError> {
    let prefix = class.architecture(hp.head.is_some()).1;
    let (mut exported, mut dropped) = (Vec::new(), Vec::new());
    for expected in expected_tensors(hp) {
        if expected.name.starts_with("pred.") && class != Class::Vjepa2 {
            dropped.push(expected.name);
            continue;
        }
        let (joined, part) = joined(&expected.name);
        let Some((take, block, suffix)) = find(class.layout().rows, &joined) else {
            return Err(ExportError::NoClass { what: format!("tensor {}", expected.name) });
        };
        let name = |base: &str| {
            let own = ["classifier", "pooler."].iter().any(|outside| base.starts_with(outside));
            format!("{}{}{suffix}", if own { "" } else { prefix }, fill(base, block, 0))
        };
        let rows = rows_of(&expected.shape);
        let whole = |name: String, shape| ExportedTensor { name, shape, from: expected.name.clone(), rows: 0..rows };
        match (take, part) {
            (Take::Layer(base), _) => exported.push(whole(name(base), expected.shape.clone())),
            (Take::Conv(base), _) => exported.push(whole(name(base), conv_shape(&expected.shape, hp, class))),
            (Take::Table(base), _) => exported.push(whole(name(base), table_shape(base, &expected.shape))),
            (Take::Stack(bases), Some(part)) => {
                let base = bases.get(part).copied().unwrap_or_default();
                exported.push(whole(name(base), expected.shape.clone()));
            }
            (Take::Stack(bases), None) => {
                // Of a bias every value is a row of its own.
                let height = expected.shape[0] / bases.len();
                let mut shape = expected.shape.clone();
                shape[0] = height;
                for (number, base) in bases.iter().enumerate() {
                    exported.push(ExportedTensor {
                        name: name(base),
                        shape: shape.clone(),
                        from: expected.name.clone(),
                        rows: number * height..(number + 1) * height,
                    });
                }
            }
            (Take::Rows(_) | Take::Normed { .. } | Take::After { .. }, _) => {
                return Err(ExportError::NoClass { what: format!("tensor {}", expected.name) });
            }
        }
    }
    Ok((exported, dropped))
}

/// Rows as [`ExportedTensor::rows`] counts them: along the first axis.
fn rows_of(shape: &[usize]) -> usize {
    shape.first().copied().unwrap_or(1)
}

/// The name of the joined tensor for a separate q, k or v, and which of the three it is.
fn joined(name: &str) -> (String, Option<usize>) {
    for (number, part) in [".attn_q.", ".attn_k.", ".attn_v."].into_iter().enumerate() {
        if name.contains(part) {
            return (name.replace(part, ".attn_qkv."), Some(number));
        }
    }
    (name.to_owned(), None)
}

/// A patch matrix as the convolution it was.
fn conv_shape(shape: &[usize], hp: &Hparams, class: Class) -> Vec<usize> {
    let [rows, _] = *shape else { return shape.to_vec() };
    let (chans, patch) = (hp.enc.in_chans, hp.enc.patch_size);
    match class {
        Class::Vjepa2 => vec![rows, chans, hp.enc.tubelet_size, patch, patch],
        _ => vec![rows, chans, patch, patch],
    }
}

/// A table with the sizes of 1 that the class gives it.
fn table_shape(base: &str, shape: &[usize]) -> Vec<usize> {
    match (base.rsplit('.').next().unwrap_or(base), shape) {
        ("cls_token", &[width]) => vec![1, 1, width],
        ("query_tokens", &[1, width]) => vec![1, 1, width],
        ("mask_tokens", &[rows, width]) => vec![rows, 1, 1, width],
        ("position_embeddings" | "register_tokens", &[rows, width]) => vec![1, rows, width],
        _ => shape.to_vec(),
    }
}
