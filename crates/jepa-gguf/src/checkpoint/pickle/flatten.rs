//! From a tree of dictionaries and lists to dotted names.

use super::node::{Id, Node, Nodes, Tensor, kind};
use crate::checkpoint::error::shown;
use crate::checkpoint::{CheckpointError, Plain, check_name};
use crate::limits::{MAX_SOURCE_DEPTH, MAX_SOURCE_NAME_BYTES};

/// Shared parts may be visited so often per byte of the pickle. A checkpoint that holds the same weights under two names needs 2.
const VISITS_PER_BYTE: u64 = 8;
/// Names and words may take so many bytes per byte of the pickle: a short number in a list has a long name.
const WORDS_PER_BYTE: u64 = 64;
/// What even the smallest pickle may take.
const LEAST_BUDGET: u64 = 1 << 12;

/// The leaves of a tree with their names.
#[derive(Debug, Default)]
pub(super) struct Leaves<'a> {
    pub(super) tensors: Vec<(String, Tensor<'a>)>,
    pub(super) plain: Vec<(String, Plain)>,
}

/// Names everything below `root`, a dictionary; the pickle was `len` bytes long.
pub(super) fn flatten<'a>(nodes: &Nodes<'a>, root: Id, len: u64) -> Result<Leaves<'a>, CheckpointError> {
    if !matches!(nodes.get(root), Node::Dict(_)) {
        return Err(kind("the top of the checkpoint", nodes.get(root), "a dictionary of tensors"));
    }
    let budget = |per_byte: u64| Budget { spent: 0, most: LEAST_BUDGET + len.saturating_mul(per_byte) };
    let mut walk = Walk {
        nodes,
        name: String::new(),
        open: Vec::new(),
        visits: budget(VISITS_PER_BYTE),
        words: budget(WORDS_PER_BYTE),
        leaves: Leaves::default(),
    };
    walk.visit(root)?;
    Ok(walk.leaves)
}

struct Budget {
    spent: u64,
    most: u64,
}

impl Budget {
    /// Lists that hold each other again and again unfold to far more than they are: `[a, a]` with `a = [b, b]` and so on.
    fn spend(&mut self, amount: u64, name: &str, what: &str) -> Result<(), CheckpointError> {
        self.spent = self.spent.saturating_add(amount);
        match self.spent > self.most {
            true => Err(CheckpointError::Limit {
                what: format!("{}: {what} that the dictionaries and lists unfold to", shown(name)),
                found: self.spent,
                most: self.most,
            }),
            false => Ok(()),
        }
    }
}

struct Walk<'n, 'a> {
    nodes: &'n Nodes<'a>,
    /// Path to the node that is visited.
    name: String,
    /// The dictionaries and lists on that path.
    open: Vec<Id>,
    visits: Budget,
    words: Budget,
    leaves: Leaves<'a>,
}

impl Walk<'_, '_> {
    fn visit(&mut self, id: Id) -> Result<(), CheckpointError> {
        self.visits.spend(1, &self.name, "values")?;
        let nodes = self.nodes;
        match nodes.get(id) {
            Node::Dict(dict) => {
                self.enter(id)?;
                for &(key, value) in &dict.entries {
                    self.member(|name| push_key(name, nodes.get(key)), value)?;
                }
                self.open.pop();
            }
            Node::List(items) | Node::Tuple(items) => {
                self.enter(id)?;
                for (i, &item) in items.iter().enumerate() {
                    self.member(
                        |name| {
                            name.push_str(&i.to_string());
                            Ok(())
                        },
                        item,
                    )?;
                }
                self.open.pop();
            }
            Node::Tensor(tensor) => {
                let name = self.leaf(0)?;
                self.leaves.tensors.push((name, **tensor));
            }
            &Node::Bool(value) => self.plain(0, || Plain::Bool(value))?,
            &Node::Int(value) => self.plain(0, || Plain::Int(value))?,
            &Node::Float(value) => self.plain(0, || Plain::Float(value))?,
            Node::Text(text) => self.plain(text.len() as u64, || Plain::Text((*text).to_owned()))?,
            Node::None
            | Node::BigInt(_)
            | Node::Bytes(_)
            | Node::Global(_)
            | Node::Storage(_)
            | Node::NumberFormat(_)
            | Node::Opaque => {}
        }
        Ok(())
    }

    /// Visits a member under the part of the name that `push` adds.
    fn member(
        &mut self,
        push: impl Fn(&mut String) -> Result<(), CheckpointError>,
        value: Id,
    ) -> Result<(), CheckpointError> {
        let len = self.name.len();
        if len > 0 {
            self.name.push('.');
        }
        push(&mut self.name)?;
        // Before the name is copied around for members that may never become leaves.
        if self.name.len() as u64 > MAX_SOURCE_NAME_BYTES {
            check_name(&self.name)?;
        }
        self.visit(value)?;
        self.name.truncate(len);
        Ok(())
    }

    fn enter(&mut self, id: Id) -> Result<(), CheckpointError> {
        if self.open.contains(&id) {
            return Err(CheckpointError::Cycle { name: shown(&self.name) });
        }
        self.open.push(id);
        let found = self.open.len() as u64;
        match found > MAX_SOURCE_DEPTH {
            true => {
                let what = format!("{}: depth of dictionaries and lists", shown(&self.name));
                Err(CheckpointError::Limit { what, found, most: MAX_SOURCE_DEPTH })
            }
            false => Ok(()),
        }
    }

    fn plain(&mut self, words: u64, value: impl Fn() -> Plain) -> Result<(), CheckpointError> {
        let name = self.leaf(words)?;
        self.leaves.plain.push((name, value()));
        Ok(())
    }

    /// The name of a leaf that takes `words` bytes besides.
    fn leaf(&mut self, words: u64) -> Result<String, CheckpointError> {
        check_name(&self.name)?;
        self.words.spend(words.saturating_add(self.name.len() as u64), &self.name, "bytes of names and words")?;
        Ok(self.name.clone())
    }
}

/// Adds a key to a name. Words and integers are what checkpoints use; the rest would read alike or not at all.
fn push_key(name: &mut String, key: &Node<'_>) -> Result<(), CheckpointError> {
    match key {
        Node::Text(text) => name.push_str(text),
        Node::Int(n) => name.push_str(&n.to_string()),
        other => return Err(kind(&format!("a key of dictionary \"{}\"", shown(name)), other, "a word or an integer")),
    }
    Ok(())
}
