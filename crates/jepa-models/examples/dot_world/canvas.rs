//! Smooth discs, rings and lines on a picture.

use std::path::Path;

use image::{ColorType, ImageResult};
use jepa_pixels::Rgb8;

/// Red, green and blue, 0 to 255.
pub(crate) type Colour = [f64; 3];
/// x to the right and y down, in pixels.
pub(crate) type Point = [f64; 2];

/// A picture that is drawn on.
#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

impl Canvas {
    /// A picture of one colour.
    pub(crate) fn new(width: usize, height: usize, colour: Colour) -> Self {
        Self { width, height, pixels: vec![colour; width * height] }
    }

    /// Lays `picture` with its upper left corner at `left`, `top`, every pixel of it as `zoom` × `zoom`.
    pub(crate) fn lay(&mut self, picture: &Rgb8, left: usize, top: usize, zoom: usize) {
        for row in 0..picture.height() * zoom {
            for col in 0..picture.width() * zoom {
                let at = 3 * ((row / zoom) * picture.width() + col / zoom);
                let colour = [0, 1, 2].map(|channel| f64::from(picture.pixels()[at + channel]));
                self.mix(left + col, top + row, colour, 1.0);
            }
        }
    }

    /// Mixes `share` of a colour into a pixel; outside of the picture nothing happens.
    pub(crate) fn mix(&mut self, col: usize, row: usize, colour: Colour, share: f64) {
        if col < self.width && row < self.height {
            let pixel = &mut self.pixels[row * self.width + col];
            *pixel = [0, 1, 2].map(|c| pixel[c] + (colour[c] - pixel[c]) * share);
        }
    }

    /// A filled circle.
    pub(crate) fn disc(&mut self, centre: Point, radius: f64, colour: Colour, share: f64) {
        self.shape([centre, centre], radius, colour, share, |[x, y]| (x - centre[0]).hypot(y - centre[1]) - radius);
    }

    /// The outline of a circle, `width` wide.
    pub(crate) fn ring(&mut self, centre: Point, radius: f64, width: f64, colour: Colour) {
        let edge = |[x, y]: Point| ((x - centre[0]).hypot(y - centre[1]) - radius).abs() - width / 2.0;
        self.shape([centre, centre], radius + width, colour, 1.0, edge);
    }

    /// A line with round ends.
    pub(crate) fn line(&mut self, from: Point, to: Point, width: f64, colour: Colour, share: f64) {
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = dx * dx + dy * dy;
        self.shape([from, to], width, colour, share, |[x, y]| {
            let along = if length > 0.0 { ((x - from[0]) * dx + (y - from[1]) * dy) / length } else { 0.0 };
            let along = along.clamp(0.0, 1.0);
            (x - from[0] - along * dx).hypot(y - from[1] - along * dy) - width / 2.0
        });
    }

    /// Everything within `reach` of the box around two points that `outside`, a distance in pixels, is negative for.
    fn shape(&mut self, around: [Point; 2], reach: f64, colour: Colour, share: f64, outside: impl Fn(Point) -> f64) {
        let span = |axis: usize, end: usize| {
            let [a, b] = around.map(|point| point[axis]);
            let low = (a.min(b) - reach - 1.0).max(0.0) as usize;
            let high = ((a.max(b) + reach + 2.0).max(0.0) as usize).min(end);
            low..high
        };
        for row in span(1, self.height) {
            for col in span(0, self.width) {
                let covered = (0.5 - outside([col as f64 + 0.5, row as f64 + 0.5])).clamp(0.0, 1.0);
                self.mix(col, row, colour, covered * share);
            }
        }
    }

    /// Writes the picture as PNG.
    pub(crate) fn save(&self, path: &Path) -> ImageResult<()> {
        let bytes: Vec<u8> = self.pixels.iter().flatten().map(|value| value.round() as u8).collect();
        image::save_buffer(path, &bytes, self.width as u32, self.height as u32, ColorType::Rgb8)
    }
}
