//! Huffman tables and the bit reader of entropy-coded segments.

use super::Fault;

/// Codes up to this length are found with one look-up.
const LOOKUP_BITS: u32 = 9;

/// A Huffman table ready for decoding.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// By the next `LOOKUP_BITS` bits: length of the code and its symbol; length 0 where the code is longer.
    lookup: Box<[(u8, u8); 1 << LOOKUP_BITS]>,
    /// Per length 1..=16: one past the last code of that length or shorter, left-aligned in 16 bits.
    limits: [u32; 17],
    /// Per length: what to add to a code (modulo 2³²) to get its place in `symbols`.
    offsets: [u32; 17],
    symbols: Vec<u8>,
}

impl Table {
    /// A table from the DHT segment's 16 counts and its symbols; `None` when the counts do not describe a prefix code.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            lookup: Box::new([(0, 0); 1 << LOOKUP_BITS]),
            limits: [0; 17],
            offsets: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut place) = (0u32, 0u32);
        for length in 1..=16u32 {
            let count = u32::from(counts[length as usize - 1]);
            if code + count > 1 << length {
                return None;
            }
            table.offsets[length as usize] = place.wrapping_sub(code);
            if length <= LOOKUP_BITS {
                for c in code..code + count {
                    let symbol = *symbols.get((place + c - code) as usize)?;
                    let shift = LOOKUP_BITS - length;
                    table.lookup[(c << shift) as usize..((c + 1) << shift) as usize].fill((length as u8, symbol));
                }
            }
            code += count;
            place += count;
            table.limits[length as usize] = code << (16 - length);
            code <<= 1;
        }
        (place as usize == symbols.len()).then_some(table)
    }

    /// Whether every symbol is a bit count that a DC difference can have.
    pub(super) fn fits_dc(&self) -> bool {
        self.symbols.iter().all(|&s| s <= 15)
    }
}

