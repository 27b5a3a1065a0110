//! Picture files to RGB8, as `PIL.Image.open(…)`, `ImageOps.exif_transpose` and `convert("RGB")` give it.

mod frames;
mod gif_canvas;
mod jpeg;
mod orientation;
mod raster;
mod sniff;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{PixelError, Rgb8};

/// The picture formats that are read. The content decides, never the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JPEG, also the first picture of an MPO file.
    Jpeg,
    /// PNG and APNG.
    Png,
    /// WebP, lossy and lossless.
    WebP,
    /// GIF.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF and BigTIFF.
    Tiff,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
            Self::Gif => "GIF",
            Self::Bmp => "BMP",
            Self::Tiff => "TIFF",
        })
    }
}

/// What a picture file may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most pixels of one picture. The decoders need up to 16 bytes for each (progressive CMYK JPEG).
    pub max_pixels: u64,
    /// Longest file in bytes.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// 200 megapixels, which every camera stays below, and 1 GiB.
    fn default() -> Self {
        Self { max_pixels: 200_000_000, max_bytes: 1 << 30 }
    }
}

impl Limits {
    fn check(&self, width: usize, height: usize) -> Result<(), PixelError> {
        if width == 0 || height == 0 {
            return Err(PixelError::EmptyPicture { width, height });
        }
        if (width as u64).checked_mul(height as u64).is_none_or(|n| n > self.max_pixels) {
            return Err(PixelError::TooManyPixels { width, height, limit: self.max_pixels });
        }
        Ok(())
    }
}

/// Something about a file that its pixels do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Only the first frame of an animation was taken.
    FirstFrame {
        /// Format of the file.
        format: Format,
        /// Frames in the file.
        frames: u64,
    },
    /// Only the first page of a document was taken.
    FirstPage {
        /// Format of the file.
        format: Format,
        /// Pages in the file.
        pages: u64,
    },
    /// The picture was turned or mirrored as the file's EXIF orientation says.
    Oriented {
        /// The orientation, 2..=8.
        orientation: u8,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstFrame { format, frames } => write!(f, "animated {format}: first of {frames} frames"),
            Self::FirstPage { format, pages } => write!(f, "{format} with several pages: first of {pages}"),
            Self::Oriented { orientation } => write!(f, "turned upright (EXIF orientation {orientation})"),
        }
    }
}

/// A decoded picture.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The pixels, upright.
    pub image: Rgb8,
    /// What the file is.
    pub format: Format,
    /// What the user may want to know about it.
    pub notes: Vec<Note>,
}

/// Decodes a picture file: gray is replicated, alpha dropped without blending, a palette expanded, 16-bit samples cut to
/// their upper 8 bits, and the EXIF orientation applied. Of an animation or a document the first picture is taken.
///
/// # Errors
/// [`PixelError::NotAPicture`] and [`PixelError::Unsupported`] when the content is none of the formats read;
/// [`PixelError::Truncated`] and [`PixelError::Damaged`] for bad files; [`PixelError::EmptyPicture`],
/// [`PixelError::TooManyPixels`] and [`PixelError::FileTooLong`] for sizes out of range.
///
/// ```
/// use jepa_pixels::{Format, Limits, decode};
///
/// let gif = b"GIF89a\x01\0\x01\0\x80\0\0\xFF\x80\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
/// let decoded = decode(gif, &Limits::default())?;
/// assert_eq!(decoded.format, Format::Gif);
/// assert_eq!(decoded.image.pixels(), [255, 128, 0]);
///
/// let error = decode(b"# Holiday pictures\n", &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "not a picture: starts with \"# Holiday pictur\" (text)");
/// # Ok::<(), jepa_pixels::PixelError>(())
/// ```
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Decoded, PixelError> {
    if bytes.len() as u64 > limits.max_bytes {
        return Err(PixelError::FileTooLong { found: bytes.len() as u64, limit: limits.max_bytes });
    }
    let format = sniff::format(bytes)?;
    let (image, orientation) = match format {
        Format::Jpeg => {
            let jpeg = jpeg::decode(bytes, limits)?;
            (jpeg.picture, orientation::of(jpeg.exif, jpeg.xmp))
        }
        _ => raster::decode(format, bytes, limits)?,
    };
    let mut notes = Vec::from_iter(frames::note(format, bytes));
    if orientation != 1 {
        notes.push(Note::Oriented { orientation });
    }
    Ok(Decoded { image: orientation::apply(image, orientation), format, notes })
}

/// Reads and decodes a picture file. A file that is no picture is refused after its first few bytes.
///
/// # Errors
/// As [`decode`], and [`PixelError::Read`].
pub fn decode_file(path: impl AsRef<Path>, limits: &Limits) -> Result<Decoded, PixelError> {
    let path = path.as_ref();
    let read_error = |source| PixelError::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(read_error)?;
    let mut bytes = Vec::new();
    file.by_ref().take(sniff::HEAD_BYTES as u64).read_to_end(&mut bytes).map_err(read_error)?;
    sniff::format(&bytes)?;
    let length = file.metadata().map_err(read_error)?.len();
    if length > limits.max_bytes {
        return Err(PixelError::FileTooLong { found: length, limit: limits.max_bytes });
    }
    // One byte more than allowed tells a file that grew from one that fits.
    file.take(limits.max_bytes.saturating_sub(bytes.len() as u64).saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    decode(&bytes, limits)
}
