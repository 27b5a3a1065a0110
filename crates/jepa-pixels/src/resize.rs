//! The antialiased 8-bit resampler of the reference processors, in integers.
//!
//! The processors call `torchvision.transforms.v2.functional.resize(…, antialias=True)` on uint8 pixels. Torch runs that
//! as two integer passes, and every step below is one of its decisions that can be seen in the result:
//!
//! * The horizontal pass comes first and its result is rounded to 8 bits before the vertical pass reads it.
//! * A pass that would not change the size is left out.
//! * Weights are computed in f64, divided by their sum, and then rounded to 16-bit integers with as many fractional bits
//!   as the largest weight of the axis leaves room for. So the precision depends on the whole axis, also on the outputs
//!   that a crop throws away.
//! * Points outside the picture are left out of the sum, not repeated.
//!
//! Only the outputs inside a window are computed, which changes no value: a 1 × 60000 strip whose short side becomes 256
//! would otherwise be a picture of 15 million rows.

use crate::{PixelError, Rgb8};

/// The reconstruction filter; it is stretched by the scale when shrinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Triangle of half width 1.
    Bilinear,
    /// Keys' cubic of half width 2 with a = -0.5.
    Bicubic,
}

impl Filter {
    fn half_width(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Self::Bilinear => (1.0 - x).max(0.0),
            Self::Bicubic => {
                const A: f64 = -0.5;
                if x < 1.0 {
                    ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
                } else if x < 2.0 {
                    (((x - 5.0) * x + 8.0) * x - 4.0) * A
                } else {
                    0.0
                }
            }
        }
    }
}

/// Resizes a whole picture to `out_h` rows and `out_w` columns, bit-exact with torchvision's antialiased uint8 resize
/// (torch's native 8-bit path, which bicubic always takes and bilinear takes on CPUs with AVX2 and on ARM).
///
/// # Errors
/// [`PixelError::EmptyTarget`] when a side is 0, [`PixelError::HugeTarget`] when the result cannot be addressed.
///
/// ```
/// use jepa_pixels::{Filter, Rgb8, resize};
///
/// let gray = Rgb8::new(40, 30, vec![119; 40 * 30 * 3])?;
/// let small = resize(&gray, 7, 9, Filter::Bicubic)?;
/// assert_eq!((small.height(), small.width()), (7, 9));
/// assert!(small.pixels().iter().all(|&v| v == 119));
/// # Ok::<(), jepa_pixels::PixelError>(())
/// ```
pub fn resize(picture: &Rgb8, out_h: usize, out_w: usize, filter: Filter) -> Result<Rgb8, PixelError> {
    if out_h == 0 || out_w == 0 {
        return Err(PixelError::EmptyTarget { height: out_h, width: out_w });
    }
    if out_h.checked_mul(out_w).is_none_or(|n| n > isize::MAX as usize / 32) {
        return Err(PixelError::HugeTarget { height: out_h, width: out_w });
    }
    let rows = Axis::new(picture.height(), out_h, 0..out_h, filter);
    let columns = Axis::new(picture.width(), out_w, 0..out_w, filter);
    let pixels = resample(picture, &rows, &columns);
    Rgb8::new(out_w, out_h, pixels)
}

/// The weight table of one axis for a window of its outputs.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// Input points read by the window: first, and one past the last.
    reads: std::ops::Range<usize>,
    /// Per output of the window. Empty when the sizes are equal, where inputs are copied.
    outputs: Vec<Taps>,
    /// Weights of all outputs, one after the other, scaled by `2^precision`.
    weights: Vec<i16>,
    precision: u32,
    len: usize,
}

/// Where one output finds its inputs and its weights.
#[derive(Debug, Clone, Copy)]
struct Taps {
    /// First input point, counted from the start of `Axis::reads`.
    input: usize,
    /// First weight.
    weight: usize,
    count: usize,
}

impl Axis {
    /// Weights that take `n` points to `m`, for the outputs in `window` (inside `0..m`, not empty). `n`, `m` ≥ 1.
    pub(crate) fn new(n: usize, m: usize, window: std::ops::Range<usize>, filter: Filter) -> Self {
        let len = window.len();
        if n == m {
            return Self { reads: window, outputs: Vec::new(), weights: Vec::new(), precision: 0, len };
        }
        let stencil = Stencil::new(n, m, filter);
        let largest = stencil.largest_weight(m);
        // Counted up one by one as torch does: the first precision whose successor no longer fits in 15 bits.
        let precision = (0..22).find(|p| (0.5 + largest * f64::from(2u32 << p)) as i64 >= 1 << 15).unwrap_or(22);
        let scale = f64::from(1u32 << precision);

        let mut outputs = Vec::with_capacity(len);
        let mut weights = Vec::new();
        let mut row = Vec::new();
        for output in window {
            let first = stencil.weights(output, &mut row);
            outputs.push(Taps { input: first, weight: weights.len(), count: row.len() });
            // `f64::round` and this differ in the last bit before a half; torch does this.
            weights.extend(row.iter().map(|w| (w * scale + 0.5f64.copysign(*w)) as i16));
        }
        let start = outputs.iter().map(|t| t.input).min().unwrap_or(0);
        let end = outputs.iter().map(|t| t.input + t.count).max().unwrap_or(0);
        outputs.iter_mut().for_each(|t| t.input -= start);
        Self { reads: start..end, outputs, weights, precision, len }
    }

