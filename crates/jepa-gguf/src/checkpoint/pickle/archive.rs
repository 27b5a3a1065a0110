//! The zip archive of `torch.save`: `<name>/data.pkl`, and the numbers of every storage in a stored entry `<name>/data/<key>`.
//!
//! Only what such archives use is read: stored entries on one disk, with or without the 64-bit extensions. Checksums are not compared.

use std::collections::HashMap;

use super::flatten::flatten;
use super::machine::unpickle;
use super::node::Storage;
use crate::checkpoint::error::shown;
use crate::checkpoint::{CheckpointError, Contents};
use crate::cursor::{Cursor, Short, cut};
use crate::limits::MAX_CHECKPOINT_HEADER_BYTES;

const END: [u8; 4] = *b"PK\x05\x06";
const END_64: [u8; 4] = *b"PK\x06\x06";
const END_64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";

/// Bytes of the record that ends an archive, without its comment, and the longest comment.
const END_BYTES: usize = 22;
const LONGEST_COMMENT: usize = 0xffff;
const END_64_LOCATOR_BYTES: u64 = 20;
/// Bytes of an entry of the directory without its name.
const ENTRY_BYTES: u64 = 46;
/// Bytes of the header in front of an entry's data without name and extra fields.
const LOCAL_BYTES: u64 = 30;
/// Number of the extra field with the 64-bit sizes, which stand there for every size that is all ones.
const EXTRA_64: u16 = 1;
const IN_EXTRA: u64 = 0xffff_ffff;
const ENCRYPTED: u16 = 1;

/// Reads the head of `bytes`, a whole archive.
pub(in crate::checkpoint) fn read(bytes: &[u8]) -> Result<Contents, CheckpointError> {
    let entries = directory(bytes)?;
    let pickles: Vec<&str> = entries.keys().filter_map(|name| name.strip_suffix("/data.pkl")).collect();
    let &[root] = &pickles[..] else {
        return Err(CheckpointError::NotTorchArchive { found: pickles.len() });
    };
    if entries.contains_key(format!("{root}/constants.pkl").as_str()) {
        return Err(CheckpointError::TorchScript);
    }
    if let Some(entry) = entries.get(format!("{root}/byteorder").as_str()) {
        let (at, len) = entry.data(bytes)?;
        if cut(bytes, at, len) != Some(b"little") {
            return Err(CheckpointError::BigEndian);
        }
    }
    let (at, len) = entries[format!("{root}/data.pkl").as_str()].data(bytes)?;
    if len > MAX_CHECKPOINT_HEADER_BYTES {
        let what = "data.pkl, length in bytes".to_owned();
        return Err(CheckpointError::Limit { what, found: len, most: MAX_CHECKPOINT_HEADER_BYTES });
    }
    let pickle = unpickle(cut(bytes, at, len).expect("every entry was compared with the file"), "data.pkl")?;
    flatten(&pickle, |storage: &Storage<'_>| {
        let storage_name = || storage.key.to_owned();
        let entry = entries.get(format!("{root}/data/{}", storage.key).as_str());
        let (at, found) = entry.ok_or_else(|| CheckpointError::NoStorage { storage: storage_name() })?.data(bytes)?;
        match storage.byte_len() {
            Some(wanted) if wanted == found => Ok(at),
            wanted => {
                let wanted = wanted.unwrap_or(u64::MAX);
                Err(CheckpointError::StorageSize { storage: storage_name(), found, wanted, unit: "bytes" })
            }
        }
    })
}

/// An entry of the directory.
#[derive(Debug)]
struct Entry<'a> {
    name: &'a str,
    len: u64,
    /// Where its local header stands.
    local: u64,
}

impl Entry<'_> {
    /// First byte and length of its data.
    fn data(&self, bytes: &[u8]) -> Result<(u64, u64), CheckpointError> {
        let header = cut(bytes, self.local, LOCAL_BYTES).filter(|header| header[..4] == LOCAL);
        let header = header.ok_or_else(|| broken(self.name, "its header is not where the directory says"))?;
        let word = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        // Inside the file, so the sums are small.
        let at = self.local + LOCAL_BYTES + word(26) + word(28);
        let there = cut(bytes, at, self.len).is_some();
        there.then_some((at, self.len)).ok_or_else(|| CheckpointError::Truncated {
            part: format!("zip archive, {}", shown(self.name)),
            at,
            wanted: self.len,
            end: bytes.len() as u64,
        })
    }
}

fn broken(entry: &str, problem: &'static str) -> CheckpointError {
    CheckpointError::Archive { entry: shown(entry), problem }
}

