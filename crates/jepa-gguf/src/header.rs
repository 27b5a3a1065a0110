//! The head of a file: magic, version, counts, metadata, tensor table. Everything before the tensor data.

use std::collections::HashSet;

use crate::cursor::{Cursor, Short};
use crate::dtype::{GgmlType, foreign_name};
use crate::error::GgufError;
use crate::limits::{MAX_ALIGNMENT, MAX_ARRAY_DEPTH, MAX_DIMS, MAX_KEY_BYTES, MAX_TENSOR_NAME_BYTES};
use crate::tensor::TensorInfo;
use crate::value::{Array, Metadata, Value};

/// The first four bytes of every file.
pub(crate) const MAGIC: [u8; 4] = *b"GGUF";
/// Alignment of files that do not state one.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;
/// The key that states it.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";

/// Fewest bytes a key with its value can take: length, type, one byte of value. (An empty key is refused.)
const LEAST_KEY_BYTES: u64 = 8 + 1 + 4 + 1;
/// Fewest bytes an entry of the tensor table can take: length, one letter, dimensions, one dimension, type, offset.
const LEAST_TENSOR_BYTES: u64 = 8 + 1 + 4 + 8 + 4 + 8;
/// Fewest bytes of a nested array: element type and count.
const LEAST_ARRAY_BYTES: u64 = 4 + 8;

/// What the head of a file says.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) alignment: u64,
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
    /// Where the tensor data starts; a multiple of the alignment, not necessarily inside the file.
    pub(crate) data_start: u64,
}

impl Header {
    /// Reads the head of `bytes`, which is the whole file.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(bytes);
        let (version, tensor_count, key_count) = preamble(&mut cursor)?;
        bounded("metadata, key/value count".to_owned(), key_count, cursor.remaining(), LEAST_KEY_BYTES)?;
        bounded("tensor info, tensor count".to_owned(), tensor_count, cursor.remaining(), LEAST_TENSOR_BYTES)?;

        let mut metadata = Metadata::default();
        for i in 0..key_count {
            let key = name(&mut cursor, MAX_KEY_BYTES, || format!("metadata key {i}"))?;
            let short = |s: Short| s.section(format!("metadata key {key}"));
            let type_id = cursor.u32().map_err(short)?;
            let value = value(&mut cursor, &key, type_id)?;
            metadata.insert(key, value)?;
        }
        let alignment = alignment(&metadata)?;

        let mut tensors = Vec::new();
        let mut names = HashSet::new();
        for i in 0..tensor_count {
            let tensor = tensor_info(&mut cursor, i)?;
            if !names.insert(tensor.name.clone()) {
                return Err(GgufError::TensorTwice { tensor: tensor.name });
            }
            tensors.push(tensor);
        }
        let data_start = cursor
            .position()
            .checked_next_multiple_of(alignment)
            .expect("a position inside a file plus 1 GiB is below 2^64");
        Ok(Self { version, alignment, metadata, tensors, data_start })
    }
}

/// Magic, version, tensor count, key count.
fn preamble(cursor: &mut Cursor<'_>) -> Result<(u32, u64, u64), GgufError> {
    let short = |s: Short| s.section("header".to_owned());
    let magic: [u8; 4] = cursor.array().map_err(short)?;
    if magic != MAGIC {
        return Err(GgufError::Magic { found: magic.escape_ascii().to_string() });
    }
    let version = cursor.u32().map_err(short)?;
    if !matches!(version, 2 | 3) {
        return Err(match version.swap_bytes() {
            1..=3 => GgufError::BigEndian,
            _ => GgufError::Version { found: version },
        });
    }
    Ok((version, cursor.u64().map_err(short)?, cursor.u64().map_err(short)?))
}

/// Refuses a count of things of at least `least` bytes each that the rest of the file cannot hold.
fn bounded(what: String, found: u64, remaining: u64, least: u64) -> Result<(), GgufError> {
    let most = remaining / least;
    if found > most { Err(GgufError::Count { what, found, most }) } else { Ok(()) }
}

/// What keeps `name` from being the name of a key or a tensor; its length is another matter.
///
/// Names go into messages as they are, so they must not break lines or steer a terminal.
pub(crate) fn problem_with(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("is empty"),
        _ if name.chars().any(char::is_control) => Some("has control characters"),
        _ => None,
    }
}

/// A name: a length and as many bytes of UTF-8, at most `limit`.
fn name(cursor: &mut Cursor<'_>, limit: u64, section: impl Fn() -> String) -> Result<String, GgufError> {
    let len = cursor.u64().map_err(|s| s.section(section()))?;
    if len > limit {
        return Err(GgufError::Limit {
            what: format!("{}, length of the name in bytes", section()),
            found: len,
            most: limit,
        });
    }
    let name = utf8(cursor.take(len).map_err(|s| s.section(section()))?, &section)?;
    match problem_with(&name) {
        Some(problem) => Err(GgufError::Name { section: section(), problem }),
        None => Ok(name),
    }
}

fn utf8(bytes: &[u8], section: impl Fn() -> String) -> Result<String, GgufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| GgufError::Utf8 { section: section() })
}

/// A string value; it may be empty.
fn string(cursor: &mut Cursor<'_>, key: &str) -> Result<String, GgufError> {
    let section = || format!("metadata key {key}");
    let len = cursor.u64().map_err(|s| s.section(section()))?;
    utf8(cursor.take(len).map_err(|s| s.section(section()))?, section)
}

fn boolean(byte: u8, key: &str) -> Result<bool, GgufError> {
    match byte {
        0 | 1 => Ok(byte == 1),
        found => Err(GgufError::Bool { key: key.to_owned(), found }),
    }
}

