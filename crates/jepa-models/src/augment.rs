//! Seeded crops and mirror images of pictures and clips.

use jepa_pixels::Rgb8;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error::ModelError;
use crate::preprocess::Preprocess;

/// Smallest part of a picture's area that a crop takes.
const LEAST_AREA: f64 = 0.35;
/// Widest aspect of a crop, width over height, before it is brought into the model's form; the narrowest is its inverse.
const WIDEST: f64 = 4.0 / 3.0;

/// One view of an input: where it is cut and whether it is mirrored, the same for all frames of a clip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augment {
    /// Side lengths of the crop, as parts of the width and the height.
    size: (f64, f64),
    /// Its upper left corner, as parts of what is left over.
    corner: (f64, f64),
    mirrored: bool,
}

impl Augment {
    /// The view `view` of the input called `name`: drawn from these and the seed alone, whatever else there is.
    pub fn draw(seed: u64, name: &str, view: usize) -> Self {
        // FNV-1a: the same on every machine and in every version of Rust.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ hash);
        random.set_stream(view as u64);
        let area: f64 = random.random_range(LEAST_AREA..=1.0);
        let aspect = random.random_range(-WIDEST.ln()..=WIDEST.ln()).exp();
        let size = ((area * aspect).sqrt().min(1.0), (area / aspect).sqrt().min(1.0));
        Self { size, corner: (random.random(), random.random()), mirrored: random.random() }
    }

    /// The view of one frame, in the form of a model.
    ///
    /// # Errors
    /// As [`Preprocess::frame_u8`].
    pub fn frame_u8(&self, preprocess: &Preprocess, picture: &Rgb8) -> Result<Rgb8, ModelError> {
        let side = |whole: usize, part: f64, corner: f64| {
            let length = ((whole as f64 * part).round() as usize).clamp(1, whole);
            ((((whole - length) as f64 * corner).round() as usize).min(whole - length), length)
        };
        let (left, width) = side(picture.width(), self.size.0, self.corner.0);
        let (top, height) = side(picture.height(), self.size.1, self.corner.1);
        let mut pixels = Vec::with_capacity(width * height * 3);
        for row in picture.pixels().chunks_exact(picture.width() * 3).skip(top).take(height) {
            let row = &row[left * 3..(left + width) * 3];
            match self.mirrored {
                false => pixels.extend_from_slice(row),
                true => row.chunks_exact(3).rev().for_each(|pixel| pixels.extend_from_slice(pixel)),
            }
        }
        preprocess.frame_u8(&Rgb8::new(width, height, pixels)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_follow_from_seed_name_and_number() {
        let view = |seed, name, number| Augment::draw(seed, name, number);
        assert_eq!(view(1, "a.png", 0), view(1, "a.png", 0));
        let others = [view(2, "a.png", 0), view(1, "b.png", 0), view(1, "a.png", 1)];
        assert!(others.iter().all(|other| *other != view(1, "a.png", 0)));
        for number in 0..200 {
            let Augment { size: (w, h), corner: (x, y), .. } = view(3, "c", number);
            assert!(w * h >= 0.3 && w <= 1.0 && h <= 1.0 && (0.0..1.0).contains(&x) && (0.0..1.0).contains(&y));
        }
    }
}
