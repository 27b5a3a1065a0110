//! Which columns of which matrices matter: the energy that flowed into them, kept in a GGUF file of its own.
//!
//! The layout is llama.cpp's: `general.type` "imatrix", and for each matrix `<name>.in_sum2 [1, columns]`, the sums of the squares, and
//! `<name>.counts [1, 1]`, the number of rows summed over.

use std::collections::BTreeMap;
use std::path::Path;

use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::file::Gguf;
use crate::value::{Metadata, Value};
use crate::writer::{GgufWriter, TensorWriter};

const TYPE_KEY: &str = "general.type";
const TYPE: &str = "imatrix";
const DATASETS_KEY: &str = "imatrix.datasets";
const INPUTS_KEY: &str = "imatrix.chunk_count";
const ROWS_KEY: &str = "imatrix.chunk_size";
const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";

/// Columns that carry less than this part of the average are taken to carry that much: a block whose columns all carry nothing has no best scale.
const FLOOR: f64 = 1e-6;

/// Energy of the rows that entered each matrix, column by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportanceMatrix {
    inputs: u64,
    tokens: u64,
    matrices: BTreeMap<String, (Vec<f32>, f32)>,
}

impl ImportanceMatrix {
    /// An empty one, gathered over `inputs` pictures or clips of `tokens` tokens.
    pub fn new(inputs: u64, tokens: u64) -> Self {
        Self { inputs, tokens, matrices: BTreeMap::new() }
    }

    /// Adds the matrix `tensor`: per column the sum of the squares over `rows` rows.
    pub fn insert(&mut self, tensor: &str, sum_of_squares: &[f64], rows: u64) {
        let sums = sum_of_squares.iter().map(|&sum| sum as f32).collect();
        self.matrices.insert(tensor.to_owned(), (sums, rows as f32));
    }

    /// Pictures or clips it was gathered over.
    pub fn inputs(&self) -> u64 {
        self.inputs
    }

    /// Names of the matrices.
    pub fn tensors(&self) -> impl Iterator<Item = &str> {
        self.matrices.keys().map(String::as_str)
    }

    /// Mean square of what entered each of the `columns` of `tensor`; `None` when nothing is known of it.
    ///
    /// # Errors
    /// [`GgufError::ImportanceColumns`] when it is known with another number of columns.
    pub fn of(&self, tensor: &str, columns: usize) -> Result<Option<Vec<f32>>, GgufError> {
        let Some((sums, rows)) = self.matrices.get(tensor) else { return Ok(None) };
        if sums.len() != columns {
            return Err(GgufError::ImportanceColumns { tensor: tensor.to_owned(), found: sums.len(), wanted: columns });
        }
        let means: Vec<f64> = sums.iter().map(|&sum| f64::from(sum) / f64::from(*rows)).collect();
        let average = means.iter().sum::<f64>() / columns as f64;
        if average == 0.0 {
            return Ok(None);
        }
        Ok(Some(means.iter().map(|mean| mean.max(FLOOR * average) as f32).collect()))
    }

    /// Opens the file `path` and writes everything; [`TensorWriter::finish`] gives it its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn start(&self, path: impl AsRef<Path>) -> Result<TensorWriter, GgufError> {
        let mut metadata = Metadata::default();
        metadata.insert(TYPE_KEY, TYPE)?;
        metadata.insert(DATASETS_KEY, Vec::<String>::new())?;
        metadata.insert(INPUTS_KEY, u32::try_from(self.inputs).unwrap_or(u32::MAX))?;
        metadata.insert(ROWS_KEY, u32::try_from(self.tokens).unwrap_or(u32::MAX))?;
        let mut head = GgufWriter::new(metadata);
        for (name, (sums, _)) in &self.matrices {
            head.declare(&format!("{name}{SUMS}"), &[1, sums.len()], GgmlType::F32)?;
            head.declare(&format!("{name}{COUNTS}"), &[1, 1], GgmlType::F32)?;
        }
        let mut out = head.create(path)?;
        for (name, (sums, rows)) in &self.matrices {
            let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            out.tensor(&format!("{name}{SUMS}"), &bytes)?;
            out.tensor(&format!("{name}{COUNTS}"), &rows.to_le_bytes())?;
        }
        Ok(out)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Any damage of the container; [`GgufError::NoImportance`] for a file that holds something else or no sound sums.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let file = Gguf::open(path)?;
        let refuse = |what: String| GgufError::NoImportance { what };
        match file.metadata().get(TYPE_KEY) {
            Some(Value::String(kind)) if kind == TYPE => {}
            Some(other) => return Err(refuse(format!("key {TYPE_KEY}: {other:?}, wanted \"{TYPE}\""))),
            None => return Err(refuse(format!("key {TYPE_KEY}: missing, wanted \"{TYPE}\""))),
        }
        let count = |key| file.metadata().get(key).and_then(Value::as_integer).and_then(|n| u64::try_from(n).ok());
        let mut matrices = BTreeMap::new();
        for info in file.tensors() {
            let Some(name) = info.name().strip_suffix(SUMS) else { continue };
            let counts_name = format!("{name}{COUNTS}");
            let counts =
                file.tensor(&counts_name).ok_or_else(|| refuse(format!("tensor {counts_name}: missing")))?.to_f32();
            let sums = file.tensor(info.name()).expect("listed by the file").to_f32();
            if info.row_count() != 1 || counts.len() != 1 {
                return Err(refuse(format!("tensor {}: shape {:?}, wanted one row", info.name(), info.shape())));
            }
            let rows = counts[0];
            if !(rows.is_finite() && rows > 0.0) {
                return Err(refuse(format!("tensor {counts_name}: {rows}, wanted a number above 0")));
            }
            if let Some(bad) = sums.iter().find(|sum| !(sum.is_finite() && **sum >= 0.0)) {
                return Err(refuse(format!("tensor {}: {bad}, wanted sums of squares", info.name())));
            }
            matrices.insert(name.to_owned(), (sums, rows));
        }
        if matrices.is_empty() {
            return Err(refuse(format!("no tensor is called <name>{SUMS}")));
        }
        Ok(Self { inputs: count(INPUTS_KEY).unwrap_or(0), tokens: count(ROWS_KEY).unwrap_or(0), matrices })
    }
}
