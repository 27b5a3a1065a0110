//! What can go wrong with a conversion, grouped by whose fault it is.
//!
//! Messages name the tensor, the file and key, or the hint, then what was found and what was wanted. The path of the checkpoint is not repeated: who
//! asked for the conversion knows it.

use std::path::PathBuf;

use crate::checkpoint::CheckpointError;
use crate::error::GgufError;

/// Why a checkpoint was not converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    // The checkpoint is damaged or not one.
    /// The weights cannot be opened or read.
    #[error("the checkpoint cannot be read")]
    Checkpoint(#[from] CheckpointError),
    /// A JSON file that is none.
    #[error("{file}: not valid JSON")]
    Json {
        /// Name of the file.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A JSON file that is not an object.
    #[error("{file}: found {found}, wanted an object")]
    NotAnObject {
        /// Name of the file.
        file: String,
        /// What it holds.
        found: &'static str,
    },
    /// A file that the layout has is not in the folder.
    #[error("{file}: not in the folder; {why}")]
    MissingFile {
        /// Name of the file.
        file: String,
        /// What it is needed for.
        why: &'static str,
    },
    /// A key is missing.
    #[error("{file}: key {key} is missing, wanted {wanted}")]
    MissingKey {
        /// Name of the file.
        file: String,
        /// The key, with the objects around it joined by dots.
        key: String,
        /// Values allowed.
        wanted: String,
    },
    /// A key has a value of the wrong type, or one that makes no sense.
    #[error("{file}: key {key}: {found}, wanted {wanted}")]
    KeyValue {
        /// Name of the file.
        file: String,
        /// The key, with the objects around it joined by dots.
        key: String,
        /// Value found.
        found: String,
        /// Values allowed.
        wanted: String,
    },
    /// A key and a tensor tell different stories.
    #[error("{file}: key {key} is {found}, but tensor {tensor} says {says}")]
    KeyContradicts {
        /// Name of the file.
        file: String,
        /// The key.
        key: String,
        /// Value found.
        found: String,
        /// The tensor.
        tensor: String,
        /// What follows from its shape.
        says: String,
    },
    /// A tensor that the layout has is missing.
    #[error("tensor {tensor}: missing, wanted for {target} {wanted:?}")]
    MissingTensor {
        /// Name in the checkpoint.
        tensor: String,
        /// Name in the bundle.
        target: String,
        /// Shape in the bundle, rows first; empty when sizes are read off the tensor.
        wanted: Vec<usize>,
    },
    /// A tensor that the layout does not have.
    #[error("tensor {tensor} {shape:?}: not part of a {family} checkpoint ({layout})")]
    SurplusTensor {
        /// Name in the checkpoint.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The family.
        family: &'static str,
        /// The layout that was recognised.
        layout: &'static str,
    },
    /// A tensor has the wrong shape.
    #[error("tensor {tensor}: shape {found:?}, wanted {wanted} ({reason})")]
    TensorShape {
        /// Name in the checkpoint.
        tensor: String,
        /// Shape found.
        found: Vec<usize>,
        /// Shapes allowed, in words.
        wanted: String,
        /// Where the wanted shape comes from.
        reason: String,
    },
    /// Two tensors that mean the same.
    #[error("tensor {tensor}: stands for the same weight as {other}")]
    TensorTwice {
        /// One of them.
        tensor: String,
        /// The other.
        other: String,
    },
    /// A weight that is stored as integers.
    #[error("tensor {tensor}: integers, wanted floats")]
    NotFloats {
        /// Name in the checkpoint.
        tensor: String,
    },
    /// More or fewer blocks than stated.
    #[error("tensors {stem}: {found} blocks, but {file} says {key} {wanted}")]
    BlockCount {
        /// Names of the blocks' tensors, with `{i}` for the number.
        stem: String,
        /// Blocks in the checkpoint.
        found: usize,
        /// Name of the file.
        file: String,
        /// The key.
        key: String,
        /// Its value.
        wanted: usize,
    },
    /// A weight that the type it is to have cannot hold; names are those of the bundle.
    #[error(transparent)]
    Weight(GgufError),

    // The checkpoint is sound but not supported.
    /// No layout of any family fits.
    #[error("no known checkpoint layout fits ({tensors} tensors, the first is {first}); known are {known}")]
    Unrecognised {
        /// How many tensors there are.
        tensors: usize,
        /// Name of the first one.
        first: String,
        /// The families.
        known: String,
    },
    /// The family asked for does not fit.
    #[error("not a {family} checkpoint: {what} for its layout {layout}")]
    WrongFamily {
        /// The family asked for.
        family: &'static str,
        /// What is missing or in the way.
        what: String,
        /// The layout that comes closest.
        layout: &'static str,
    },
    /// A checkpoint whose parts the schema has no place for.
    #[error("{what}: not supported, {why}")]
    Unsupported {
        /// What is not supported.
        what: String,
        /// Why.
        why: &'static str,
    },
    /// The bundle that would come out breaks the schema.
    #[error("the bundle would break the schema")]
    Schema {
        /// How.
        source: GgufError,
    },

    // The caller's argument.
    /// The encoder asked for is not there.
    #[error("no {wanted} encoder in the checkpoint, which has {found}; choose the other one with --encoder")]
    NoEncoder {
        /// `context` or `target`.
        wanted: &'static str,
        /// Encoders that are there.
        found: String,
    },
    /// A hint that does not exist.
    #[error("hint {hint}: not known, wanted one of {known}")]
    UnknownHint {
        /// The hint.
        hint: String,
        /// All hints.
        known: String,
    },
    /// A hint whose value makes no sense.
    #[error("hint {hint}: {found}, wanted {wanted}")]
    HintValue {
        /// The hint.
        hint: String,
        /// Its value.
        found: String,
        /// Values allowed.
        wanted: String,
    },
    /// A hint that the checkpoint contradicts.
    #[error("hint {hint}: {found}, but the checkpoint says {says}")]
    HintContradicts {
        /// The hint.
        hint: &'static str,
        /// Its value.
        found: String,
        /// What the checkpoint says.
        says: String,
    },
    /// Something the checkpoint does not say and nobody hinted at.
    #[error("the checkpoint does not say {what}; give it with --hint {hint}=N")]
    MissingHint {
        /// The hint.
        hint: &'static str,
        /// What it means.
        what: &'static str,
    },
    /// The output is one of the inputs.
    #[error("{} is part of the checkpoint; choose another output", path.display())]
    OutputIsInput {
        /// The output.
        path: PathBuf,
    },

    // Input and output.
    /// The bundle cannot be written, or does not read back.
    #[error("the bundle cannot be written")]
    Write {
        /// Why.
        source: GgufError,
    },
    /// The operating system refused something.
    #[error("cannot {op} {}", path.display())]
    Io {
        /// What was tried.
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
}
