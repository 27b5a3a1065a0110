//! NumPy scalars, which training loops leave in checkpoints where they meant numbers (`loss`, `lr`).

use half::f16;

use super::node::{Id, Node, Nodes, kind};
use crate::checkpoint::CheckpointError;

/// How NumPy stores a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberFormat {
    /// `f`, `i`, `u`, `b`; anything else is not read.
    letter: u8,
    /// Bytes.
    width: u8,
    little_endian: bool,
}

/// `numpy.dtype("f8", …)`.
pub(super) fn dtype<'a>(nodes: &Nodes<'a>, args: &[Id]) -> Result<Node<'a>, CheckpointError> {
    let what = "numpy.dtype, argument 1";
    let &code = args.first().ok_or_else(|| kind(what, &Node::None, "a string"))?;
    let format = match nodes.text(code, what)?.as_bytes() {
        [letter, width @ b'1'..=b'8'] => NumberFormat { letter: *letter, width: width - b'0', little_endian: true },
        // Structures, dates and strings.
        _ => NumberFormat { letter: b'?', width: 0, little_endian: true },
    };
    Ok(Node::NumberFormat(format))
}

impl NumberFormat {
    /// Takes the byte order from the state of a dtype, `(3, "<", …)`.
    pub(super) fn set_state(&mut self, order: Option<&Node<'_>>) {
        self.little_endian = !matches!(order, Some(Node::Text(">")));
    }
}

/// `scalar(dtype, bytes)`: a plain value, or an opaque one for what is no number.
pub(super) fn scalar<'a>(nodes: &Nodes<'a>, args: &[Id]) -> Result<Node<'a>, CheckpointError> {
    let what = "numpy scalar";
    let &[format, bytes] = args else {
        let (found, wanted) = ("another number of arguments", "a dtype and bytes");
        return Err(CheckpointError::Kind { what: what.to_owned(), found, wanted });
    };
    let format = match nodes.get(format) {
        Node::NumberFormat(format) => format,
        other => return Err(kind(what, other, "a numpy dtype")),
    };
    let bytes = match nodes.get(bytes) {
        Node::Bytes(bytes) => bytes.as_ref(),
        // An array of one object.
        _ => return Ok(Node::Opaque),
    };
    if !format.little_endian || bytes.len() != usize::from(format.width) {
        return Ok(Node::Opaque);
    }
    Ok(number(format.letter, bytes).unwrap_or(Node::Opaque))
}

fn number<'a>(letter: u8, bytes: &[u8]) -> Option<Node<'a>> {
    Some(match (letter, bytes) {
        (b'b', &[byte]) => Node::Bool(byte != 0),
        (b'f', &[a, b]) => Node::Float(f16::from_le_bytes([a, b]).into()),
        (b'f', &[a, b, c, d]) => Node::Float(f32::from_le_bytes([a, b, c, d]).into()),
        (b'f', bytes) => Node::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        (b'i', bytes) => Node::Int(super::machine::integer(bytes)?),
        (b'u', bytes) => {
            let mut wide = [0; 8];
            wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Node::Int(i64::try_from(u64::from_le_bytes(wide)).ok()?)
        }
        _ => return None,
    })
}
