//! A pickle machine that builds plain values and tensor views, and runs nothing.
//!
//! It knows the instructions of protocols 2 to 5 that Python's writers use for such values. Every object, memo entry and copy is charged against
//! the bytes read so far, so that memory stays in proportion to the pickle.

use std::borrow::Cow;
use std::collections::HashMap;

use super::globals::{self, Called};
use super::node::{Dict, Id, Node, Nodes, kind};
use crate::checkpoint::CheckpointError;
use crate::cursor::{Cursor, Short};
use crate::limits::{MAX_PICKLE_MARKS, MAX_PICKLE_OBJECTS};

/// A pickle that has been read.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    pub(super) nodes: Nodes<'a>,
    pub(super) root: Id,
    /// Bytes of it, the last instruction included.
    pub(super) len: u64,
}

/// Reads the pickle that `bytes` begin with; messages call it `part`.
pub(super) fn unpickle<'a>(bytes: &'a [u8], part: &'static str) -> Result<Pickle<'a>, CheckpointError> {
    let mut machine = Machine {
        cursor: Cursor::new(bytes),
        part,
        at: 0,
        nodes: Nodes::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        charged: 0,
    };
    while machine.step()? {}
    let root = machine.pop()?;
    Ok(Pickle { nodes: machine.nodes, root, len: machine.cursor.position() })
}

/// Little-endian two's complement of up to eight bytes, as pickles and NumPy store integers.
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    let fill = if bytes.last().is_some_and(|&top| top >= 0x80) { 0xff } else { 0 };
    let mut wide = [fill; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(wide))
}

struct Machine<'a> {
    cursor: Cursor<'a>,
    part: &'static str,
    /// Where the instruction stands that runs.
    at: u64,
    nodes: Nodes<'a>,
    stack: Vec<Id>,
    /// Heights of the stack at the open marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    /// Objects, memo entries and copied members so far.
    charged: u64,
}

