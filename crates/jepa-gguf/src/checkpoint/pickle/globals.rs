//! The classes and functions that a pickle may name, and what calling them gives.
//!
//! The list is closed: none of them runs code, opens files or imports anything, and whatever is not on it is refused by its name.

use std::borrow::Cow;

use super::node::{Dict, Id, Node, Nodes, Storage, Tensor, kind};
use super::numpy;
use crate::checkpoint::CheckpointError;
use crate::checkpoint::error::shown;
use crate::checkpoint::slot::Stored;

/// A class or function that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// `OrderedDict`, `Counter`, `defaultdict`: dictionaries that may get attributes besides.
    Dict,
    /// `argparse.Namespace`: attributes that are read as a dictionary.
    Namespace,
    /// A tensor over a typed storage; version 3 also names the type.
    RebuildTensor,
    RebuildTensorWithType,
    RebuildParameter,
    /// A tensor with attributes, or of a subclass.
    RebuildFromType,
    TensorClass,
    /// A storage; `None` counts bytes.
    Storage(Option<Stored>),
    Dtype(Stored),
    Size,
    /// `_codecs.encode`: bytes that protocol 2 writes as a string.
    Encode,
    NumpyScalar,
    NumpyDtype,
    /// Something whose value is of no use here.
    Inert,
}

/// Looks a name up.
///
/// # Errors
/// [`CheckpointError::Global`] for what is not on the list, [`CheckpointError::Numbers`] for a number type that cannot be read.
pub(super) fn lookup(module: &str, name: &str) -> Result<Global, CheckpointError> {
    let unsupported =
        || CheckpointError::Numbers { what: "a tensor".to_owned(), found: shown(&format!("{module}.{name}")) };
    Ok(match (module, name) {
        ("collections", "OrderedDict" | "Counter" | "defaultdict") => Global::Dict,
        ("argparse", "Namespace") => Global::Namespace,
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Global::RebuildTensor,
        ("torch._utils", "_rebuild_tensor_v3") => Global::RebuildTensorWithType,
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => Global::RebuildParameter,
        ("torch._tensor", "_rebuild_from_type_v2") => Global::RebuildFromType,
        ("torch", "Tensor") | ("torch.nn.parameter", "Parameter" | "Buffer") => Global::TensorClass,
        ("torch.storage", "UntypedStorage") | ("torch", "UntypedStorage") => Global::Storage(None),
        ("torch" | "torch.cuda", "DoubleStorage") => Global::Storage(Some(Stored::F64)),
        ("torch" | "torch.cuda", "FloatStorage") => Global::Storage(Some(Stored::F32)),
        ("torch" | "torch.cuda", "HalfStorage") => Global::Storage(Some(Stored::F16)),
        ("torch" | "torch.cuda", "BFloat16Storage") => Global::Storage(Some(Stored::Bf16)),
        ("torch" | "torch.cuda", "LongStorage") => Global::Storage(Some(Stored::Integer(8))),
        ("torch" | "torch.cuda", "IntStorage") => Global::Storage(Some(Stored::Integer(4))),
        ("torch" | "torch.cuda", "ShortStorage") => Global::Storage(Some(Stored::Integer(2))),
        ("torch" | "torch.cuda", "CharStorage" | "ByteStorage" | "BoolStorage") => {
            Global::Storage(Some(Stored::Integer(1)))
        }
        ("torch" | "torch.cuda", other) if other.ends_with("Storage") => return Err(unsupported()),
        ("torch", "float64" | "double") => Global::Dtype(Stored::F64),
        ("torch", "float32" | "float") => Global::Dtype(Stored::F32),
        ("torch", "float16" | "half") => Global::Dtype(Stored::F16),
        ("torch", "bfloat16") => Global::Dtype(Stored::Bf16),
        ("torch", "int64" | "long" | "uint64") => Global::Dtype(Stored::Integer(8)),
        ("torch", "int32" | "int" | "uint32") => Global::Dtype(Stored::Integer(4)),
        ("torch", "int16" | "short" | "uint16") => Global::Dtype(Stored::Integer(2)),
        ("torch", "int8" | "uint8" | "bool") => Global::Dtype(Stored::Integer(1)),
        ("torch", other) if ["float8", "float4", "complex", "qint", "quint"].iter().any(|&p| other.starts_with(p)) => {
            return Err(unsupported());
        }
        ("torch", "Size") => Global::Size,
        ("torch", "device" | "strided") | ("torch.serialization", "_get_layout") => Global::Inert,
        ("_codecs", "encode") => Global::Encode,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Global::NumpyScalar,
        ("numpy", "dtype") => Global::NumpyDtype,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") | ("numpy", "ndarray") => Global::Inert,
        ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Global::Inert,
        ("collections", "deque") => Global::Inert,
        ("pathlib" | "pathlib._local", "Path" | "PosixPath" | "WindowsPath" | "PurePosixPath" | "PureWindowsPath") => {
            Global::Inert
        }
        (
            "builtins" | "__builtin__",
            "bool" | "bytearray" | "bytes" | "complex" | "dict" | "float" | "frozenset" | "int" | "list" | "set"
            | "str" | "tuple",
        ) => Global::Inert,
        _ => return Err(CheckpointError::Global { name: shown(&format!("{module}.{name}")) }),
    })
}

