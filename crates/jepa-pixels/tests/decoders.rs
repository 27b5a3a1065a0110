//! Every kind of picture file gives the pixels that Pillow gives.
#![cfg(feature = "decode")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;

use fixture::Array;
use jepa_pixels::{Decoded, Format, Limits, Note, PixelError, decode, decode_file};

fn pixels(decoded: &Decoded) -> Array<u8> {
    let image = &decoded.image;
    Array { shape: vec![image.height(), image.width(), 3], data: image.pixels().to_vec() }
}

fn decoded(name: &str) -> Decoded {
    decode_file(fixture::path("pictures").join(name), &Limits::default()).unwrap()
}

fn message(bytes: &[u8]) -> String {
    decode(bytes, &Limits::default()).unwrap_err().to_string()
}

#[test]
fn every_fixture_has_the_pixels_of_pillow() {
    let expected = fixture::bytes("decoded.safetensors");
    let pictures = fixture::pictures();
    assert!(pictures.keys().eq(expected.keys()));
    for (name, bytes) in pictures {
        let decoded = decode(&bytes, &Limits::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(pixels(&decoded) == expected[&name], "{name} differs from Pillow");
    }
}

/// Guards the test above: the fixtures tell the choices apart that make a JPEG decoder libjpeg's.
#[test]
fn orientations_and_samplings_differ_in_their_pixels() {
    let expected = fixture::bytes("decoded.safetensors");
    let jpegs: Vec<_> = expected.iter().filter(|(name, _)| name.ends_with(".jpg")).collect();
    for (i, (name, a)) in jpegs.iter().enumerate() {
        assert!(jpegs[..i].iter().all(|(_, b)| a != b), "{name} has a twin");
    }
    assert_eq!(expected["jpeg_orientation_1.jpg"].shape, [5, 9, 3]);
    assert_eq!(expected["jpeg_orientation_6.jpg"].shape, [9, 5, 3]);
}

#[test]
fn content_decides_the_format_not_the_name() {
    for (name, bytes) in fixture::pictures() {
        let want = match name.rsplit('.').next().unwrap() {
            "jpg" => Format::Jpeg,
            "png" => Format::Png,
            "webp" => Format::WebP,
            "gif" => Format::Gif,
            "bmp" => Format::Bmp,
            _ => Format::Tiff,
        };
        assert_eq!(decode(&bytes, &Limits::default()).unwrap().format, want, "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let misnamed = folder.path().join("photo.png");
    std::fs::copy(fixture::path("pictures/jpeg_444.jpg"), &misnamed).unwrap();
    assert_eq!(decode_file(misnamed, &Limits::default()).unwrap().format, Format::Jpeg);
}

#[test]
fn notes_say_what_was_left_out_or_turned() {
    let note = |name| decoded(name).notes.iter().map(Note::to_string).collect::<Vec<_>>();
    assert_eq!(note("gif_animated.gif"), ["animated GIF: first of 3 frames"]);
    assert_eq!(note("png_animated.png"), ["animated PNG: first of 3 frames"]);
    assert_eq!(note("webp_animated.webp"), ["animated WebP: first of 3 frames"]);
    assert_eq!(note("tiff_pages.tif"), ["TIFF with several pages: first of 3"]);
    assert_eq!(note("webp_orientation_8.webp"), ["turned upright (EXIF orientation 8)"]);
    assert_eq!(note("gif_plain.gif"), [""; 0]);
    assert_eq!(note("jpeg_orientation_1.jpg"), [""; 0]);
}

#[test]
fn text_and_other_data_are_named() {
    assert_eq!(message(b""), "not a picture: the file is empty");
    assert_eq!(message(b"{\"a\": 1}"), "not a picture: starts with \"{\\\"a\\\": 1}\" (JSON or similar text)");
    assert_eq!(message(b"GGUF\x03\0\0\0\0"), "not a picture: starts with 47 47 55 46 03 00 00 00 (a GGUF model)");
    assert_eq!(message(&[0; 40]), "not a picture: starts with 00 00 00 00 00 00 00 00 (zeros)");
    assert_eq!(message("Überschrift".as_bytes()), "not a picture: starts with \"Überschrift\" (text)");
    assert!(message(b"BMW is a car maker, not a bitmap").starts_with("not a picture: starts with \"BMW is a"));
    assert!(message(b"<!DOCTYPE html><title>404</title>").ends_with("(an HTML page)"));
    assert!(message(b"version https://git-lfs.github.com/spec/v1\n").ends_with("fetch the file itself)"));
}

#[test]
fn known_formats_that_are_not_read_are_named_with_a_next_step() {
    let cases: [(&[u8], &str); 12] = [
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC is not supported: convert it to PNG or JPEG"),
        (b"\0\0\0\x1Cftypavif\0\0\0\0", "AVIF is not supported: convert it to PNG or JPEG"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "MP4 video is not supported: extract its frames as pictures first"),
        (b"\xFF\x0A\x00\x10", "JPEG XL is not supported: convert it to PNG or JPEG"),
        (b"\0\0\0\x0CJXL \r\n\x87\n", "JPEG XL is not supported: convert it to PNG or JPEG"),
        (b"8BPS\0\x01", "PSD (Photoshop) is not supported: convert it to PNG or JPEG"),
        (b"%PDF-1.7", "PDF is not supported: convert it to PNG or JPEG"),
        (b"<svg xmlns=\"http://www.w3.org/2000/svg\">", "SVG is not supported: render it to PNG"),
        (b"<?xml version=\"1.0\"?>\n<!-- x --><svg>", "SVG is not supported: render it to PNG"),
        (b"\x1A\x45\xDF\xA3\x01", "Matroska or WebM video is not supported: extract its frames as pictures first"),
        (b"RIFF\0\0\0\0AVI LIST", "AVI video is not supported: extract its frames as pictures first"),
        (b"P6\n2 2\n255\n", "PNM (PBM, PGM, PPM) is not supported: convert it to PNG or JPEG"),
    ];
    for (bytes, want) in cases {
        assert_eq!(message(bytes), want);
    }
}

#[test]
fn jpeg_variants_that_are_not_read_are_named() {
    let pictures = fixture::pictures();
    let jpeg = &pictures["jpeg_444.jpg"];
    let frame = jpeg.windows(2).position(|w| w == [0xFF, 0xC0]).unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = jpeg.clone();
        bytes[frame + at] = value;
        message(&bytes)
    };
    assert!(with(1, 0xC9).starts_with("arithmetic-coded JPEG is not supported"));
    assert!(with(1, 0xC3).starts_with("lossless JPEG is not supported"));
    assert!(with(1, 0xC5).starts_with("hierarchical JPEG is not supported"));
    assert!(with(4, 12).starts_with("JPEG with more than 8 bits per sample is not supported"));
    assert!(with(9, 2).starts_with("JPEG with other than 1, 3 or 4 components"));
    assert_eq!(with(12, 3), "damaged JPEG file: quantisation table 3 is missing");
    assert_eq!(with(11, 0x51), "damaged JPEG file: component 1: sampling 5x1, quantisation table 0");
}

#[test]
fn a_missing_file_is_named() {
    let error = decode_file("no/such/picture.png", &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read no/such/picture.png");
    assert!(matches!(error, PixelError::Read { .. }));
}
