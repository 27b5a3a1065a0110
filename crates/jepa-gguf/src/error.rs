//! What can go wrong with a bundle, grouped by whose fault it is.
//!
//! Messages name the key, the tensor or the section, then what was found and what was wanted. They do not repeat the path of the file that was
//! opened: the caller knows it and puts it in front. Only input and output errors carry a path, since a temporary file may be meant.

use std::path::PathBuf;

use crate::dtype::GgmlType;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    // The file is damaged.
    /// The file ends before something it promises.
    #[error(
        "{section}: wanted {wanted} bytes at byte {at}, the file ends at byte {end}; it is damaged or an incomplete download"
    )]
    Truncated {
        /// Part of the file that is cut.
        section: String,
        /// Where the missing part starts.
        at: u64,
        /// How many bytes it needs.
        wanted: u64,
        /// Length of the file.
        end: u64,
    },
    /// The first four bytes are not `GGUF`.
    #[error("magic: found \"{found}\", wanted \"GGUF\"; this is not a gguf file")]
    Magic {
        /// The four bytes, escaped.
        found: String,
    },
    /// A count that the rest of the file cannot hold.
    #[error("{what}: {found}, but the rest of the file has room for at most {most}")]
    Count {
        /// What is counted.
        what: String,
        /// The claim.
        found: u64,
        /// The most that fit.
        most: u64,
    },
    /// Text that is not UTF-8.
    #[error("{section}: the text is not utf-8")]
    Utf8 {
        /// Where the text stands.
        section: String,
    },
    /// A key or a tensor whose name is none.
    #[error("{section}: the name {problem}")]
    Name {
        /// Where the name stands.
        section: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A metadata value of a type that GGUF does not have.
    #[error("key {key}: value type {found} does not exist, wanted 0 to 12")]
    ValueType {
        /// The key.
        key: String,
        /// The type number.
        found: u32,
    },
    /// A bool that is neither 0 nor 1.
    #[error("key {key}: a bool is stored as {found}, wanted 0 or 1")]
    Bool {
        /// The key.
        key: String,
        /// The byte.
        found: u8,
    },
    /// The same key twice.
    #[error("key {key}: appears twice in the metadata")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// The same tensor name twice.
    #[error("tensor {tensor}: appears twice")]
    TensorTwice {
        /// The tensor.
        tensor: String,
    },
    /// `general.alignment` is not a power of two.
    #[error("general.alignment: {found}, wanted a power of two from 1 to 1073741824")]
    Alignment {
        /// The value.
        found: String,
    },
    /// A tensor with no dimension or more than four.
    #[error("tensor {tensor}: {found} dimensions, wanted 1 to 4")]
    Rank {
        /// The tensor.
        tensor: String,
        /// Number of dimensions.
        found: u32,
    },
    /// A tensor without elements.
    #[error("tensor {tensor}: shape {shape:?} has a dimension of 0")]
    ZeroDimension {
        /// The tensor.
        tensor: String,
        /// The shape, rows first.
        shape: Vec<u64>,
    },
    /// A tensor whose size is not a number.
    #[error("tensor {tensor}: shape {shape:?} has more elements than can be addressed")]
    TooManyElements {
        /// The tensor.
        tensor: String,
        /// The shape, rows first.
        shape: Vec<u64>,
    },
    /// Rows that do not fill whole blocks.
    #[error("tensor {tensor}: rows of {row} values, but {dtype} packs {block} values to a block")]
    RowLength {
        /// The tensor.
        tensor: String,
        /// Values in a row.
        row: u64,
        /// The type.
        dtype: GgmlType,
        /// Values in a block.
        block: u64,
    },
    /// A tensor that does not start on the file's alignment.
    #[error("tensor {tensor}: offset {offset} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Offset into the tensor data.
        offset: u64,
        /// `general.alignment`.
        alignment: u64,
    },
    /// A tensor that reaches past the end of the file.
    #[error(
        "tensor {tensor}: offset {offset} and {wanted} bytes, but the tensor data is {room} bytes long; the file is damaged or an incomplete download"
    )]
    TensorRange {
        /// The tensor.
        tensor: String,
        /// Offset into the tensor data.
        offset: u64,
        /// Bytes of the tensor.
        wanted: u64,
        /// Bytes of tensor data in the file.
        room: u64,
    },
    /// Two tensors share bytes.
    #[error("tensor {tensor}: offset {offset} lies inside tensor {other}")]
    Overlap {
        /// The tensor that starts inside the other.
        tensor: String,
        /// Its offset into the tensor data.
        offset: u64,
        /// The tensor it overlaps.
        other: String,
    },

    // The file is a sound container that breaks the schema.
    /// A required key is missing.
    #[error("key {key}: missing, required {when}")]
    MissingKey {
        /// The key.
        key: String,
        /// When the schema requires it.
        when: &'static str,
    },
    /// A key has a value of the wrong type.
    #[error("key {key}: found {found}, wanted {wanted}")]
    KeyType {
        /// The key.
        key: String,
        /// Type found.
        found: String,
        /// Type wanted.
        wanted: &'static str,
    },
    /// A key has a value that the schema does not allow.
    #[error("key {key}: {found}, wanted {wanted}")]
    KeyValue {
        /// The key.
        key: String,
        /// Value found.
        found: String,
        /// Values allowed.
        wanted: String,
    },
    /// A required tensor is missing.
    #[error("tensor {tensor}: missing, wanted shape {wanted:?} ({reason})")]
    MissingTensor {
        /// The tensor.
        tensor: String,
        /// Shape wanted, rows first.
        wanted: Vec<usize>,
        /// Keys that the shape comes from.
        reason: String,
    },
    /// A tensor that sizes are read off is missing.
    #[error("tensor {tensor}: missing, required {when}")]
    MissingSizedTensor {
        /// The tensor.
        tensor: String,
        /// When the schema requires it.
        when: &'static str,
    },
    /// A tensor has the wrong shape.
    #[error("tensor {tensor}: shape {found:?}, wanted {wanted:?} ({reason})")]
    TensorShape {
        /// The tensor.
        tensor: String,
        /// Shape found, rows first.
        found: Vec<usize>,
        /// Shape wanted, rows first.
        wanted: Vec<usize>,
        /// Keys that the shape comes from.
        reason: String,
    },
    /// A tensor has a type the schema does not allow for it.
    #[error("tensor {tensor}: type {found}, wanted {wanted}")]
    TensorType {
        /// The tensor.
        tensor: String,
        /// Type found.
        found: GgmlType,
        /// Types allowed.
        wanted: &'static str,
    },
    /// A tensor that the schema does not have for these hyper-parameters.
    #[error("tensor {tensor}: not part of a {family} bundle with these keys")]
    SurplusTensor {
        /// The tensor.
        tensor: String,
        /// `jepa.family`.
        family: &'static str,
    },

    // The file is fine but not supported.
    /// A big-endian file.
    #[error("header: big-endian gguf files are not supported; convert the file to little endian")]
    BigEndian,
    /// A version of the container that this reader does not know.
    #[error("version: {found}, wanted 2 or 3")]
    Version {
        /// The version.
        found: u32,
    },
    /// A tensor type that this crate cannot read.
    #[error(
        "tensor {tensor}: type {} is not supported, wanted f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0 or q2_k to q6_k",
        .name.map_or_else(|| id.to_string(), |n| format!("{n} ({id})"))
    )]
    UnsupportedType {
        /// The tensor.
        tensor: String,
        /// ggml's number of the type.
        id: u32,
        /// ggml's name of the type, when it has one.
        name: Option<&'static str>,
    },

    // A limit.
    /// A size above one of the caps in [`crate::limits`].
    #[error("{what}: {found}, the limit is {most}")]
    Limit {
        /// What is limited.
        what: String,
        /// The size.
        found: u64,
        /// The cap.
        most: u64,
    },
    /// The file does not fit into memory.
    #[error("the file needs {wanted} bytes of memory, more than can be had; map it instead of reading it")]
    Memory {
        /// Bytes wanted.
        wanted: u64,
    },

    // The caller's argument.
    /// A tensor asked for by name does not exist.
    #[error("tensor {tensor}: not in the file")]
    NoSuchTensor {
        /// The name.
        tensor: String,
    },
    /// A row range outside the tensor.
    #[error("rows {start}..{end} of {rows} rows do not exist")]
    RowRange {
        /// First row asked for.
        start: usize,
        /// Row behind the last.
        end: usize,
        /// Rows of the tensor.
        rows: usize,
    },
    /// A buffer of the wrong length.
    #[error("{dtype}: {bytes} bytes hold {wanted} values, the buffer has room for {found}")]
    BufferLength {
        /// The type.
        dtype: GgmlType,
        /// Bytes given.
        bytes: usize,
        /// Values they hold.
        wanted: usize,
        /// Length of the buffer.
        found: usize,
    },
    /// A tensor that is quantised already and would be rounded once more.
    #[error(
        "tensor {tensor}: it is {found} already; {wanted} made from it is worse than from the float file, which is the one to start from"
    )]
    Requantize {
        /// The tensor.
        tensor: String,
        /// Its type.
        found: GgmlType,
        /// The type asked for.
        wanted: GgmlType,
    },
    /// A file that is no importance matrix.
    #[error("this is no importance matrix: {what}")]
    NoImportance {
        /// What is wrong with it.
        what: String,
    },
    /// An importance matrix for a tensor of another width.
    #[error(
        "tensor {tensor}: the importance matrix has {found} columns for it, the file has {wanted}; it belongs to another model"
    )]
    ImportanceColumns {
        /// The tensor.
        tensor: String,
        /// Columns of the importance matrix.
        found: usize,
        /// Columns of the tensor.
        wanted: usize,
    },
    /// A weight that the type it is to have cannot hold.
    #[error("tensor {tensor}, row {row}, column {column}: {found} cannot be stored as {dtype}")]
    WeightRange {
        /// The tensor.
        tensor: String,
        /// Row of the weight.
        row: usize,
        /// Column of the weight.
        column: usize,
        /// The weight.
        found: f32,
        /// The type.
        dtype: GgmlType,
    },
    /// Weights of columns for rows of another length.
    #[error("{found} column weights for rows of {wanted} values")]
    Importance {
        /// Weights given.
        found: usize,
        /// Values of a row.
        wanted: usize,
    },
    /// Tensor data written out of order.
    #[error("tensor {found}: its data was written where {wanted} was declared")]
    WriteOrder {
        /// Tensor whose data was given.
        found: String,
        /// Tensor that comes next.
        wanted: String,
    },
    /// Too much or too little data written for a tensor.
    #[error("tensor {tensor}: {found} bytes were written, wanted {wanted}")]
    WriteLength {
        /// The tensor.
        tensor: String,
        /// Bytes given.
        found: u64,
        /// Bytes declared.
        wanted: u64,
    },
    /// The file that was written does not read back as it was declared.
    #[error("the written file does not read back as declared: {what}")]
    ReadBack {
        /// What differs.
        what: &'static str,
    },
    /// A module and a file do not fit together.
    #[cfg(feature = "burn")]
    #[error("{path}: {problem}")]
    Module {
        /// Name of the parameter or tensor, or a list of them.
        path: String,
        /// What does not fit.
        problem: String,
    },
    /// A store that was made for the other direction.
    #[cfg(feature = "burn")]
    #[error("this store was made to {can}, not to {asked}")]
    StoreDirection {
        /// What the store can do.
        can: &'static str,
        /// What was asked.
        asked: &'static str,
    },

    // Input and output.
    /// The path is a folder or a device.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
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
