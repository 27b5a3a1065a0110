//! Metadata: typed values under unique keys, in the order of the file.

use std::collections::HashMap;

use crate::error::GgufError;

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Type 0.
    U8(u8),
    /// Type 1.
    I8(i8),
    /// Type 2.
    U16(u16),
    /// Type 3.
    I16(i16),
    /// Type 4.
    U32(u32),
    /// Type 5.
    I32(i32),
    /// Type 6.
    F32(f32),
    /// Type 7.
    Bool(bool),
    /// Type 8.
    String(String),
    /// Type 9.
    Array(Array),
    /// Type 10.
    U64(u64),
    /// Type 11.
    I64(i64),
    /// Type 12.
    F64(f64),
}

/// An array of values of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Elements of type 0.
    U8(Vec<u8>),
    /// Elements of type 1.
    I8(Vec<i8>),
    /// Elements of type 2.
    U16(Vec<u16>),
    /// Elements of type 3.
    I16(Vec<i16>),
    /// Elements of type 4.
    U32(Vec<u32>),
    /// Elements of type 5.
    I32(Vec<i32>),
    /// Elements of type 6.
    F32(Vec<f32>),
    /// Elements of type 7.
    Bool(Vec<bool>),
    /// Elements of type 8.
    String(Vec<String>),
    /// Elements of type 9.
    Array(Vec<Array>),
    /// Elements of type 10.
    U64(Vec<u64>),
    /// Elements of type 11.
    I64(Vec<i64>),
    /// Elements of type 12.
    F64(Vec<f64>),
}

/// Applies an expression to the vector inside an [`Array`].
macro_rules! for_each_array {
    ($array:expr, $v:ident => $body:expr) => {
        match $array {
            Array::U8($v) => $body,
            Array::I8($v) => $body,
            Array::U16($v) => $body,
            Array::I16($v) => $body,
            Array::U32($v) => $body,
            Array::I32($v) => $body,
            Array::F32($v) => $body,
            Array::Bool($v) => $body,
            Array::String($v) => $body,
            Array::Array($v) => $body,
            Array::U64($v) => $body,
            Array::I64($v) => $body,
            Array::F64($v) => $body,
        }
    };
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> usize {
        for_each_array!(self, v => v.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// GGUF's number of the element type.
    pub fn element_type_id(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => 8,
            Self::Array(_) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }

    /// The elements as integers, whatever their width; `None` when they are something else. An empty array is an array of anything.
    pub fn integers(&self) -> Option<Vec<i128>> {
        fn wide<T: Copy + Into<i128>>(v: &[T]) -> Option<Vec<i128>> {
            Some(v.iter().map(|&x| x.into()).collect())
        }
        match self {
            Self::U8(v) => wide(v),
            Self::I8(v) => wide(v),
            Self::U16(v) => wide(v),
            Self::I16(v) => wide(v),
            Self::U32(v) => wide(v),
            Self::I32(v) => wide(v),
            Self::U64(v) => wide(v),
            Self::I64(v) => wide(v),
            other if other.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }

    /// The elements as numbers, when they are f32 or f64.
    pub fn floats(&self) -> Option<Vec<f64>> {
        match self {
            Self::F32(v) => Some(v.iter().map(|&x| f64::from(x)).collect()),
            Self::F64(v) => Some(v.clone()),
            other if other.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }

    /// The elements as text.
    pub fn strings(&self) -> Option<&[String]> {
        match self {
            Self::String(v) => Some(v),
            other if other.is_empty() => Some(&[]),
            _ => None,
        }
    }
}

impl Value {
    /// GGUF's number of this value's type.
    pub fn type_id(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => 8,
            Self::Array(_) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }

    /// The type in words, for messages: `u32`, `array of 3 f32`.
    pub fn type_name(&self) -> String {
        match self {
            Self::Array(a) => format!("an array of {} {}", a.len(), scalar_name(a.element_type_id())),
            other => scalar_name(other.type_id()).to_owned(),
        }
    }

    /// The value as an integer, whatever its width; `None` when it is something else.
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            Self::U8(v) => Some(v.into()),
            Self::I8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::I16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::I32(v) => Some(v.into()),
            Self::U64(v) => Some(v.into()),
            Self::I64(v) => Some(v.into()),
            _ => None,
        }
    }

    /// The value as a number, when it is f32 or f64.
    pub fn as_float(&self) -> Option<f64> {
        match *self {
            Self::F32(v) => Some(v.into()),
            Self::F64(v) => Some(v),
            _ => None,
        }
    }

    /// The value, when it is a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// The value, when it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// The value, when it is an array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(v) => Some(v),
            _ => None,
        }
    }
}

