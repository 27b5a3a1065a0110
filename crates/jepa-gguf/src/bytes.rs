//! The bytes of an opened file: mapped or read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How the bytes of a file get into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Map the file: opens at once, and pages come in when they are used.
    ///
    /// The file must not shrink while it is mapped: touching a page that is gone ends the process with SIGBUS, and bytes that another process
    /// writes in place show through. Writers that replace the file by renaming, as ours does, are harmless. Use [`Access::Read`] for files on
    /// storage that may vanish.
    #[default]
    Map,
    /// Read the whole file first.
    Read,
}

/// Why a file did not open. The caller turns it into its own error, with the path.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// A folder or a device.
    NotAFile,
    /// No memory for a file of this many bytes.
    Memory(u64),
    /// The operating system refused what is named.
    Io(&'static str, std::io::Error),
}

/// The bytes of a file.
pub(crate) enum Bytes {
    Map(memmap2::Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps or reads the file at `path`.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, OpenError> {
        let io = |op| move |source| OpenError::Io(op, source);
        // Before opening: opening a pipe waits for a writer.
        if !std::fs::metadata(path).map_err(io("open"))?.is_file() {
            return Err(OpenError::NotAFile);
        }
        let file = File::open(path).map_err(io("open"))?;
        let len = file.metadata().map_err(io("open"))?.len();
        Ok(match access {
            // Nothing to map, and some systems refuse to.
            _ if len == 0 => Self::Owned(Vec::new()),
            Access::Map => Self::Map(map(&file).map_err(io("map"))?),
            Access::Read => Self::Owned(read(file, len)?),
        })
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Map(map) => map,
            Self::Owned(vec) => vec,
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> std::io::Result<memmap2::Mmap> {
    // SAFETY: the map is private to this crate and only ever read through bounds-checked slices of its length at this moment. What the
    // compiler cannot rule out is another process changing the file: bytes changed in place are read as plain numbers, for which every bit
    // pattern is valid, and the header has been copied out by then; a file cut short raises SIGBUS, which `Access` documents together with
    // the way around it.
    unsafe { memmap2::Mmap::map(file) }
}

/// The whole file, at most `len` bytes of it: one that grows meanwhile must not take more memory than was reserved.
fn read(file: File, len: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(len).ok().and_then(|n| bytes.try_reserve_exact(n).ok());
    reserved.ok_or(OpenError::Memory(len))?;
    file.take(len).read_to_end(&mut bytes).map_err(|source| OpenError::Io("read", source))?;
    Ok(bytes)
}
