//! Marker segments: tables, frame and scan headers, and the application data that says what the colours mean.

use super::huffman::Table;
use super::{damaged, truncated, unsupported};
use crate::PixelError;

/// The zigzag order of a block's coefficients: place in the file → place in the block, row-major.
pub(super) const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// The next marker's code, its segment (empty for markers without one), and where the data goes on.
pub(super) fn next(bytes: &[u8], from: usize) -> Result<(u8, &[u8], usize), PixelError> {
    // Bytes between segments and fill bytes before a marker are passed over, as libjpeg does.
    let rest = bytes.get(from..).unwrap_or_default();
    let marker = rest.windows(2).position(|w| w[0] == 0xFF && !matches!(w[1], 0x00 | 0xFF));
    let at = from + marker.ok_or_else(|| truncated("it has no end marker"))? + 2;
    let code = bytes[at - 1];
    if matches!(code, 0x01 | 0xD0..=0xD9) {
        return Ok((code, &[], at));
    }
    let rest = &bytes[at..];
    let Some(length) = rest.first_chunk().map(|&n| usize::from(u16::from_be_bytes(n))) else {
        return Err(truncated("it ends in a segment header"));
    };
    if length < 2 {
        return Err(damaged(format!("segment {code:#04x} has length {length}, wanted at least 2")));
    }
    let segment = rest.get(2..length).ok_or_else(|| truncated("it ends inside a segment"))?;
    Ok((code, segment, at + length))
}

/// What the segments seen so far define.
#[derive(Debug, Default)]
pub(super) struct Tables<'a> {
    /// In row-major order.
    pub(super) quantisers: [Option<[u16; 64]>; 4],
    pub(super) dc: [Option<Table>; 4],
    pub(super) ac: [Option<Table>; 4],
    /// Blocks groups between restart markers; 0 for none.
    pub(super) restart_interval: usize,
    pub(super) jfif: bool,
    /// The colour transform flag of an Adobe segment.
    pub(super) adobe: Option<u8>,
    /// A TIFF structure.
    pub(super) exif: Option<&'a [u8]>,
    /// An XMP packet.
    pub(super) xmp: Option<&'a [u8]>,
}

impl<'a> Tables<'a> {
    /// Takes in a segment that is neither a frame nor a scan header. Segments of no interest are passed over.
    pub(super) fn read(&mut self, code: u8, segment: &'a [u8]) -> Result<(), PixelError> {
        match code {
            0xDB => self.quantisation(segment),
            0xC4 => self.huffman(segment),
            0xDD => {
                let interval =
                    segment.try_into().map_err(|_| damaged("restart interval segment has a wrong length"))?;
                self.restart_interval = usize::from(u16::from_be_bytes(interval));
                Ok(())
            }
            0xE0 => {
                self.jfif |= segment.len() >= 14 && segment.starts_with(b"JFIF\0");
                Ok(())
            }
            0xE1 => {
                if let Some(exif) = segment.strip_prefix(b"Exif\0\0") {
                    self.exif.get_or_insert(exif);
                } else if let Some(xmp) = segment.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0") {
                    self.xmp.get_or_insert(xmp);
                }
                Ok(())
            }
            0xEE => {
                if let Some(adobe) = segment.strip_prefix(b"Adobe").filter(|s| s.len() >= 7) {
                    self.adobe = Some(adobe[6]);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn quantisation(&mut self, mut segment: &[u8]) -> Result<(), PixelError> {
        while let Some((&head, rest)) = segment.split_first() {
            let (wide, slot) = (head >> 4, usize::from(head & 15));
            let length = if wide == 0 { 64 } else { 128 };
            if wide > 1 || slot > 3 || rest.len() < length {
                return Err(damaged(format!("quantisation table {slot} of precision {wide} has {} bytes", rest.len())));
            }
            let (values, rest) = rest.split_at(length);
            let mut table = [0u16; 64];
            for (i, &place) in ZIGZAG.iter().enumerate() {
                table[usize::from(place)] = match wide {
                    0 => u16::from(values[i]),
                    _ => u16::from_be_bytes([values[2 * i], values[2 * i + 1]]),
                };
            }
            self.quantisers[slot] = Some(table);
            segment = rest;
        }
        Ok(())
    }

    fn huffman(&mut self, mut segment: &[u8]) -> Result<(), PixelError> {
        while let Some((&head, rest)) = segment.split_first() {
            let (class, slot) = (head >> 4, usize::from(head & 15));
            let wrong = || damaged(format!("Huffman table {slot} of class {class} is not a prefix code"));
            let (counts, rest) = rest.split_first_chunk::<16>().ok_or_else(wrong)?;
            let total = counts.iter().map(|&n| usize::from(n)).sum();
            if class > 1 || slot > 3 || total > 256 || rest.len() < total {
                return Err(wrong());
            }
            let (symbols, rest) = rest.split_at(total);
            let table = Table::new(counts, symbols).ok_or_else(wrong)?;
            if class == 0 && !table.fits_dc() {
                return Err(wrong());
            }
            let slots = if class == 0 { &mut self.dc } else { &mut self.ac };
            slots[slot] = Some(table);
            segment = rest;
        }
        Ok(())
    }
}

/// The frame header.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) progressive: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    /// 1, 3 or 4.
    pub(super) components: Vec<Component>,
    /// Largest sampling factors.
    pub(super) max_h: usize,
    pub(super) max_v: usize,
}

/// One component of the frame.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Sampling factors, 1..=4.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Slot of its quantisation table.
    pub(super) quantiser: usize,
}

impl Frame {
    /// Reads the header with marker `code` (SOF0 to SOF15).
    pub(super) fn read(code: u8, segment: &[u8]) -> Result<Self, PixelError> {
        const RESAVE: &str = "save it as an ordinary JPEG or PNG";
        match code {
            0xC0..=0xC2 => {}
            0xC3 => return Err(unsupported("lossless JPEG", RESAVE)),
            0xC5..=0xC7 => return Err(unsupported("hierarchical JPEG", RESAVE)),
            _ => return Err(unsupported("arithmetic-coded JPEG", RESAVE)),
        }
        let &[precision, h1, h0, w1, w0, count, ref rest @ ..] = segment else {
            return Err(damaged("frame header is too short"));
        };
        if precision != 8 {
            return Err(unsupported("JPEG with more than 8 bits per sample", RESAVE));
        }
        let (height, width) = (usize::from(u16::from_be_bytes([h1, h0])), usize::from(u16::from_be_bytes([w1, w0])));
        if height == 0 && width != 0 {
            return Err(unsupported("JPEG that states its height after the picture", RESAVE));
        }
        if width == 0 {
            return Err(PixelError::EmptyPicture { width, height });
        }
        if !matches!(count, 1 | 3 | 4) {
            return Err(unsupported("JPEG with other than 1, 3 or 4 components", RESAVE));
        }
        if rest.len() != 3 * usize::from(count) {
            return Err(damaged("frame header has a wrong length"));
        }
        let (rest, _) = rest.as_chunks::<3>();
        let mut components: Vec<Component> = Vec::with_capacity(rest.len());
        for &[id, sampling, quantiser] in rest {
            let (h, v) = (usize::from(sampling >> 4), usize::from(sampling & 15));
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) || quantiser > 3 {
                return Err(damaged(format!("component {id}: sampling {h}x{v}, quantisation table {quantiser}")));
            }
            if components.iter().any(|c| c.id == id) {
                return Err(damaged(format!("two components with id {id}")));
            }
            components.push(Component { id, h, v, quantiser: usize::from(quantiser) });
        }
        let max_h = components.iter().map(|c| c.h).max().unwrap_or(1);
        let max_v = components.iter().map(|c| c.v).max().unwrap_or(1);
        if components.iter().any(|c| max_h % c.h != 0 || max_v % c.v != 0) {
            return Err(unsupported("JPEG with fractional subsampling", RESAVE));
        }
        Ok(Self { progressive: code == 0xC2, width, height, components, max_h, max_v })
    }
}

