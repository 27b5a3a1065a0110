//! Zip archives of stored entries, as `torch.save` writes them.
//!
//! Only what such an archive needs is read: the directory at its end, with 64-bit sizes, and where the data of each entry starts. Compressed and
//! encrypted entries and archives in parts are refused.

use std::collections::HashMap;

use crate::checkpoint::CheckpointError;
use crate::checkpoint::error::shown;
use crate::cursor::{Cursor, Short, cut};

/// Part of the archive that messages name.
const DIRECTORY: &str = "directory";
/// Bytes of the record that ends an archive, without its comment.
const END_BYTES: usize = 22;
/// Bytes of the record that points to the 64-bit end record.
const LOCATOR_BYTES: u64 = 20;
/// Bytes of a directory entry without its name.
const ENTRY_BYTES: u64 = 46;
/// Bytes of the header before an entry's data, without the name.
const LOCAL_BYTES: u64 = 30;
/// Tag of the extra field with 64-bit sizes.
const WIDE_SIZES: u16 = 1;

/// Where the data of an entry lies in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) at: u64,
    /// Bytes, as they are stored.
    pub(super) len: u64,
}

/// The entries of an archive by name.
#[derive(Debug)]
pub(super) struct Archive<'a> {
    bytes: &'a [u8],
    entries: HashMap<&'a str, Range>,
    /// The first entry that is compressed, and its method.
    compressed: Option<(&'a str, u16)>,
}

/// Where the directory lies, and how many entries it has.
struct Directory {
    at: u64,
    len: u64,
    entries: u64,
}

impl<'a> Archive<'a> {
    /// Reads the directory of `bytes`, a whole archive.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, CheckpointError> {
        let directory = directory(bytes)?;
        let refuse = |problem| broken(DIRECTORY, problem);
        let listed = cut(bytes, directory.at, directory.len)
            .ok_or_else(|| refuse("lies outside the file; the file is damaged or an incomplete download"))?;
        if directory.entries > directory.len / ENTRY_BYTES {
            return Err(refuse("counts more entries than it has room for"));
        }
        let mut cursor = Cursor::new(listed);
        let mut entries = HashMap::new();
        let mut compressed = None;
        for _ in 0..directory.entries {
            let (name, range, method) = entry(bytes, &mut cursor, directory.at)?;
            if method != 0 {
                compressed = compressed.or(Some((name, method)));
            }
            if entries.insert(name, range).is_some() {
                return Err(broken(name, "appears twice"));
            }
        }
        match cursor.remaining() {
            0 => Ok(Self { bytes, entries, compressed }),
            _ => Err(refuse("has bytes behind its last entry")),
        }
    }

    /// Refuses an archive with compressed entries, whose ranges are of no use.
    pub(super) fn check_stored(&self) -> Result<(), CheckpointError> {
        match self.compressed {
            None => Ok(()),
            Some((entry, method)) => Err(CheckpointError::Compressed { entry: shown(entry), method }),
        }
    }

    /// The names of the entries.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.keys().copied()
    }

    /// Where an entry lies.
    pub(super) fn range(&self, name: &str) -> Option<Range> {
        self.entries.get(name).copied()
    }

    /// The data of an entry.
    pub(super) fn data(&self, name: &str) -> Option<&'a [u8]> {
        let range = self.range(name)?;
        cut(self.bytes, range.at, range.len)
    }
}

fn broken(entry: &str, problem: &'static str) -> CheckpointError {
    CheckpointError::Archive { entry: shown(entry), problem }
}

fn short(s: Short) -> CheckpointError {
    let part = "zip archive, directory".to_owned();
    CheckpointError::Truncated { part, at: s.at, wanted: s.wanted, end: s.end }
}

/// Finds the record at the end of the archive, behind which only a comment of the stated length may follow.
fn directory(bytes: &[u8]) -> Result<Directory, CheckpointError> {
    let longest = END_BYTES + usize::from(u16::MAX);
    let from = bytes.len().saturating_sub(longest);
    let tail = &bytes[from..];
    let is_end = |at: &usize| {
        let record = tail.get(*at..).unwrap_or_default();
        let comment = record.get(END_BYTES - 2..END_BYTES).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]])));
        record.starts_with(b"PK\x05\x06") && comment.is_some_and(|len| record.len() == END_BYTES + len)
    };
    let at = (0..tail.len()).rev().find(is_end).ok_or_else(|| {
        broken(DIRECTORY, "is missing at the end of the file; the file is damaged or an incomplete download")
    })?;
    let mut end = Cursor::new(tail.get(at..).unwrap_or_default());
    end.take(4).map_err(short)?;
    let (disk, first_disk) = (u16(&mut end)?, u16(&mut end)?);
    let (here, entries) = (u16(&mut end)?, u16(&mut end)?);
    let (len, start) = (end.u32().map_err(short)?, end.u32().map_err(short)?);
    if entries == u16::MAX || len == u32::MAX || start == u32::MAX {
        return wide_directory(bytes, (from + at) as u64);
    }
    if (disk, first_disk) != (0, 0) || here != entries {
        return Err(broken(DIRECTORY, "belongs to an archive in several parts"));
    }
    Ok(Directory { at: start.into(), len: len.into(), entries: entries.into() })
}

