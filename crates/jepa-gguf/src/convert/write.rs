//! Writes a planned conversion: tensor after tensor, the rows of each packed on all cores.

use std::ops::Range;
use std::path::Path;

use super::error::ConvertError;
use super::{Conversion, ConvertedTensor};
use crate::bundle::Bundle;
use crate::error::GgufError;
use crate::quantize::{Rows, pack};
use crate::writer::TensorWriter;

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
            write_tensor(tensor, &values, &mut self.out).map_err(|error| match error {
                GgufError::WeightRange { .. } => ConvertError::Weight(error),
                source => write(source),
            })?;
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

fn write_tensor(tensor: &ConvertedTensor, values: &[f32], out: &mut TensorWriter) -> Result<(), GgufError> {
    let len = tensor.shape.last().copied().unwrap_or(1);
    let read = |rows: Range<usize>, out: &mut [f32]| {
        out.copy_from_slice(&values[rows.start * len..rows.end * len]);
        Ok(())
    };
    out.start(&tensor.name)?;
    pack(&Rows { tensor: &tensor.name, len, count: values.len() / len, read: &read }, tensor.dtype, None, out)?;
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
