//! `config.json` and its like: typed access to keys, each value in the range of the schema's key it becomes.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::ConvertError;
use super::hints::range;
use crate::limits::MAX_JSON_BYTES;
use crate::schema::{KeyKind, key_spec};

/// A JSON object of a checkpoint folder, or an object inside one.
#[derive(Clone, Debug)]
pub(super) struct Config {
    file: String,
    /// Keys of the objects around this one, each with a dot behind.
    path: String,
    values: Map<String, Value>,
}

impl Config {
    /// Reads a file of a folder; `None` when the folder has no such file.
    pub(super) fn open(folder: &Path, file: &str) -> Result<Option<Self>, ConvertError> {
        let path = folder.join(file);
        let io = |op| {
            let path = path.clone();
            move |source| ConvertError::Io { op, path, source }
        };
        match std::fs::metadata(&path) {
            // A link that leads nowhere is a mistake, an absent file is none.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => return Ok(None),
            Err(e) => return Err(io("open")(e)),
            Ok(meta) if !meta.is_file() => {
                return Err(ConvertError::MissingFile { file: file.to_owned(), why: "what has its name is no file" });
            }
            Ok(_) => {}
        }
        let mut text = Vec::new();
        let opened = std::fs::File::open(&path).map_err(io("open"))?;
        opened.take(MAX_JSON_BYTES + 1).read_to_end(&mut text).map_err(io("read"))?;
        if text.len() as u64 > MAX_JSON_BYTES {
            let wanted = format!("at most {MAX_JSON_BYTES} bytes");
            let found = "a longer file".to_owned();
            return Err(ConvertError::KeyValue {
                file: file.to_owned(),
                key: "(the whole file)".to_owned(),
                found,
                wanted,
            });
        }
        match serde_json::from_slice(&text) {
            Ok(Value::Object(values)) => Ok(Some(Self { file: file.to_owned(), path: String::new(), values })),
            Ok(other) => Err(ConvertError::NotAnObject { file: file.to_owned(), found: kind(&other) }),
            Err(source) => Err(ConvertError::Json { file: file.to_owned(), source }),
        }
    }

    /// The value of a key; `null` is as good as absent.
    fn look(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// Whether the key has a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.look(key).is_some()
    }

    /// The error for a value that cannot be.
    pub(super) fn bad(&self, key: &str, found: impl ToString, wanted: impl Into<String>) -> ConvertError {
        ConvertError::KeyValue {
            file: self.file.clone(),
            key: format!("{}{key}", self.path),
            found: found.to_string(),
            wanted: wanted.into(),
        }
    }

    fn missing(&self, key: &str, wanted: impl Into<String>) -> ConvertError {
        ConvertError::MissingKey { file: self.file.clone(), key: format!("{}{key}", self.path), wanted: wanted.into() }
    }

    /// The error for a value that a tensor contradicts.
    pub(super) fn contradicted(
        &self,
        key: &str,
        found: impl ToString,
        tensor: &str,
        says: impl ToString,
    ) -> ConvertError {
        ConvertError::KeyContradicts {
            file: self.file.clone(),
            key: format!("{}{key}", self.path),
            found: found.to_string(),
            tensor: tensor.to_owned(),
            says: says.to_string(),
        }
    }

    /// The error for another number of blocks than a key says.
    pub(super) fn block_count(&self, key: &str, wanted: usize, stem: &str, found: usize) -> ConvertError {
        ConvertError::BlockCount {
            stem: stem.to_owned(),
            found,
            file: self.file.clone(),
            key: format!("{}{key}", self.path),
            wanted,
        }
    }

    /// An object inside this one.
    pub(super) fn object_opt(&self, key: &str) -> Result<Option<Self>, ConvertError> {
        match self.look(key) {
            None => Ok(None),
            Some(Value::Object(values)) => {
                Ok(Some(Self { file: self.file.clone(), path: format!("{}{key}.", self.path), values: values.clone() }))
            }
            Some(other) => Err(self.bad(key, shown(other), "an object")),
        }
    }

    /// An integer in the range of the schema's key `of`.
    pub(super) fn count_opt(&self, key: &str, of: &'static str) -> Result<Option<usize>, ConvertError> {
        let (min, max) = range(of);
        let Some(value) = self.look(key) else { return Ok(None) };
        let number = value.as_u64().filter(|n| (min..=max).contains(n));
        number
            .map(|n| Some(n as usize))
            .ok_or_else(|| self.bad(key, shown(value), format!("an integer from {min} to {max}")))
    }