/// What a call gives: a value, or one of its arguments.
pub(super) enum Called<'a> {
    Node(Node<'a>),
    Same(Id),
}

impl Global {
    /// Calls it with the members of a tuple.
    pub(super) fn call<'a>(self, nodes: &Nodes<'a>, args: &[Id]) -> Result<Called<'a>, CheckpointError> {
        Ok(Called::Node(match self {
            Self::Dict => Node::Dict(Dict { entries: entries(nodes, args)?, of_attributes: false }),
            Self::Namespace => Node::Dict(Dict { entries: Vec::new(), of_attributes: true }),
            Self::RebuildTensor => tensor(nodes, args, None)?,
            Self::RebuildTensorWithType => {
                let dtype = argument(nodes, args, "_rebuild_tensor_v3", 6)?.1;
                let stored = match nodes.get(dtype) {
                    Node::Global(Self::Dtype(stored)) => *stored,
                    other => return Err(kind("_rebuild_tensor_v3, argument 7", other, "a dtype")),
                };
                tensor(nodes, args, Some(stored))?
            }
            Self::RebuildParameter => {
                let (what, id) = argument(nodes, args, "_rebuild_parameter", 0)?;
                return match nodes.get(id) {
                    Node::Tensor(_) => Ok(Called::Same(id)),
                    other => Err(kind(&what, other, "a tensor")),
                };
            }
            Self::RebuildFromType => {
                let name = "_rebuild_from_type_v2";
                let (what, function) = argument(nodes, args, name, 0)?;
                let function = match nodes.get(function) {
                    Node::Global(f @ (Self::RebuildTensor | Self::RebuildTensorWithType | Self::RebuildParameter)) => f,
                    other => return Err(kind(&what, other, "a function that makes a tensor")),
                };
                let (what, class) = argument(nodes, args, name, 1)?;
                if !matches!(nodes.get(class), Node::Global(Self::TensorClass)) {
                    return Err(kind(&what, nodes.get(class), "torch.Tensor or Parameter"));
                }
                let (what, args) = argument(nodes, args, name, 2)?;
                return function.call(nodes, nodes.sequence(args, &what, "a tuple")?);
            }
            Self::Size => return argument(nodes, args, "torch.Size", 0).map(|(_, id)| Called::Same(id)),
            Self::Encode => Node::Bytes(encode(nodes, args)?),
            Self::NumpyScalar => numpy::scalar(nodes, args)?,
            Self::NumpyDtype => numpy::dtype(nodes, args)?,
            Self::Inert => Node::Opaque,
            Self::TensorClass | Self::Storage(_) | Self::Dtype(_) => {
                return Err(kind("a call", &Node::Global(self), "a function that makes a tensor or a plain value"));
            }
        }))
    }
}

