//! What every tensor becomes, and why.

use std::fmt;
use std::path::Path;

use super::importance::ImportanceMatrix;
use super::write::Quantization;
use crate::bundle::Bundle;
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::schema::{TypeRule, expected_tensors};
use crate::tensor::TensorInfo;
use crate::writer::GgufWriter;

/// What a file is to become.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Type of the large matrices.
    pub dtype: GgmlType,
    /// Tensors that stay as they are, by name.
    pub keep: &'a dyn Fn(&str) -> bool,
    /// Whether tensors that are quantised already may be rounded once more.
    pub allow_requantize: bool,
    /// Which columns matter; tensors it does not know are packed without.
    pub importance: Option<&'a ImportanceMatrix>,
}

impl Options<'_> {
    /// All large matrices to `dtype`, from floats, every column alike.
    pub fn to(dtype: GgmlType) -> Self {
        Self { dtype, keep: &|_| false, allow_requantize: false, importance: None }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("dtype", &self.dtype)
            .field("allow_requantize", &self.allow_requantize)
            .field("importance", &self.importance.is_some())
            .finish_non_exhaustive()
    }
}

/// Why a tensor does not become the type that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The schema keeps tensors of its kind in floats.
    Schema,
    /// The caller keeps it.
    Kept,
    /// Its rows are not whole blocks of that type.
    RowLength,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Schema => "never quantised",
            Self::Kept => "kept",
            Self::RowLength => "rows are not whole blocks",
        })
    }
}

/// One tensor of a [`Plan`].
#[derive(Clone, Debug)]
pub struct PlannedTensor<'a> {
    /// As it is stored now.
    pub info: &'a TensorInfo,
    /// Type it will have.
    pub dtype: GgmlType,
    /// Why that is not the type that was asked for; `None` when it is.
    pub reason: Option<Reason>,
    /// Mean square of what flows into each column, where it is known and the type can use it.
    pub(super) importance: Option<Vec<f32>>,
}

impl PlannedTensor<'_> {
    /// Bytes it will take.
    pub fn byte_len(&self) -> u64 {
        let row = self.info.row_len() / self.dtype.block_len() * self.dtype.block_bytes();
        row as u64 * self.info.row_count() as u64
    }

    /// Whether packing it looks at which columns matter.
    pub fn is_weighted(&self) -> bool {
        self.importance.is_some()
    }
}

/// What every tensor of a bundle becomes.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) tensors: Vec<PlannedTensor<'a>>,
    dtype: GgmlType,
    /// Inputs behind the importance matrix.
    chunks: Option<u64>,
}

impl<'a> Plan<'a> {
    /// Decides for every tensor. Nothing is read but the header.
    ///
    /// # Errors
    /// [`GgufError::Requantize`] for a tensor that is quantised already, [`GgufError::ImportanceColumns`] for an importance matrix of another model.
    pub fn new(bundle: &'a Bundle, options: &Options<'_>) -> Result<Self, GgufError> {
        let mut tensors = Vec::new();
        for expected in expected_tensors(bundle.hparams()) {
            let info = bundle.gguf().tensor(&expected.name).expect("a bundle has every tensor of its schema").info();
            let (dtype, reason) = choose(info, expected.types, options);
            if dtype != info.dtype() && !info.dtype().is_float() && !options.allow_requantize {
                return Err(GgufError::Requantize { tensor: expected.name, found: info.dtype(), wanted: dtype });
            }
            // Asked for every tensor, so that a matrix of another model is refused also where no type would use it.
            let known =
                options.importance.map(|matrix| matrix.of(&expected.name, info.row_len())).transpose()?.flatten();
            let importance = known.filter(|_| dtype != info.dtype() && uses_importance(dtype));
            tensors.push(PlannedTensor { info, dtype, reason, importance });
        }
        // In the order of the file, so that it is read from front to back.
        tensors.sort_by_key(|t| t.info.offset());
        let chunks = options.importance.map(ImportanceMatrix::inputs);
        Ok(Self { bundle, tensors, dtype: options.dtype, chunks })
    }

    /// Every tensor, in the order in which the file will have them.
    pub fn tensors(&self) -> &[PlannedTensor<'a>] {
        &self.tensors
    }

    /// Length in bytes of the file it starts from.
    pub fn source_len(&self) -> u64 {
        self.bundle.gguf().byte_len()
    }

    /// Length in bytes of the file that will be written.
    ///
    /// # Errors
    /// As [`GgufWriter::header`].
    pub fn file_len(&self) -> Result<u64, GgufError> {
        self.head()?.file_len()
    }

    /// Opens a temporary file beside `path`; [`Quantization::finish`] fills it and gives it its name.
    ///
    /// # Errors
    /// As [`GgufWriter::create`].
    pub fn start(&self, path: impl AsRef<Path>) -> Result<Quantization<'_, 'a>, GgufError> {
        Ok(Quantization::new(self, self.head()?.create(path)?))
    }

    /// The source's keys with the new type in them, and the tensors.
    fn head(&self) -> Result<GgufWriter, GgufError> {
        let mut metadata = self.bundle.gguf().metadata().clone();
        metadata.set("general.file_type", self.dtype.file_type());
        metadata.remove("general.quantization_version");
        if !self.dtype.is_float() {
            metadata.set("general.quantization_version", crate::quant::VERSION);
        }
        if let Some(chunks) = self.chunks {
            let weighted = self.tensors.iter().filter(|t| t.is_weighted()).count();
            metadata.set("quantize.imatrix.entries_count", weighted as u32);
            metadata.set("quantize.imatrix.chunks_count", u32::try_from(chunks).unwrap_or(u32::MAX));
        }
        let mut head = GgufWriter::new(metadata);
        for t in &self.tensors {
            head.declare(t.info.name(), t.info.shape(), t.dtype)?;
        }
        Ok(head)
    }
}

fn choose(info: &TensorInfo, rule: TypeRule, options: &Options<'_>) -> (GgmlType, Option<Reason>) {
    if rule != TypeRule::Any {
        return (info.dtype(), Some(Reason::Schema));
    }
    if (options.keep)(info.name()) {
        return (info.dtype(), Some(Reason::Kept));
    }
    let dtype = rule.stored_as(options.dtype, info.row_len());
    (dtype, (dtype != options.dtype).then_some(Reason::RowLength))
}

/// Whether packing into `dtype` can look at which columns matter: what stores floats or 8 bits rounds each value alike.
fn uses_importance(dtype: GgmlType) -> bool {
    !dtype.is_float() && dtype != GgmlType::Q8_0
}
