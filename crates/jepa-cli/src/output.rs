//! Files that go out: complete or not at all.
//!
//! Everything is written to a temporary file beside the target, which takes the target's name when it is complete.

mod format;
mod rows;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempPath;

use crate::exit::CliError;
use crate::interrupt::Unfinished;

/// What is appended to an output's name to name its index.
const INDEX_SUFFIX: &str = ".index.jsonl";

pub(crate) use format::{Element, Format};
pub(crate) use rows::RowWriter;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct PartialFile {
    target: PathBuf,
    writer: BufWriter<File>,
    temporary: TempPath,
    _unfinished: Unfinished,
}

impl PartialFile {
    /// Opens the temporary file, so that a target that cannot be written is known before any work is done.
    pub(crate) fn create(target: &Path) -> Result<Self, CliError> {
        if target.is_dir() {
            return Err(CliError::output(target, "this is a folder; name a file"));
        }
        // Renaming onto a device or a pipe would put a file in its place.
        if std::fs::metadata(target).is_ok_and(|found| !found.is_file()) {
            return Err(CliError::output(target, "this is no regular file"));
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Made and written by the standard library: the errors of tempfile's own files name a file that nobody asked for.
        let made =
            tempfile::Builder::new().prefix(".jepa-").suffix(".part").make_in(folder, |path| File::create_new(path));
        let (file, temporary) = made.map_err(|error| CliError::output(target, error))?.into_parts();
        let _unfinished = Unfinished::new(&temporary);
        Ok(Self { target: target.to_owned(), writer: BufWriter::with_capacity(1 << 20, file), temporary, _unfinished })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.writer.write_all(bytes).map_err(|error| CliError::output(&self.target, error))
    }

    /// Lets `patch` change what has been written, then gives the file its name.
    pub(crate) fn finish_after(self, patch: impl FnOnce(&mut File) -> std::io::Result<()>) -> Result<(), CliError> {
        let Self { target, writer, temporary, _unfinished } = self;
        let fail = |error: std::io::Error| CliError::output(&target, error);
        let mut file = writer.into_inner().map_err(|error| fail(error.into_error()))?;
        patch(&mut file).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        temporary.persist(&target).map_err(|error| fail(error.error))?;
        Ok(())
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        self.finish_after(|_| Ok(()))
    }
}

/// Refuses a target that is one of the files that are read, through whatever links: it would be gone.
pub(crate) fn refuse_overwriting<'a>(
    target: &Path,
    sources: impl IntoIterator<Item = &'a Path>,
) -> Result<(), CliError> {
    let there = [target.to_owned(), beside(target, INDEX_SUFFIX)].into_iter().filter(|target| target.exists());
    let there: Vec<_> = there.collect();
    let refuse = |what: String| Err(CliError::usage(format!("output {}: it would overwrite {what}", target.display())));
    for source in sources.into_iter().filter(|_| !there.is_empty()) {
        if there.iter().any(|target| is_same_file(target, source)) {
            return refuse(format!("{}, which is read", source.display()));
        }
        if there.iter().any(|target| is_input_in(target, source)) {
            return refuse(format!("an input in {}", source.display()));
        }
    }
    Ok(())
}

/// Whether the file `target` is one of the inputs that `source`, a folder, stands for.
fn is_input_in(target: &Path, source: &Path) -> bool {
    let inside = || {
        target.canonicalize().is_ok_and(|target| source.canonicalize().is_ok_and(|folder| target.starts_with(folder)))
    };
    crate::inputs::may_be_input(target) && target.is_file() && source.is_dir() && inside()
}

/// Whether two paths lead to one file. Nothing is opened: opening a pipe waits for its other end.
#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    place(a).is_some_and(|place_of_a| place(b) == Some(place_of_a))
}

#[cfg(not(unix))]
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|path| b.canonicalize().is_ok_and(|other| path == other))
}

/// Named f32 tensors as a `.safetensors` file.
pub(crate) fn write_safetensors(
    target: &Path,
    tensors: &BTreeMap<String, (Vec<usize>, Vec<f32>)>,
) -> Result<(), CliError> {
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, values))| (name, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = bytes.iter().map(|(name, shape, data)| {
        (*name, TensorView::new(Dtype::F32, (*shape).clone(), data).expect("shape and values were made together"))
    });
    let serialized = safetensors::serialize(views, None).map_err(|error| CliError::output(target, error))?;
    let mut file = PartialFile::create(target)?;
    file.write(&serialized)?;
    file.finish()
}

/// The name beside `target` with `suffix` appended.
pub(crate) fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
