//! A JPEG decoder whose pixels are libjpeg-turbo's, bit for bit.
//!
//! Every reference processor reads JPEG files through libjpeg-turbo with its defaults. Where the standard leaves freedom
//! its choices are ours: the integer transform ([`idct`]), the interpolation of subsampled colour ([`upsample`]) and the
//! fixed-point colour conversion ([`colour`]); other decoders differ by up to 8 levels.
//!
//! Read: baseline, extended and progressive Huffman files of 8 bits with 1, 3 or 4 components, restart markers, and every
//! sampling whose ratios are whole. Refused by name: arithmetic, lossless, hierarchical, 12-bit files. Damaged entropy
//! data and missing ends are errors, where libjpeg warns and paints gray. libjpeg smooths the blocks of a progressive file
//! that closes properly without its last scans; such files are shown as they are sent.

mod colour;
mod huffman;
mod idct;
mod markers;
mod scan;
mod upsample;

use colour::Colour;
use huffman::{BitReader, Table};
use markers::{Frame, Part, Scan, Tables};
use scan::{Block, Order};
use upsample::{Scratch, Stretch};

use super::{Format, Limits};
use crate::{PixelError, Rgb8};

/// Scans that one picture may have. Encoders write about ten; each costs a visit of every block, however few bytes it has.
const MAX_SCANS: usize = 256;

/// A decoded file and the metadata that may hold its orientation.
#[derive(Debug)]
pub(super) struct Jpeg<'a> {
    pub(super) picture: Rgb8,
    /// A TIFF structure.
    pub(super) exif: Option<&'a [u8]>,
    /// An XMP packet.
    pub(super) xmp: Option<&'a [u8]>,
}

/// Decodes the first picture of `bytes`, which start with a JPEG's start marker.
pub(super) fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Jpeg<'a>, PixelError> {
    let mut tables = Tables::default();
    let mut frame: Option<Frame> = None;
    let mut started: Option<Picture> = None;
    let mut at = 2;
    let mut scans = 0;
    loop {
        let (code, segment) = loop {
            let (code, segment, next) = markers::next(bytes, at)?;
            at = next;
            match code {
                0xD8 => return Err(damaged("a second start marker")),
                0xD9 | 0xDA => break (code, segment),
                0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                    if frame.is_some() {
                        return Err(damaged("a second frame header"));
                    }
                    frame = Some(Frame::read(code, segment)?);
                }
                _ => tables.read(code, segment)?,
            }
        };
        let frame = frame.as_ref().ok_or_else(|| damaged("no frame header before the picture"))?;
        if code == 0xD9 {
            let picture = started.ok_or_else(|| damaged("no scan"))?.finish(frame)?;
            return Ok(Jpeg { picture, exif: tables.exif, xmp: tables.xmp });
        }
        scans += 1;
        if scans > MAX_SCANS {
            return Err(damaged(format!("more than {MAX_SCANS} scans")));
        }
        let scan = Scan::read(segment, frame)?;
        let picture = match &mut started {
            Some(picture) => picture,
            None => started.insert(Picture::new(frame, &tables, bytes.len(), limits)?),
        };
        at = picture.scan(frame, &scan, &tables, BitReader::new(bytes, at))?;
    }
}

/// Samples of one component.
#[derive(Debug)]
struct Plane {
    samples: Vec<u8>,
    /// Samples from row to row: a whole number of blocks.
    stride: usize,
    /// Samples that belong to the picture.
    width: usize,
    height: usize,
}

impl Plane {
    fn row(&self, y: usize) -> &[u8] {
        &self.samples[y * self.stride..][..self.width]
    }

    fn put(&mut self, x: usize, y: usize, block: &[u8; 64]) {
        let at = y * 8 * self.stride + x * 8;
        for (row, samples) in block.as_chunks::<8>().0.iter().enumerate() {
            self.samples[at + row * self.stride..][..8].copy_from_slice(samples);
        }
    }
}

/// A component while it is read.
#[derive(Debug)]
struct Canvas {
    plane: Plane,
    /// Blocks that cover the picture, across and down; a scan of this component alone has just these.
    blocks: (usize, usize),
    /// Taken from the tables at the component's first scan; later tables under the same number are for others.
    quantisers: Option<[u16; 64]>,
    /// Progressive files only, `stride / 8` blocks to a row.
    coefficients: Vec<Block>,
    /// Per coefficient in zigzag order: the lowest bit received, 255 for none.
    received: [u8; 64],
}

/// A picture while its scans are read.
#[derive(Debug)]
struct Picture {
    colour: Colour,
    canvases: Vec<Canvas>,
    /// Groups of blocks across and down in a scan of several components.
    groups: (usize, usize),
}

