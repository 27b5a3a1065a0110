//! The format that `torch.save` wrote before PyTorch 1.6: five pickles one behind the other, then the storages.

use std::collections::HashMap;

use super::archive::Range;
use super::machine::{Pickle, integer, unpickle};
use super::node::{Node, Storage};
use super::{contents, places};
use crate::checkpoint::error::shown;
use crate::checkpoint::{CheckpointError, Contents};
use crate::cursor::{Cursor, Short};

/// What the first pickle holds.
const MAGIC: [u8; 10] = *b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
/// What the second holds.
const PROTOCOL: i64 = 1001;

/// Reads `bytes`, the whole file.
pub(in crate::checkpoint) fn read(bytes: &[u8]) -> Result<Contents, CheckpointError> {
    let mut cursor = Cursor::new(bytes);
    let magic = next(&mut cursor, bytes, "magic number")?;
    match magic.nodes.get(magic.root) {
        Node::BigInt(number) if *number == MAGIC => {}
        other => return Err(CheckpointError::NotTorch { found: other.kind() }),
    }
    let protocol = next(&mut cursor, bytes, "protocol version")?;
    match protocol.nodes.get(protocol.root) {
        Node::Int(PROTOCOL) => {}
        other => return Err(super::node::kind("protocol version", other, "1001")),
    }
    check_system(&next(&mut cursor, bytes, "system information")?)?;
    let object = next(&mut cursor, bytes, "object")?;
    let keys = next(&mut cursor, bytes, "storage keys")?;

    let known = places(&object.nodes)?;
    let mut ranges = HashMap::new();
    for &key in keys.nodes.sequence(keys.root, "storage keys", "a list")? {
        let key = keys.nodes.text(key, "a storage key")?;
        let storage = known.get(key).ok_or_else(|| CheckpointError::Kind {
            what: format!("storage {}", shown(key)),
            found: "no tensor that uses it",
            wanted: "one",
        })?;
        if ranges.insert(key, stored(&mut cursor, storage)?).is_some() {
            return Err(CheckpointError::Twice { name: format!("storage {}", shown(key)) });
        }
    }
    if cursor.remaining() > 0 {
        let (start, end) = (cursor.position(), bytes.len() as u64);
        return Err(CheckpointError::Unclaimed { part: "file", start, end });
    }
    contents(&object, |key| ranges.get(key).copied())
}

/// Reads the next pickle.
fn next<'a>(cursor: &mut Cursor<'a>, bytes: &'a [u8], part: &'static str) -> Result<Pickle<'a>, CheckpointError> {
    let rest = bytes.get(cursor.position() as usize..).unwrap_or_default();
    let pickle = unpickle(rest, part)?;
    cursor.take(pickle.len).map_err(|s| short(s, part.to_owned()))?;
    Ok(pickle)
}

/// The system that wrote the file must have been little-endian.
fn check_system(system: &Pickle<'_>) -> Result<(), CheckpointError> {
    let nodes = &system.nodes;
    let entries = match nodes.get(system.root) {
        Node::Dict(dict) => &dict.entries,
        other => return Err(super::node::kind("system information", other, "a dictionary")),
    };
    let little = entries.iter().find(|(key, _)| matches!(nodes.get(*key), Node::Text("little_endian")));
    match little.map(|&(_, value)| nodes.get(value)) {
        Some(Node::Bool(false)) => Err(CheckpointError::BigEndian),
        _ => Ok(()),
    }
}

/// The numbers of the next storage, behind their count.
fn stored(cursor: &mut Cursor<'_>, storage: &Storage<'_>) -> Result<Range, CheckpointError> {
    let part = || format!("storage {}", storage.key);
    let count: [u8; 8] = cursor.array().map_err(|s| short(s, part()))?;
    let found = integer(&count).and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
    let wanted = storage.count;
    let len = storage.byte_len().filter(|_| found == wanted).ok_or_else(|| CheckpointError::StorageSize {
        storage: storage.key.to_owned(),
        found,
        wanted,
        unit: "elements",
    })?;
    let at = cursor.position();
    cursor.take(len).map_err(|s| short(s, part()))?;
    Ok(Range { at, len })
}

fn short(s: Short, part: String) -> CheckpointError {
    CheckpointError::Truncated { part, at: s.at, wanted: s.wanted, end: s.end }
}
