//! A folder of weights: one file under a well-known name, or shards with an index.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::shown;
use super::safetensors::Entries;
use super::{CheckpointError, Contents, open_bytes};
use crate::bytes::{Access, Bytes};
use crate::limits::MAX_CHECKPOINT_HEADER_BYTES;

/// The names that are looked for, best first, and whether they are an index.
const NAMES: [(&str, bool); 5] = [
    ("model.safetensors", false),
    ("model.safetensors.index.json", true),
    ("pytorch_model.bin", false),
    ("pytorch_model.bin.index.json", true),
    ("weights.pt", false),
];

/// A file of a checkpoint: its path, its bytes, and what it holds.
pub(super) type Part = (PathBuf, Bytes, Contents);

/// The index of a sharded checkpoint. Its `metadata` (a total size) repeats what the shards say.
#[derive(Deserialize)]
struct Index {
    weight_map: Entries<String>,
}

/// Opens the weights in `folder`.
pub(super) fn open(folder: &Path, access: Access) -> Result<Vec<Part>, CheckpointError> {
    let found = NAMES.iter().map(|&(name, index)| (folder.join(name), index)).find(|(path, _)| path.exists());
    match found {
        Some((path, false)) => Ok(vec![file(&path, access)?]),
        Some((path, true)) => shards(folder, &path, access),
        None => {
            let wanted = NAMES.map(|(name, _)| name).join(", ");
            Err(CheckpointError::NoWeights { wanted })
        }
    }
}

/// Opens one file of weights.
pub(super) fn file(path: &Path, access: Access) -> Result<Part, CheckpointError> {
    let bytes = open_bytes(path, access)?;
    let contents = Contents::read(&bytes)?;
    Ok((path.to_owned(), bytes, contents))
}

fn shards(folder: &Path, index: &Path, access: Access) -> Result<Vec<Part>, CheckpointError> {
    let part = "shard index";
    let bytes = open_bytes(index, access)?;
    if bytes.len() as u64 > MAX_CHECKPOINT_HEADER_BYTES {
        let what = format!("{part}, length in bytes");
        return Err(CheckpointError::Limit { what, found: bytes.len() as u64, most: MAX_CHECKPOINT_HEADER_BYTES });
    }
    let Index { weight_map: Entries(entries) } = serde_json::from_slice(&bytes)
        .map_err(|error| CheckpointError::Json { part, problem: shown(&error.to_string()) })?;

    let mut shard_of: HashMap<&str, &str> = HashMap::new();
    // In the order in which the index first names them.
    let mut shards: Vec<&str> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (name, shard) in &entries {
        super::check_name(name)?;
        check_shard_name(shard)?;
        if shard_of.insert(name, shard).is_some() {
            return Err(CheckpointError::Twice { name: name.clone() });
        }
        if seen.insert(shard) {
            shards.push(shard);
        }
    }
    let mut parts = Vec::new();
    for shard in shards {
        let (path, bytes, contents) = file(&folder.join(shard), access)
            .map_err(|source| CheckpointError::Shard { shard: shard.to_owned(), source: Box::new(source) })?;
        for (tensor, _) in &contents.tensors {
            // Taken out, so that what is left over at the end is what no shard had.
            if shard_of.get(tensor.name.as_str()) != Some(&shard) {
                let (tensor, shard) = (tensor.name.clone(), shard.to_owned());
                return Err(CheckpointError::NotInIndex { tensor, shard });
            }
            shard_of.remove(tensor.name.as_str());
        }
        parts.push((path, bytes, contents));
    }
    match entries.iter().find(|(name, _)| shard_of.contains_key(name.as_str())) {
        None => Ok(parts),
        Some((tensor, shard)) => Err(CheckpointError::NotInShard { tensor: tensor.clone(), shard: shard.clone() }),
    }
}

/// A shard lies beside the index: its name is a file name and no path.
fn check_shard_name(name: &str) -> Result<(), CheckpointError> {
    let refuse = |problem| Err(CheckpointError::Name { name: shown(name), problem });
    match name {
        "" => refuse("is empty, wanted the file name of a shard"),
        "." | ".." => refuse("is a folder, wanted the file name of a shard"),
        _ if name.contains(['/', '\\', ':']) || name.chars().any(char::is_control) => {
            refuse("is not a plain file name, wanted the file name of a shard beside the index")
        }
        _ => Ok(()),
    }
}