impl Picture {
    fn new(frame: &Frame, tables: &Tables<'_>, file_length: usize, limits: &Limits) -> Result<Self, PixelError> {
        limits.check(frame.width, frame.height)?;
        let ids: Vec<u8> = frame.components.iter().map(|c| c.id).collect();
        let colour = Colour::of(&ids, tables.jfif, tables.adobe).ok_or_else(|| damaged("no known colours"))?;
        let groups = (frame.width.div_ceil(8 * frame.max_h), frame.height.div_ceil(8 * frame.max_v));
        let sizes = frame.components.iter().map(|c| {
            let width = (frame.width * c.h).div_ceil(frame.max_h);
            let height = (frame.height * c.v).div_ceil(frame.max_v);
            (width, height, groups.0 * c.h, groups.1 * c.v)
        });
        // Every block costs at least one bit, so a header cannot promise more than the file holds.
        let blocks: usize = sizes.clone().map(|(width, height, ..)| width.div_ceil(8) * height.div_ceil(8)).sum();
        if blocks > file_length.saturating_mul(8) {
            return Err(truncated("it has fewer bits than blocks"));
        }
        let canvases = sizes.map(|(width, height, across, down)| Canvas {
            plane: Plane { samples: vec![0; across * down * 64], stride: across * 8, width, height },
            blocks: (width.div_ceil(8), height.div_ceil(8)),
            quantisers: None,
            coefficients: vec![[0; 64]; if frame.progressive { across * down } else { 0 }],
            received: [255; 64],
        });
        Ok(Self { colour, canvases: canvases.collect(), groups })
    }

    /// Reads one scan; returns where it ends.
    fn scan(
        &mut self,
        frame: &Frame,
        scan: &Scan,
        tables: &Tables<'_>,
        bits: BitReader<'_>,
    ) -> Result<usize, PixelError> {
        for part in &scan.parts {
            let canvas = &mut self.canvases[part.component];
            let component = &frame.components[part.component];
            if canvas.quantisers.is_none() {
                let table = tables.quantisers[component.quantiser];
                canvas.quantisers = Some(table.ok_or_else(|| missing("quantisation", component.quantiser))?);
            }
            let expected = if scan.high == 0 { 255 } else { scan.high };
            let received = &mut canvas.received[scan.first..=scan.last];
            if received.iter().any(|&bit| bit != expected) {
                return Err(damaged(format!("a scan of component {} is out of order", component.id)));
            }
            received.fill(scan.low);
        }
        let sampling = |part: &Part| (frame.components[part.component].h, frame.components[part.component].v);
        let (across, down, parts) = match scan.parts.as_slice() {
            [part] => {
                let (across, down) = self.canvases[part.component].blocks;
                (across, down, vec![(1, 1)])
            }
            parts => (self.groups.0, self.groups.1, parts.iter().map(sampling).collect()),
        };
        if parts.iter().map(|(h, v)| h * v).sum::<usize>() > 10 {
            return Err(damaged("more than 10 blocks in a group"));
        }
        let order = Order { across, down, parts, restart_interval: tables.restart_interval };
        if frame.progressive {
            self.progressive(scan, tables, bits, &order)
        } else {
            self.sequential(scan, tables, bits, &order)
        }
    }

    fn sequential(
        &mut self,
        scan: &Scan,
        tables: &Tables<'_>,
        bits: BitReader<'_>,
        order: &Order,
    ) -> Result<usize, PixelError> {
        let codes = scan.parts.iter().map(|p| Ok((dc_table(tables, p)?, ac_table(tables, p)?)));
        let codes = codes.collect::<Result<Vec<_>, PixelError>>()?;
        let mut block: Block = [0; 64];
        let end = scan::each_block(bits, order, |bits, carry, part, x, y| {
            let (dc, ac) = codes[part];
            block.fill(0);
            scan::sequential(bits, carry, part, dc, ac, &mut block)?;
            let canvas = &mut self.canvases[scan.parts[part].component];
            let quantisers = canvas.quantisers.as_ref().expect("set at the start of the scan");
            canvas.plane.put(x, y, &idct::inverse(&block, quantisers));
            Ok(())
        });
        Ok(end?)
    }

