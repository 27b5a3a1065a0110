//! From a decoded picture to the values that enter the encoder: resize, centred crop, rescale, normalise.

use crate::resize::{Axis, resample};
use crate::{Filter, PixelError, Rgb8};

/// How a picture gets its size. All sizes in pixels, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resize {
    /// The short side becomes `short` and the long one `floor(short · long / short side)`; then `crop_h` rows and `crop_w`
    /// columns are cut from the middle, a half rounded down. Where the resized picture is smaller than the crop it is
    /// centred on black.
    ShortestEdge {
        /// Length of the short side after the resize.
        short: usize,
        /// Rows of the crop.
        crop_h: usize,
        /// Columns of the crop.
        crop_w: usize,
    },
    /// Both sides are set, whatever happens to the aspect ratio.
    Squash {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

/// Everything that happens to a picture before the encoder sees it.
///
/// ```
/// use jepa_pixels::{Filter, Pipeline, Resize, Rgb8};
///
/// // V-JEPA 2 at 256 pixels.
/// let pipeline = Pipeline {
///     resize: Resize::ShortestEdge { short: 292, crop_h: 256, crop_w: 256 },
///     filter: Filter::Bilinear,
///     rescale: 1.0 / 255.0,
///     mean: [0.485, 0.456, 0.406],
///     std: [0.229, 0.224, 0.225],
/// };
/// let picture = Rgb8::new(640, 480, vec![128; 640 * 480 * 3])?;
/// let crop = pipeline.resize_and_crop(&picture)?;
/// assert_eq!((crop.height(), crop.width()), (256, 256));
///
/// let mut planes = vec![0.0; 3 * 256 * 256];
/// pipeline.normalise_into(&crop, &mut planes)?;
/// assert!((planes[0] - (128.0 / 255.0 - 0.485) / 0.229).abs() < 1e-6);
///
/// let larger = pipeline.with_size(384, 384);
/// assert_eq!(larger.resize, Resize::ShortestEdge { short: 438, crop_h: 384, crop_w: 384 });
/// # Ok::<(), jepa_pixels::PixelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pipeline {
    /// Resize and crop.
    pub resize: Resize,
    /// Resampling filter.
    pub filter: Filter,
    /// Factor on the 8-bit values, usually 1/255.
    pub rescale: f32,
    /// Subtracted per channel, after the rescale.
    pub mean: [f32; 3],
    /// Divides per channel, after the mean is subtracted.
    pub std: [f32; 3],
}

impl Pipeline {
    /// Size of what [`Pipeline::resize_and_crop`] gives: rows, columns.
    pub fn output_size(&self) -> (usize, usize) {
        match self.resize {
            Resize::ShortestEdge { crop_h, crop_w, .. } => (crop_h, crop_w),
            Resize::Squash { height, width } => (height, width),
        }
    }

    /// The same pipeline for pictures of `height` × `width`. The short side of a `ShortestEdge` keeps its ratio to the
    /// crop: `floor(short · min(height, width) / min(crop_h, crop_w))`.
    pub fn with_size(&self, height: usize, width: usize) -> Self {
        let resize = match self.resize {
            Resize::ShortestEdge { short, crop_h, crop_w } => {
                let scaled = short as u128 * height.min(width) as u128 / crop_h.min(crop_w).max(1) as u128;
                let short = usize::try_from(scaled).unwrap_or(usize::MAX);
                Resize::ShortestEdge { short, crop_h: height, crop_w: width }
            }
            Resize::Squash { .. } => Resize::Squash { height, width },
        };
        Self { resize, ..*self }
    }

    /// Resizes and crops one picture, on 8-bit values, bit-exact with the Hugging Face processors.
    ///
    /// # Errors
    /// [`PixelError::EmptyTarget`] or [`PixelError::HugeTarget`] when the pipeline asks for no or too many pixels.
    pub fn resize_and_crop(&self, picture: &Rgb8) -> Result<Rgb8, PixelError> {
        self.plan(picture.width(), picture.height())?.apply(picture)
    }

    /// The weight tables for pictures of one size, to be used over all frames of a clip.
    ///
    /// # Errors
    /// As [`Pipeline::resize_and_crop`]; [`PixelError::EmptyPicture`] when a side is 0.
    pub fn plan(&self, width: usize, height: usize) -> Result<Plan, PixelError> {
        if width == 0 || height == 0 {
            return Err(PixelError::EmptyPicture { width, height });
        }
        let (out_h, out_w) = self.output_size();
        let (resized_h, resized_w) = match self.resize {
            Resize::Squash { height, width } => (height, width),
            Resize::ShortestEdge { short, .. } if height <= width => (short, long_side(short, width, height)),
            Resize::ShortestEdge { short, .. } => (long_side(short, height, width), short),
        };
        if [out_h, out_w, resized_h, resized_w].contains(&0) {
            return Err(PixelError::EmptyTarget { height: out_h, width: out_w });
        }
        // Offsets are computed in f64 by the resampler and must stay exact there; buffers must be addressable.
        let addressable = |n: usize| n < 1 << 48;
        let pixels = out_h.checked_mul(out_w);
        if !addressable(resized_h) || !addressable(resized_w) || pixels.is_none_or(|n| n > isize::MAX as usize / 32) {
            return Err(PixelError::HugeTarget { height: out_h, width: out_w });
        }
        let (rows, top) = centred(height, resized_h, out_h, self.filter);
        let (columns, left) = centred(width, resized_w, out_w, self.filter);
        Ok(Plan { width, height, out_h, out_w, top, left, rows, columns })
    }

