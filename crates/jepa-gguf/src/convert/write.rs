//! Writes a planned conversion: tensor after tensor, the rows of each packed on all cores.

use std::path::Path;

use rayon::prelude::*;

use super::error::ConvertError;
use super::{Conversion, ConvertedTensor};
use crate::bundle::Bundle;
use crate::error::GgufError;
use crate::quant;
use crate::writer::TensorWriter;

/// Values that are packed before the first of them is written.
const BATCH_VALUES: usize = 1 << 22;
/// Values that one thread takes at a time.
const TASK_VALUES: usize = 1 << 16;

/// A conversion whose file has been opened.
///
/// Dropped before [`Writing::finish`] it leaves nothing behind.
#[derive(Debug)]
pub struct Writing<'a> {
    conversion: &'a Conversion,
    out: TensorWriter,
}

impl Conversion {
    /// Opens a temporary file beside `path`; [`Writing::finish`] fills it and gives it its name.
    ///
    /// # Errors
    /// [`ConvertError::OutputIsInput`], or the file cannot be written.
    pub fn start(&self, path: &Path) -> Result<Writing<'_>, ConvertError> {
        refuse_input(&self.path, path)?;
        let out = self.head()?.create(path).map_err(|source| ConvertError::Write { source })?;
        Ok(Writing { conversion: self, out })
    }
}

impl<'a> Writing<'a> {
    /// The temporary file, for who has to remove it when the process is told to end.
    pub fn temporary_path(&self) -> &Path {
        self.out.temporary_path()
    }

    /// Converts all tensors, tells `written` after each, reads the file back as a bundle, and gives it its name. A file that had the name before
    /// is replaced.
    ///
    /// # Errors
    /// [`ConvertError::Checkpoint`] for weights that cannot be read, [`ConvertError::Weight`] for a weight that its type cannot hold,
    /// [`ConvertError::Write`] for a file that cannot be written or does not read back. Then nothing appears under the name.
    pub fn finish(mut self, mut written: impl FnMut(&'a ConvertedTensor)) -> Result<(), ConvertError> {
        let write = |source| ConvertError::Write { source };
        for tensor in &self.conversion.tensors {
            let values = tensor.recipe.values(&self.conversion.checkpoint)?;
            self.out.start(&tensor.name).map_err(write)?;
            pack(tensor, &values, &mut self.out)?;
            written(tensor);
        }
        let planned = &self.conversion.hparams;
        let reads_back = |file| match Bundle::from_gguf(file)?.hparams() {
            found if found == planned => Ok(()),
            _ => Err(GgufError::ReadBack { what: "the hyper-parameters" }),
        };
        self.out.finish_checked(reads_back).map_err(write)
    }
}

fn pack(tensor: &ConvertedTensor, values: &[f32], out: &mut TensorWriter) -> Result<(), ConvertError> {
    let dtype = tensor.dtype;
    let row = tensor.shape.last().copied().unwrap_or(1);
    if let Some((at, found)) = quant::out_of_range(dtype, values) {
        let (row, column) = (at / row, at % row);
        let tensor = tensor.name.clone();
        return Err(ConvertError::Weight(GgufError::WeightRange { tensor, row, column, found, dtype }));
    }
    let bytes = |values: usize| values / dtype.block_len() * dtype.block_bytes();
    let task = (TASK_VALUES / row).max(1) * row;
    let batch = (BATCH_VALUES / task).max(1) * task;
    let mut packed = vec![0; bytes(batch.min(values.len()))];
    for values in values.chunks(batch) {
        let packed = &mut packed[..bytes(values.len())];
        let tasks = packed.par_chunks_mut(bytes(task)).zip(values.par_chunks(task));
        tasks
            .try_for_each(|(packed, values)| quant::quantize(dtype, values, row, None, packed))
            .and_then(|()| out.piece(packed))
            .map_err(|source| ConvertError::Write { source })?;
    }
    Ok(())
}

/// Refuses an output that is the checkpoint or one of its files, also through links.
fn refuse_input(checkpoint: &Path, output: &Path) -> Result<(), ConvertError> {
    if !output.exists() {
        return Ok(());
    }
    let is_input = if checkpoint.is_dir() {
        let io = |source| ConvertError::Io { op: "list", path: checkpoint.to_owned(), source };
        let mut found = false;
        for entry in std::fs::read_dir(checkpoint).map_err(io)? {
            found |= same_file(&entry.map_err(io)?.path(), output);
        }
        found
    } else {
        same_file(checkpoint, output)
    };
    if is_input { Err(ConvertError::OutputIsInput { path: output.to_owned() }) } else { Ok(()) }
}

fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
        if id(a).is_some() && id(a) == id(b) {
            return true;
        }
    }
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
