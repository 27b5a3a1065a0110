//! The confusion matrix as a picture.

use std::io::Cursor;
use std::path::Path;

use font8x8::UnicodeFonts;
use image::{ImageFormat, Rgb, RgbImage};
use jepa_models::probe::Evaluation;

use crate::exit::CliError;
use crate::output::PartialFile;

/// Side of a glyph before it is magnified.
const GLYPH: u32 = 8;
const INK: Rgb<u8> = Rgb([30, 30, 30]);
const LINE: Rgb<u8> = Rgb([190, 190, 190]);
const PAPER: Rgb<u8> = Rgb([255, 255, 255]);
/// Characters of a label that are drawn.
const LABEL: usize = 28;
/// Room for all cells, where they are many.
const PLOT: u32 = 1400;

/// Writes the matrix of the classes that occur: true classes downwards, given classes to the right, each row in parts of its inputs.
pub(super) fn write(target: &Path, judged: &Evaluation, labels: &[String]) -> Result<(), CliError> {
    let mut bytes = Cursor::new(Vec::new());
    draw(judged, labels).write_to(&mut bytes, ImageFormat::Png).map_err(|error| CliError::output(target, error))?;
    let mut file = PartialFile::create(target)?;
    file.write(bytes.get_ref())?;
    file.finish()
}

fn draw(judged: &Evaluation, labels: &[String]) -> RgbImage {
    let scores = judged.classes();
    let classes: Vec<usize> = (0..scores.len()).filter(|&c| scores[c].examples + scores[c].predicted > 0).collect();
    let n = (classes.len() as u32).max(1);
    let cell = (PLOT / n).clamp(1, 48);
    // Names stand beside the cells as long as each has a line of its own; beyond, every so many classes have their number.
    let size = if cell >= 2 * GLYPH + 4 { 2 } else { 1 };
    let every = (GLYPH * size + 2).div_ceil(cell) as usize;
    let name = |class: usize| match every {
        1 => shortened(&labels[class]),
        _ => class.to_string(),
    };
    let longest = classes.iter().step_by(every).map(|&class| name(class).chars().count()).max().unwrap_or(0) as u32;
    let (em, gap) = (GLYPH * size, GLYPH);
    let title = format!(
        "accuracy {:.1} % ({} of {}), top-5 {:.1} %",
        judged.accuracy() * 100.0,
        judged.correct(),
        judged.total(),
        judged.top_5() * 100.0
    );
    let (left, top) = (gap * 2 + em * 2 + longest * em, gap * 2 + em * 2);
    let side = n * cell;
    let scale = 24 * size;
    let right = gap * 3 + scale + 6 * em;
    let width = (left + side + right).max(left + title.chars().count() as u32 * em + gap);
    let height = top + side.max(160) + gap * 3 + longest * em + em;
    let mut page = Page { picture: RgbImage::from_pixel(width, height, PAPER), size };
    page.text(left, gap, &title, INK);
    page.text_upwards(gap, top + (side + "true class".len() as u32 * em) / 2, "true class", INK);
    let below = top + side + gap;
    page.text(
        left + side.saturating_sub("given class".len() as u32 * em) / 2,
        below + longest * em + gap,
        "given class",
        INK,
    );
    for (i, &class) in classes.iter().enumerate().step_by(every) {
        let (name, middle) = (name(class), i as u32 * cell + cell / 2);
        let long = name.chars().count() as u32 * em;
        page.text(left - gap - long, (top + middle).saturating_sub(em / 2), &name, INK);
        page.text_upwards((left + middle).saturating_sub(em / 2), below + long, &name, INK);
    }
    for (i, &truth) in classes.iter().enumerate() {
        for (j, &given) in classes.iter().enumerate() {
            let count = judged.count(truth, given);
            let part = count as f32 / scores[truth].examples.max(1) as f32;
            let (x, y) = (left + j as u32 * cell, top + i as u32 * cell);
            page.fill(x, y, cell, cell, shade(part));
            let digits = count.to_string();
            let wide = digits.len() as u32 * GLYPH * size;
            if count > 0 && wide + 4 <= cell {
                let ink = if part > 0.5 { PAPER } else { INK };
                page.text(x + (cell - wide) / 2, y + (cell - em) / 2, &digits, ink);
            }
        }
    }
    page.grid(left, top, n, cell);
    page.scale(left + side + gap * 2, top, scale, side.max(160));
    page.picture
}

