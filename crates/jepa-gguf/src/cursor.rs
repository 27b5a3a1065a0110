//! Bounded little-endian reads: the only place that cuts raw file bytes.

use crate::error::GgufError;

/// `len` bytes from byte `at`, or `None` when they are not all there.
pub(crate) fn cut(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    bytes.get(start..end)
}

/// A read that the bytes do not cover.
#[derive(Debug)]
pub(crate) struct Short {
    /// Where the read started.
    pub(crate) at: u64,
    /// Bytes it needs.
    pub(crate) wanted: u64,
    /// Length of the bytes.
    pub(crate) end: u64,
}

impl Short {
    /// Turns the failed read into an error that names `section`.
    pub(crate) fn section(self, section: String) -> GgufError {
        GgufError::Truncated { section, at: self.at, wanted: self.wanted, end: self.end }
    }
}

/// A position in a byte slice.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> Cursor<'a> {
    /// Starts at byte 0.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The byte that is read next.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> u64 {
        self.bytes.len() as u64 - self.at
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], Short> {
        let short = Short { at: self.at, wanted: len, end: self.bytes.len() as u64 };
        let taken = cut(self.bytes, self.at, len).ok_or(short)?;
        self.at += len;
        Ok(taken)
    }

    /// The bytes up to the next line feed, which is passed over; `None` when there is none.
    pub(crate) fn line(&mut self) -> Option<&'a [u8]> {
        let rest = cut(self.bytes, self.at, self.remaining())?;
        let len = rest.iter().position(|&b| b == b'\n')?;
        self.at += len as u64 + 1;
        rest.get(..len)
    }

    /// The next `N` bytes as an array.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let taken = self.take(N as u64)?;
        Ok(taken.try_into().expect("take returns as many bytes as it was asked for"))
    }

    /// The next byte.
    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[b]| b)
    }

    /// The next four bytes as a number.
    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes as a number.
    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_to_read_past_the_end_and_stays_where_it_is() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.u8().unwrap(), 1);
        assert!(cursor.u32().is_err());
        assert!(cursor.take(u64::MAX).is_err());
        assert_eq!(cursor.position(), 1);
        assert_eq!(cursor.remaining(), 2);
    }

    #[test]
    fn cut_survives_sums_that_wrap() {
        assert!(cut(&[0; 8], u64::MAX, u64::MAX).is_none());
        assert!(cut(&[0; 8], 8, 1).is_none());
        assert_eq!(cut(&[0; 8], 8, 0), Some(&[][..]));
    }
}
