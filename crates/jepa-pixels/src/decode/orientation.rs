//! The orientation tag: where it is found, and what it does to the pixels.

use crate::Rgb8;

/// The orientation (1..=8) that a TIFF structure or else an XMP packet states; 1 when neither does. A tag with another
/// value counts as stated and means upright, as in Pillow.
pub(super) fn of(exif: Option<&[u8]>, xmp: Option<&[u8]>) -> u8 {
    let stated = exif.and_then(in_exif).or_else(|| xmp.and_then(in_xmp));
    stated.and_then(|v| u8::try_from(v).ok()).filter(|v| (1..=8).contains(v)).unwrap_or(1)
}

/// Value of tag 0x0112 in the first directory of a TIFF structure.
fn in_exif(mut tiff: &[u8]) -> Option<u32> {
    while let Some(rest) = tiff.strip_prefix(b"Exif\0\0") {
        tiff = rest;
    }
    let little = match tiff.first_chunk::<4>()? {
        b"II\x2A\0" => true,
        b"MM\0\x2A" => false,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let u32_at = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = u32_at(4)? as usize;
    let entries = usize::from(u16_at(directory)?);
    let entry = (0..entries).map(|i| directory + 2 + 12 * i).find(|&at| u16_at(at) == Some(0x0112))?;
    match u16_at(entry + 2)? {
        1 => tiff.get(entry + 8).map(|&v| u32::from(v)),
        3 => u16_at(entry + 8).map(u32::from),
        4 => u32_at(entry + 8),
        // A value of a type that is no number: stated, but nothing that can be done.
        _ => Some(1),
    }
}

/// The digit of `tiff:Orientation="6"` or `<tiff:Orientation>6`.
fn in_xmp(xmp: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"tiff:Orientation";
    let values = xmp.windows(NAME.len()).enumerate().filter(|(_, w)| *w == NAME);
    values.map(|(at, _)| &xmp[at + NAME.len()..]).find_map(|rest| {
        let digit = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">"))?.first()?;
        digit.is_ascii_digit().then(|| u32::from(digit - b'0'))
    })
}

/// Turns and mirrors a picture upright.
pub(super) fn apply(picture: Rgb8, orientation: u8) -> Rgb8 {
    let (transpose, flip_x, flip_y) = match orientation {
        2 => (false, true, false),
        3 => (false, true, true),
        4 => (false, false, true),
        5 => (true, false, false),
        6 => (true, false, true),
        7 => (true, true, true),
        8 => (true, true, false),
        _ => return picture,
    };
    let (src_w, src_h) = (picture.width(), picture.height());
    let (width, height) = if transpose { (src_h, src_w) } else { (src_w, src_h) };
    let (source, _) = picture.pixels().as_chunks::<3>();
    let mut pixels = vec![[0u8; 3]; width * height];
    // Tiles, because a transposition read row by row touches a cache line per pixel.
    const TILE: usize = 32;
    for top in (0..height).step_by(TILE) {
        for left in (0..width).step_by(TILE) {
            for y in top..(top + TILE).min(height) {
                for x in left..(left + TILE).min(width) {
                    let (sx, sy) = if transpose { (y, x) } else { (x, y) };
                    let sx = if flip_x { src_w - 1 - sx } else { sx };
                    let sy = if flip_y { src_h - 1 - sy } else { sy };
                    pixels[y * width + x] = source[sy * src_w + sx];
                }
            }
        }
    }
    Rgb8::new(width, height, pixels.into_flattened()).expect("the same pixels in another order")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 1 2 / 3 4 5, turned: the top row of each result.
    #[test]
    fn turns_and_mirrors_as_the_standard_says() {
        let picture = Rgb8::new(3, 2, (0..6).flat_map(|v| [v; 3]).collect()).unwrap();
        let want = [
            vec![0, 1, 2, 3, 4, 5],
            vec![2, 1, 0, 5, 4, 3],
            vec![5, 4, 3, 2, 1, 0],
            vec![3, 4, 5, 0, 1, 2],
            vec![0, 3, 1, 4, 2, 5],
            vec![3, 0, 4, 1, 5, 2],
            vec![5, 2, 4, 1, 3, 0],
            vec![2, 5, 1, 4, 0, 3],
        ];
        for (orientation, want) in (1..).zip(want) {
            let turned = apply(picture.clone(), orientation);
            let got: Vec<u8> = turned.pixels().iter().step_by(3).copied().collect();
            assert_eq!((got, turned.width()), (want, if orientation < 5 { 3 } else { 2 }), "{orientation}");
        }
    }

    #[test]
    fn reads_both_byte_orders_and_falls_back_to_xmp() {
        let little = b"II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let big = b"MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0";
        let xmp = b"<x tiff:Orientation=\"3\"/>";
        assert_eq!(of(Some(little), Some(xmp)), 6);
        assert_eq!(of(Some(big), None), 8);
        assert_eq!(of(Some(b"II\x2A\0\x08\0\0\0\0\0"), Some(xmp)), 3);
        assert_eq!(of(None, Some(b"<tiff:Orientation>5</tiff:Orientation>")), 5);
        assert_eq!(of(None, None), 1);
    }

    #[test]
    fn nonsense_is_upright() {
        let nine = b"II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0\0\0\0\0";
        assert_eq!(of(Some(nine), Some(b"tiff:Orientation=\"3\"")), 1);
        for length in 0..nine.len() {
            of(Some(&nine[..length]), None);
        }
        assert_eq!(of(Some(b"II\x2A\0\xFF\xFF\xFF\xFF"), None), 1);
    }
}
