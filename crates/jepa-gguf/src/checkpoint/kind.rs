//! What a file is, by its first bytes.

use super::CheckpointError;
use super::error::shown;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Safetensors,
    /// A zip archive, in which `torch.save` has put a pickle since PyTorch 1.6.
    Archive,
    /// Pickles one behind the other, as `torch.save` wrote before.
    Pickle,
}

/// Bytes that are looked at to tell text from numbers.
const HEAD: usize = 512;
/// Where a tar archive says that it is one.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;

/// Recognises `bytes`, the whole file, or says what it is instead.
pub(super) fn recognise(bytes: &[u8]) -> Result<Kind, CheckpointError> {
    let head = &bytes[..bytes.len().min(HEAD)];
    match head {
        [] => return Err(CheckpointError::Empty),
        [b'G', b'G', b'U', b'F', ..] => return Err(CheckpointError::Gguf),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => return Ok(Kind::Archive),
        // The first byte of a pickle of protocol 2 and later, followed by the protocol. A safetensors header of 128 bytes begins alike, but then the
        // upper half of its length is zero, which is no instruction.
        [0x80, ..] if head.get(8) != Some(&b'{') || head.get(4..8) != Some(&[0; 4]) => return Ok(Kind::Pickle),
        _ if bytes.get(TAR_MAGIC) == Some(b"ustar") => return Err(CheckpointError::Tar),
        _ => {}
    }
    if let Some(text) = text(head) {
        return Err(match text.starts_with("version https://git-lfs") {
            true => CheckpointError::LfsPointer,
            false => CheckpointError::Text { begins: first_line(text) },
        });
    }
    match head.get(8) {
        Some(b'{') => Ok(Kind::Safetensors),
        _ => Err(CheckpointError::Unknown { begins: head[..head.len().min(8)].escape_ascii().to_string() }),
    }
}

/// The head as text, when it is nothing else.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The cut may go through a character.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let readable = text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace());
    (readable && !text.is_empty()).then_some(text)
}

fn first_line(text: &str) -> String {
    const LONGEST: usize = 40;
    shown(&text.trim_start().lines().next().unwrap_or_default().chars().take(LONGEST).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_128_bytes_is_not_taken_for_a_pickle() {
        let mut file = 128u64.to_le_bytes().to_vec();
        file.extend(b"{}");
        assert_eq!(recognise(&file).unwrap(), Kind::Safetensors);
        assert_eq!(recognise(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9").unwrap(), Kind::Pickle);
        let mut file = ((1u64 << 63) | 1).to_le_bytes().to_vec();
        file.extend(b"{}");
        assert_eq!(recognise(&file).unwrap(), Kind::Safetensors);
    }

    #[test]
    fn says_what_else_a_file_is() {
        let message = |bytes: &[u8]| recognise(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("empty"));
        assert!(message(b"GGUF\x03\0\0\0").contains("gguf"));
        assert!(message(b"\n <!DOCTYPE html>\n<html>").contains("\"<!DOCTYPE html>\""));
        assert!(message(b"version https://git-lfs.github.com/spec/v1\noid").contains("git lfs pull"));
        assert!(message(&[1, 2, 3]).contains("\\x01\\x02\\x03"));
        let mut tar = vec![0; 600];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(message(&tar).contains("tar archive"));
    }
}