/// GGUF's name of a value type.
fn scalar_name(id: u32) -> &'static str {
    ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"]
        .get(id as usize)
        .copied()
        .unwrap_or("unknown")
}

macro_rules! from {
    ($($t:ty => $v:ident),+ $(,)?) => { $(
        impl From<$t> for Value { fn from(v: $t) -> Self { Self::$v(v) } }
        impl From<Vec<$t>> for Value { fn from(v: Vec<$t>) -> Self { Self::Array(Array::$v(v)) } }
    )+ };
}
from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool, String => String, u64 => U64, i64 => I64, f64 => F64,
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::String(v.to_owned())
    }
}

/// Keys and values in the order of the file; no key appears twice.
///
/// ```
/// use jepa_gguf::{Metadata, Value};
/// let mut metadata = Metadata::default();
/// metadata.insert("general.architecture", "jepa")?;
/// metadata.insert("jepa.enc.n_layer", 12_u32)?;
/// assert_eq!(metadata.get("jepa.enc.n_layer"), Some(&Value::U32(12)));
/// assert!(metadata.insert("jepa.enc.n_layer", 24_u32).is_err());
/// # Ok::<(), jepa_gguf::GgufError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl Metadata {
    /// Adds a key behind the others.
    ///
    /// # Errors
    /// [`GgufError::KeyTwice`] when the key is there already.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), GgufError> {
        let key = key.into();
        if self.index.contains_key(&key) {
            return Err(GgufError::KeyTwice { key });
        }
        self.index.insert(key.clone(), self.entries.len());
        self.entries.push((key, value.into()));
        Ok(())
    }

    /// Replaces the value of a key where it stands, or adds the key behind the others.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        let key = key.into();
        match self.index.get(&key) {
            Some(&at) => self.entries[at].1 = value.into(),
            None => {
                self.index.insert(key.clone(), self.entries.len());
                self.entries.push((key, value.into()));
            }
        }
    }

    /// Takes a key out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.index.remove(key)?;
        for place in self.index.values_mut().filter(|place| **place > at) {
            *place -= 1;
        }
        Some(self.entries.remove(at).1)
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|&at| &self.entries[at].1)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_a_key_keeps_the_others_reachable_and_in_order() {
        let mut m = Metadata::default();
        for (k, v) in [("a", 1_u32), ("b", 2), ("c", 3)] {
            m.insert(k, v).unwrap();
        }
        assert_eq!(m.remove("a"), Some(Value::U32(1)));
        m.set("c", 4_u32);
        m.set("d", 5_u32);
        let left: Vec<_> = m.iter().map(|(k, v)| (k, v.as_integer().unwrap())).collect();
        assert_eq!(left, [("b", 2), ("c", 4), ("d", 5)]);
        assert_eq!(m.get("c"), Some(&Value::U32(4)));
    }

    #[test]
    fn integers_of_any_width_are_integers_and_floats_are_not() {
        assert_eq!(Value::U8(7).as_integer(), Some(7));
        assert_eq!(Value::I64(-7).as_integer(), Some(-7));
        assert_eq!(Value::F32(7.0).as_integer(), None);
        assert_eq!(Array::F32(vec![]).integers(), Some(vec![]));
        assert_eq!(Array::F32(vec![1.0]).integers(), None);
    }
}