/// Reads bits up to the next marker and zeros after it; [`BitReader::ran_dry`] tells whether such zeros were used.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    data: &'a [u8],
    at: usize,
    /// The next bits, left-aligned. Bits below `count` may already hold data but are not counted.
    buffer: u64,
    count: u32,
    /// Zeros appended after the end of the data.
    padding: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(data: &'a [u8], at: usize) -> Self {
        Self { data, at, buffer: 0, count: 0, padding: 0 }
    }

    /// Whether more bits were taken than the segment has.
    pub(super) fn ran_dry(&self) -> bool {
        self.padding > self.count
    }

    /// The next symbol of `table`.
    #[inline]
    pub(super) fn symbol(&mut self, table: &Table) -> Result<u8, Fault> {
        self.fill();
        let (length, symbol) = table.lookup[(self.buffer >> (64 - LOOKUP_BITS)) as usize];
        if length != 0 {
            self.skip(u32::from(length));
            return Ok(symbol);
        }
        let next = (self.buffer >> 48) as u32;
        let length = (LOOKUP_BITS + 1..=16).find(|&l| next < table.limits[l as usize]).ok_or(Fault::UnknownCode)?;
        self.skip(length);
        let place = (next >> (16 - length)).wrapping_add(table.offsets[length as usize]);
        table.symbols.get(place as usize).copied().ok_or(Fault::UnknownCode)
    }

    /// A number of `size` bits (0..=15) in the format's signed form: a leading 0 bit means negative.
    #[inline]
    pub(super) fn signed(&mut self, size: u8) -> i32 {
        if size == 0 {
            return 0;
        }
        let value = self.bits(size) as i32;
        if value >> (size - 1) == 0 { value - (1 << size) + 1 } else { value }
    }

    /// The next `size` bits (0..=15) as a number.
    #[inline]
    pub(super) fn bits(&mut self, size: u8) -> u32 {
        if size == 0 {
            return 0;
        }
        self.fill();
        let value = (self.buffer >> (64 - u32::from(size))) as u32;
        self.skip(u32::from(size));
        value
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.buffer <<= bits;
        self.count -= bits;
    }

    /// Makes at least 16 bits available.
    #[inline]
    fn fill(&mut self) {
        if self.count < 16 {
            self.refill();
        }
    }

    fn refill(&mut self) {
        if let Some(bytes) = self.data.get(self.at..).and_then(|d| d.first_chunk::<8>()) {
            let word = u64::from_be_bytes(*bytes);
            let inverse = !word;
            // No byte of `word` is 0xFF, so none is an escape or a marker.
            if inverse.wrapping_sub(0x0101_0101_0101_0101) & !inverse & 0x8080_8080_8080_8080 == 0 {
                self.buffer |= word >> self.count;
                self.at += (63 - self.count as usize) / 8;
                self.count |= 56;
                return;
            }
        }
        while self.count <= 56 {
            match (self.data.get(self.at), self.data.get(self.at + 1)) {
                (Some(0xFF), Some(0)) => {
                    self.push(0xFF);
                    self.at += 2;
                }
                // Fill bytes may stand before the second byte of an escape or a marker.
                (Some(0xFF), Some(0xFF)) => self.at += 1,
                (Some(0xFF), _) | (None, _) => {
                    self.padding += 64 - self.count;
                    self.count = 64;
                    return;
                }
                (Some(&byte), _) => {
                    self.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn push(&mut self, byte: u8) {
        self.buffer |= u64::from(byte) << (56 - self.count);
        self.count += 8;
    }

    /// Drops what is left of the segment and passes restart marker `number` (0..=7).
    pub(super) fn restart(&mut self, number: u8) -> Result<(), Fault> {
        let at = self.end();
        match self.data.get(at + 1) {
            Some(&marker) if marker == 0xD0 + number => {
                *self = Self::new(self.data, at + 2);
                Ok(())
            }
            Some(_) => Err(Fault::NoRestart),
            None => Err(Fault::Dry),
        }
    }

    /// Where the segment's closing marker stands: its 0xFF byte, or the end of the data.
    pub(super) fn end(&self) -> usize {
        let rest = &self.data[self.at.min(self.data.len())..];
        let marker = rest.windows(2).position(|w| w[0] == 0xFF && w[1] != 0 && w[1] != 0xFF);
        marker.map_or(self.data.len(), |offset| self.at + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_short_and_long_codes() {
        // Lengths 1, 2, …, 12 with one code each: 0, 10, 110, …
        let mut counts = [0u8; 16];
        counts[..12].fill(1);
        let table = Table::new(&counts, &(0..12).collect::<Vec<u8>>()).unwrap();
        // 0 | 110 | 11111111110 (11 bits) | padding
        let data = [0b0110_1111, 0b1111_1100, 0, 0, 0, 0, 0, 0, 0];
        let mut bits = BitReader::new(&data, 0);
        assert_eq!([0; 3].map(|_: u8| bits.symbol(&table).unwrap()), [0, 2, 10]);
    }

    #[test]
    fn refuses_counts_that_are_no_prefix_code() {
        let mut counts = [0u8; 16];
        counts[0] = 3;
        assert!(Table::new(&counts, &[1, 2, 3]).is_none());
        counts[0] = 1;
        assert!(Table::new(&counts, &[1, 2]).is_none());
    }

    #[test]
    fn stops_at_markers_and_says_so() {
        let data = [0xAB, 0xFF, 0x00, 0xFF, 0xD9];
        let mut bits = BitReader::new(&data, 0);
        assert_eq!((bits.bits(8), bits.bits(8)), (0xAB, 0xFF));
        assert!(!bits.ran_dry());
        assert_eq!((bits.bits(1), bits.ran_dry(), bits.end()), (0, true, 3));
    }

    #[test]
    fn negative_numbers_have_a_leading_zero() {
        let data = [0b0001_1100, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut bits = BitReader::new(&data, 0);
        assert_eq!((bits.signed(3), bits.signed(3)), (-7, 7));
    }
}
