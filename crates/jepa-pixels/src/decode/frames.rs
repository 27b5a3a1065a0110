//! How many pictures a file has, told from its structure without decoding them.

use super::{Format, Note};

/// A note when the file has more than the one picture that is taken.
pub(super) fn note(format: Format, bytes: &[u8]) -> Option<Note> {
    let frames = match format {
        Format::Gif => gif(bytes),
        Format::Png => png(bytes),
        Format::WebP => webp(bytes),
        Format::Tiff => {
            let pages = tiff(bytes);
            return (pages > 1).then_some(Note::FirstPage { format, pages });
        }
        Format::Jpeg | Format::Bmp => 1,
    };
    (frames > 1).then_some(Note::FirstFrame { format, frames })
}

/// Walks the blocks and counts image descriptors.
fn gif(bytes: &[u8]) -> u64 {
    let colors = |flags: u8| if flags & 0x80 != 0 { 3 << ((flags & 7) + 1) } else { 0 };
    let sub_blocks = |mut at: usize| {
        loop {
            match *bytes.get(at)? {
                0 => return Some(at + 1),
                n => at += 1 + usize::from(n),
            }
        }
    };
    let walk = |frames: &mut u64| -> Option<()> {
        let mut at = 13 + colors(*bytes.get(10)?);
        loop {
            at = match *bytes.get(at)? {
                0x21 => sub_blocks(at + 2)?,
                0x2C => {
                    *frames += 1;
                    sub_blocks(at + 11 + colors(*bytes.get(at + 9)?))?
                }
                _ => return None,
            };
        }
    };
    let mut frames = 0;
    walk(&mut frames);
    frames
}

/// The frame count of an APNG's control chunk, which stands before the picture data.
fn png(bytes: &[u8]) -> u64 {
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let [l3, l2, l1, l0, kind @ ..] = rest
        && let Some((kind, data)) = kind.split_first_chunk::<4>()
    {
        match kind {
            b"acTL" => return data.first_chunk().map_or(1, |&n| u64::from(u32::from_be_bytes(n))),
            b"IDAT" | b"IEND" => break,
            _ => {}
        }
        let length = u32::from_be_bytes([*l3, *l2, *l1, *l0]) as usize;
        rest = data.get(length.saturating_add(4)..).unwrap_or_default();
    }
    1
}

/// Counts the frame chunks of the RIFF container.
fn webp(bytes: &[u8]) -> u64 {
    let mut rest = bytes.get(12..).unwrap_or_default();
    let mut frames = 0;
    while let Some((kind, data)) = rest.split_first_chunk::<4>()
        && let Some((&length, data)) = data.split_first_chunk::<4>()
    {
        frames += u64::from(kind == b"ANMF");
        let length = u32::from_le_bytes(length) as usize;
        rest = data.get(length.saturating_add(length % 2)..).unwrap_or_default();
    }
    frames
}

/// Follows the chain of directories of a classic TIFF; 1 for BigTIFF.
fn tiff(bytes: &[u8]) -> u64 {
    let little = match bytes.first_chunk::<4>() {
        Some(b"II\x2A\0") => true,
        Some(b"MM\0\x2A") => false,
        _ => return 1,
    };
    let u16_at = |at: usize| {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let u32_at = |at: usize| {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let mut pages = 0;
    let mut directory = u32_at(4).unwrap_or(0) as usize;
    // A directory has at least 6 bytes, so a chain with more than this is a circle.
    let most = bytes.len() as u64 / 6;
    while directory != 0 && pages < most {
        let Some(entries) = u16_at(directory) else { break };
        pages += 1;
        directory = u32_at(directory + 2 + 12 * usize::from(entries)).unwrap_or(0) as usize;
    }
    pages
}