/// All entries by name.
fn directory(bytes: &[u8]) -> Result<HashMap<&str, Entry<'_>>, CheckpointError> {
    let (count, at, len) = place_of_directory(bytes)?;
    let directory = cut(bytes, at, len).ok_or_else(|| CheckpointError::Truncated {
        part: "zip archive, directory".to_owned(),
        at,
        wanted: len,
        end: bytes.len() as u64,
    })?;
    if count > len / ENTRY_BYTES {
        return Err(broken("directory", "it counts more entries than it has room for"));
    }
    let mut cursor = Cursor::new(directory);
    let mut entries = HashMap::new();
    for _ in 0..count {
        let entry = entry(&mut cursor)?;
        let name = entry.name;
        if entries.insert(name, entry).is_some() {
            return Err(broken(name, "appears twice"));
        }
    }
    Ok(entries)
}

/// Number of entries, and first byte and length of the directory.
fn place_of_directory(bytes: &[u8]) -> Result<(u64, u64, u64), CheckpointError> {
    let first = bytes.len().saturating_sub(END_BYTES + LONGEST_COMMENT);
    let tail = &bytes[first..];
    let found = tail.windows(END_BYTES).rposition(|record| {
        let comment = usize::from(u16::from_le_bytes([record[20], record[21]]));
        record[..4] == END && comment <= LONGEST_COMMENT
    });
    let Some(found) = found else {
        return Err(broken("end of the directory", "it is missing; the file is damaged or an incomplete download"));
    };
    let end = (first + found) as u64;
    let record = &tail[found..];
    let word = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]).into();
    let long = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]).into();
    let locator = end.checked_sub(END_64_LOCATOR_BYTES).and_then(|at| cut(bytes, at, END_64_LOCATOR_BYTES));
    match locator.filter(|locator| locator[..4] == END_64_LOCATOR) {
        None => Ok((word(10), long(16), long(12))),
        Some(locator) => {
            let mut cursor = Cursor::new(&locator[8..]);
            let at = u64::from_le_bytes(cursor.array().map_err(short)?);
            let record = cut(bytes, at, 56).filter(|record| record[..4] == END_64);
            let record = record
                .ok_or_else(|| broken("end of the directory", "its 64-bit record is not where the archive says"))?;
            let mut cursor = Cursor::new(&record[32..]);
            let mut next = || cursor.array().map(u64::from_le_bytes).map_err(short);
            let (count, len, at) = (next()?, next()?, next()?);
            Ok((count, at, len))
        }
    }
}

/// The entry that the directory goes on with.
fn entry<'a>(cursor: &mut Cursor<'a>) -> Result<Entry<'a>, CheckpointError> {
    let head: [u8; ENTRY_BYTES as usize] = cursor.array().map_err(short)?;
    if head[..4] != ENTRY {
        return Err(broken("directory", "an entry does not begin as one"));
    }
    let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let long = |at: usize| u64::from(u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let name = cursor.take(word(28).into()).map_err(short)?;
    let name = std::str::from_utf8(name).map_err(|_| broken("directory", "a name is not UTF-8"))?;
    let extra = cursor.take(word(30).into()).map_err(short)?;
    cursor.take(word(32).into()).map_err(short)?;
    if word(8) & ENCRYPTED != 0 {
        return Err(broken(name, "is encrypted"));
    }
    if word(10) != 0 {
        return Err(CheckpointError::Compressed { entry: shown(name), method: word(10) });
    }
    let mut wide = extra_64(extra);
    let mut size = |short_size: u64| match short_size {
        IN_EXTRA => wide.next().ok_or_else(|| broken(name, "its 64-bit size is missing")),
        short_size => Ok(short_size),
    };
    let (len, stored, local) = (size(long(24))?, size(long(20))?, size(long(42))?);
    if len != stored {
        return Err(broken(name, "has another size stored than unpacked, although it is not compressed"));
    }
    Ok(Entry { name, len, local })
}

/// The 64-bit sizes among an entry's extra fields.
fn extra_64(mut extra: &[u8]) -> impl Iterator<Item = u64> + use<'_> {
    let mut sizes: &[u8] = &[];
    while let [id_low, id_high, len_low, len_high, rest @ ..] = extra {
        let len = usize::from(u16::from_le_bytes([*len_low, *len_high])).min(rest.len());
        if u16::from_le_bytes([*id_low, *id_high]) == EXTRA_64 {
            sizes = &rest[..len];
        }
        extra = &rest[len..];
    }
    sizes.as_chunks::<8>().0.iter().map(|&bytes| u64::from_le_bytes(bytes))
}

fn short(s: Short) -> CheckpointError {
    CheckpointError::Truncated { part: "zip archive, directory".to_owned(), at: s.at, wanted: s.wanted, end: s.end }
}
