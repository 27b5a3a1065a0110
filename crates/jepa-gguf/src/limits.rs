//! Every cap this crate puts on what a file may claim, with its reason.
//!
//! Most claims need no cap of their own, because the reader compares them with the bytes that are left in the file. The caps here bound what
//! cannot be compared with bytes: recursion, index arithmetic, and sizes that a graph would allocate by.

/// Longest key in bytes; the GGUF specification's own limit.
pub const MAX_KEY_BYTES: u64 = 65_535;

/// Longest tensor name in bytes. ggml stops at 63; four times that leaves room without letting names dominate the header.
pub const MAX_TENSOR_NAME_BYTES: u64 = 255;

/// Deepest nesting of arrays in metadata. No known file nests at all; four levels keep the recursive reader's stack small and constant.
pub const MAX_ARRAY_DEPTH: u32 = 4;

/// Most dimensions of a tensor; ggml's `GGML_MAX_DIMS`.
pub const MAX_DIMS: u32 = 4;

/// Largest `general.alignment`: a memory page of the largest kind in use (1 GiB). More could only be a damaged number.
pub const MAX_ALIGNMENT: u64 = 1 << 30;

/// Largest width of a token, an MLP or an output. The largest published model is 6144 wide; this keeps every product of two widths below 2^40.
pub const MAX_WIDTH: u64 = 1 << 20;

/// Most blocks in one stack, so that walking the expected tensors of a damaged count ends quickly. The largest published model has 48.
pub const MAX_LAYERS: u64 = 1024;

/// Most attention heads.
pub const MAX_HEADS: u64 = 1 << 12;

/// Longest side of a picture in pixels; a patch is never longer.
pub const MAX_SIDE: u64 = 1 << 14;

/// Most frames of a training clip, of one token, or of a predictor's window.
pub const MAX_FRAMES: u64 = 1 << 14;

/// Most colour channels; with the caps on sides and frames a patch row stays below 2^48 values.
pub const MAX_CHANNELS: u64 = 64;

/// Most rows in a table of special tokens (registers, mask tokens).
pub const MAX_SPECIAL_TOKENS: u64 = 1 << 12;

/// Most classes of a head.
pub const MAX_CLASSES: u64 = 1 << 20;

/// Longest header of a safetensors file, longest shard index and longest pickle. The largest published ones are below 10 MB; the format's own
/// library stops at 100 MB as well.
pub const MAX_CHECKPOINT_HEADER_BYTES: u64 = 100_000_000;

/// Most dimensions of a tensor in a checkpoint. Video convolutions have five; the cap keeps a shape that many tensors share from being copied out
/// of proportion to the file.
pub const MAX_SOURCE_DIMS: u64 = 16;

/// Longest name of a tensor in a checkpoint, prefixes included.
pub const MAX_SOURCE_NAME_BYTES: u64 = 4096;

/// Deepest nesting of dictionaries and lists in a checkpoint. Training checkpoints nest five or six deep; the walk over them is recursive.
pub const MAX_SOURCE_DEPTH: u64 = 100;

/// Most objects, memo entries or stack entries of a pickle. An optimiser state with 20 000 tensors makes about 400 000.
pub const MAX_PICKLE_OBJECTS: u64 = 1 << 22;

/// Most marks that are open at a time in a pickle; Python's own recursion limit keeps writers below it.
pub const MAX_PICKLE_MARKS: u64 = 1000;