/// Argument `i` (from 0) of the function `name`, and what messages call it.
fn argument(nodes: &Nodes<'_>, args: &[Id], name: &str, i: usize) -> Result<(String, Id), CheckpointError> {
    let what = format!("{name}, argument {}", i + 1);
    match args.get(i) {
        Some(&id) => Ok((what, id)),
        None => Err(kind(&what, nodes.get(Nodes::NONE), "a value")),
    }
}

/// `(storage, offset, shape, strides, …)`; `stored` is the type where the call names one.
fn tensor<'a>(nodes: &Nodes<'a>, args: &[Id], stored: Option<Stored>) -> Result<Node<'a>, CheckpointError> {
    let name = "_rebuild_tensor_v2";
    let (what, storage) = argument(nodes, args, name, 0)?;
    let storage = match nodes.get(storage) {
        Node::Storage(storage) => *storage,
        other => return Err(kind(&what, other, "a storage")),
    };
    let untyped = || CheckpointError::Kind { what, found: "a storage without a type", wanted: "one with a type" };
    let stored = stored.or(storage.stored).ok_or_else(untyped)?;
    let (what, offset) = argument(nodes, args, name, 1)?;
    let offset = nodes.size(offset, &what)?;
    let (_, shape) = argument(nodes, args, name, 2)?;
    let (_, strides) = argument(nodes, args, name, 3)?;
    Ok(Node::Tensor(Box::new(Tensor { storage, stored, offset, shape, strides })))
}

/// The entries of a dictionary that is made from another one, or from a list of pairs as Python 2 writes.
fn entries(nodes: &Nodes<'_>, args: &[Id]) -> Result<Vec<(Id, Id)>, CheckpointError> {
    let what = "a dictionary, argument 1";
    let Some(&first) = args.first() else { return Ok(Vec::new()) };
    match nodes.get(first) {
        Node::Dict(dict) => Ok(dict.entries.clone()),
        Node::List(pairs) | Node::Tuple(pairs) => pairs
            .iter()
            .map(|&pair| match nodes.sequence(pair, what, "a list of pairs")? {
                &[key, value] => Ok((key, value)),
                _ => Err(kind(what, nodes.get(pair), "a list of pairs")),
            })
            .collect(),
        // The factory of a defaultdict.
        Node::Global(_) | Node::None => Ok(Vec::new()),
        other => Err(kind(what, other, "a list of pairs")),
    }
}

/// The characters of a string as bytes.
fn encode<'a>(nodes: &Nodes<'a>, args: &[Id]) -> Result<Cow<'a, [u8]>, CheckpointError> {
    let (what, text) = argument(nodes, args, "_codecs.encode", 0)?;
    let text = nodes.text(text, &what)?;
    let bytes = text.chars().map(|c| u8::try_from(u32::from(c))).collect::<Result<Vec<u8>, _>>();
    bytes.map(Cow::Owned).map_err(|_| kind(&what, &Node::Text(text), "characters of latin-1"))
}

/// The storage that a persistent id names: `("storage", type, key, location, count)`, in the legacy format with a view behind it.
pub(super) fn storage<'a>(nodes: &Nodes<'a>, id: Id) -> Result<Storage<'a>, CheckpointError> {
    let what = "persistent id";
    let wanted = "(\"storage\", type, key, location, count)";
    let items = nodes.sequence(id, what, wanted)?;
    let (&[tag, class, key, _, count], rest) =
        items.split_first_chunk().ok_or_else(|| kind(what, nodes.get(id), wanted))?;
    if nodes.text(tag, what)? != "storage" {
        return Err(kind(what, nodes.get(tag), wanted));
    }
    if let Some(view) = rest.first().map(|&view| nodes.get(view)).filter(|view| !matches!(view, Node::None)) {
        return Err(kind(
            "persistent id, view of a storage",
            view,
            "None; save the file again with PyTorch 0.4 or later",
        ));
    }
    let stored = match nodes.get(class) {
        Node::Global(Global::Storage(stored)) => *stored,
        other => return Err(kind("persistent id, type", other, "a storage class")),
    };
    let key = nodes.text(key, "persistent id, key")?;
    super::super::check_name(key)?;
    Ok(Storage { key, stored, count: nodes.size(count, "persistent id, count")? })
}
