//! Writes files: header first, then the tensors one after another; the file appears under its name complete or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::file::Gguf;
use crate::header::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, problem_with};
use crate::limits::{MAX_DIMS, MAX_KEY_BYTES, MAX_TENSOR_NAME_BYTES};
use crate::tensor::TensorInfo;
use crate::value::{Array, Metadata, Value};

/// Version of the container that is written.
pub(crate) const VERSION: u32 = 3;

/// The head of a file to be: its metadata and its tensors, in the order they will have.
///
/// The bytes follow from what is declared alone: no time stamps, no hash order. Tensors are aligned to 32 bytes, the format's default.
#[derive(Clone, Debug)]
pub struct GgufWriter {
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    end: u64,
}

impl GgufWriter {
    /// Starts a file with this metadata. A `general.alignment` in it is dropped: it belongs to the file the metadata was read from.
    pub fn new(mut metadata: Metadata) -> Self {
        metadata.remove(ALIGNMENT_KEY);
        Self { metadata, tensors: Vec::new(), end: 0 }
    }

    /// Declares the next tensor; `shape` has the rows first, as in PyTorch.
    ///
    /// # Errors
    /// A name that is empty, too long, unprintable or taken; a shape with no size, or whose rows are not whole blocks of `dtype`.
    pub fn declare(&mut self, name: &str, shape: &[usize], dtype: GgmlType) -> Result<(), GgufError> {
        if let Some(problem) = problem_with(name) {
            return Err(GgufError::Name { section: format!("tensor info {}", self.tensors.len()), problem });
        }
        limit(format!("tensor {name}, length of the name in bytes"), name.len() as u64, MAX_TENSOR_NAME_BYTES)?;
        if self.tensors.iter().any(|t| t.name == name) {
            return Err(GgufError::TensorTwice { tensor: name.to_owned() });
        }
        if shape.is_empty() || shape.len() > MAX_DIMS as usize {
            return Err(GgufError::Rank { tensor: name.to_owned(), found: shape.len() as u32 });
        }
        let shape: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
        let info = TensorInfo::new(name.to_owned(), shape.clone(), dtype, self.end)?;
        self.end = info
            .bytes
            .checked_next_multiple_of(DEFAULT_ALIGNMENT)
            .and_then(|padded| self.end.checked_add(padded))
            .ok_or_else(|| GgufError::TooManyElements { tensor: name.to_owned(), shape })?;
        self.tensors.push(info);
        Ok(())
    }

    /// The tensors declared so far.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Length in bytes of the file that will be written.
    ///
    /// # Errors
    /// As [`GgufWriter::header`].
    pub fn file_len(&self) -> Result<u64, GgufError> {
        Ok(self.header()?.len() as u64 + self.end)
    }

