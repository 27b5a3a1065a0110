//! One row per input, written as it comes.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde::Serialize;

use super::format::{HEADER_BYTES, header};
use super::{Element, Format, INDEX_SUFFIX, PartialFile, beside};
use crate::exit::CliError;

/// Writes rows of one shape to a file and an index beside it, without holding them.
#[derive(Debug)]
pub(crate) struct RowWriter {
    format: Format,
    element: Element,
    tensor_name: &'static str,
    file: PartialFile,
    index: PartialFile,
    row_shape: Option<Vec<usize>>,
    rows: usize,
}

/// One line of a `.jsonl` output.
#[derive(Debug, Serialize)]
struct JsonRow<'a> {
    input: &'a str,
    shape: &'a [usize],
    values: &'a [f32],
}

/// One line of `OUT.index.jsonl`: a row and its input, or an input and why it has no row.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum IndexLine<'a> {
    Row { row: usize, input: &'a str },
    Failed { input: &'a str, error: &'a str },
}

impl RowWriter {
    /// Opens the output and its index. `tensor_name` is the name of the array in a `.safetensors` file.
    pub(crate) fn create(
        target: &Path,
        format: Format,
        element: Element,
        tensor_name: &'static str,
    ) -> Result<Self, CliError> {
        let mut file = PartialFile::create(target)?;
        if header(format, element, tensor_name, &[]).is_some() {
            file.write(&[0; HEADER_BYTES])?;
        }
        let index = PartialFile::create(&beside(target, INDEX_SUFFIX))?;
        Ok(Self { format, element, tensor_name, file, index, row_shape: None, rows: 0 })
    }

    /// Whether a row of this shape fits behind those already written; says why not.
    pub(crate) fn accepts(&self, shape: &[usize]) -> Result<(), String> {
        match &self.row_shape {
            Some(wanted) if wanted != shape => Err(format!(
                "its row has shape {shape:?}, earlier rows have {wanted:?}; give --frames or --size, or embed it separately"
            )),
            _ if self.format == Format::Csv && shape.len() != 1 => {
                Err("a token map does not fit into .csv; write .npy, .safetensors or .jsonl".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Appends a row of f32. The shape must have been accepted.
    pub(crate) fn push_f32(&mut self, input: &str, shape: &[usize], values: &[f32]) -> Result<(), CliError> {
        match self.format {
            Format::Npy | Format::Safetensors => {
                let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                self.file.write(&bytes)?;
            }
            Format::Jsonl => {
                let mut line =
                    serde_json::to_string(&JsonRow { input, shape, values }).expect("a row is text and numbers");
                line.push('\n');
                self.file.write(line.as_bytes())?;
            }
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(Vec::new());
                let first = std::iter::once("input".to_owned()).chain((0..values.len()).map(|i| i.to_string()));
                let record = std::iter::once(input.to_owned()).chain(values.iter().map(f32::to_string));
                if self.rows == 0 {
                    csv.write_record(first).expect("writing to memory");
                }
                csv.write_record(record).expect("writing to memory");
                self.file.write(&csv.into_inner().expect("writing to memory"))?;
            }
        }
        self.count(input, shape)
    }

    /// Appends a row of bytes to an array of them.
    pub(crate) fn push_u8(&mut self, input: &str, shape: &[usize], values: &[u8]) -> Result<(), CliError> {
        self.file.write(values)?;
        self.count(input, shape)
    }

    fn count(&mut self, input: &str, shape: &[usize]) -> Result<(), CliError> {
        self.row_shape.get_or_insert_with(|| shape.to_vec());
        self.write_index(&IndexLine::Row { row: self.rows, input })?;
        self.rows += 1;
        Ok(())
    }

    /// Notes in the index why an input has no row.
    pub(crate) fn note_failure(&mut self, input: &str, error: &str) -> Result<(), CliError> {
        self.write_index(&IndexLine::Failed { input, error })
    }

    fn write_index(&mut self, line: &IndexLine<'_>) -> Result<(), CliError> {
        let mut line = serde_json::to_string(line).expect("an index line is strings and a number");
        line.push('\n');
        self.index.write(line.as_bytes())
    }

    /// Shape of the whole array: rows first.
    pub(crate) fn shape(&self) -> Vec<usize> {
        std::iter::once(self.rows).chain(self.row_shape.iter().flatten().copied()).collect()
    }

    /// Completes both files. Without a single row there is only the index, which says why.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        if self.rows == 0 {
            return self.index.finish();
        }
        let header = header(self.format, self.element, self.tensor_name, &self.shape());
        self.file.finish_after(|file| match header {
            Some(header) => {
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&header)
            }
            None => Ok(()),
        })?;
        self.index.finish()
    }
}
