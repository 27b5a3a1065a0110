//! What `torch.save` wrote before PyTorch 1.6: pickles of a magic number, a version, the writer's machine, the object, and the keys of the
//! storages, then per key the count of its numbers and the numbers.

use std::collections::HashMap;

use super::flatten::flatten;
use super::machine::{Pickle, unpickle};
use super::node::{Node, Storage, kind};
use crate::checkpoint::{CheckpointError, Contents};
use crate::cursor::Cursor;
use crate::limits::MAX_CHECKPOINT_HEADER_BYTES;

/// 0x1950a86a20f9469cfc6c, little-endian.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const PROTOCOL: i64 = 1001;

/// Reads the head of `bytes`, a whole file.
pub(in crate::checkpoint) fn read(bytes: &[u8]) -> Result<Contents, CheckpointError> {
    // The numbers behind the pickles are no part of them.
    let head = &bytes[..bytes.len().min(MAX_CHECKPOINT_HEADER_BYTES as usize)];
    let mut at = 0;
    let mut next = |part| {
        let pickle = unpickle(&head[at..], part)?;
        at += pickle.len as usize;
        Ok::<_, CheckpointError>(pickle)
    };
    let magic = next("magic number")?;
    match magic.nodes.get(magic.root) {
        Node::BigInt(found) if *found == MAGIC => {}
        other => return Err(CheckpointError::NotTorch { found: other.kind() }),
    }
    let version = next("version")?;
    match version.nodes.get(version.root) {
        Node::Int(PROTOCOL) => {}
        other => return Err(kind("version of the format", other, "1001")),
    }
    if !is_little_endian(&next("description of the writer's machine")?) {
        return Err(CheckpointError::BigEndian);
    }
    let object = next("pickle")?;
    let keys = next("keys of the storages")?;
    let places = places(&object, &keys, bytes, at as u64)?;
    flatten(&object, |storage: &Storage<'_>| {
        places.get(storage.key).copied().ok_or_else(|| CheckpointError::NoStorage { storage: storage.key.to_owned() })
    })
}

fn is_little_endian(machine: &Pickle<'_>) -> bool {
    let Node::Dict(machine_facts) = machine.nodes.get(machine.root) else { return false };
    machine_facts.entries.iter().any(|&(key, value)| {
        let named = matches!(machine.nodes.get(key), Node::Text("little_endian"));
        named && matches!(machine.nodes.get(value), Node::Bool(true))
    })
}

/// First byte of every storage's numbers; they follow from byte `at` in the order of `keys`, and end the file.
fn places<'a>(
    object: &Pickle<'_>,
    keys: &Pickle<'a>,
    bytes: &[u8],
    at: u64,
) -> Result<HashMap<&'a str, u64>, CheckpointError> {
    let mut storages: HashMap<&str, &Storage<'_>> = HashMap::new();
    for node in object.nodes.all() {
        if let Node::Storage(storage) = node {
            let known = storages.entry(storage.key).or_insert(storage);
            if *known != storage {
                let (found, wanted) = (known.count, storage.count);
                return Err(CheckpointError::StorageSize {
                    storage: storage.key.to_owned(),
                    found,
                    wanted,
                    unit: "numbers",
                });
            }
        }
    }
    let mut cursor = Cursor::new(bytes);
    let mut take = |len: u64, part: &str| {
        let short = |s: crate::cursor::Short| CheckpointError::Truncated {
            part: part.to_owned(),
            at: s.at,
            wanted: s.wanted,
            end: s.end,
        };
        cursor.take(len).map(|taken| (taken, cursor.position() - len)).map_err(short)
    };
    take(at, "pickles")?;
    let mut places = HashMap::new();
    let what = "keys of the storages";
    for &key in keys.nodes.sequence(keys.root, what, "a list")? {
        let key = keys.nodes.text(key, what)?;
        let storage = storages.get(key).ok_or_else(|| CheckpointError::Kind {
            what: format!("{what}, {key:.60}"),
            found: "a key that no tensor uses",
            wanted: "the key of a storage",
        })?;
        let part = format!("storage {key}");
        let (count, _) = take(8, &part)?;
        let found = u64::from_le_bytes(count.try_into().expect("eight bytes were taken"));
        if found != storage.count {
            let (storage, wanted) = (key.to_owned(), storage.count);
            return Err(CheckpointError::StorageSize { storage, found, wanted, unit: "numbers" });
        }
        let (_, start) = take(storage.byte_len().unwrap_or(u64::MAX), &part)?;
        if places.insert(key, start).is_some() {
            return Err(CheckpointError::Twice { name: part });
        }
    }
    match cursor.remaining() {
        0 => Ok(places),
        _ => Err(CheckpointError::Unclaimed { part: "file", start: cursor.position(), end: bytes.len() as u64 }),
    }
}