    /// Everything before the tensor data, padded to the alignment.
    ///
    /// # Errors
    /// A key that is empty, too long or unprintable.
    pub fn header(&self) -> Result<Vec<u8>, GgufError> {
        let mut out = Vec::from(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (i, (key, value)) in self.metadata.iter().enumerate() {
            if let Some(problem) = problem_with(key) {
                return Err(GgufError::Name { section: format!("metadata key {i}"), problem });
            }
            limit(format!("key {key:.60}, length of the name in bytes"), key.len() as u64, MAX_KEY_BYTES)?;
            put_string(&mut out, key);
            out.extend(value.type_id().to_le_bytes());
            put_value(&mut out, value);
        }
        for t in &self.tensors {
            put_string(&mut out, &t.name);
            out.extend((t.shape.len() as u32).to_le_bytes());
            for &size in t.shape.iter().rev() {
                out.extend((size as u64).to_le_bytes());
            }
            out.extend(t.dtype.id().to_le_bytes());
            out.extend(t.offset.to_le_bytes());
        }
        out.resize(out.len().next_multiple_of(DEFAULT_ALIGNMENT as usize), 0);
        Ok(out)
    }

    /// Opens a temporary file beside `path` and writes the header to it. The tensors follow; [`TensorWriter::finish`] gives the file its name.
    ///
    /// # Errors
    /// As [`GgufWriter::header`]; [`GgufError::NotAFile`] when a device or a pipe has that name; or the file cannot be written.
    pub fn create(self, path: impl AsRef<Path>) -> Result<TensorWriter, GgufError> {
        let path = path.as_ref().to_owned();
        let io = |source| GgufError::Io { op: "write", path: path.clone(), source };
        let folder = match path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        std::fs::metadata(folder).map_err(io)?;
        // Renaming onto a folder fails in the end, and onto a device or a pipe it would put a file in its place.
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Err(io(std::io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => return Err(GgufError::NotAFile { path }),
            _ => {}
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".");
        // Made and written by the standard library: the errors of tempfile's own files name a file that nobody asked for.
        let made =
            tempfile::Builder::new().prefix(&name).suffix(".partial").make_in(folder, |path| File::create_new(path));
        let (file, temporary) = made.map_err(io)?.into_parts();
        let header = self.header()?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&header).map_err(io)?;
        Ok(TensorWriter { head: self, path, out, temporary, next: 0, open: None })
    }
}

/// A file being written: takes the data of the declared tensors, in their order, whole or in pieces.
///
/// Dropped before [`TensorWriter::finish`] it leaves nothing behind.
#[derive(Debug)]
pub struct TensorWriter {
    head: GgufWriter,
    path: PathBuf,
    out: BufWriter<File>,
    temporary: TempPath,
    /// The tensor that starts next.
    next: usize,
    /// Bytes written of the tensor before `next`, while it is not complete.
    open: Option<u64>,
}

impl TensorWriter {
    /// The temporary file, for who has to remove it when the process is told to end.
    pub fn temporary_path(&self) -> &Path {
        &self.temporary
    }

    /// Writes all of the next tensor.
    ///
    /// # Errors
    /// [`GgufError::WriteOrder`], [`GgufError::WriteLength`], or the file cannot be written.
    pub fn tensor(&mut self, name: &str, bytes: &[u8]) -> Result<(), GgufError> {
        self.start(name)?;
        self.piece(bytes)
    }

    /// Starts the next tensor; its bytes follow by [`TensorWriter::piece`].
    ///
    /// # Errors
    /// [`GgufError::WriteOrder`] when another tensor comes next, [`GgufError::WriteLength`] when the one before is not complete.
    pub fn start(&mut self, name: &str) -> Result<(), GgufError> {
        self.close()?;
        match self.head.tensors.get(self.next) {
            Some(t) if t.name == name => {
                self.next += 1;
                self.open = Some(0);
                Ok(())
            }
            other => {
                let wanted = other.map_or_else(|| "no further tensor".to_owned(), |t| t.name.clone());
                Err(GgufError::WriteOrder { found: name.to_owned(), wanted })
            }
        }
    }

    /// Writes the next bytes of the tensor that was started.
    ///
    /// # Errors
    /// [`GgufError::WriteLength`] for more bytes than declared, or the file cannot be written.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<(), GgufError> {
        let Some(t) = self.next.checked_sub(1).and_then(|i| self.head.tensors.get(i)) else {
            return Err(GgufError::WriteOrder { found: "(none)".to_owned(), wanted: "a started tensor".to_owned() });
        };
        let written = self.open.unwrap_or(t.bytes) + bytes.len() as u64;
        if written > t.bytes {
            return Err(GgufError::WriteLength { tensor: t.name.clone(), found: written, wanted: t.bytes });
        }
        self.out.write_all(bytes).map_err(|source| self.io(source))?;
        self.open = Some(written);
        Ok(())
    }

