//! x
mod error;
mod pipeline;
mod resize;
mod rgb;

#[cfg(feature = "decode")]
mod decode;

#[cfg(feature = "decode")]
pub use decode::{Decoded, Format, Limits, Note, decode, decode_file};
pub use error::PixelError;
pub use pipeline::{Pipeline, Plan, Resize};
pub use resize::{Filter, resize};
pub use rgb::Rgb8;
