//! What can be wrong with a checkpoint, grouped by whose fault it is.
//!
//! Words that come out of a file go through [`shown`] first, so that every message stays one line of bounded length.

use std::path::PathBuf;

use super::SourceType;

/// Why a checkpoint is refused. Messages carry no path of the file; who opened it adds that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    // It is something else.
    /// A file without a byte.
    #[error("the file is empty; it is an unfinished download")]
    Empty,
    /// A GGUF file, which needs no conversion.
    #[error("this is a gguf file, wanted a checkpoint (safetensors or a PyTorch pickle)")]
    Gguf,
    /// The stand-in that git keeps for a large file.
    #[error("this is a git-lfs pointer and not the weights; fetch them with \"git lfs pull\"")]
    LfsPointer,
    /// Text, most often the page of a failed download.
    #[error(
        "this is text that begins \"{begins}\", wanted safetensors or a PyTorch pickle; the download may have failed"
    )]
    Text {
        /// Its beginning.
        begins: String,
    },
    /// A tar archive.
    #[error(
        "this is a tar archive, the format of PyTorch before 0.1.10 or a packed folder; unpack it, or save it again with a later PyTorch"
    )]
    Tar,
    /// Nothing that is known.
    #[error("this begins with \"{begins}\", wanted safetensors or a PyTorch pickle")]
    Unknown {
        /// The first bytes, escaped.
        begins: String,
    },
    /// A folder in which no weights lie.
    #[error("the folder has none of {wanted}; name the file of weights itself")]
    NoWeights {
        /// The file names that were looked for.
        wanted: String,
    },
    /// A pickle that `torch.save` did not write.
    #[error("this is a pickle that torch.save did not write: its first object is {found}, wanted the magic number")]
    NotTorch {
        /// What stands first.
        found: &'static str,
    },
    /// A zip archive that `torch.save` did not write.
    #[error(
        "this is a zip archive with {found} entries that end in \"/data.pkl\", wanted one; torch.save did not write it"
    )]
    NotTorchArchive {
        /// How many there are.
        found: usize,
    },
    /// A compiled model.
    #[error(
        "this is a TorchScript archive, wanted a dictionary of tensors; save the state_dict of the model with torch.save"
    )]
    TorchScript,

    // The file is damaged.
    /// The file ends before something it promises.
    #[error(
        "{part}: wanted {wanted} bytes at byte {at}, there are {end} bytes; the file is damaged or an incomplete download"
    )]
    Truncated {
        /// Part of the file that is cut.
        part: String,
        /// Where the missing part starts.
        at: u64,
        /// How many bytes it needs.
        wanted: u64,
        /// Length of the file or of its part.
        end: u64,
    },
    /// JSON that does not parse, or holds other things than it should.
    #[error("{part}: {problem}")]
    Json {
        /// Part of the file, or its name.
        part: &'static str,
        /// What the parser says.
        problem: String,
    },
    /// A tensor, key or file name that is none.
    #[error("the name \"{name}\" {problem}")]
    Name {
        /// The name, escaped.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Two things of the same name.
    #[error("{name}: appears twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A tensor whose size is not a number.
    #[error("tensor {tensor}: shape {shape:?} has more elements than can be addressed")]
    TooManyElements {
        /// The tensor.
        tensor: String,
        /// The shape.
        shape: Vec<u64>,
    },
    /// A tensor with bytes outside the data of the file.
    #[error(
        "tensor {tensor}: bytes {start} to {end}, but the tensor data is {room} bytes long; the file is damaged or an incomplete download"
    )]
    TensorRange {
        /// The tensor.
        tensor: String,
        /// First byte.
        start: u64,
        /// Byte behind the last.
        end: u64,
        /// Bytes of tensor data.
        room: u64,
    },
    /// A tensor whose bytes do not fit its shape.
    #[error("tensor {tensor}: {found} bytes, but its shape {shape:?} and type take {wanted}")]
    TensorBytes {
        /// The tensor.
        tensor: String,
        /// Bytes in the file.
        found: u64,
        /// Bytes that the shape needs.
        wanted: u64,
        /// The shape.
        shape: Vec<u64>,
    },
    /// Two tensors share bytes.
    #[error("tensor {tensor}: starts at byte {start} of the tensor data, inside tensor {other}")]
    Overlap {
        /// The tensor that starts inside the other.
        tensor: String,
        /// Its first byte.
        start: u64,
        /// The other.
        other: String,
    },
    /// Bytes that belong to nothing.
    #[error("{part}: bytes {start} to {end} belong to no tensor")]
    Unclaimed {
        /// Part of the file.
        part: &'static str,
        /// First byte.
        start: u64,
        /// Byte behind the last.
        end: u64,
    },
    /// An entry of a zip archive that breaks the format.
    #[error("zip archive, {entry}: {problem}")]
    Archive {
        /// The entry, or the part of the archive.
        entry: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A pickle instruction that does not exist, or that `torch.save` does not write.
    #[error("{part}, byte {at}: instruction 0x{found:02x} is none that torch.save writes")]
    Opcode {
        /// The pickle.
        part: &'static str,
        /// Its position in the pickle.
        at: u64,
        /// The instruction.
        found: u8,
    },
    /// A pickle instruction that takes more from the stack than there is, or reads what was never stored.
    #[error("{part}, byte {at}: {problem}")]
    Instruction {
        /// The pickle.
        part: &'static str,
        /// Its position in the pickle.
        at: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A value of the wrong kind in a pickle.
    #[error("{what}: found {found}, wanted {wanted}")]
    Kind {
        /// Where it stands.
        what: String,
        /// Kind found.
        found: &'static str,
        /// Kind wanted.
        wanted: &'static str,
    },
    /// A list or dictionary that contains itself.
    #[error("{name}: contains itself")]
    Cycle {
        /// Path of the inner one.
        name: String,
    },
    /// A tensor whose storage is not in the file.
    #[error("storage {storage}: missing, a tensor uses it")]
    NoStorage {
        /// Key of the storage.
        storage: String,
    },
    /// A storage of another length than the tensors say.
    #[error("storage {storage}: {found} in the file, {wanted} in the pickle ({unit})")]
    StorageSize {
        /// Key of the storage.
        storage: String,
        /// Size in the file.
        found: u64,
        /// Size that the pickle states.
        wanted: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A tensor that reaches past the end of its storage.
    #[error("tensor {tensor}: reaches past the {room} elements of storage {storage}")]
    StorageRange {
        /// The tensor.
        tensor: String,
        /// Key of the storage.
        storage: String,
        /// Elements of the storage.
        room: u64,
    },

    // The parts of a sharded checkpoint do not belong together.
    /// What is wrong inside one shard.
    #[error("shard {shard}")]
    Shard {
        /// File name of the shard.
        shard: String,
        /// The reason.
        source: Box<CheckpointError>,
    },
    /// The index puts a tensor into a shard that does not have it.
    #[error("tensor {tensor}: not in shard {shard}, where the index puts it")]
    NotInShard {
        /// The tensor.
        tensor: String,
        /// File name of the shard.
        shard: String,
    },
    /// A shard has a tensor that the index does not put there.
    #[error("tensor {tensor}: in shard {shard}, but the index does not put it there")]
    NotInIndex {
        /// The tensor.
        tensor: String,
        /// File name of the shard.
        shard: String,
    },

    // The file is fine but not supported.
    /// Python code or an object that is not inert.
    #[error(
        "{name}: a Python object, wanted tensors and plain values; load the file in Python and save its state_dict with torch.save(model.state_dict(), …)"
    )]
    Global {
        /// Module and name.
        name: String,
    },
    /// Numbers of a type that cannot be read.
    #[error("{what}: numbers of type {found} are not supported, wanted f64, f32, f16, bf16, integers or booleans")]
    Numbers {
        /// What has them.
        what: String,
        /// The type, as the file names it.
        found: String,
    },
    /// Written on a big-endian machine.
    #[error("the numbers are big-endian, wanted little-endian; save the file again on a little-endian machine")]
    BigEndian,
    /// A compressed entry of a zip archive.
    #[error(
        "zip archive, {entry}: compressed with method {method}, wanted 0 (stored, as torch.save does); save the file again with torch.save"
    )]
    Compressed {
        /// The entry.
        entry: String,
        /// Number of the method.
        method: u16,
    },
    /// A view that shows elements more than once, such as an expanded tensor.
    #[error("tensor {tensor}: {elements} elements of {stored} stored ones; save the file again with .contiguous()")]
    Expanded {
        /// The tensor.
        tensor: String,
        /// Elements by its shape.
        elements: usize,
        /// Elements that are stored.
        stored: usize,
    },

    // A limit.
    /// A size above one of the caps in [`crate::limits`], or above what the file's length allows.
    #[error("{what}: {found}, the limit is {most}")]
    Limit {
        /// What is limited.
        what: String,
        /// The size.
        found: u64,
        /// The cap.
        most: u64,
    },
    /// No memory for a tensor or a file.
    #[error("{what}: needs {wanted} bytes of memory, more than can be had")]
    Memory {
        /// What needs it.
        what: String,
        /// Bytes wanted.
        wanted: u64,
    },

    // The caller's argument.
    /// A tensor asked for by name does not exist.
    #[error("tensor {tensor}: not in the checkpoint")]
    NoSuchTensor {
        /// The name.
        tensor: String,
    },
    /// A tensor of integers was asked for as floats.
    #[error("tensor {tensor}: type {found:?}, wanted floats")]
    NotFloats {
        /// The tensor.
        tensor: String,
        /// Its type.
        found: SourceType,
    },

    // Input and output.
    /// The path is neither a file nor a folder.
    #[error("{}: neither a file nor a folder", path.display())]
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

/// Words of a file as they may stand in a message: escaped, and cut when they are long.
pub(super) fn shown(words: &str) -> String {
    const LONGEST: usize = 120;
    let escaped = words.chars().take(LONGEST).flat_map(|c| {
        // Quotes and backslashes may stay; what breaks lines or steers a terminal may not.
        let control = c.is_control().then(|| c.escape_default());
        control.into_iter().flatten().chain((!c.is_control()).then_some(c))
    });
    let cut = words.chars().nth(LONGEST).map(|_| '…');
    escaped.chain(cut).collect()
}