/// White to dark blue.
fn shade(part: f32) -> Rgb<u8> {
    let mix = |from: f32, to: f32| (from + (to - from) * part.clamp(0.0, 1.0)).round() as u8;
    Rgb([mix(255.0, 8.0), mix(255.0, 48.0), mix(255.0, 107.0)])
}

fn shortened(label: &str) -> String {
    match label.chars().count() > LABEL {
        true => label.chars().take(LABEL - 1).chain(['~']).collect(),
        false => label.to_owned(),
    }
}

struct Page {
    picture: RgbImage,
    /// Pixels of a point of a glyph.
    size: u32,
}

impl Page {
    fn fill(&mut self, x: u32, y: u32, width: u32, height: u32, ink: Rgb<u8>) {
        for y in y..(y + height).min(self.picture.height()) {
            for x in x..(x + width).min(self.picture.width()) {
                self.picture.put_pixel(x, y, ink);
            }
        }
    }

    /// Text to the right, its upper left corner at `x`, `y`.
    fn text(&mut self, x: u32, y: u32, text: &str, ink: Rgb<u8>) {
        let size = self.size;
        for (i, c) in text.chars().enumerate() {
            let x = x + i as u32 * GLYPH * size;
            points(c).for_each(|(px, py)| self.fill(x + px * size, y + py * size, size, size, ink));
        }
    }

    /// Text upwards, its lower left corner at `x`, `y`.
    fn text_upwards(&mut self, x: u32, y: u32, text: &str, ink: Rgb<u8>) {
        let size = self.size;
        for (i, c) in text.chars().enumerate() {
            let y = y.saturating_sub(i as u32 * GLYPH * size);
            points(c).for_each(|(px, py)| self.fill(x + py * size, y.saturating_sub((px + 1) * size), size, size, ink));
        }
    }

    fn grid(&mut self, left: u32, top: u32, n: u32, cell: u32) {
        let side = n * cell;
        let step = if cell >= 8 { 1 } else { n };
        for i in (0..=n).step_by(step as usize) {
            self.fill(left, top + i * cell, side + 1, 1, LINE);
            self.fill(left + i * cell, top, 1, side + 1, LINE);
        }
    }

    /// What the colours mean.
    fn scale(&mut self, x: u32, top: u32, width: u32, height: u32) {
        for y in 0..height {
            self.fill(x, top + y, width, 1, shade(1.0 - y as f32 / (height - 1) as f32));
        }
        for (part, word) in [(0, "100 %"), (1, "50 %"), (2, "0 %")] {
            let y = (top + part * (height - 1) / 2).saturating_sub(GLYPH * self.size / 2);
            self.text(x + width + GLYPH, y, word, INK);
        }
    }
}

/// The points of a character's glyph; a character that the font lacks is a box.
fn points(c: char) -> impl Iterator<Item = (u32, u32)> {
    const BOX: [u8; 8] = [0x7e, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7e, 0];
    let glyph = font8x8::BASIC_FONTS
        .get(c)
        .or_else(|| font8x8::LATIN_FONTS.get(c))
        .or_else(|| font8x8::GREEK_FONTS.get(c))
        .or_else(|| font8x8::HIRAGANA_FONTS.get(c))
        .unwrap_or(BOX);
    (0..GLYPH).flat_map(move |y| (0..GLYPH).map(move |x| (x, y))).filter(move |&(x, y)| glyph[y as usize] >> x & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_dark_as_their_part_of_the_row() {
        let mut judged = Evaluation::new(2);
        for (truth, scores) in [(0, [1.0, 0.0]), (0, [1.0, 0.0]), (1, [1.0, 0.0]), (1, [0.0, 1.0])] {
            judged.add(truth, &scores);
        }
        let picture = draw(&judged, &["a, b".to_owned(), "猫".to_owned()]);
        let count = |ink: Rgb<u8>| picture.pixels().filter(|p| **p == ink).count();
        assert!(count(shade(1.0)) > 1000, "a whole row in one cell");
        assert!(count(shade(0.5)) > 2000, "two halves");
        assert!(count(INK) > 500, "names and counts");
    }

    #[test]
    fn many_classes_still_make_a_picture() {
        let mut judged = Evaluation::new(600);
        let scores = |class: usize| (0..600).map(|c| f32::from(c == class)).collect::<Vec<_>>();
        (0..600).for_each(|class| {
            judged.add(class, &scores((class * 7) % 600));
        });
        let labels: Vec<_> = (0..600).map(|i| format!("class number {i} with a rather long name indeed")).collect();
        let picture = draw(&judged, &labels);
        assert!(picture.width() < 2000 && picture.height() < 2000, "{}×{}", picture.width(), picture.height());
    }
}