/// A scan header: which coefficients of which components follow.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) parts: Vec<Part>,
    /// First and last coefficient, in zigzag order.
    pub(super) first: usize,
    pub(super) last: usize,
    /// The lowest bit that earlier scans sent, 0 in the first scan of a coefficient.
    pub(super) high: u8,
    /// The lowest bit that this scan sends.
    pub(super) low: u8,
}

/// One component of a scan.
#[derive(Debug)]
pub(super) struct Part {
    /// Index into the frame's components.
    pub(super) component: usize,
    /// Slots of its Huffman tables.
    pub(super) dc: usize,
    pub(super) ac: usize,
}

impl Scan {
    /// Reads a scan header for `frame`.
    pub(super) fn read(segment: &[u8], frame: &Frame) -> Result<Self, PixelError> {
        let Some((&count, rest)) = segment.split_first() else {
            return Err(damaged("scan header is too short"));
        };
        let count = usize::from(count);
        if !(1..=4).contains(&count) || rest.len() != 2 * count + 3 {
            return Err(damaged("scan header has a wrong length"));
        }
        let (selectors, rest) = rest.split_at(2 * count);
        let mut parts: Vec<Part> = Vec::with_capacity(count);
        for selector in selectors.as_chunks::<2>().0 {
            let (id, dc, ac) = (selector[0], usize::from(selector[1] >> 4), usize::from(selector[1] & 15));
            let component = frame.components.iter().position(|c| c.id == id);
            let component = component.ok_or_else(|| damaged(format!("scan of unknown component {id}")))?;
            if dc > 3 || ac > 3 || parts.iter().any(|p| p.component == component) {
                return Err(damaged(format!("scan names component {id} twice, or tables {dc}, {ac}")));
            }
            parts.push(Part { component, dc, ac });
        }
        let (first, last) = (usize::from(rest[0]), usize::from(rest[1]));
        let (high, low) = (rest[2] >> 4, rest[2] & 15);
        if frame.progressive {
            let band = if first == 0 { last == 0 } else { count == 1 && (first..64).contains(&last) };
            if !band || low > 13 || (high != 0 && high != low + 1) {
                return Err(damaged(format!("progressive scan of coefficients {first}-{last}, bits {high}-{low}")));
            }
            return Ok(Self { parts, first, last, high, low });
        }
        // A sequential scan has no choice here; libjpeg warns of other values and ignores them.
        Ok(Self { parts, first: 0, last: 63, high: 0, low: 0 })
    }
}
