//! From nested dictionaries and lists to names joined by dots.

use super::machine::Pickle;
use super::node::{Id, Node, Storage, Tensor, kind};
use crate::checkpoint::error::shown;
use crate::checkpoint::slot::{self, Slot};
use crate::checkpoint::{CheckpointError, Contents, Plain, SourceTensor};
use crate::limits::MAX_SOURCE_DEPTH;

/// Values that are looked at, and bytes of names that are made, for each byte of the pickle: parts that are shared come out once for each place
/// they have, and must not come out a million times.
const VISITS_PER_BYTE: u64 = 4;
const NAME_BYTES_PER_BYTE: u64 = 64;

/// The tensors and plain values of a pickle; `place` gives the first byte of a storage's numbers, and has compared its length with the file.
pub(super) fn flatten<'a>(
    pickle: &'a Pickle<'a>,
    place: impl Fn(&Storage<'a>) -> Result<u64, CheckpointError>,
) -> Result<Contents, CheckpointError> {
    let root = pickle.nodes.get(pickle.root);
    if !matches!(root, Node::Dict(_)) {
        return Err(kind("the checkpoint", root, "a dictionary of tensors"));
    }
    let mut walk = Walk { pickle, place, path: Vec::new(), visits: 0, name_bytes: 0, contents: Contents::default() };
    walk.visit(pickle.root, "")?;
    Ok(walk.contents)
}

struct Walk<'a, P> {
    pickle: &'a Pickle<'a>,
    place: P,
    /// What the walk is inside of.
    path: Vec<Id>,
    visits: u64,
    name_bytes: u64,
    contents: Contents,
}

impl<'a, P: Fn(&Storage<'a>) -> Result<u64, CheckpointError>> Walk<'a, P> {
    fn visit(&mut self, id: Id, name: &str) -> Result<(), CheckpointError> {
        self.charge(name)?;
        let nodes = &self.pickle.nodes;
        let plain = match nodes.get(id) {
            Node::Dict(dict) => {
                self.enter(id, name)?;
                for &(key, value) in &dict.entries {
                    let key = match nodes.get(key) {
                        Node::Text(key) => (*key).to_owned(),
                        Node::Int(key) => key.to_string(),
                        other => return Err(kind(&format!("{}, a key", at(name)), other, "a string or an integer")),
                    };
                    self.visit(value, &below(name, &key)?)?;
                }
                self.path.pop();
                return Ok(());
            }
            Node::List(items) | Node::Tuple(items) => {
                self.enter(id, name)?;
                for (i, &item) in items.iter().enumerate() {
                    self.visit(item, &below(name, &i.to_string())?)?;
                }
                self.path.pop();
                return Ok(());
            }
            Node::Tensor(tensor) => return self.tensor(tensor, name),
            Node::Bool(value) => Plain::Bool(*value),
            Node::Int(value) => Plain::Int(*value),
            Node::Float(value) => Plain::Float(*value),
            Node::Text(value) => Plain::Text((*value).to_owned()),
            // Nothing that a converter could use.
            Node::None
            | Node::BigInt(_)
            | Node::Bytes(_)
            | Node::Global(_)
            | Node::Storage(_)
            | Node::NumberFormat(_)
            | Node::Opaque => return Ok(()),
        };
        self.contents.plain.push((name.to_owned(), plain));
        Ok(())
    }

    fn enter(&mut self, id: Id, name: &str) -> Result<(), CheckpointError> {
        if self.path.contains(&id) {
            return Err(CheckpointError::Cycle { name: at(name) });
        }
        self.path.push(id);
        let found = self.path.len() as u64;
        if found > MAX_SOURCE_DEPTH {
            let what = format!("{}, depth", at(name));
            return Err(CheckpointError::Limit { what, found, most: MAX_SOURCE_DEPTH });
        }
        Ok(())
    }

    fn charge(&mut self, name: &str) -> Result<(), CheckpointError> {
        self.visits += 1;
        self.name_bytes += name.len() as u64;
        for (what, found, per_byte) in [
            ("values, those of shared parts counted anew", self.visits, VISITS_PER_BYTE),
            ("bytes of names", self.name_bytes, NAME_BYTES_PER_BYTE),
        ] {
            let most = self.pickle.len.saturating_mul(per_byte);
            if found > most {
                return Err(CheckpointError::Limit { what: format!("the checkpoint, {what}"), found, most });
            }
        }
        Ok(())
    }

    fn tensor(&mut self, tensor: &Tensor<'a>, name: &str) -> Result<(), CheckpointError> {
        let nodes = &self.pickle.nodes;
        let sizes = |id, what: &str| -> Result<Vec<u64>, CheckpointError> {
            let what = format!("tensor {name}, {what}");
            nodes.sequence(id, &what, "a tuple of sizes")?.iter().map(|&size| nodes.size(size, &what)).collect()
        };
        let (sizes, strides) = (sizes(tensor.shape, "shape")?, sizes(tensor.strides, "strides")?);
        let (shape, elements) = slot::shape(name, &sizes)?;
        if strides.len() != shape.len() {
            let what = format!("tensor {name}, strides");
            return Err(CheckpointError::Kind { what, found: "another number of them", wanted: "one for each axis" });
        }
        let storage = &tensor.storage;
        let start = (self.place)(storage)?;
        let room = storage.byte_len().unwrap_or(0) / tensor.stored.width();
        let slot = Slot::view((tensor.stored, start, room), tensor.offset, &shape, elements, &strides);
        let slot = slot.ok_or_else(|| CheckpointError::StorageRange {
            tensor: name.to_owned(),
            storage: storage.key.to_owned(),
            room,
        })?;
        let dtype = tensor.stored.source_type();
        self.contents.tensors.push((SourceTensor { name: name.to_owned(), shape, dtype }, slot));
        Ok(())
    }
}

/// The name of something inside `name`.
fn below(name: &str, key: &str) -> Result<String, CheckpointError> {
    let name = if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    crate::checkpoint::check_name(&name)?;
    Ok(name)
}

/// What messages call the place.
fn at(name: &str) -> String {
    if name.is_empty() { "the checkpoint".to_owned() } else { shown(name) }
}
