//! From a picture file to the pixels a JEPA model was trained on.
//!
//! A vision model sees what its training pipeline made of a picture: a certain decoder, a certain resampler, a certain
//! crop. This crate does those steps with the arithmetic of the reference (Pillow, torchvision, the Hugging Face
//! processors), in Rust, without a C library and without `unsafe`.
//!
//! ```
//! use jepa_pixels::{Filter, Pipeline, Resize, Rgb8};
//!
//! let pipeline = Pipeline {
//!     resize: Resize::ShortestEdge { short: 256, crop_h: 224, crop_w: 224 },
//!     filter: Filter::Bicubic,
//!     rescale: 1.0 / 255.0,
//!     mean: [0.485, 0.456, 0.406],
//!     std: [0.229, 0.224, 0.225],
//! };
//!
//! # #[cfg(feature = "decode")]
//! # fn read() -> Result<Rgb8, jepa_pixels::PixelError> {
//! use jepa_pixels::{Limits, decode_file};
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/pictures/jpeg_orientation_6.jpg");
//! let decoded = decode_file(path, &Limits::default())?;
//! for note in &decoded.notes {
//!     eprintln!("{path}: {note}"); // turned upright (EXIF orientation 6)
//! }
//! let picture = decoded.image;
//! # Ok(picture)
//! # }
//! # #[cfg(not(feature = "decode"))]
//! # fn read() -> Result<Rgb8, jepa_pixels::PixelError> { Rgb8::new(5, 9, vec![0; 135]) }
//! # let picture = read()?;
//!
//! let crop = pipeline.resize_and_crop(&picture)?;
//! let mut planes = vec![0.0; 3 * crop.height() * crop.width()]; // [3, 224, 224]
//! pipeline.normalise_into(&crop, &mut planes)?;
//! # assert_eq!((picture.width(), picture.height(), planes.len()), (5, 9, 3 * 224 * 224));
//! # Ok::<(), jepa_pixels::PixelError>(())
//! ```
//!
//! For the frames of a clip, [`Pipeline::plan`] makes the weight tables once.
//!
//! # What is bit-exact
//!
//! | step | exact with | except |
//! |---|---|---|
//! | JPEG | Pillow, that is libjpeg-turbo with its defaults | files that lack progressive scans but end properly are not smoothed |
//! | PNG | Pillow | 16-bit gray: the upper byte is taken, where `convert("RGB")` clips everything above 255 to white |
//! | WebP, GIF (first frame) | Pillow | |
//! | BMP | Pillow | 16 bits per pixel: up to 1 level |
//! | TIFF | Pillow | JPEG inside: a level or so; 16-bit gray as for PNG; palette, YCbCr and floating samples are refused |
//! | orientation | `ImageOps.exif_transpose` | text chunks of PNG with EXIF in hexadecimal are not read |
//! | resize and crop | torchvision's antialiased uint8 resize, the processors' centre crop | torch's bilinear on CPUs without its 8-bit path (x86 before AVX2) differs from itself elsewhere by up to 1 level |
//! | rescale and normalise | the processors, in f32 | |
//!
//! Colour profiles and gamma are ignored, as in the reference.
//!
//! # Hostile files
//!
//! Every length and size is checked before it is used; [`Limits`] caps pixels and bytes; a header that promises more than
//! its file can hold is refused before anything is allocated, wherever the compression has a bound. A truncated file is an
//! error, never a partly gray picture.
//!
//! The pictures and reference results that all this is tested on are made by `tests/reference/pictures.py`.
//!
//! # Features
//!
//! `decode` (default) holds the file formats. Without it the crate depends on nothing but `thiserror` and takes decoded
//! RGB pixels.

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
