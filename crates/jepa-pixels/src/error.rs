//! What can go wrong between a picture file and the network, grouped by whose fault it is.

#[cfg(feature = "decode")]
use crate::decode::Format;

/// Every error of this crate. The message is one line that names what was found, what was wanted, and the next step if
/// there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PixelError {
    // The caller's arguments.
    /// A picture without pixels.
    #[error("picture of {width}x{height}: both sides must be at least 1")]
    EmptyPicture {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// A pixel buffer that does not fit the stated size.
    #[error("picture of {width}x{height}: the buffer has {found} values, wanted width·height·3")]
    BufferLength {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// Length of the buffer.
        found: usize,
    },
    /// A resize or crop to nothing.
    #[error("target size {height}x{width}: every side, and the short side of the resize, must be at least 1")]
    EmptyTarget {
        /// Rows wanted.
        height: usize,
        /// Columns wanted.
        width: usize,
    },
    /// A target so big that its pixels cannot be addressed.
    #[error("target size {height}x{width}: too large to resize to")]
    HugeTarget {
        /// Rows wanted.
        height: usize,
        /// Columns wanted.
        width: usize,
    },
    /// Views of a pipeline that has no square crop to slide.
    #[error("target size {height}x{width}: views slide a square crop along the long side, and {why}")]
    NoViews {
        /// Rows wanted.
        height: usize,
        /// Columns wanted.
        width: usize,
        /// What stands against it.
        why: &'static str,
    },
    /// A frame whose size is not the one that the plan was made for.
    #[error("frame of {found_width}x{found_height}, wanted {width}x{height} as the first frame: make another plan")]
    FrameSize {
        /// Columns of this frame.
        found_width: usize,
        /// Rows of this frame.
        found_height: usize,
        /// Columns that the plan takes.
        width: usize,
        /// Rows that the plan takes.
        height: usize,
    },

    // The file is no picture, or none of the formats read here.
    /// The bytes are not a picture.
    #[cfg(feature = "decode")]
    #[error("not a picture: {found}")]
    NotAPicture {
        /// What the file starts with, and what that looks like.
        found: String,
    },
    /// A known format, or a variant of one, that is not read here.
    #[cfg(feature = "decode")]
    #[error("{what} is not supported: {next}")]
    Unsupported {
        /// The format or the variant.
        what: String,
        /// What to do instead.
        next: &'static str,
    },

    // The file is bad.
    /// The file ends before its picture does.
    #[cfg(feature = "decode")]
    #[error("{format} file is cut short: {reason}")]
    Truncated {
        /// Format of the file.
        format: Format,
        /// Where the data ends.
        reason: &'static str,
    },
    /// The file breaks the rules of its format.
    #[cfg(feature = "decode")]
    #[error("damaged {format} file: {reason}")]
    Damaged {
        /// Format of the file.
        format: Format,
        /// What is wrong with it.
        reason: String,
    },

    // Limits.
    /// More pixels than allowed.
    #[cfg(feature = "decode")]
    #[error("picture of {width}x{height} has {} megapixels, the limit is {}", megapixels(*.width as u64 * *.height as u64), megapixels(*.limit))]
    TooManyPixels {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// Pixels allowed.
        limit: u64,
    },
    /// A longer file than allowed.
    #[cfg(feature = "decode")]
    #[error("file of {found} bytes, the limit for a picture is {limit}")]
    FileTooLong {
        /// Length of the file in bytes.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },

    // The system.
    /// The file cannot be read.
    #[cfg(feature = "decode")]
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// One decimal, so that a picture just above the limit does not read as the limit.
#[cfg(feature = "decode")]
fn megapixels(pixels: u64) -> String {
    format!("{:.1}", pixels as f64 / 1e6)
}
