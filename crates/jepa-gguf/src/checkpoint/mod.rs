//! Published checkpoints: safetensors files, sharded folders and PyTorch pickles, read and never executed.
//!
//! A checkpoint is a list of named tensors plus, in a pickle, the plain numbers and words that lie beside them. Names are the path through the
//! nested dictionaries, joined by dots (`target_encoder.module.blocks.0.norm1.weight`); places in lists are numbers. Nothing is loaded before it
//! is asked for.
//!
//! ```no_run
//! let checkpoint = jepa_gguf::checkpoint::Checkpoint::open("ijepa.pth.tar".as_ref())?;
//! println!("{} tensors, epoch {:?}", checkpoint.tensors().len(), checkpoint.plain("epoch"));
//! let norm = checkpoint.read("target_encoder.module.norm.weight")?;
//! # Ok::<(), jepa_gguf::checkpoint::CheckpointError>(())
//! ```

mod error;
mod folder;
mod kind;
mod pickle;
mod safetensors;
mod slot;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use error::CheckpointError;

use crate::bytes::{Access, Bytes, OpenError};
use crate::header::problem_with;
use crate::limits::MAX_SOURCE_NAME_BYTES;
use kind::Kind;
use slot::Slot;

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

/// What one file holds.
#[derive(Debug, Default)]
struct Contents {
    tensors: Vec<(SourceTensor, Slot)>,
    plain: Vec<(String, Plain)>,
}

impl Contents {
    /// Reads the head of `bytes`, a whole file.
    fn read(bytes: &[u8]) -> Result<Self, CheckpointError> {
        match kind::recognise(bytes)? {
            Kind::Safetensors => safetensors::read(bytes),
            Kind::Archive => pickle::read_archive(bytes),
            Kind::Pickle => pickle::read_legacy(bytes),
        }
    }
}

/// An opened checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    files: Vec<(PathBuf, Bytes)>,
    tensors: Vec<SourceTensor>,
    /// File and place of each tensor.
    slots: Vec<(usize, Slot)>,
    by_name: HashMap<String, usize>,
    plain: Vec<(String, Plain)>,
    plain_by_name: HashMap<String, usize>,
}

impl Checkpoint {
    /// Maps a file or a folder of weights, whose format is found by its content.
    ///
    /// A folder holds `model.safetensors`, or `pytorch_model.bin`, or the index of such a file in shards, or `weights.pt`; the first of these wins.
    ///
    /// # Errors
    /// [`CheckpointError`]: what is not a checkpoint, is damaged, or holds Python objects other than tensors and plain values.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        Self::open_with(path, Access::Map)
    }

    /// Maps or reads a file or a folder of weights; see [`Access`] for what a map asks of the storage.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn open_with(path: &Path, access: Access) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { op: "open", path: path.to_owned(), source };
        match std::fs::metadata(path).map_err(io)?.is_dir() {
            true => Self::assemble(folder::open(path, access)?),
            false => Self::assemble(vec![folder::file(path, access)?]),
        }
    }

    /// Reads a checkpoint of one file that is in memory already.
    ///
    /// # Errors
    /// As [`Checkpoint::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, CheckpointError> {
        let contents = Contents::read(&bytes)?;
        Self::assemble(vec![(PathBuf::new(), Bytes::Owned(bytes), contents)])
    }

    fn assemble(parts: Vec<folder::Part>) -> Result<Self, CheckpointError> {
        let mut whole = Self {
            files: Vec::new(),
            tensors: Vec::new(),
            slots: Vec::new(),
            by_name: HashMap::new(),
            plain: Vec::new(),
            plain_by_name: HashMap::new(),
        };
        for (number, (path, bytes, contents)) in parts.into_iter().enumerate() {
            whole.files.push((path, bytes));
            for (tensor, slot) in contents.tensors {
                if whole.by_name.insert(tensor.name.clone(), whole.tensors.len()).is_some() {
                    return Err(CheckpointError::Twice { name: tensor.name });
                }
                whole.tensors.push(tensor);
                whole.slots.push((number, slot));
            }
            for (name, value) in contents.plain {
                if whole.plain_by_name.insert(name.clone(), whole.plain.len()).is_some() {
                    return Err(CheckpointError::Twice { name });
                }
                whole.plain.push((name, value));
            }
        }
        Ok(whole)
    }

    /// The files that hold the tensors; an empty path for [`Checkpoint::from_bytes`].
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// The tensors, in the order of the checkpoint.
    pub fn tensors(&self) -> &[SourceTensor] {
        &self.tensors
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<&SourceTensor> {
        self.by_name.get(name).map(|&i| &self.tensors[i])
    }

    /// The plain value at a dotted path.
    pub fn plain(&self, name: &str) -> Option<&Plain> {
        self.plain_by_name.get(name).map(|&i| &self.plain[i].1)
    }

    /// All plain values with their dotted paths, in the order of the checkpoint.
    pub fn plain_values(&self) -> impl Iterator<Item = (&str, &Plain)> {
        self.plain.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The numbers of a tensor as f32, row-major: f16 and bf16 widened (exact), f64 rounded.
    ///
    /// # Errors
    /// [`CheckpointError`]: no such tensor, an integer tensor, or the file cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        self.read_as(name, |number| number as f32)
    }

    /// The numbers of a tensor as f64, row-major, all exact.
    ///
    /// # Errors
    /// As [`Checkpoint::read`].
    pub fn read_f64(&self, name: &str) -> Result<Vec<f64>, CheckpointError> {
        self.read_as(name, |number| number)
    }

    fn read_as<T>(&self, name: &str, from: impl Fn(f64) -> T) -> Result<Vec<T>, CheckpointError> {
        let no_such = || CheckpointError::NoSuchTensor { tensor: name.to_owned() };
        let &index = self.by_name.get(name).ok_or_else(no_such)?;
        let (file, slot) = &self.slots[index];
        slot.read(name, &self.tensors[index].shape, &self.files[*file].1, from)
    }
}

fn open_bytes(path: &Path, access: Access) -> Result<Bytes, CheckpointError> {
    Bytes::open(path, access).map_err(|error| match error {
        OpenError::NotAFile => CheckpointError::NotAFile { path: path.to_owned() },
        OpenError::Memory(wanted) => CheckpointError::Memory { what: "the file".to_owned(), wanted },
        OpenError::Io(op, source) => CheckpointError::Io { op, path: path.to_owned(), source },
    })
}

/// Refuses a name that is empty, far too long, or would break the lines of a message.
fn check_name(name: &str) -> Result<(), CheckpointError> {
    let problem = match name.len() as u64 > MAX_SOURCE_NAME_BYTES {
        true => Some("is longer than any tensor's"),
        false => problem_with(name),
    };
    match problem {
        Some(problem) => Err(CheckpointError::Name { name: error::shown(name), problem }),
        None => Ok(()),
    }
}
