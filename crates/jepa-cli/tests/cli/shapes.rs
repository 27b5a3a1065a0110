//! A small data set that can be learned: shapes × colours × textures, eight classes, drawn by a seed.

use crate::session::Session;

/// Side of a picture in pixels.
const SIDE: usize = 48;
const COLOURS: [[u8; 3]; 2] = [[220, 60, 50], [50, 90, 220]];

/// Numbers that are the same everywhere.
struct Draws(u64);

impl Draws {
    /// A number in `0..n`.
    fn below(&mut self, n: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

/// The name of class `class`, 0 to 7.
pub(crate) fn label(class: usize) -> String {
    let word = |bit: usize, words: [&'static str; 2]| words[class >> bit & 1];
    format!("{} {}, {}", word(1, ["rot", "blau"]), word(0, ["Scheibe", "Kreuz"]), word(2, ["glatt", "gestreift · 縞"]))
}

/// Picture `number` of class `class`: a shape of some place and size on a gray ground with noise.
pub(crate) fn picture(class: usize, number: usize, seed: u64) -> Vec<u8> {
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15 ^ (seed << 32) ^ ((class as u64) << 16) ^ (number as u64 + 1));
    for _ in 0..8 {
        draws.below(2);
    }
    let radius = 16 + draws.below(3) as i64;
    let centre = |draws: &mut Draws| 23 + draws.below(3) as i64;
    let (x0, y0, ground) = (centre(&mut draws), centre(&mut draws), 90 + draws.below(60) as u8);
    let mut pixels = Vec::with_capacity(SIDE * SIDE * 3);
    for y in 0..SIDE as i64 {
        for x in 0..SIDE as i64 {
            let (dx, dy) = (x - x0, y - y0);
            let inside = match class & 1 {
                0 => dx * dx + dy * dy <= radius * radius,
                _ => dx.abs().max(dy.abs()) <= radius && dx.abs().min(dy.abs()) <= radius / 3,
            };
            let painted = class & 4 == 0 || (x + y) / 4 % 2 == 0;
            let base = if inside && painted { COLOURS[class >> 1 & 1] } else { [ground; 3] };
            pixels.extend(base.map(|v| v.saturating_add(draws.below(12) as u8)));
        }
    }
    bmp(SIDE, SIDE, &pixels)
}

/// A BMP file of RGB pixels, rows from the top.
pub(crate) fn bmp(width: usize, height: usize, rgb: &[u8]) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    file.extend((54 + row as u32 * height as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(54_u32.to_le_bytes());
    file.extend(40_u32.to_le_bytes());
    file.extend((width as u32).to_le_bytes());
    file.extend((height as u32).to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(24_u16.to_le_bytes());
    file.extend([0; 24]);
    for line in rgb.chunks_exact(width * 3).rev() {
        let start = file.len();
        line.chunks_exact(3).for_each(|pixel| file.extend([pixel[2], pixel[1], pixel[0]]));
        file.resize(start + row, 0);
    }
    file
}

/// Writes `count` pictures of each of `classes` into class folders below `folder`.
pub(crate) fn write(s: &Session, folder: &str, classes: std::ops::Range<usize>, count: usize, seed: u64) {
    for class in classes {
        let name = format!("{folder}/{}", label(class));
        std::fs::create_dir_all(s.path(&name)).expect("a writable temporary folder");
        (0..count).for_each(|number| s.write(&format!("{name}/{number}.bmp"), picture(class, number, seed)));
    }
}
