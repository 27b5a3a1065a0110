//! An open file: header, ranges of the tensors, and their bytes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::bytes::{Access, Bytes, OpenError};
use crate::cursor::cut;
use crate::dtype::GgmlType;
use crate::error::GgufError;
use crate::header::{DEFAULT_ALIGNMENT, Header};
use crate::tensor::{TensorInfo, TensorView};
use crate::value::Metadata;
use crate::writer::VERSION;

/// How much of a file is stored in one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeShare {
    /// The type.
    pub dtype: GgmlType,
    /// Tensors of this type.
    pub tensors: usize,
    /// Values in them.
    pub elements: u64,
    /// Bytes they take.
    pub bytes: u64,
}

/// An open GGUF file whose header has been checked.
///
/// Every tensor is known to lie inside the file, on its alignment, and apart from every other. Tensor data is not touched by opening.
///
/// ```no_run
/// let file = jepa_gguf::Gguf::open("ijepa_vith14_1k-f16.gguf")?;
/// let norm = file.tensor("enc.norm.weight").expect("every encoder has one");
/// println!("{:?} {} {:?}", norm.info().shape(), norm.info().dtype(), &norm.to_f32()[..4]);
/// # Ok::<(), jepa_gguf::GgufError>(())
/// ```
pub struct Gguf {
    bytes: Bytes,
    version: u32,
    alignment: u64,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
    data_start: u64,
}

impl Gguf {
    /// Maps a file and checks its header.
    ///
    /// # Errors
    /// Any damage of the container, see [`GgufError`]; or the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        Self::open_with(path, Access::Map)
    }

    /// Maps or reads a file and checks its header.
    ///
    /// # Errors
    /// As [`Gguf::open`]; with [`Access::Read`] also [`GgufError::Memory`].
    pub fn open_with(path: impl AsRef<Path>, access: Access) -> Result<Self, GgufError> {
        let path = path.as_ref();
        let bytes = Bytes::open(path, access).map_err(|error| match error {
            OpenError::NotAFile => GgufError::NotAFile { path: path.to_owned() },
            OpenError::Memory(wanted) => GgufError::Memory { wanted },
            OpenError::Io(op, source) => GgufError::Io { op, path: path.to_owned(), source },
        })?;
        Self::new(bytes)
    }

    /// Checks a file that is in memory already.
    ///
    /// # Errors
    /// Any damage of the container, see [`GgufError`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GgufError> {
        Self::new(Bytes::Owned(bytes))
    }

    fn new(bytes: Bytes) -> Result<Self, GgufError> {
        let Header { version, alignment, metadata, tensors, data_start } = Header::parse(&bytes)?;
        let room = (bytes.len() as u64).saturating_sub(data_start);
        check_ranges(&tensors, alignment, room)?;
        let index = tensors.iter().enumerate().map(|(i, t)| (t.name.clone(), i)).collect();
        Ok(Self { bytes, version, alignment, metadata, tensors, index, data_start })
    }

    /// A file of which there is only the head yet: its keys and its tensor table can be looked at, its tensors cannot.
    pub(crate) fn without_data(metadata: Metadata, tensors: Vec<TensorInfo>) -> Self {
        let index = tensors.iter().enumerate().map(|(i, t)| (t.name.clone(), i)).collect();
        let (bytes, alignment) = (Bytes::Owned(Vec::new()), DEFAULT_ALIGNMENT);
        Self { bytes, version: VERSION, alignment, metadata, tensors, index, data_start: 0 }
    }

    /// Version of the container: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Alignment of the tensors, in bytes; a power of two.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Length of the file in bytes.
    pub fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// All keys and values.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors, in the order of the file's table.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        self.index_of(name).map(|i| self.view(i))
    }

    /// Number of values in all tensors.
    pub fn parameter_count(&self) -> u64 {
        self.tensors.iter().map(|t| t.element_count() as u64).fold(0, u64::saturating_add)
    }

    /// What the file is stored in, by type in the order of ggml's numbers.
    pub fn type_mix(&self) -> Vec<TypeShare> {
        let mut mix = BTreeMap::new();
        for t in &self.tensors {
            let share = mix.entry(t.dtype).or_insert(TypeShare { dtype: t.dtype, tensors: 0, elements: 0, bytes: 0 });
            share.tensors += 1;
            share.elements += t.element_count() as u64;
            share.bytes += t.bytes;
        }
        mix.into_values().collect()
    }

    /// `general.file_type`, ggml's `ftype` number. Advisory: the types of the tensors are the truth.
    pub fn file_type(&self) -> Option<u32> {
        self.metadata.get("general.file_type")?.as_integer()?.try_into().ok()
    }

    /// Whether the bytes are pages of the file, and not a copy in memory.
    pub fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Map(_))
    }

    /// Lets the system take back the memory that the pages of `tensor` use, for who needs it no more. Reading the tensor again brings them
    /// back; a file that was read into memory stays there.
    pub fn release(&self, tensor: &str) {
        if let Some(view) = self.tensor(tensor) {
            self.bytes.release((self.data_start + view.info.offset) as usize, view.bytes.len());
        }
    }

    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    pub(crate) fn view(&self, index: usize) -> TensorView<'_> {
        let info = &self.tensors[index];
        let bytes = cut(&self.bytes, self.data_start + info.offset, info.bytes)
            .expect("every range was compared with the length of the file");
        TensorView { info, bytes }
    }

    /// Drops leading sizes of 1, or adds them, so that the shape reads `shape`; the values are the same.
    pub(crate) fn reshape(&mut self, index: usize, shape: Vec<usize>) {
        debug_assert_eq!(self.tensors[index].element_count(), shape.iter().product::<usize>());
        self.tensors[index].shape = shape;
    }
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gguf")
            .field("version", &self.version)
            .field("bytes", &self.bytes.len())
            .field("keys", &self.metadata.len())
            .field("tensors", &self.tensors.len())
            .finish()
    }
}

/// Checks that every tensor lies on the alignment, inside the `room` bytes of tensor data, and apart from the others.
fn check_ranges(tensors: &[TensorInfo], alignment: u64, room: u64) -> Result<(), GgufError> {
    for t in tensors {
        let tensor = || t.name.clone();
        if t.offset % alignment != 0 {
            return Err(GgufError::Misaligned { tensor: tensor(), offset: t.offset, alignment });
        }
        if t.offset.checked_add(t.bytes).is_none_or(|end| end > room) {
            return Err(GgufError::TensorRange { tensor: tensor(), offset: t.offset, wanted: t.bytes, room });
        }
    }
    let mut by_offset: Vec<&TensorInfo> = tensors.iter().collect();
    // Stable, so that of two tensors at one offset the later entry of the table is the one that is blamed.
    by_offset.sort_by_key(|t| t.offset);
    for pair in by_offset.windows(2) {
        let [a, b] = pair else { continue };
        if a.offset + a.bytes > b.offset {
            return Err(GgufError::Overlap { tensor: b.name.clone(), offset: b.offset, other: a.name.clone() });
        }
    }
    Ok(())
}
