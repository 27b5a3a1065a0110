//! Subsampled components back to full size, as libjpeg's "fancy" upsampling does it.
//!
//! Between two samples the output is 3/4 of the nearer and 1/4 of the farther one. The rounding alternates (+1, +2 or
//! +7, +8) so that it does not drift; the border sample stands in for its missing neighbour.

use super::Plane;

/// How the samples of one component are stretched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stretch {
    /// Full size already.
    None,
    /// Twice as wide, interpolated.
    Wide,
    /// Twice as high, interpolated.
    High,
    /// Twice as wide and high, interpolated.
    Both,
    /// Every sample repeated `h` times across and `v` times down.
    Repeat {
        /// Across.
        h: usize,
        /// Down.
        v: usize,
    },
}

impl Stretch {
    /// The method for a component that is `h`, `v` times smaller than the picture and `width` samples wide.
    pub(super) fn choose(h: usize, v: usize, width: usize) -> Self {
        match (h, v) {
            (1, 1) => Self::None,
            // libjpeg's interpolation needs three samples in a row.
            (2, 1) if width > 2 => Self::Wide,
            (2, 2) if width > 2 => Self::Both,
            (1, 2) => Self::High,
            _ => Self::Repeat { h, v },
        }
    }

    /// Row `y` of the picture for this component. `scratch` lends its memory; the result has at least the picture's width.
    pub(super) fn row<'a>(self, plane: &'a Plane, y: usize, scratch: &'a mut Scratch) -> &'a [u8] {
        let out = &mut scratch.out;
        match self {
            Self::None => return plane.row(y),
            Self::Repeat { h, v } => {
                out.clear();
                out.extend(plane.row(y / v).iter().flat_map(|&s| std::iter::repeat_n(s, h)));
            }
            Self::Wide => {
                out.resize(2 * plane.width, 0);
                widen(plane.row(y), out);
            }
            Self::High => {
                let (near, far) = neighbours(plane, y);
                let bias = if y.is_multiple_of(2) { 1 } else { 2 };
                out.clear();
                out.extend(near.iter().zip(far).map(|(&n, &f)| ((3 * u16::from(n) + u16::from(f) + bias) >> 2) as u8));
            }
            Self::Both => {
                let (near, far) = neighbours(plane, y);
                scratch.sums.clear();
                scratch.sums.extend(near.iter().zip(far).map(|(&n, &f)| 3 * u16::from(n) + u16::from(f)));
                out.resize(2 * plane.width, 0);
                widen_sums(&scratch.sums, out);
            }
        }
        &scratch.out
    }
}

/// Memory for one row of one component.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    out: Vec<u8>,
    sums: Vec<u16>,
}

/// The plane's rows nearest to and next nearest to row `y` of a picture twice as high.
fn neighbours(plane: &Plane, y: usize) -> (&[u8], &[u8]) {
    let near = y / 2;
    let far = if y.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(plane.height - 1) };
    (plane.row(near), plane.row(far))
}

/// `out` has twice the length of `row`, which has at least 3 samples.
fn widen(row: &[u8], out: &mut [u8]) {
    let n = row.len();
    let (pairs, _) = out.as_chunks_mut::<2>();
    for (out, window) in pairs[1..].iter_mut().zip(triples(row)) {
        let [left, here, right] = window.map(u16::from);
        *out = [((3 * here + left + 1) >> 2) as u8, ((3 * here + right + 2) >> 2) as u8];
    }
    let mix = |near: u8, far: u8, bias: u16| ((3 * u16::from(near) + u16::from(far) + bias) >> 2) as u8;
    pairs[0] = [row[0], mix(row[0], row[1], 2)];
    pairs[n - 1] = [mix(row[n - 1], row[n - 2], 1), row[n - 1]];
}

/// As [`widen`], for sums that are four times too large.
fn widen_sums(row: &[u16], out: &mut [u8]) {
    let n = row.len();
    let (pairs, _) = out.as_chunks_mut::<2>();
    for (out, &[left, here, right]) in pairs[1..].iter_mut().zip(triples(row)) {
        *out = [((3 * here + left + 8) >> 4) as u8, ((3 * here + right + 7) >> 4) as u8];
    }
    pairs[0] = [((4 * row[0] + 8) >> 4) as u8, ((3 * row[0] + row[1] + 7) >> 4) as u8];
    pairs[n - 1] = [((3 * row[n - 1] + row[n - 2] + 8) >> 4) as u8, ((4 * row[n - 1] + 7) >> 4) as u8];
}

/// Overlapping windows as arrays.
fn triples<T>(row: &[T]) -> impl Iterator<Item = &[T; 3]> {
    row.windows(3).filter_map(<[T]>::first_chunk)
}
