//! What a pickle builds: a tree whose nodes lie in one table.
//!
//! Nodes refer to each other by number, so that neither a deep tree nor one that contains itself can exhaust the stack when it is dropped.

use std::borrow::Cow;

use super::globals::Global;
use super::numpy::NumberFormat;
use crate::checkpoint::CheckpointError;
use crate::checkpoint::slot::Stored;

/// Number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

/// A value. Words and bytes are those of the pickle.
#[derive(Debug)]
pub(super) enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// An integer that does not fit 64 bits, little-endian.
    BigInt(&'a [u8]),
    Float(f64),
    Text(&'a str),
    Bytes(Cow<'a, [u8]>),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Dict),
    Global(Global),
    Storage(Storage<'a>),
    Tensor(Box<Tensor<'a>>),
    NumberFormat(NumberFormat),
    /// Something inert that is of no use here: a device, a path, a set.
    Opaque,
}

impl Node<'_> {
    /// What messages call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an integer",
            Self::BigInt(_) => "an integer of more than 64 bits",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Dict(_) => "a dictionary",
            Self::Global(_) => "a class or function",
            Self::Storage(_) => "a storage",
            Self::Tensor(_) => "a tensor",
            Self::NumberFormat(_) => "a numpy dtype",
            Self::Opaque => "another object",
        }
    }
}

/// A dictionary, or an object that is read as one.
#[derive(Debug, Default)]
pub(super) struct Dict {
    pub(super) entries: Vec<(Id, Id)>,
    /// Whether the attributes of the object are its entries (`argparse.Namespace`).
    pub(super) of_attributes: bool,
}

/// The numbers that tensors are views of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Storage<'a> {
    pub(super) key: &'a str,
    /// Type of the numbers; `None` for a storage that is counted in bytes.
    pub(super) stored: Option<Stored>,
    /// Numbers, or bytes.
    pub(super) count: u64,
}

impl Storage<'_> {
    /// Its length in bytes.
    pub(super) fn byte_len(&self) -> Option<u64> {
        self.count.checked_mul(self.stored.map_or(1, Stored::width))
    }
}

/// A view of a storage. Sizes and steps are tuples that tensors may share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensor<'a> {
    pub(super) storage: Storage<'a>,
    pub(super) stored: Stored,
    /// First number in the storage.
    pub(super) offset: u64,
    pub(super) shape: Id,
    pub(super) strides: Id,
}

/// All nodes.
#[derive(Debug)]
pub(super) struct Nodes<'a>(Vec<Node<'a>>);

impl<'a> Nodes<'a> {
    /// `None`, which pickles use more often than they are long, has one node for all.
    pub(super) const NONE: Id = Id(0);

    pub(super) fn new() -> Self {
        Self(vec![Node::None])
    }

    /// Adds a node. The machine keeps their number far below 2^32.
    pub(super) fn add(&mut self, node: Node<'a>) -> Id {
        let id = Id(self.0.len() as u32);
        self.0.push(node);
        id
    }

    pub(super) fn get(&self, id: Id) -> &Node<'a> {
        &self.0[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut Node<'a> {
        // The shared node must stay what it is: no instruction changes a None.
        &mut self.0[id.0 as usize]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Node<'a>> {
        self.0.iter()
    }

    /// The members of a tuple or list.
    pub(super) fn sequence(&self, id: Id, what: &str, wanted: &'static str) -> Result<&[Id], CheckpointError> {
        match self.get(id) {
            Node::Tuple(items) | Node::List(items) => Ok(items),
            other => Err(kind(what, other, wanted)),
        }
    }

    /// A count or a size.
    pub(super) fn size(&self, id: Id, what: &str) -> Result<u64, CheckpointError> {
        match self.get(id) {
            &Node::Int(n) if n >= 0 => Ok(n as u64),
            Node::Int(_) => {
                let (found, wanted) = ("a negative number", "a size");
                Err(CheckpointError::Kind { what: what.to_owned(), found, wanted })
            }
            other => Err(kind(what, other, "a size")),
        }
    }

    /// A string.
    pub(super) fn text(&self, id: Id, what: &str) -> Result<&'a str, CheckpointError> {
        match self.get(id) {
            Node::Text(text) => Ok(text),
            other => Err(kind(what, other, "a string")),
        }
    }
}

/// The error for a node of the wrong kind.
pub(super) fn kind(what: &str, found: &Node<'_>, wanted: &'static str) -> CheckpointError {
    CheckpointError::Kind { what: what.to_owned(), found: found.kind(), wanted }
}