    /// Outputs in the window.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn copies(&self) -> bool {
        self.outputs.is_empty()
    }

    fn taps(&self, output: usize) -> (usize, &[i16]) {
        let taps = self.outputs[output];
        (taps.input, &self.weights[taps.weight..taps.weight + taps.count])
    }
}

/// The f64 weights of one axis before they are rounded.
struct Stencil {
    filter: Filter,
    n: usize,
    step: f64,
    reach: f64,
    inverse: f64,
}

impl Stencil {
    fn new(n: usize, m: usize, filter: Filter) -> Self {
        let step = n as f64 / m as f64;
        let stretch = step.max(1.0);
        let inverse = if step >= 1.0 { 1.0 / step } else { 1.0 };
        Self { filter, n, step, reach: filter.half_width() * stretch, inverse }
    }

    /// Normalised weights of one output; returns the input point of the first.
    fn weights(&self, output: usize, into: &mut Vec<f64>) -> usize {
        let centre = self.step * (output as f64 + 0.5);
        let low = (centre - self.reach + 0.5).max(0.0) as usize;
        let high = ((centre + self.reach + 0.5) as usize).min(self.n);
        into.clear();
        into.extend((low..high).map(|j| self.filter.at((j as f64 - centre + 0.5) * self.inverse)));
        let sum: f64 = into.iter().sum();
        if sum != 0.0 {
            into.iter_mut().for_each(|w| *w /= sum);
        }
        low
    }

    fn largest_weight(&self, m: usize) -> f64 {
        let mut row = Vec::new();
        // When enlarging, the first output loses the taps outside the picture, and no other output has a larger weight.
        // Looking only there keeps a 1-pixel strip enlarged to millions of rows from costing millions of evaluations.
        let looked_at = if self.step < 1.0 { 1 } else { m };
        (0..looked_at).fold(0.0, |largest: f64, output| {
            self.weights(output, &mut row);
            row.iter().copied().fold(largest, f64::max)
        })
    }
}

/// Both passes over the windows of `rows` and `columns`; the result is `[rows.len, columns.len, 3]`.
pub(crate) fn resample(picture: &Rgb8, rows: &Axis, columns: &Axis) -> Vec<u8> {
    let width = columns.len() * 3;
    let mut narrow = vec![0u8; rows.reads.len() * width];
    for (out, y) in narrow.chunks_exact_mut(width).zip(rows.reads.clone()) {
        let row = &picture.row(y)[columns.reads.start * 3..columns.reads.end * 3];
        if columns.copies() {
            out.copy_from_slice(row);
        } else {
            mix_within_row(row, columns, out);
        }
    }
    if rows.copies() {
        return narrow;
    }
    let mut out = vec![0u8; rows.len() * width];
    for (y, out) in out.chunks_exact_mut(width).enumerate() {
        let (first, weights) = rows.taps(y);
        mix_rows(&narrow[first * width..], weights, rows.precision, out);
    }
    out
}

fn mix_within_row(row: &[u8], columns: &Axis, out: &mut [u8]) {
    let half = 1i32 << columns.precision >> 1;
    let (pixels, _) = row.as_chunks::<3>();
    let (out, _) = out.as_chunks_mut::<3>();
    for (x, out) in out.iter_mut().enumerate() {
        let (first, weights) = columns.taps(x);
        let mut sum = [half; 3];
        for (pixel, &weight) in pixels[first..first + weights.len()].iter().zip(weights) {
            for (sum, &v) in sum.iter_mut().zip(pixel) {
                *sum += i32::from(weight) * i32::from(v);
            }
        }
        *out = sum.map(|v| to_byte(v >> columns.precision));
    }
}

/// `out[i] = Σ weights[k] · rows[k][i]`, in strips narrow enough that the sums stay in registers.
fn mix_rows(rows: &[u8], weights: &[i16], precision: u32, out: &mut [u8]) {
    const STRIP: usize = 32;
    let half = 1i32 << precision >> 1;
    let width = out.len();
    for (strip, out) in out.chunks_mut(STRIP).enumerate() {
        let mut sums = [half; STRIP];
        for (row, &weight) in rows.chunks(width).zip(weights) {
            let row = &row[strip * STRIP..];
            if let Some(row) = row.first_chunk::<STRIP>() {
                for (sum, &v) in sums.iter_mut().zip(row) {
                    *sum += i32::from(weight) * i32::from(v);
                }
            } else {
                for (sum, &v) in sums.iter_mut().zip(row) {
                    *sum += i32::from(weight) * i32::from(v);
                }
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = to_byte(sum >> precision);
        }
    }
}

fn to_byte(v: i32) -> u8 {
    v.clamp(0, 255) as u8
}