    /// Completes the tensor that was started: all bytes there, padding behind.
    fn close(&mut self) -> Result<(), GgufError> {
        let Some(written) = self.open.take() else { return Ok(()) };
        let t = &self.head.tensors[self.next - 1];
        if written != t.bytes {
            return Err(GgufError::WriteLength { tensor: t.name.clone(), found: written, wanted: t.bytes });
        }
        let padding = t.bytes.next_multiple_of(DEFAULT_ALIGNMENT) - t.bytes;
        self.out.write_all(&[0; DEFAULT_ALIGNMENT as usize][..padding as usize]).map_err(|source| self.io(source))
    }

    /// Brings the file to the disk, reads its header back, and gives it its name. A file that had the name before is replaced.
    ///
    /// # Errors
    /// [`GgufError::WriteLength`] when a tensor is not complete, [`GgufError::WriteOrder`] when one is missing, [`GgufError::ReadBack`], or the file
    /// cannot be written. In all cases nothing appears under the name.
    pub fn finish(self) -> Result<(), GgufError> {
        self.finish_checked(|_| Ok(()))
    }

    /// As [`TensorWriter::finish`]; the file that was read back also has to pass `check` before it gets its name.
    pub(crate) fn finish_checked(mut self, check: impl FnOnce(Gguf) -> Result<(), GgufError>) -> Result<(), GgufError> {
        self.close()?;
        if let Some(t) = self.head.tensors.get(self.next) {
            return Err(GgufError::WriteOrder { found: "(end of file)".to_owned(), wanted: t.name.clone() });
        }
        let path = self.path;
        let io = |source| GgufError::Io { op: "write", path: path.clone(), source };
        let file = self.out.into_inner().map_err(|e| io(e.into_error()))?;
        file.sync_all().map_err(io)?;
        let back = Gguf::open(&self.temporary)?;
        if back.tensors() != self.head.tensors {
            return Err(GgufError::ReadBack { what: "the tensor table" });
        }
        if back.byte_len() != self.head.file_len()? {
            return Err(GgufError::ReadBack { what: "the length" });
        }
        // The map is gone after this: some systems do not rename a file that is mapped.
        check(back)?;
        self.temporary.persist(&path).map_err(|e| io(e.error))?;
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> GgufError {
        GgufError::Io { op: "write", path: self.path.clone(), source }
    }
}

fn limit(what: String, found: u64, most: u64) -> Result<(), GgufError> {
    if found > most { Err(GgufError::Limit { what, found, most }) } else { Ok(()) }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(v) => out.extend(v.to_le_bytes()),
        Value::I8(v) => out.extend(v.to_le_bytes()),
        Value::U16(v) => out.extend(v.to_le_bytes()),
        Value::I16(v) => out.extend(v.to_le_bytes()),
        Value::U32(v) => out.extend(v.to_le_bytes()),
        Value::I32(v) => out.extend(v.to_le_bytes()),
        Value::F32(v) => out.extend(v.to_le_bytes()),
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::String(v) => put_string(out, v),
        Value::Array(v) => put_array(out, v),
        Value::U64(v) => out.extend(v.to_le_bytes()),
        Value::I64(v) => out.extend(v.to_le_bytes()),
        Value::F64(v) => out.extend(v.to_le_bytes()),
    }
}

fn put_array(out: &mut Vec<u8>, array: &Array) {
    out.extend(array.element_type_id().to_le_bytes());
    out.extend((array.len() as u64).to_le_bytes());
    match array {
        Array::U8(v) => out.extend(v),
        Array::I8(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::U16(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::I16(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::U32(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::I32(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::F32(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::Bool(v) => v.iter().for_each(|x| out.push(u8::from(*x))),
        Array::String(v) => v.iter().for_each(|x| put_string(out, x)),
        Array::Array(v) => v.iter().for_each(|x| put_array(out, x)),
        Array::U64(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::I64(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
        Array::F64(v) => v.iter().for_each(|x| out.extend(x.to_le_bytes())),
    }
}
