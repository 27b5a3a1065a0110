//! The safetensors format: a length, a JSON header, and the numbers of the tensors without a gap.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::error::shown;
use super::slot::{self, Slot, Stored};
use super::{CheckpointError, Contents, SourceTensor};
use crate::cursor::{Cursor, Short};
use crate::limits::MAX_CHECKPOINT_HEADER_BYTES;

/// Part of the file that messages name.
const HEADER: &str = "safetensors header";

/// A JSON object whose keys keep their order and may appear twice, which a map would hide.
pub(super) struct Entries<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Each<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Entries<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries<T>, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        json.deserialize_map(Each(std::marker::PhantomData))
    }
}

/// The header: one object with an entry per tensor, and `__metadata__`.
struct Header(Vec<(String, Entry)>);

/// What the header says of one tensor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Header;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with an entry per tensor")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Header, M::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        // Words about the writer. They are no values of the checkpoint, but they must be words.
                        map.next_value::<HashMap<String, String>>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(Header(entries))
            }
        }
        json.deserialize_map(Each)
    }
}

/// Reads the header of `bytes`, the whole file, and checks every range.
pub(super) fn read(bytes: &[u8]) -> Result<Contents, CheckpointError> {
    let mut cursor = Cursor::new(bytes);
    let short = |s: Short| CheckpointError::Truncated { part: HEADER.into(), at: s.at, wanted: s.wanted, end: s.end };
    let len = cursor.u64().map_err(short)?;
    if len > MAX_CHECKPOINT_HEADER_BYTES {
        let what = format!("{HEADER}, length in bytes");
        return Err(CheckpointError::Limit { what, found: len, most: MAX_CHECKPOINT_HEADER_BYTES });
    }
    let header = cursor.take(len).map_err(short)?;
    let Header(entries) = serde_json::from_slice(header)
        .map_err(|error| CheckpointError::Json { part: HEADER, problem: shown(&error.to_string()) })?;
    let (start, room) = (cursor.position(), cursor.remaining());

    let mut names = HashSet::new();
    for (name, _) in &entries {
        super::check_name(name)?;
        if !names.insert(name) {
            return Err(CheckpointError::Twice { name: name.clone() });
        }
    }
    let mut contents = Contents::default();
    for (name, entry) in &entries {
        let (tensor, slot) = tensor(name, entry, start, room)?;
        contents.tensors.push((tensor, slot));
    }
    check_cover(&entries, room)?;
    Ok(contents)
}

/// One tensor of the header; the numbers start at byte `start` of the file and are `room` bytes long.
fn tensor(name: &str, entry: &Entry, start: u64, room: u64) -> Result<(SourceTensor, Slot), CheckpointError> {
    let stored = match entry.dtype.as_str() {
        "F64" => Stored::F64,
        "F32" => Stored::F32,
        "F16" => Stored::F16,
        "BF16" => Stored::Bf16,
        "BOOL" | "U8" | "I8" => Stored::Integer(1),
        "U16" | "I16" => Stored::Integer(2),
        "U32" | "I32" => Stored::Integer(4),
        "U64" | "I64" => Stored::Integer(8),
        other => {
            return Err(CheckpointError::Numbers { what: format!("tensor {name}"), found: shown(other) });
        }
    };
    let [begin, end] = entry.data_offsets;
    if begin > end || end > room {
        return Err(CheckpointError::TensorRange { tensor: name.to_owned(), start: begin, end, room });
    }
    let (shape, elements) = slot::shape(name, &entry.shape)?;
    let too_many = || CheckpointError::TooManyElements { tensor: name.to_owned(), shape: entry.shape.clone() };
    let wanted = (elements as u64).checked_mul(stored.width()).ok_or_else(too_many)?;
    if end - begin != wanted {
        let (tensor, found, shape) = (name.to_owned(), end - begin, entry.shape.clone());
        return Err(CheckpointError::TensorBytes { tensor, found, wanted, shape });
    }
    // Inside the file, so the sum is below its length.
    let slot = Slot::row_major(stored, start + begin, elements);
    Ok((SourceTensor { name: name.to_owned(), shape, dtype: stored.source_type() }, slot))
}

/// Checks that the tensors fill the `room` bytes of data, one behind the other.
fn check_cover(entries: &[(String, Entry)], room: u64) -> Result<(), CheckpointError> {
    let mut by_offset: Vec<_> = entries.iter().map(|(name, e)| (e.data_offsets, name)).collect();
    by_offset.sort();
    let mut reached = 0;
    let mut before: Option<&String> = None;
    for ([start, end], name) in by_offset {
        if let Some(other) = before.filter(|_| start < reached) {
            return Err(CheckpointError::Overlap { tensor: name.clone(), start, other: other.clone() });
        }
        if start > reached {
            return Err(CheckpointError::Unclaimed { part: "tensor data", start: reached, end: start });
        }
        (reached, before) = (end, Some(name));
    }
    match reached == room {
        true => Ok(()),
        false => Err(CheckpointError::Unclaimed { part: "tensor data", start: reached, end: room }),
    }
}
