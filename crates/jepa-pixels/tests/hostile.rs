//! Files made or damaged to do harm: errors, never panics, never more memory than the file explains.
#![cfg(feature = "decode")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;

use jepa_pixels::{Limits, PixelError, decode};

/// A small, repeatable source of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn a_prefix_fails_or_has_the_whole_picture() {
    let mut bad = Vec::new();
    for (name, bytes) in fixture::pictures() {
        let whole = decode(&bytes, &Limits::default()).unwrap().image;
        let parts = (0..bytes.len())
            .filter(|&length| decode(&bytes[..length], &Limits::default()).is_ok_and(|part| part.image != whole));
        bad.extend(parts.map(|length| format!("{name}: the first {length} of {} bytes", bytes.len())));
    }
    assert!(bad.is_empty(), "other pictures than the whole: {bad:#?}");
}

#[test]
fn a_jpeg_without_its_end_is_cut_short() {
    for (name, bytes) in fixture::pictures().into_iter().filter(|(name, _)| name.ends_with(".jpg")) {
        for length in 4..bytes.len() {
            let error = decode(&bytes[..length], &Limits::default()).unwrap_err();
            assert!(matches!(error, PixelError::Truncated { .. }), "{name}, {length} bytes: {error}");
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let limits = Limits { max_pixels: 1 << 22, ..Limits::default() };
    let mut numbers = Numbers(7);
    for (_, bytes) in fixture::pictures() {
        for _ in 0..150 {
            let mut damaged = bytes.clone();
            for _ in 0..=numbers.below(4) {
                let at = numbers.below(damaged.len());
                damaged[at] = [0, 1, 0x7F, 0x80, 0xFF, numbers.below(256) as u8][numbers.below(6)];
            }
            let _ = decode(&damaged, &limits);
        }
    }
}

#[test]
fn a_shuffled_middle_never_panics() {
    let limits = Limits { max_pixels: 1 << 22, ..Limits::default() };
    let mut numbers = Numbers(11);
    for (_, bytes) in fixture::pictures() {
        for _ in 0..40 {
            let (from, to) = (numbers.below(bytes.len()), numbers.below(bytes.len()));
            let length = numbers.below(40).min(bytes.len() - from).min(bytes.len() - to);
            let mut damaged = bytes.clone();
            damaged.copy_within(from..from + length, to);
            let _ = decode(&damaged, &limits);
            damaged.drain(to..to + length);
            let _ = decode(&damaged, &limits);
        }
    }
}

#[test]
fn sizes_beyond_the_limit_are_refused_with_both_numbers() {
    let pictures = fixture::pictures();
    let limits = Limits { max_pixels: 300, ..Limits::default() };
    let error = decode(&pictures["png_interlaced.png"], &limits).map(|d| d.image);
    assert!(error.is_ok(), "130 pixels are within 300");
    for name in ["jpeg_444.jpg", "webp_lossy.webp", "gif_plain.gif", "bmp_rgb.bmp"] {
        let error = decode(&pictures[name], &limits).unwrap_err();
        assert!(matches!(error, PixelError::TooManyPixels { limit: 300, .. }), "{name}: {error}");
    }
    let error = decode(&pictures["jpeg_444.jpg"], &Limits { max_bytes: 100, ..Limits::default() }).unwrap_err();
    assert!(matches!(error, PixelError::FileTooLong { limit: 100, .. }));
}

#[test]
fn a_header_that_promises_a_giant_is_refused_before_it_is_allocated() {
    let pictures = fixture::pictures();
    let mut jpeg = pictures["jpeg_444.jpg"].clone();
    let frame = jpeg.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0x30, 0, 0x30, 0]);
    let error = decode(&jpeg, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "JPEG file is cut short: it has fewer bits than blocks");
    jpeg[frame + 5..frame + 9].fill(0xFF);
    let error = decode(&jpeg, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "picture of 65535x65535 has 4294.8 megapixels, the limit is 200.0");

    let mut gif = pictures["gif_plain.gif"].clone();
    gif[6..10].copy_from_slice(&[0, 0x30, 0, 0x30]);
    assert!(matches!(decode(&gif, &Limits::default()), Err(PixelError::Truncated { .. })));
    let mut bmp = pictures["bmp_rgb.bmp"].clone();
    bmp[18..26].copy_from_slice(&[0, 0x30, 0, 0, 0, 0x30, 0, 0]);
    assert!(matches!(decode(&bmp, &Limits::default()), Err(PixelError::Truncated { .. })));
}

#[test]
fn pictures_without_pixels_are_refused() {
    let pictures = fixture::pictures();
    let jpeg = &pictures["jpeg_444.jpg"];
    let frame = jpeg.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
    for side in [5, 7] {
        let mut bytes = jpeg.clone();
        bytes[frame + side..frame + side + 2].fill(0);
        let error = decode(&bytes, &Limits::default()).unwrap_err();
        assert!(matches!(error, PixelError::EmptyPicture { .. } | PixelError::Unsupported { .. }), "{error}");
    }
    for (name, at, length) in [("gif_plain.gif", 6, 2), ("bmp_rgb.bmp", 18, 4), ("bmp_rgb.bmp", 22, 4)] {
        let mut bytes = pictures[name].clone();
        bytes[at..at + length].fill(0);
        assert!(decode(&bytes, &Limits::default()).is_err(), "{name}");
    }
}

#[test]
fn scans_that_repeat_or_lack_are_refused() {
    let pictures = fixture::pictures();
    let jpeg = &pictures["jpeg_scans_separate.jpg"];
    let scans: Vec<usize> = jpeg.windows(2).enumerate().filter(|(_, w)| *w == [0xFF, 0xDA]).map(|(at, _)| at).collect();
    let [first, second, _] = scans[..] else { panic!("three scans") };
    let mut again = jpeg[..second].to_vec();
    again.extend_from_slice(&jpeg[first..]);
    let error = decode(&again, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "damaged JPEG file: a scan of component 1 is out of order");
    let after = jpeg[first + 2..].windows(2).position(|w| w[0] == 0xFF && w[1] != 0).unwrap();
    let mut without = jpeg[..first].to_vec();
    without.extend_from_slice(&jpeg[first + 2 + after..]);
    let error = decode(&without, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "JPEG file is cut short: a component was never sent");
}