/// The 64-bit record, which a locator before the end record at byte `end` points to.
fn wide_directory(bytes: &[u8], end: u64) -> Result<Directory, CheckpointError> {
    let refuse = |problem| broken("64-bit directory", problem);
    let missing = || refuse("is missing");
    let locator = end.checked_sub(LOCATOR_BYTES).and_then(|at| cut(bytes, at, LOCATOR_BYTES)).ok_or_else(missing)?;
    let mut locator = Cursor::new(locator);
    if locator.array().map_err(short)? != *b"PK\x06\x07" {
        return Err(missing());
    }
    locator.take(4).map_err(short)?;
    let at = locator.u64().map_err(short)?;
    let mut record = Cursor::new(cut(bytes, at, 56).ok_or_else(missing)?);
    if record.array().map_err(short)? != *b"PK\x06\x06" {
        return Err(missing());
    }
    // Its length and two versions.
    record.take(8 + 2 + 2).map_err(short)?;
    let (disk, first_disk) = (record.u32().map_err(short)?, record.u32().map_err(short)?);
    let (here, entries) = (record.u64().map_err(short)?, record.u64().map_err(short)?);
    let (len, at) = (record.u64().map_err(short)?, record.u64().map_err(short)?);
    if (disk, first_disk) != (0, 0) || here != entries {
        return Err(refuse("belongs to an archive in several parts"));
    }
    Ok(Directory { at, len, entries })
}

/// The next entry of the directory, which itself starts at byte `end` of the archive, with its compression method.
fn entry<'a>(bytes: &[u8], cursor: &mut Cursor<'a>, end: u64) -> Result<(&'a str, Range, u16), CheckpointError> {
    if cursor.array().map_err(short)? != *b"PK\x01\x02" {
        return Err(broken(DIRECTORY, "has an entry without its signature"));
    }
    // Two versions.
    cursor.take(4).map_err(short)?;
    let (flags, method) = (u16(cursor)?, u16(cursor)?);
    // Time, date, checksum.
    cursor.take(8).map_err(short)?;
    let (packed, len) = (cursor.u32().map_err(short)?, cursor.u32().map_err(short)?);
    let (name_len, extra_len, comment_len) = (u16(cursor)?, u16(cursor)?, u16(cursor)?);
    // Disk, attributes.
    cursor.take(2 + 2 + 4).map_err(short)?;
    let at = cursor.u32().map_err(short)?;
    let name = cursor.take(name_len.into()).map_err(short)?;
    let name = std::str::from_utf8(name).map_err(|_| broken(DIRECTORY, "has a name that is not utf-8"))?;
    let extra = cursor.take(extra_len.into()).map_err(short)?;
    cursor.take(comment_len.into()).map_err(short)?;

    let [len, packed, at] =
        wide_sizes(extra, [len, packed, at]).ok_or_else(|| broken(name, "lacks the 64-bit sizes that it announces"))?;
    if flags & 1 != 0 {
        return Err(broken(name, "is encrypted"));
    }
    if method == 0 && len != packed {
        return Err(broken(name, "is stored in another length than its own"));
    }
    let outside = || broken(name, "lies outside the file or reaches into the directory");
    let local = cut(bytes, at, LOCAL_BYTES).ok_or_else(outside)?;
    let (names, own) = local.split_at(26);
    if !names.starts_with(b"PK\x03\x04") {
        return Err(broken(name, "has no header where the directory puts it"));
    }
    let own = [[own[0], own[1]], [own[2], own[3]]].map(u16::from_le_bytes);
    if cut(bytes, at + LOCAL_BYTES, own[0].into()) != Some(name.as_bytes()) {
        return Err(broken(name, "has another name in its own header"));
    }
    let at = at + LOCAL_BYTES + u64::from(own[0]) + u64::from(own[1]);
    match at.checked_add(packed).is_some_and(|last| last <= end) {
        true => Ok((name, Range { at, len: packed }, method)),
        false => Err(outside()),
    }
}

/// Replaces each size of 2^32 - 1 by the 64-bit one in the extra fields, where they stand in the same order.
fn wide_sizes(extra: &[u8], sizes: [u32; 3]) -> Option<[u64; 3]> {
    let mut wide = sizes.map(u64::from);
    if !sizes.contains(&u32::MAX) {
        return Some(wide);
    }
    let mut fields = Cursor::new(extra);
    loop {
        let (tag, len) = (fields.array().ok()?, fields.array().ok()?);
        let field = fields.take(u16::from_le_bytes(len).into()).ok()?;
        if u16::from_le_bytes(tag) == WIDE_SIZES {
            let mut field = Cursor::new(field);
            for (wide, _) in wide.iter_mut().zip(sizes).filter(|(_, narrow)| *narrow == u32::MAX) {
                *wide = field.u64().ok()?;
            }
            return Some(wide);
        }
    }
}

fn u16(cursor: &mut Cursor<'_>) -> Result<u16, CheckpointError> {
    cursor.array().map(u16::from_le_bytes).map_err(short)
}