impl<'a> Machine<'a> {
    /// Runs one instruction; `false` after the last.
    fn step(&mut self) -> Result<bool, CheckpointError> {
        self.at = self.cursor.position();
        let code = self.number::<1>()?[0];
        match code {
            b'.' => return Ok(false),
            // Protocol, frame length: nothing depends on them.
            0x80 => drop(self.number::<1>()?),
            0x95 => drop(self.number::<8>()?),
            b'(' => self.mark()?,
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            b'N' | 0x88 | 0x89 | b'J' | b'K' | b'M' | 0x8a | 0x8b | b'G' => self.push_number(code)?,
            b'X' | 0x8c | 0x8d | b'T' | b'U' => self.push_text(code)?,
            b'B' | b'C' | 0x8e | 0x96 => self.push_bytes(code)?,
            b']' => self.make(Node::List(Vec::new()))?,
            b'}' => self.make(Node::Dict(Dict::default()))?,
            // Sets have no members that matter here.
            0x8f => self.make(Node::Opaque)?,
            b')' => self.make(Node::Tuple(Vec::new()))?,
            0x85..=0x87 => self.tuple_of(usize::from(code - 0x84))?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.make(Node::Tuple(items))?;
            }
            b'l' => {
                let items = self.pop_to_mark()?;
                self.make(Node::List(items))?;
            }
            b'd' => {
                self.make(Node::Dict(Dict::default()))?;
                let dict = self.pop()?;
                let items = self.pop_to_mark()?;
                self.insert(dict, &items)?;
                self.push(dict)?;
            }
            0x91 => {
                self.pop_to_mark()?;
                self.make(Node::Opaque)?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            0x90 => drop(self.pop_to_mark()?),
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                let dict = self.top()?;
                self.insert(dict, &[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                let dict = self.top()?;
                self.insert(dict, &items)?;
            }
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.remember_or_recall(code)?,
            b'c' | 0x93 => self.global(code)?,
            b'R' | 0x81 | 0x92 => self.call(code)?,
            b'b' => self.build()?,
            b'Q' => {
                let id = self.pop()?;
                let storage = globals::storage(&self.nodes, id)?;
                self.make(Node::Storage(storage))?;
            }
            found => return Err(CheckpointError::Opcode { part: self.part, at: self.at, found }),
        }
        Ok(true)
    }

    fn push_number(&mut self, code: u8) -> Result<(), CheckpointError> {
        let node = match code {
            b'N' => return self.push(Nodes::NONE),
            0x88 | 0x89 => Node::Bool(code == 0x88),
            b'J' => Node::Int(i32::from_le_bytes(self.number()?).into()),
            b'K' => Node::Int(self.number::<1>()?[0].into()),
            b'M' => Node::Int(u16::from_le_bytes(self.number()?).into()),
            b'G' => Node::Float(f64::from_be_bytes(self.number()?)),
            _ => {
                let len = if code == 0x8a { self.number::<1>()?[0].into() } else { self.u32()?.into() };
                let bytes = self.take(len)?;
                integer(bytes).map_or(Node::BigInt(bytes), Node::Int)
            }
        };
        self.make(node)
    }

    fn push_text(&mut self, code: u8) -> Result<(), CheckpointError> {
        let len = match code {
            b'X' | b'T' => self.u32()?.into(),
            0x8d => u64::from_le_bytes(self.number()?),
            _ => self.number::<1>()?[0].into(),
        };
        let bytes = self.take(len)?;
        let node = match std::str::from_utf8(bytes) {
            Ok(text) => Node::Text(text),
            // A string of Python 2 is bytes; Python writes lone surrogates into others.
            Err(_) => Node::Bytes(Cow::Borrowed(bytes)),
        };
        self.make(node)
    }

    fn push_bytes(&mut self, code: u8) -> Result<(), CheckpointError> {
        let len = match code {
            b'B' => self.u32()?.into(),
            b'C' => self.number::<1>()?[0].into(),
            _ => u64::from_le_bytes(self.number()?),
        };
        let bytes = self.take(len)?;
        self.make(Node::Bytes(Cow::Borrowed(bytes)))
    }

    fn tuple_of(&mut self, len: usize) -> Result<(), CheckpointError> {
        let least = self.marks.last().copied().unwrap_or(0);
        match self.stack.len().checked_sub(len).filter(|&start| start >= least) {
            Some(start) => {
                let items = self.stack.split_off(start);
                self.make(Node::Tuple(items))
            }
            None => Err(self.refuse("takes a value from an empty stack")),
        }
    }

    fn remember_or_recall(&mut self, code: u8) -> Result<(), CheckpointError> {
        let index = match code {
            b'q' | b'h' => self.number::<1>()?[0].into(),
            0x94 => self.memo.len() as u32,
            _ => self.u32()?,
        };
        if matches!(code, b'h' | b'j') {
            let &id = self.memo.get(&index).ok_or_else(|| self.refuse("recalls what was never stored in the memo"))?;
            return self.push(id);
        }
        let top = self.top()?;
        self.memo.insert(index, top);
        // One object and one entry for it at the most are paid for by their two instructions.
        self.bound("memo entries", self.memo.len() as u64)
    }

    fn global(&mut self, code: u8) -> Result<(), CheckpointError> {
        let (module, name) = match code {
            b'c' => (self.line()?, self.line()?),
            _ => {
                let name = self.pop()?;
                let module = self.pop()?;
                (self.nodes.text(module, "module of a global")?, self.nodes.text(name, "name of a global")?)
            }
        };
        let global = globals::lookup(module, name)?;
        self.make(Node::Global(global))
    }

    /// `REDUCE`, `NEWOBJ`, `NEWOBJ_EX`: a callable and its arguments.
    fn call(&mut self, code: u8) -> Result<(), CheckpointError> {
        if code == 0x92 {
            // Named arguments, which none of the callables needs.
            self.pop()?;
        }
        let args = self.pop()?;
        let callable = self.pop()?;
        let global = match self.nodes.get(callable) {
            Node::Global(global) => *global,
            other => return Err(kind("a call", other, "a class or function")),
        };
        let args = self.nodes.sequence(args, "arguments of a call", "a tuple")?;
        match global.call(&self.nodes, args)? {
            Called::Same(id) => self.push(id),
            Called::Node(node) => {
                // What the call has copied; a node takes more room than eight bytes.
                self.charge(match &node {
                    Node::Dict(dict) => dict.entries.len() as u64,
                    Node::Bytes(bytes) => bytes.len() as u64 / 8,
                    _ => 0,
                })?;
                self.make(node)
            }
        }
    }

    /// `BUILD`: gives the object below the top the state on top.
    fn build(&mut self) -> Result<(), CheckpointError> {
        let state = self.pop()?;
        let object = self.top()?;
        match self.nodes.get(object) {
            Node::Dict(Dict { of_attributes: true, .. }) => {
                let entries = match self.nodes.get(state) {
                    Node::Dict(dict) => dict.entries.clone(),
                    other => return Err(kind("attributes of a Namespace", other, "a dictionary")),
                };
                self.charge(entries.len() as u64)?;
                if let Node::Dict(dict) = self.nodes.get_mut(object) {
                    dict.entries.extend(entries);
                }
                Ok(())
            }
            Node::NumberFormat(format) => {
                let mut format = *format;
                let state = self.nodes.sequence(state, "state of a numpy dtype", "a tuple")?;
                format.set_state(state.get(1).map(|&order| self.nodes.get(order)));
                *self.nodes.get_mut(object) = Node::NumberFormat(format);
                Ok(())
            }
            // Attributes beside the entries or the numbers: `_metadata` of a state_dict.
            Node::Dict(_) | Node::Tensor(_) | Node::Opaque => Ok(()),
            other => Err(kind("an object that gets attributes", other, "a dictionary, a tensor or an inert object")),
        }
    }

    fn append(&mut self, items: &[Id]) -> Result<(), CheckpointError> {
        let list = self.top()?;
        match self.nodes.get_mut(list) {
            Node::List(members) => members.extend(items),
            // A deque.
            Node::Opaque => {}
            other => return Err(kind("an object that is appended to", other, "a list")),
        }
        Ok(())
    }

    /// Puts `items`, keys and values in turn, into a dictionary.
    fn insert(&mut self, dict: Id, items: &[Id]) -> Result<(), CheckpointError> {
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(self.refuse("puts a key without a value into a dictionary"));
        }
        match self.nodes.get_mut(dict) {
            Node::Dict(dict) => dict.entries.extend(pairs.iter().map(|&[key, value]| (key, value))),
            other => return Err(kind("an object that gets entries", other, "a dictionary")),
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<(), CheckpointError> {
        self.marks.push(self.stack.len());
        let found = self.marks.len() as u64;
        match found > MAX_PICKLE_MARKS {
            true => Err(CheckpointError::Limit { what: self.what("open marks"), found, most: MAX_PICKLE_MARKS }),
            false => Ok(()),
        }
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, CheckpointError> {
        let mark = self.marks.pop().ok_or_else(|| self.refuse("looks for a mark that was never set"))?;
        // Nothing takes values from below a mark, so the stack is at least as high.
        Ok(self.stack.split_off(mark))
    }

    fn top(&self) -> Result<Id, CheckpointError> {
        let least = self.marks.last().copied().unwrap_or(0);
        match self.stack.get(least..).and_then(<[Id]>::last) {
            Some(&id) => Ok(id),
            None => Err(self.refuse("takes a value from an empty stack")),
        }
    }

    fn pop(&mut self) -> Result<Id, CheckpointError> {
        let id = self.top()?;
        self.stack.pop();
        Ok(id)
    }

    fn push(&mut self, id: Id) -> Result<(), CheckpointError> {
        self.stack.push(id);
        self.bound("values on the stack", self.stack.len() as u64)
    }

    /// Adds a node and pushes it.
    fn make(&mut self, node: Node<'a>) -> Result<(), CheckpointError> {
        self.charge(1)?;
        let id = self.nodes.add(node);
        self.push(id)
    }

    /// Charges objects or copies against the bytes read so far. An instruction that makes an object has at least one byte, so only copies of
    /// large dictionaries can run over.
    fn charge(&mut self, objects: u64) -> Result<(), CheckpointError> {
        self.charged += objects;
        let most = self.cursor.position().min(MAX_PICKLE_OBJECTS);
        match self.charged > most {
            true => Err(CheckpointError::Limit { what: self.what("objects"), found: self.charged, most }),
            false => Ok(()),
        }
    }

    fn bound(&self, what: &str, found: u64) -> Result<(), CheckpointError> {
        match found > MAX_PICKLE_OBJECTS {
            true => Err(CheckpointError::Limit { what: self.what(what), found, most: MAX_PICKLE_OBJECTS }),
            false => Ok(()),
        }
    }

    fn what(&self, what: &str) -> String {
        format!("{}, byte {}, {what}", self.part, self.at)
    }

    fn refuse(&self, problem: &'static str) -> CheckpointError {
        CheckpointError::Instruction { part: self.part, at: self.at, problem }
    }

    fn short(&self) -> impl Fn(Short) -> CheckpointError + use<'a> {
        let part = self.part;
        move |s| CheckpointError::Truncated { part: part.to_owned(), at: s.at, wanted: s.wanted, end: s.end }
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        let short = self.short();
        self.cursor.array().map_err(short)
    }

    fn u32(&mut self) -> Result<u32, CheckpointError> {
        self.number().map(u32::from_le_bytes)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], CheckpointError> {
        let short = self.short();
        self.cursor.take(len).map_err(short)
    }

    /// The text up to the end of the line.
    fn line(&mut self) -> Result<&'a str, CheckpointError> {
        let refuse = self.refuse("names a module or class that is not a line of text");
        match self.cursor.line().and_then(|line| std::str::from_utf8(line).ok()) {
            Some(line) => Ok(line),
            None => Err(refuse),
        }
    }
}
