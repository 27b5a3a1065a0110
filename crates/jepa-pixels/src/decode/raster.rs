//! PNG, WebP, GIF, BMP and TIFF through the `image` crate, and what becomes of their samples.

use std::io::Cursor;

use image::codecs::{bmp::BmpDecoder, gif::GifDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder};
use image::error::{ImageError, LimitErrorKind};
use image::{ColorType, ImageDecoder};

use super::{Format, Limits, gif_canvas, orientation};
use crate::{PixelError, Rgb8};

/// The pixels and the orientation (1..=8) of a file of any format but JPEG.
pub(super) fn decode(format: Format, bytes: &[u8], limits: &Limits) -> Result<(Rgb8, u8), PixelError> {
    let mut memory = image::Limits::no_limits();
    memory.max_alloc = Some(limits.max_pixels.saturating_mul(8));
    let fault = |error| fault(format, error);
    let reader = Cursor::new(bytes);
    match format {
        Format::Png => {
            let decoder = PngDecoder::with_limits(reader, memory).map_err(fault)?;
            pixels(format, decoder, bytes, limits)
        }
        Format::Gif => {
            let mut decoder = GifDecoder::new(reader).map_err(fault)?;
            decoder.set_limits(memory).map_err(fault)?;
            pixels(format, decoder, bytes, limits)
        }
        Format::Tiff => {
            let mut decoder = TiffDecoder::new(reader).map_err(fault)?;
            decoder.set_limits(memory).map_err(fault)?;
            let (picture, _) = pixels(format, decoder, bytes, limits)?;
            // A TIFF file is the structure that EXIF data are packed in.
            Ok((picture, orientation::of(Some(bytes), None)))
        }
        Format::WebP => {
            // The decoder takes what is missing at the end for zeros.
            let length = bytes.get(4..).and_then(|b| b.first_chunk()).map_or(0, |&n| u64::from(u32::from_le_bytes(n)));
            if (bytes.len() as u64) < length + 8 {
                return Err(PixelError::Truncated { format, reason: "it is shorter than its header says" });
            }
            pixels(format, WebPDecoder::new(reader).map_err(fault)?, bytes, limits)
        }
        Format::Bmp => pixels(format, BmpDecoder::new(reader).map_err(fault)?, bytes, limits),
        Format::Jpeg => unreachable!("JPEG files have a decoder of their own"),
    }
}

fn pixels(
    format: Format,
    mut decoder: impl ImageDecoder,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(Rgb8, u8), PixelError> {
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    limits.check(width, height)?;
    let color = decoder.color_type();
    let Some(layout) = Layout::of(color) else {
        let what = format!("{format} with samples of type {color:?}");
        return Err(PixelError::Unsupported { what, next: "convert it to 8 bits per channel" });
    };
    if let Some(densest) = densest(format) {
        // Bits per sample of the file may be an eighth of ours, and a palette a third again.
        let least = (width as u64 * height as u64).div_ceil(8) / densest;
        if least > bytes.len() as u64 {
            return Err(PixelError::Truncated { format, reason: "its header promises more than the file can hold" });
        }
    }
    let exif = decoder.exif_metadata().map_err(|e| fault(format, e))?;
    let xmp = decoder.xmp_metadata().map_err(|e| fault(format, e))?;
    let mut samples = vec![0; width * height * usize::from(color.bytes_per_pixel())];
    decoder.read_image(&mut samples).map_err(|e| fault(format, e))?;
    let mut rgb = layout.rgb(samples);
    if format == Format::Gif {
        gif_canvas::fill(bytes, width, height, &mut rgb);
    }
    let picture = Rgb8::new(width, height, rgb)?;
    Ok((picture, orientation::of(exif.as_deref(), xmp.as_deref())))
}

/// Most bytes that one byte of a file can unpack to, where its compression has such a bound.
fn densest(format: Format) -> Option<u64> {
    match format {
        // Deflate: 258 bytes for 2 bits.
        Format::Png => Some(1032),
        // LZW: strings of up to 4096 pixels for 12 bits.
        Format::Gif => Some(2731),
        // Run lengths: 255 pixels of 4 bits for 2 bytes; a file may also skip pixels, but none that is sane skips most.
        Format::Bmp => Some(255),
        Format::WebP | Format::Tiff | Format::Jpeg => None,
    }
}

/// Where the samples that are kept stand in a pixel.
#[derive(Debug, Clone, Copy)]
struct Layout {
    channels: usize,
    /// Bytes of a sample, in native order.
    sample: usize,
}

impl Layout {
    fn of(color: ColorType) -> Option<Self> {
        let (channels, sample) = match color {
            ColorType::L8 => (1, 1),
            ColorType::La8 => (2, 1),
            ColorType::Rgb8 => (3, 1),
            ColorType::Rgba8 => (4, 1),
            ColorType::L16 => (1, 2),
            ColorType::La16 => (2, 2),
            ColorType::Rgb16 => (3, 2),
            ColorType::Rgba16 => (4, 2),
            _ => return None,
        };
        Some(Self { channels, sample })
    }

    fn rgb(self, samples: Vec<u8>) -> Vec<u8> {
        if self.channels == 3 && self.sample == 1 {
            return samples;
        }
        let high = if cfg!(target_endian = "little") { self.sample - 1 } else { 0 };
        let step = self.channels * self.sample;
        let places = if self.channels < 3 { [0; 3] } else { [0, 1, 2] }.map(|c| c * self.sample + high);
        let mut out = Vec::with_capacity(samples.len() / step * 3);
        out.extend(samples.chunks_exact(step).flat_map(|pixel| places.map(|place| pixel[place])));
        out
    }
}

/// Sorts the decoders' errors by whose fault they are.
fn fault(format: Format, error: ImageError) -> PixelError {
    if let ImageError::Unsupported(error) = &error {
        let what = format!("this kind of {format} ({})", one_line(error));
        return PixelError::Unsupported { what, next: "convert it to an ordinary PNG" };
    }
    if let ImageError::Limits(error) = &error
        && error.kind() == LimitErrorKind::InsufficientMemory
    {
        return PixelError::Damaged { format, reason: "it needs more memory than its pixels explain".into() };
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|e| e.kind() == std::io::ErrorKind::UnexpectedEof) {
            return PixelError::Truncated { format, reason: "the picture data stop before the last pixel" };
        }
        cause = error.source();
    }
    PixelError::Damaged { format, reason: one_line(&error) }
}

fn one_line(error: &dyn std::error::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
