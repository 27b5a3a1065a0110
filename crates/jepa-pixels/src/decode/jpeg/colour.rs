//! From a JPEG's components to RGB.
//!
//! The conversions are libjpeg's 16-bit fixed point. CMYK follows Pillow, which takes every four-component file for one of
//! Adobe's, where 255 means no ink, and mixes `(255 - ink) · (255 - black) / 255` per channel.

/// What the components of a file mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Gray,
    Rgb,
    YCbCr,
    Cmyk,
    Ycck,
}

impl Colour {
    /// libjpeg's rules: a JFIF header means YCbCr, else Adobe's transform flag decides, else the component ids.
    /// `None` for a number of components without a meaning.
    pub(super) fn of(ids: &[u8], jfif: bool, adobe_transform: Option<u8>) -> Option<Self> {
        match (ids, adobe_transform) {
            ([_], _) => Some(Self::Gray),
            ([_, _, _], _) if jfif => Some(Self::YCbCr),
            ([_, _, _], Some(0)) => Some(Self::Rgb),
            ([_, _, _], Some(_)) => Some(Self::YCbCr),
            (b"RGB", None) => Some(Self::Rgb),
            ([_, _, _], None) => Some(Self::YCbCr),
            ([_, _, _, _], None | Some(0)) => Some(Self::Cmyk),
            ([_, _, _, _], Some(_)) => Some(Self::Ycck),
            _ => None,
        }
    }

    /// Writes one row of RGB from one row of each component, all at full size.
    pub(super) fn row(self, components: &[&[u8]], out: &mut [u8]) {
        let (out, _) = out.as_chunks_mut::<3>();
        match (self, components) {
            (Self::Gray, [gray]) => {
                for (out, &v) in out.iter_mut().zip(*gray) {
                    *out = [v; 3];
                }
            }
            (Self::Rgb, [r, g, b]) => {
                for (((out, &r), &g), &b) in out.iter_mut().zip(*r).zip(*g).zip(*b) {
                    *out = [r, g, b];
                }
            }
            (Self::YCbCr, [y, cb, cr]) => {
                for (((out, &y), &cb), &cr) in out.iter_mut().zip(*y).zip(*cb).zip(*cr) {
                    *out = rgb_of_ycc(y, cb, cr);
                }
            }
            (Self::Cmyk, [c, m, y, k]) => {
                for ((((out, &c), &m), &y), &k) in out.iter_mut().zip(*c).zip(*m).zip(*y).zip(*k) {
                    *out = [c, m, y].map(|paper| times(paper, k));
                }
            }
            (Self::Ycck, [y, cb, cr, k]) => {
                for ((((out, &y), &cb), &cr), &k) in out.iter_mut().zip(*y).zip(*cb).zip(*cr).zip(*k) {
                    // The three are those of an RGB picture of the ink, and inverted once more by Adobe's convention.
                    *out = rgb_of_ycc(y, cb, cr).map(|ink| times(255 - ink, k));
                }
            }
            _ => unreachable!("the decoder gives as many rows as `Colour::of` was asked about"),
        }
    }
}

/// `a · b / 255`, rounded.
fn times(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    (((product >> 8) + product) >> 8) as u8
}

#[inline]
fn rgb_of_ycc(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let r = y + ((91_881 * cr + HALF) >> 16); // 1.40200
    let g = y + ((-22_554 * cb - 46_802 * cr + HALF) >> 16); // 0.34414, 0.71414
    let b = y + ((116_130 * cb + HALF) >> 16); // 1.77200
    [r, g, b].map(|v| v.clamp(0, 255) as u8)
}
