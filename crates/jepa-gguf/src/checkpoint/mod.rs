//! Published checkpoints: safetensors files, sharded folders and PyTorch pickles, read and never executed.
//!
//! A checkpoint is a list of named tensors plus, in a pickle, the plain numbers and words that lie beside them. Names are the path through the
//! nested dictionaries, joined by dots (`target_encoder.module.blocks.0.norm1.weight`). Nothing is loaded before it is asked for.

mod error;

use std::path::Path;

pub use error::CheckpointError;

/// Type of the numbers in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceType {
    /// 64-bit floats.
    F64,
    /// 32-bit floats.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Integers or booleans of any width: counters such as BatchNorm's `num_batches_tracked`. They can be listed, not read.
    Integer,
}

/// A tensor of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTensor {
    /// Path through the checkpoint, joined by dots.
    pub name: String,
    /// Sizes, slowest axis first, as PyTorch prints them.
    pub shape: Vec<usize>,
    /// Type of its numbers.
    pub dtype: SourceType,
}

/// A plain value beside the tensors of a pickle (`epoch`, `lr`).
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
}

/// An opened checkpoint.
#[derive(Debug)]
pub struct Checkpoint {}

impl Checkpoint {
    /// Opens a file or a folder of weights, whose format is found by its content.
    ///
    /// # Errors
    /// [`CheckpointError`]: what is not a checkpoint, is damaged, or holds Python objects other than tensors and plain values.
    pub fn open(_path: &Path) -> Result<Self, CheckpointError> {
        Ok(Self {})
    }

    /// The tensors, in the order of the checkpoint.
    pub fn tensors(&self) -> &[SourceTensor] {
        &[]
    }

    /// The plain value at a dotted path.
    pub fn plain(&self, _name: &str) -> Option<&Plain> {
        None
    }

    /// The numbers of a tensor as f32, row-major: f16 and bf16 widened (exact), f64 rounded.
    ///
    /// # Errors
    /// [`CheckpointError`]: no such tensor, an integer tensor, or the file cannot be read.
    pub fn read(&self, _name: &str) -> Result<Vec<f32>, CheckpointError> {
        Ok(Vec::new())
    }
}
