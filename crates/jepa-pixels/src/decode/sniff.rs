//! What a file is, by its first bytes.

use super::Format;
use crate::PixelError;

/// As many bytes as [`format`] looks at.
pub(super) const HEAD_BYTES: usize = 512;

const CONVERT: &str = "convert it to PNG or JPEG";
const FRAMES: &str = "extract its frames as pictures first";

/// The picture format of `bytes`, or why they are none.
pub(super) fn format(bytes: &[u8]) -> Result<Format, PixelError> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    if let Some(format) = known(head) {
        return Ok(format);
    }
    if let Some((what, next)) = unsupported(head) {
        return Err(PixelError::Unsupported { what: what.into(), next });
    }
    Err(PixelError::NotAPicture { found: describe(head) })
}

fn known(head: &[u8]) -> Option<Format> {
    match head {
        [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::WebP),
        // The size of the second header keeps texts that begin with "BM" out.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, 12 | 16 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some(Format::Bmp)
        }
        _ if head.starts_with(b"\x89PNG\r\n\x1a\n") => Some(Format::Png),
        _ if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") => Some(Format::Gif),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Format::Tiff),
        _ => None,
    }
}

fn unsupported(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if let [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] = head {
        return Some(match brand.first_chunk::<4>() {
            Some(b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"mif1" | b"msf1") => ("HEIC", CONVERT),
            Some(b"avif" | b"avis") => ("AVIF", CONVERT),
            Some(b"crx ") => ("Canon raw (CR3)", CONVERT),
            Some(b"qt  ") => ("QuickTime video", FRAMES),
            _ => ("MP4 video", FRAMES),
        });
    }
    const MAGICS: [(&[u8], &str, &str); 17] = [
        (b"\xFF\x0A", "JPEG XL", CONVERT),
        (b"\0\0\0\x0CJXL \r\n\x87\n", "JPEG XL", CONVERT),
        (b"\xFF\x4F\xFF\x51", "JPEG 2000", CONVERT),
        (b"\0\0\0\x0CjP  \r\n\x87\n", "JPEG 2000", CONVERT),
        (b"8BPS", "PSD (Photoshop)", CONVERT),
        (b"%PDF-", "PDF", CONVERT),
        (b"%!PS", "PostScript", CONVERT),
        (b"\0\0\x01\0", "ICO", CONVERT),
        (b"\x76\x2F\x31\x01", "OpenEXR", CONVERT),
        (b"#?RADIANCE", "Radiance HDR", CONVERT),
        (b"DDS ", "DDS", CONVERT),
        (b"qoif", "QOI", CONVERT),
        (b"farbfeld", "farbfeld", CONVERT),
        (b"\x1A\x45\xDF\xA3", "Matroska or WebM video", FRAMES),
        (b"OggS", "Ogg video", FRAMES),
        (b"FLV\x01", "Flash video", FRAMES),
        (b"\0\0\x01\xBA", "MPEG video", FRAMES),
    ];
    if let Some(&(_, what, next)) = MAGICS.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Some((what, next));
    }
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..] => return Some(("AVI video", FRAMES)),
        [b'P', b'1'..=b'7', b' ' | b'\n' | b'\r' | b'\t', ..] => return Some(("PNM (PBM, PGM, PPM)", CONVERT)),
        // MPEG transport streams have a sync byte every 188 bytes.
        [0x47, rest @ ..] if rest.get(187) == Some(&0x47) => return Some(("MPEG video", FRAMES)),
        _ => {}
    }
    let text = String::from_utf8_lossy(head).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    let svg = text.starts_with("<svg") || (text.starts_with("<?xml") && text.contains("<svg"));
    svg.then_some(("SVG", "render it to PNG"))
}

/// For instance `starts with "# Title" (text)`.
fn describe(head: &[u8]) -> String {
    if head.is_empty() {
        return "the file is empty".into();
    }
    let text = std::str::from_utf8(head).or_else(|e| {
        // The window may cut a character at its end.
        if e.error_len().is_none() { std::str::from_utf8(&head[..e.valid_up_to()]) } else { Err(e) }
    });
    let text = text.ok().filter(|t| !t.is_empty() && !t.chars().any(|c| c.is_control() && !c.is_whitespace()));
    let start = match text {
        Some(text) => format!("{:?}", text.chars().take(16).collect::<String>()),
        None => head.iter().take(8).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "),
    };
    let lower = text.unwrap_or_default().trim_start().to_ascii_lowercase();
    let kind = match head {
        _ if head.iter().all(|&b| b == 0) => " (zeros)",
        _ if head.starts_with(b"GGUF") => " (a GGUF model)",
        _ if head.starts_with(b"\x93NUMPY") => " (a NumPy array)",
        _ if head.starts_with(b"PK\x03\x04") => " (a ZIP archive)",
        _ if head.starts_with(b"\x1F\x8B") => " (gzip data)",
        _ if head.starts_with(b"version https://git-lfs") => " (a Git LFS pointer: fetch the file itself)",
        _ if lower.starts_with("<!doctype html") || lower.starts_with("<html") => " (an HTML page)",
        _ if lower.starts_with('{') || lower.starts_with('[') => " (JSON or similar text)",
        _ if text.is_some() => " (text)",
        _ => "",
    };
    format!("starts with {start}{kind}")
}
