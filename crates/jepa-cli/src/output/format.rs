//! Headers of the formats that hold one array, written before the number of rows is known.

use std::path::Path;

use crate::exit::CliError;

/// File formats of an output, by extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Npy,
    Safetensors,
    Jsonl,
    Csv,
}

impl Format {
    /// The format that the extension of `path` names, out of `allowed`.
    pub(crate) fn of(path: &Path, allowed: &[Self]) -> Result<Self, CliError> {
        let found = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        allowed.iter().copied().find(|format| format.extension() == found).ok_or_else(|| {
            let words: Vec<_> = allowed.iter().map(|format| format!(".{}", format.extension())).collect();
            CliError::usage(format!(
                "output {}: the extension decides the format; wanted {}",
                path.display(),
                words.join(", ")
            ))
        })
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }
}

/// Types of the numbers in an output array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    U8,
}

impl Element {
    const fn npy(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::U8 => "|u1",
        }
    }

    const fn safetensors(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::U8 => "U8",
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::U8 => 1,
        }
    }
}

/// Bytes kept for a header. Both formats let it be padded with blanks; this holds shapes of twenty axes.
pub(crate) const HEADER_BYTES: usize = 512;

/// A header of exactly [`HEADER_BYTES`]; `None` for the formats without one.
pub(crate) fn header(format: Format, element: Element, name: &str, shape: &[usize]) -> Option<Vec<u8>> {
    match format {
        Format::Npy => Some(npy_header(element, shape)),
        Format::Safetensors => Some(safetensors_header(element, name, shape)),
        Format::Jsonl | Format::Csv => None,
    }
}

/// NumPy's format, version 1.0: magic, version, length of the rest, a Python literal, blanks, a line break.
fn npy_header(element: Element, shape: &[usize]) -> Vec<u8> {
    let axes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(((HEADER_BYTES - 10) as u16).to_le_bytes());
    header.extend(
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", element.npy(), axes.trim_end()).bytes(),
    );
    header.resize(HEADER_BYTES - 1, b' ');
    header.push(b'\n');
    header
}

/// The safetensors format: length of the rest, JSON, blanks.
fn safetensors_header(element: Element, name: &str, shape: &[usize]) -> Vec<u8> {
    let bytes = shape.iter().product::<usize>() * element.bytes();
    let json =
        serde_json::json!({ name: { "dtype": element.safetensors(), "shape": shape, "data_offsets": [0, bytes] } });
    let mut header = ((HEADER_BYTES - 8) as u64).to_le_bytes().to_vec();
    header.extend(json.to_string().bytes());
    header.resize(HEADER_BYTES, b' ');
    header
}