    /// Weight tables for `views` square crops of pictures of one size, evenly spaced along the long side from end to end: the multi-crop of the
    /// V-JEPA evaluations. For those the short side becomes the side of the crop, whatever `short` says, so that the crops cover the picture. One
    /// view is the centred crop of [`Pipeline::plan`].
    ///
    /// # Errors
    /// As [`Pipeline::plan`]; [`PixelError::NoViews`] for several views of a squashed picture or of a crop that is not square.
    pub fn view_plans(&self, width: usize, height: usize, views: usize) -> Result<Vec<Plan>, PixelError> {
        if views <= 1 {
            return Ok(vec![self.plan(width, height)?]);
        }
        let (out_h, out_w) = self.output_size();
        let refuse = |why| Err(PixelError::NoViews { height: out_h, width: out_w, why });
        match self.resize {
            Resize::Squash { .. } => return refuse("this model squashes pictures whole"),
            Resize::ShortestEdge { crop_h, crop_w, .. } if crop_h != crop_w => {
                return refuse("this crop is not square");
            }
            Resize::ShortestEdge { .. } => {}
        }
        let side = out_h;
        let covering = Self { resize: Resize::ShortestEdge { short: side, crop_h: side, crop_w: side }, ..*self };
        let centre = covering.plan(width, height)?;
        let (long, short) = (width.max(height), width.min(height));
        let resized = long_side(side, long, short);
        let step = (resized - side) / (views - 1);
        let place = |view: usize| Axis::new(long, resized, view * step..view * step + side, self.filter);
        let plans = (0..views).map(|view| {
            if height > width {
                Plan { rows: place(view), ..centre.clone() }
            } else {
                Plan { columns: place(view), ..centre.clone() }
            }
        });
        Ok(plans.collect())
    }

    /// `(u8 · rescale - mean) / std` as three planes, `[3, height, width]`.
    ///
    /// The arithmetic is the processors': they fold the rescale into mean and standard deviation, in f32, and so do we.
    ///
    /// # Errors
    /// [`PixelError::BufferLength`] when `out` has another length than `3 · height · width`.
    pub fn normalise_into(&self, picture: &Rgb8, out: &mut [f32]) -> Result<(), PixelError> {
        let (width, height) = (picture.width(), picture.height());
        if out.len() != picture.pixels().len() {
            return Err(PixelError::BufferLength { width, height, found: out.len() });
        }
        let table = self.levels();
        let (pixels, _) = picture.pixels().as_chunks::<3>();
        for (channel, plane) in out.chunks_exact_mut(width * height).enumerate() {
            for (out, pixel) in plane.iter_mut().zip(pixels) {
                *out = table[channel][usize::from(pixel[channel])];
            }
        }
        Ok(())
    }

    /// The value of each of the 256 levels, per channel.
    fn levels(&self) -> [[f32; 256]; 3] {
        let scale = reciprocal(self.rescale);
        std::array::from_fn(|c| {
            let (mean, std) = (self.mean[c] * scale, self.std[c] * scale);
            std::array::from_fn(|level| (level as f32 - mean) / std)
        })
    }
}

/// `floor(short · long / short_side)`; saturates, and the caller refuses what is that large.
fn long_side(short: usize, long: usize, short_side: usize) -> usize {
    usize::try_from(short as u128 * long as u128 / short_side as u128).unwrap_or(usize::MAX)
}

/// `1 / rescale` as the processors have it. They hold 1/255 as a Python float, whose reciprocal is 255; the reciprocal of
/// the f32 in a model file is one ulp below. So a factor that is the rounded reciprocal of a whole number means that number.
fn reciprocal(rescale: f32) -> f32 {
    let whole = (1.0 / rescale).round();
    if 1.0 / whole == rescale { whole } else { 1.0 / rescale }
}

/// Weights of one axis from `n` points through `resized` to a centred window of `out`, and where in `out` the window
/// starts: 0 unless the resized picture is smaller than the crop.
fn centred(n: usize, resized: usize, out: usize, filter: Filter) -> (Axis, usize) {
    let kept = resized.min(out);
    let first = (resized - kept) / 2;
    (Axis::new(n, resized, first..first + kept, filter), (out - kept) / 2)
}

/// Resize and crop with ready-made weight tables; from [`Pipeline::plan`].
#[derive(Debug, Clone)]
pub struct Plan {
    width: usize,
    height: usize,
    out_h: usize,
    out_w: usize,
    top: usize,
    left: usize,
    rows: Axis,
    columns: Axis,
}

impl Plan {
    /// Resizes and crops one frame.
    ///
    /// # Errors
    /// [`PixelError::FrameSize`] when the frame has another size than the plan.
    pub fn apply(&self, frame: &Rgb8) -> Result<Rgb8, PixelError> {
        let (found_width, found_height) = (frame.width(), frame.height());
        if (found_width, found_height) != (self.width, self.height) {
            let (width, height) = (self.width, self.height);
            return Err(PixelError::FrameSize { found_width, found_height, width, height });
        }
        let window = resample(frame, &self.rows, &self.columns);
        let (window_h, window_w) = (self.rows.len(), self.columns.len());
        if (window_h, window_w) == (self.out_h, self.out_w) {
            return Rgb8::new(self.out_w, self.out_h, window);
        }
        let mut padded = vec![0u8; self.out_h * self.out_w * 3];
        let rows = padded.chunks_exact_mut(self.out_w * 3).skip(self.top);
        for (out, row) in rows.zip(window.chunks_exact(window_w * 3)) {
            out[self.left * 3..(self.left + window_w) * 3].copy_from_slice(row);
        }
        Rgb8::new(self.out_w, self.out_h, padded)
    }
}
