//! Typed access to the keys of a file, by the rules of the key table.

use super::keys::{Absent, KeyKind, KeySpec, key_spec};
use crate::error::GgufError;
use crate::value::{Metadata, Value};

/// The keys of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    metadata: &'a Metadata,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(metadata: &'a Metadata) -> Self {
        Self { metadata }
    }

    /// Whether the file has the key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.metadata.get(key).is_some()
    }

    /// Table entry and value, if there is one.
    fn look(&self, key: &'static str) -> (&'static KeySpec, Option<&'a Value>) {
        (key_spec(key).expect("every key that is read stands in the table"), self.metadata.get(key))
    }

    /// An integer: the file's, or the default of the table; `None` when the table has no fixed default.
    pub(crate) fn count_opt(&self, key: &'static str) -> Result<Option<usize>, GgufError> {
        let (spec, value) = self.look(key);
        let KeyKind::Count { min, max } = spec.kind else { unreachable!("{key} is no count") };
        match (value, spec.absent) {
            (Some(v), _) => {
                let found = v.as_integer().ok_or_else(|| wrong_type(key, v, "an integer"))?;
                in_range(key, found, min, max).map(Some)
            }
            (None, Absent::Count(d)) => Ok(Some(d as usize)),
            (None, _) => Ok(None),
        }
    }

    /// As [`Self::count_opt`]; an absent key without a default is refused.
    pub(crate) fn count(&self, key: &'static str) -> Result<usize, GgufError> {
        self.count_opt(key)?.ok_or_else(|| missing(key))
    }

    /// A finite number: the file's, or the default of the table.
    pub(crate) fn real_opt(&self, key: &'static str) -> Result<Option<f64>, GgufError> {
        let (spec, value) = self.look(key);
        let KeyKind::Real { positive } = spec.kind else { unreachable!("{key} is no number") };
        match (value, spec.absent) {
            (Some(v), _) => {
                let found = v.as_float().ok_or_else(|| wrong_type(key, v, "f32 or f64"))?;
                finite(key, found, positive).map(Some)
            }
            (None, Absent::Real(d)) => Ok(Some(d)),
            (None, _) => Ok(None),
        }
    }

    /// As [`Self::real_opt`]; an absent key without a default is refused.
    pub(crate) fn real(&self, key: &'static str) -> Result<f64, GgufError> {
        self.real_opt(key)?.ok_or_else(|| missing(key))
    }

    /// A bool: the file's, or the default of the table.
    pub(crate) fn flag_opt(&self, key: &'static str) -> Result<Option<bool>, GgufError> {
        match self.look(key) {
            (_, Some(v)) => v.as_bool().map(Some).ok_or_else(|| wrong_type(key, v, "a bool")),
            (KeySpec { absent: Absent::Flag(d), .. }, None) => Ok(Some(*d)),
            (_, None) => Ok(None),
        }
    }

    /// As [`Self::flag_opt`]; an absent key without a default is refused.
    pub(crate) fn flag(&self, key: &'static str) -> Result<bool, GgufError> {
        self.flag_opt(key)?.ok_or_else(|| missing(key))
    }

    /// One of the words of the table: the file's, or the default.
    pub(crate) fn word_opt(&self, key: &'static str) -> Result<Option<&'static str>, GgufError> {
        let (spec, value) = self.look(key);
        let KeyKind::Word(words) = spec.kind else { unreachable!("{key} has no words") };
        match (value, spec.absent) {
            (Some(v), _) => {
                let found = v.as_str().ok_or_else(|| wrong_type(key, v, "a string"))?;
                let known = words.iter().copied().find(|w| *w == found);
                known.map(Some).ok_or_else(|| bad_value(key, quoted(found), words.join(", ")))
            }
            (None, Absent::Word(d)) => Ok(Some(d)),
            (None, _) => Ok(None),
        }
    }

    /// As [`Self::word_opt`], as the enum that declares the words; an absent key without a default is refused.
    pub(crate) fn word<T>(&self, key: &'static str, from_word: fn(&str) -> Option<T>) -> Result<T, GgufError> {
        let word = self.word_opt(key)?.ok_or_else(|| missing(key))?;
        Ok(from_word(word).expect("the table has the words of the enum"))
    }

    /// As [`Self::word`], with a default that depends on other keys.
    pub(crate) fn word_or<T>(
        &self,
        key: &'static str,
        from_word: fn(&str) -> Option<T>,
        derived: T,
    ) -> Result<T, GgufError> {
        if self.has(key) { self.word(key, from_word) } else { Ok(derived) }
    }

    /// A string, if the file has one.
    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, GgufError> {
        let (_, value) = self.look(key);
        value.map(|v| v.as_str().map(str::to_owned).ok_or_else(|| wrong_type(key, v, "a string"))).transpose()
    }

    /// An array of strings, if the file has one.
    pub(crate) fn texts(&self, key: &'static str) -> Result<Option<Vec<String>>, GgufError> {
        let (_, value) = self.look(key);
        let strings = |v: &'a Value| v.as_array().and_then(|a| a.strings()).map(<[String]>::to_vec);
        value.map(|v| strings(v).ok_or_else(|| wrong_type(key, v, "an array of strings"))).transpose()
    }

    /// An array of integers; empty when the file has none.
    pub(crate) fn counts(&self, key: &'static str) -> Result<Vec<usize>, GgufError> {
        let (spec, value) = self.look(key);
        let KeyKind::Counts { min, max } = spec.kind else { unreachable!("{key} is no array of counts") };
        let Some(v) = value else { return Ok(Vec::new()) };
        let found =
            v.as_array().and_then(|a| a.integers()).ok_or_else(|| wrong_type(key, v, "an array of integers"))?;
        found.into_iter().map(|n| in_range(key, n, min, max)).collect()
    }

    /// Three numbers, one per colour channel.
    pub(crate) fn channels(&self, key: &'static str) -> Result<[f32; 3], GgufError> {
        let (spec, value) = self.look(key);
        let KeyKind::Channels { positive } = spec.kind else { unreachable!("{key} is no array of channels") };
        let v = value.ok_or_else(|| missing(key))?;
        let wanted = "an array of 3 f32 or f64";
        let found = v.as_array().and_then(|a| a.floats()).ok_or_else(|| wrong_type(key, v, wanted))?;
        let found: [f64; 3] = found.try_into().map_err(|_| wrong_type(key, v, wanted))?;
        let mut out = [0.0; 3];
        for (out, found) in out.iter_mut().zip(found) {
            // Narrow first: an f64 may be finite and positive and still overflow or vanish as f32.
            *out = finite(key, f64::from(found as f32), positive)? as f32;
        }
        Ok(out)
    }
}

