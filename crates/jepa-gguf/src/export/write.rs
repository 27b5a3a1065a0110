//! Writes the folder: beside its name first, then renamed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::error::ExportError;
use super::tensors::ExportedTensor;
use super::{Export, config};

/// Values that are unpacked at a time.
const BATCH_VALUES: usize = 1 << 20;

/// An export whose temporary folder has been made.
///
/// Dropped before [`ExportWriting::finish`] it leaves nothing behind.
#[derive(Debug)]
pub struct ExportWriting<'e, 'a> {
    export: &'e Export<'a>,
    path: PathBuf,
    temporary: TempDir,
}

impl<'a> Export<'a> {
    /// Makes a temporary folder beside `path`; [`ExportWriting::finish`] fills it and gives it its name.
    ///
    /// # Errors
    /// [`ExportError::Exists`] for a name that is taken by anything but an empty folder, or the folder cannot be made.
    pub fn start(&self, path: &Path) -> Result<ExportWriting<'_, 'a>, ExportError> {
        if path.symlink_metadata().is_ok() && !std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        {
            return Err(ExportError::Exists { path: path.to_owned() });
        }
        let beside = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let io = |source| ExportError::Io { op: "make", path: path.to_owned(), source };
        std::fs::metadata(beside).map_err(io)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".export.").suffix(".partial");
        // Temporary folders are private by default; this one will be an ordinary folder, so the umask decides.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        // The kind alone: tempfile's own words name a folder that nobody asked for.
        let temporary = builder.tempdir_in(beside).map_err(|error| io(error.kind().into()))?;
        Ok(ExportWriting { export: self, path: path.to_owned(), temporary })
    }
}

impl ExportWriting<'_, '_> {
    /// The temporary folder, for who has to remove it when the process is told to end.
    pub fn temporary_path(&self) -> &Path {
        self.temporary.path()
    }

    /// Writes all files, tells `written` the name of each tensor, and gives the folder its name.
    ///
    /// # Errors
    /// The weights cannot be read or the folder cannot be written. Then nothing appears under the name.
    pub fn finish(self, mut written: impl FnMut(&str)) -> Result<(), ExportError> {
        let (hp, class) = (self.export.bundle.hparams(), self.export.class);
        self.json("config.json", &config::config(hp, class))?;
        let (file, processor) = config::processor(&hp.pre, class);
        self.json(file, &processor)?;
        self.weights(&mut written)?;
        if self.path.exists() {
            // An empty folder, as `start` made sure; some systems do not rename over one.
            std::fs::remove_dir(&self.path).map_err(|source| self.io("replace", source))?;
        }
        let (path, temporary) = (self.path, self.temporary);
        std::fs::rename(temporary.path(), &path).map_err(|source| ExportError::Io { op: "write", path, source })?;
        // Nothing is left under the temporary name.
        let _ = temporary.keep();
        Ok(())
    }

    fn io(&self, op: &'static str, source: std::io::Error) -> ExportError {
        ExportError::Io { op, path: self.path.clone(), source }
    }

    fn json(&self, file: &str, value: &Value) -> Result<(), ExportError> {
        let text = serde_json::to_string_pretty(value).expect("objects of strings and numbers only");
        std::fs::write(self.temporary.path().join(file), text + "\n").map_err(|source| self.io("write", source))
    }

    /// `model.safetensors`: length of the header, header, then the tensors in its order, f32.
    fn weights(&self, written: &mut impl FnMut(&str)) -> Result<(), ExportError> {
        let io = |source| self.io("write", source);
        let mut header = Map::new();
        header.insert("__metadata__".to_owned(), json!({ "format": "pt" }));
        let mut end = 0_u64;
        for tensor in &self.export.tensors {
            let start = end;
            // Every product was checked when the bundle was opened.
            end += tensor.shape.iter().product::<usize>() as u64 * 4;
            header.insert(
                tensor.name.clone(),
                json!({ "dtype": "F32", "shape": tensor.shape, "data_offsets": [start, end] }),
            );
        }
        let mut header = Value::from(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let file = File::create(self.temporary.path().join("model.safetensors")).map_err(io)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
        out.write_all(&header).map_err(io)?;
        for tensor in &self.export.tensors {
            self.tensor(tensor, &mut out)?;
            written(&tensor.name);
        }
        let file = out.into_inner().map_err(|e| io(e.into_error()))?;
        file.sync_all().map_err(io)
    }

    fn tensor(&self, tensor: &ExportedTensor, out: &mut impl Write) -> Result<(), ExportError> {
        let view = self.export.bundle.gguf().tensor(&tensor.from).expect("a bundle has every tensor of its schema");
        if view.info().shape().len() < 2 {
            // A vector is one row; what is taken of it are values.
            let values = view.to_f32();
            return put(&values[tensor.rows.clone()], out).map_err(|source| self.io("write", source));
        }
        let row = view.info().row_len();
        let step = (BATCH_VALUES / row).max(1);
        let mut values = Vec::new();
        let mut first = tensor.rows.start;
        while first < tensor.rows.end {
            let last = (first + step).min(tensor.rows.end);
            values.resize((last - first) * row, 0.0);
            view.dequantize_rows(first..last, &mut values)?;
            put(&values, out).map_err(|source| self.io("write", source))?;
            first = last;
        }
        Ok(())
    }
}

fn put(values: &[f32], out: &mut impl Write) -> std::io::Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    out.write_all(&bytes)
}
