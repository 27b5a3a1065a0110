//! The picture type that every step of the crate takes and gives.

use crate::PixelError;

/// An 8-bit RGB picture, row-major, channels innermost (`[height, width, 3]`).
///
/// Both sides are at least 1 and the buffer has exactly `height · width · 3` bytes; [`Rgb8::new`] is the only way in, so
/// code that holds an `Rgb8` need not check again.
///
/// ```
/// use jepa_pixels::Rgb8;
///
/// let red = Rgb8::new(2, 1, vec![255, 0, 0, 255, 0, 0])?;
/// assert_eq!((red.width(), red.height()), (2, 1));
/// assert!(Rgb8::new(2, 2, vec![0; 3]).is_err());
/// # Ok::<(), jepa_pixels::PixelError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Rgb8 {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Rgb8 {
    /// Wraps decoded pixels (`[height, width, 3]`, 0..=255).
    ///
    /// # Errors
    /// [`PixelError::EmptyPicture`] when a side is 0, [`PixelError::BufferLength`] when the buffer has another length than
    /// `height · width · 3`.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Result<Self, PixelError> {
        if width == 0 || height == 0 {
            return Err(PixelError::EmptyPicture { width, height });
        }
        let wanted = width.checked_mul(height).and_then(|n| n.checked_mul(3));
        if wanted != Some(pixels.len()) {
            return Err(PixelError::BufferLength { width, height, found: pixels.len() });
        }
        Ok(Self { width, height, pixels })
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The samples, `[height, width, 3]`.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The samples, `[height, width, 3]`, without a copy.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    /// The samples of row `y`, `[width, 3]`.
    pub(crate) fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width * 3..(y + 1) * self.width * 3]
    }
}

/// The size only: a picture's samples are no help in a message.
impl std::fmt::Debug for Rgb8 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rgb8").field("width", &self.width).field("height", &self.height).finish_non_exhaustive()
    }
}
