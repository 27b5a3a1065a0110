//! PyTorch pickles: the zip form and the legacy form, read by a machine that runs nothing.

mod archive;
mod flatten;
mod globals;
mod legacy;
mod machine;
mod node;
mod numpy;

use std::collections::HashMap;

use super::slot::{self, Slot};
use super::{CheckpointError, Contents, SourceTensor};
use crate::limits::MAX_CHECKPOINT_HEADER_BYTES;
use archive::{Archive, Range};
use machine::{Pickle, unpickle};
use node::{Node, Nodes, Storage, Tensor};

pub(super) use legacy::read as read_legacy;

/// Ending of the name of the entry that holds the object.
const OBJECT: &str = "/data.pkl";

/// Reads `bytes`, a zip archive.
pub(super) fn read_archive(bytes: &[u8]) -> Result<Contents, CheckpointError> {
    let archive = Archive::read(bytes)?;
    let mut objects = archive.names().filter_map(|name| name.strip_suffix(OBJECT));
    let folder = match (objects.next(), objects.count()) {
        (Some(folder), 0) => folder,
        (first, others) => {
            return Err(CheckpointError::NotTorchArchive { found: usize::from(first.is_some()) + others });
        }
    };
    if archive.range(&format!("{folder}/constants.pkl")).is_some() {
        return Err(CheckpointError::TorchScript);
    }
    archive.check_stored()?;
    if archive.data(&format!("{folder}/byteorder")).is_some_and(|order| order != b"little") {
        return Err(CheckpointError::BigEndian);
    }
    let object = archive.data(&format!("{folder}{OBJECT}")).unwrap_or_default();
    if object.len() as u64 > MAX_CHECKPOINT_HEADER_BYTES {
        let (what, found) = ("data.pkl, length in bytes".to_owned(), object.len() as u64);
        return Err(CheckpointError::Limit { what, found, most: MAX_CHECKPOINT_HEADER_BYTES });
    }
    let pickle = unpickle(object, "data.pkl")?;
    for storage in places(&pickle.nodes)?.values() {
        let Some(range) = archive.range(&format!("{folder}/data/{}", storage.key)) else {
            return Err(CheckpointError::NoStorage { storage: storage.key.to_owned() });
        };
        if storage.byte_len() != Some(range.len) {
            return Err(CheckpointError::StorageSize {
                storage: storage.key.to_owned(),
                found: range.len,
                wanted: storage.byte_len().unwrap_or(u64::MAX),
                unit: "bytes",
            });
        }
    }
    contents(&pickle, |key| archive.range(&format!("{folder}/data/{key}")))
}

/// The storages that a pickle uses, by key; all uses of a key must agree on its length.
fn places<'a>(nodes: &Nodes<'a>) -> Result<HashMap<&'a str, Storage<'a>>, CheckpointError> {
    let mut places: HashMap<&str, Storage<'_>> = HashMap::new();
    for node in nodes.all() {
        let Node::Storage(storage) = node else { continue };
        let first = places.entry(storage.key).or_insert(*storage);
        if first.byte_len() != storage.byte_len() || first.byte_len().is_none() {
            return Err(CheckpointError::StorageSize {
                storage: storage.key.to_owned(),
                found: first.count,
                wanted: storage.count,
                unit: "elements",
            });
        }
    }
    Ok(places)
}

/// Names what the pickle holds and finds the numbers, whose storages lie at `range`.
fn contents(pickle: &Pickle<'_>, range: impl Fn(&str) -> Option<Range>) -> Result<Contents, CheckpointError> {
    let leaves = flatten::flatten(&pickle.nodes, pickle.root, pickle.len)?;
    let mut tensors = Vec::new();
    for (name, tensor) in leaves.tensors {
        let key = tensor.storage.key;
        let range = range(key).ok_or_else(|| CheckpointError::NoStorage { storage: key.to_owned() })?;
        tensors.push(view(&pickle.nodes, name, &tensor, range)?);
    }
    Ok(Contents { tensors, plain: leaves.plain })
}

/// The place of a tensor whose storage lies at `range`.
fn view(
    nodes: &Nodes<'_>,
    name: String,
    tensor: &Tensor<'_>,
    range: Range,
) -> Result<(SourceTensor, Slot), CheckpointError> {
    let sizes = |id, what: &str| -> Result<Vec<u64>, CheckpointError> {
        let what = format!("tensor {name}, {what}");
        let items = nodes.sequence(id, &what, "a tuple of sizes")?;
        // One more than the most shows that there are too many, without copying all of a long tuple.
        let most = crate::limits::MAX_SOURCE_DIMS as usize + 1;
        items.iter().take(most).map(|&item| nodes.size(item, &what)).collect()
    };
    let (shape, strides) = (sizes(tensor.shape, "shape")?, sizes(tensor.strides, "strides")?);
    let (dims, elements) = slot::shape(&name, &shape)?;
    if strides.len() != dims.len() {
        let what = format!("tensor {name}, strides");
        return Err(CheckpointError::Kind { what, found: "another number of them", wanted: "one per dimension" });
    }
    let stored = tensor.stored;
    let room = range.len / stored.width();
    match Slot::view((stored, range.at, room), tensor.offset, &dims, elements, &strides) {
        Some(slot) => Ok((SourceTensor { name, shape: dims, dtype: stored.source_type() }, slot)),
        None => Err(CheckpointError::StorageRange { tensor: name, storage: tensor.storage.key.to_owned(), room }),
    }
}