/// The error for an absent key.
pub(crate) fn missing(key: &'static str) -> GgufError {
    let when = match key_spec(key).map(|k| k.absent) {
        Some(Absent::Refused(when)) => when,
        _ => "here",
    };
    GgufError::MissingKey { key: key.to_owned(), when }
}

/// The error for a value that other values rule out.
pub(crate) fn bad_value(key: &str, found: impl ToString, wanted: impl Into<String>) -> GgufError {
    GgufError::KeyValue { key: key.to_owned(), found: found.to_string(), wanted: wanted.into() }
}

/// Text of a file for a message: quoted, escaped, not endless.
fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    let cut: String = text.chars().take(MOST).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

fn wrong_type(key: &str, found: &Value, wanted: &'static str) -> GgufError {
    GgufError::KeyType { key: key.to_owned(), found: found.type_name(), wanted }
}

fn in_range(key: &str, found: i128, min: u64, max: u64) -> Result<usize, GgufError> {
    if (i128::from(min)..=i128::from(max)).contains(&found) {
        Ok(usize::try_from(found).expect("the table's ranges end below 2^32"))
    } else if min == max {
        Err(bad_value(key, found, min.to_string()))
    } else {
        Err(bad_value(key, found, format!("{min} to {max}")))
    }
}

fn finite(key: &str, found: f64, positive: bool) -> Result<f64, GgufError> {
    match (found.is_finite(), positive) {
        (true, false) => Ok(found),
        (true, true) if found > 0.0 => Ok(found),
        (_, true) => Err(bad_value(key, found, "a finite number above 0")),
        (_, false) => Err(bad_value(key, found, "a finite number")),
    }
}