/// The value of type `type_id` that comes next.
fn value(cursor: &mut Cursor<'_>, key: &str, type_id: u32) -> Result<Value, GgufError> {
    let short = |s: Short| s.section(format!("metadata key {key}"));
    Ok(match type_id {
        0 => Value::U8(cursor.u8().map_err(short)?),
        1 => Value::I8(i8::from_le_bytes(cursor.array().map_err(short)?)),
        2 => Value::U16(u16::from_le_bytes(cursor.array().map_err(short)?)),
        3 => Value::I16(i16::from_le_bytes(cursor.array().map_err(short)?)),
        4 => Value::U32(cursor.u32().map_err(short)?),
        5 => Value::I32(i32::from_le_bytes(cursor.array().map_err(short)?)),
        6 => Value::F32(f32::from_le_bytes(cursor.array().map_err(short)?)),
        7 => Value::Bool(boolean(cursor.u8().map_err(short)?, key)?),
        8 => Value::String(string(cursor, key)?),
        9 => Value::Array(array(cursor, key, 1)?),
        10 => Value::U64(cursor.u64().map_err(short)?),
        11 => Value::I64(i64::from_le_bytes(cursor.array().map_err(short)?)),
        12 => Value::F64(f64::from_le_bytes(cursor.array().map_err(short)?)),
        found => return Err(GgufError::ValueType { key: key.to_owned(), found }),
    })
}

/// The array that comes next, `depth` arrays deep.
fn array(cursor: &mut Cursor<'_>, key: &str, depth: u32) -> Result<Array, GgufError> {
    let short = |s: Short| s.section(format!("metadata key {key}"));
    if depth > MAX_ARRAY_DEPTH {
        let what = format!("metadata key {key}, depth of nested arrays");
        return Err(GgufError::Limit { what, found: depth.into(), most: MAX_ARRAY_DEPTH.into() });
    }
    let type_id = cursor.u32().map_err(short)?;
    let count = cursor.u64().map_err(short)?;
    let least = match type_id {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        9 => LEAST_ARRAY_BYTES,
        found => return Err(GgufError::ValueType { key: key.to_owned(), found }),
    };
    bounded(format!("metadata key {key}, array count"), count, cursor.remaining(), least)?;

    /// `count` numbers of `N` bytes each; the count has been compared with the bytes that are left.
    fn numbers<const N: usize, T>(
        cursor: &mut Cursor<'_>,
        count: u64,
        read: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, Short> {
        let (chunks, _) = cursor.take(count * N as u64)?.as_chunks::<N>();
        Ok(chunks.iter().map(|&c| read(c)).collect())
    }
    Ok(match type_id {
        0 => Array::U8(numbers(cursor, count, u8::from_le_bytes).map_err(short)?),
        1 => Array::I8(numbers(cursor, count, i8::from_le_bytes).map_err(short)?),
        2 => Array::U16(numbers(cursor, count, u16::from_le_bytes).map_err(short)?),
        3 => Array::I16(numbers(cursor, count, i16::from_le_bytes).map_err(short)?),
        4 => Array::U32(numbers(cursor, count, u32::from_le_bytes).map_err(short)?),
        5 => Array::I32(numbers(cursor, count, i32::from_le_bytes).map_err(short)?),
        6 => Array::F32(numbers(cursor, count, f32::from_le_bytes).map_err(short)?),
        7 => {
            let bytes = cursor.take(count).map_err(short)?;
            Array::Bool(bytes.iter().map(|&b| boolean(b, key)).collect::<Result<_, _>>()?)
        }
        8 => Array::String((0..count).map(|_| string(cursor, key)).collect::<Result<_, _>>()?),
        9 => Array::Array((0..count).map(|_| array(cursor, key, depth + 1)).collect::<Result<_, _>>()?),
        10 => Array::U64(numbers(cursor, count, u64::from_le_bytes).map_err(short)?),
        11 => Array::I64(numbers(cursor, count, i64::from_le_bytes).map_err(short)?),
        _ => Array::F64(numbers(cursor, count, f64::from_le_bytes).map_err(short)?),
    })
}

/// `general.alignment`, or the default.
fn alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    let Some(value) = metadata.get(ALIGNMENT_KEY) else { return Ok(DEFAULT_ALIGNMENT) };
    let found = value.as_integer().ok_or_else(|| GgufError::Alignment { found: value.type_name() })?;
    u64::try_from(found)
        .ok()
        .filter(|a| a.is_power_of_two() && *a <= MAX_ALIGNMENT)
        .ok_or_else(|| GgufError::Alignment { found: found.to_string() })
}

/// The entry of the tensor table that comes next. Sizes are checked, positions are not: they depend on the whole table.
fn tensor_info(cursor: &mut Cursor<'_>, index: u64) -> Result<TensorInfo, GgufError> {
    let name = name(cursor, MAX_TENSOR_NAME_BYTES, || format!("tensor info {index}"))?;
    let short = |s: Short| s.section(format!("tensor info of {name}"));
    let rank = cursor.u32().map_err(short)?;
    if rank == 0 || rank > MAX_DIMS {
        return Err(GgufError::Rank { tensor: name, found: rank });
    }
    let mut shape = Vec::with_capacity(rank as usize);
    for _ in 0..rank {
        shape.push(cursor.u64().map_err(short)?);
    }
    // ggml counts the fastest dimension first.
    shape.reverse();
    let id = cursor.u32().map_err(short)?;
    let offset = cursor.u64().map_err(short)?;
    let Some(dtype) = GgmlType::from_id(id) else {
        return Err(GgufError::UnsupportedType { tensor: name, id, name: foreign_name(id) });
    };
    TensorInfo::new(name, shape, dtype, offset)
}