    /// As [`Self::count_opt`]; an absent key is refused.
    pub(super) fn count(&self, key: &str, of: &'static str) -> Result<usize, ConvertError> {
        let (min, max) = range(of);
        self.count_opt(key, of)?.ok_or_else(|| self.missing(key, format!("an integer from {min} to {max}")))
    }

    /// Attention heads: as [`Self::count`], and a divisor of `width`.
    pub(super) fn heads(&self, key: &str, of: &'static str, width: usize) -> Result<usize, ConvertError> {
        let heads = self.count(key, of)?;
        if width.is_multiple_of(heads) {
            Ok(heads)
        } else {
            Err(self.bad(key, heads, format!("a divisor of the width {width}")))
        }
    }

    /// A finite number above 0, as it will stand in the file: in single precision.
    pub(super) fn real_opt(&self, key: &str) -> Result<Option<f64>, ConvertError> {
        const WANTED: &str = "a finite number above 0";
        let Some(value) = self.look(key) else { return Ok(None) };
        let single = value.as_f64().map(|v| v as f32).filter(|v| v.is_normal() && *v > 0.0);
        single.map(|v| Some(f64::from(v))).ok_or_else(|| self.bad(key, shown(value), WANTED))
    }

    /// As [`Self::real_opt`]; an absent key is refused.
    pub(super) fn real(&self, key: &str) -> Result<f64, ConvertError> {
        self.real_opt(key)?.ok_or_else(|| self.missing(key, "a finite number above 0"))
    }

    /// A ratio in full precision.
    pub(super) fn ratio_opt(&self, key: &str) -> Result<Option<f64>, ConvertError> {
        let Some(value) = self.look(key) else { return Ok(None) };
        let ratio = value.as_f64().filter(|v| v.is_finite() && *v > 0.0);
        ratio.map(Some).ok_or_else(|| self.bad(key, shown(value), "a finite number above 0"))
    }

    /// Three numbers, one per colour channel; above 0 when `positive`.
    pub(super) fn channels(&self, key: &str, positive: bool) -> Result<[f32; 3], ConvertError> {
        let wanted = if positive { "3 finite numbers above 0" } else { "3 finite numbers" };
        let value = self.look(key).ok_or_else(|| self.missing(key, wanted))?;
        let number = |v: &Value| v.as_f64().map(|v| v as f32).filter(|v| v.is_finite() && (!positive || *v > 0.0));
        let found: Option<Vec<f32>> = value.as_array().and_then(|list| list.iter().map(number).collect());
        found.and_then(|list| list.try_into().ok()).ok_or_else(|| self.bad(key, shown(value), wanted))
    }

    /// A bool.
    pub(super) fn flag_opt(&self, key: &str) -> Result<Option<bool>, ConvertError> {
        match self.look(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.bad(key, shown(other), "true or false")),
        }
    }

    /// Refuses a flag that is there and not `wanted`.
    pub(super) fn insist(&self, key: &str, wanted: bool) -> Result<(), ConvertError> {
        match self.flag_opt(key)? {
            Some(flag) if flag != wanted => Err(self.bad(key, flag, format!("{wanted}, nothing else is supported"))),
            _ => Ok(()),
        }
    }

    /// A string.
    pub(super) fn text_opt(&self, key: &str) -> Result<Option<&str>, ConvertError> {
        match self.look(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.bad(key, shown(other), "a string")),
        }
    }

    /// A string of the schema's key `of`.
    pub(super) fn word_opt<T>(
        &self,
        key: &str,
        of: &'static str,
        from_word: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ConvertError> {
        let Some(text) = self.text_opt(key)? else { return Ok(None) };
        let wanted = || match key_spec(of).map(|spec| spec.kind) {
            Some(KeyKind::Word(words)) => words.join(", "),
            _ => unreachable!("{of} has words"),
        };
        from_word(text).map(Some).ok_or_else(|| self.bad(key, format!("{text:.60?}"), wanted()))
    }

    /// The value as it stands.
    pub(super) fn raw(&self, key: &str) -> Option<&Value> {
        self.look(key)
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value for a message: on one line and not endless.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Object(map) => format!("an object of {} keys", map.len()),
        Value::Array(list) if list.len() > 4 => format!("a list of {}", list.len()),
        other => {
            let text = other.to_string();
            if text.chars().count() > 60 { format!("{}…", text.chars().take(60).collect::<String>()) } else { text }
        }
    }
}