    fn progressive(
        &mut self,
        scan: &Scan,
        tables: &Tables<'_>,
        bits: BitReader<'_>,
        order: &Order,
    ) -> Result<usize, PixelError> {
        let (band, low) = ((scan.first, scan.last), scan.low);
        let end = match (scan.first, scan.high) {
            (0, 0) => {
                let codes = scan.parts.iter().map(|p| dc_table(tables, p)).collect::<Result<Vec<_>, _>>()?;
                scan::each_block(bits, order, |bits, carry, part, x, y| {
                    scan::first_dc(bits, carry, part, codes[part], low, self.block(&scan.parts[part], x, y))
                })
            }
            (0, _) => scan::each_block(bits, order, |bits, _, part, x, y| {
                scan::refine_dc(bits, low, self.block(&scan.parts[part], x, y));
                Ok(())
            }),
            (_, 0) => {
                let code = ac_table(tables, &scan.parts[0])?;
                scan::each_block(bits, order, |bits, carry, part, x, y| {
                    scan::first_ac(bits, carry, code, band, low, self.block(&scan.parts[part], x, y))
                })
            }
            _ => {
                let code = ac_table(tables, &scan.parts[0])?;
                scan::each_block(bits, order, |bits, carry, part, x, y| {
                    scan::refine_ac(bits, carry, code, band, low, self.block(&scan.parts[part], x, y))
                })
            }
        };
        Ok(end?)
    }

    fn block(&mut self, part: &Part, x: usize, y: usize) -> &mut Block {
        let canvas = &mut self.canvases[part.component];
        &mut canvas.coefficients[y * (canvas.plane.stride / 8) + x]
    }

    /// Transforms what is left, and puts the components together.
    fn finish(mut self, frame: &Frame) -> Result<Rgb8, PixelError> {
        for canvas in &mut self.canvases {
            let Some(quantisers) = canvas.quantisers.filter(|_| canvas.received[0] != 255) else {
                return Err(truncated("a component was never sent"));
            };
            let across = canvas.plane.stride / 8;
            for (i, block) in std::mem::take(&mut canvas.coefficients).iter().enumerate() {
                canvas.plane.put(i % across, i / across, &idct::inverse(block, &quantisers));
            }
        }
        let stretches: Vec<Stretch> = std::iter::zip(&frame.components, &self.canvases)
            .map(|(c, canvas)| Stretch::choose(frame.max_h / c.h, frame.max_v / c.v, canvas.plane.width))
            .collect();
        let mut scratch: [Scratch; 4] = Default::default();
        let mut pixels = vec![0; frame.width * frame.height * 3];
        for (y, out) in pixels.chunks_exact_mut(frame.width * 3).enumerate() {
            let mut rows: [&[u8]; 4] = [&[]; 4];
            let parts = std::iter::zip(&self.canvases, &stretches).zip(&mut scratch).zip(&mut rows);
            for (((canvas, stretch), scratch), row) in parts {
                *row = stretch.row(&canvas.plane, y, scratch);
            }
            self.colour.row(&rows[..self.canvases.len()], out);
        }
        Rgb8::new(frame.width, frame.height, pixels)
    }
}

fn dc_table<'t>(tables: &'t Tables<'_>, part: &Part) -> Result<&'t Table, PixelError> {
    tables.dc[part.dc].as_ref().ok_or_else(|| missing("DC Huffman", part.dc))
}

fn ac_table<'t>(tables: &'t Tables<'_>, part: &Part) -> Result<&'t Table, PixelError> {
    tables.ac[part.ac].as_ref().ok_or_else(|| missing("AC Huffman", part.ac))
}

/// What is wrong inside entropy-coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A bit pattern that no code has.
    UnknownCode,
    /// A run of zeros past the end of the block.
    RunTooLong,
    /// A refinement of more than one bit.
    RefinedTwice,
    /// Another marker, or the wrong number, where a restart is due.
    NoRestart,
    /// More blocks than data.
    Dry,
}

impl From<Fault> for PixelError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::UnknownCode => damaged("a bit pattern that is no code"),
            Fault::RunTooLong => damaged("a run of zeros leaves its block"),
            Fault::RefinedTwice => damaged("a refinement of more than one bit"),
            Fault::NoRestart => damaged("a restart marker is missing"),
            Fault::Dry => truncated("the picture data stop before the last block"),
        }
    }
}

fn damaged(reason: impl Into<String>) -> PixelError {
    PixelError::Damaged { format: Format::Jpeg, reason: reason.into() }
}

fn missing(kind: &str, slot: usize) -> PixelError {
    damaged(format!("{kind} table {slot} is missing"))
}

fn truncated(reason: &'static str) -> PixelError {
    PixelError::Truncated { format: Format::Jpeg, reason }
}

fn unsupported(what: &'static str, next: &'static str) -> PixelError {
    PixelError::Unsupported { what: what.into(), next }
}
