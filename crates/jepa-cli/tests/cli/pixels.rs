use crate::session::{Session, assert_close, clip, fixture, model, picture};

#[test]
fn pictures_of_image_models_have_no_frame_axis() {
    let s = Session::new();
    s.good(&["preprocess", "-m", &model("ijepa"), &picture(), &picture(), "-o", "out.npy"]);
    assert_eq!(s.npy("out.npy").0.len(), 4);
    s.good(&["preprocess", "-m", &model("ijepa"), &picture(), "-o", "out.npy", "--u8"]);
    let (shape, _) = s.npy_u8("out.npy");
    assert_eq!((shape.len(), shape[3]), (4, 3));
}

#[test]
fn the_float_tensor_is_the_normalised_u8_pixels() {
    let s = Session::new();
    let m = model("hfvit");
    s.good(&["preprocess", "-m", &m, &picture(), "-o", "f32.npy"]);
    s.good(&["preprocess", "-m", &m, &picture(), "-o", "u8.npy", "--u8"]);
    let info: serde_json::Value = serde_json::from_str(&s.good(&["info", "--json", &m]).stdout).unwrap();
    let stat = |key: &str, c: usize| info["preprocess"][key][c].as_f64().unwrap() as f32;
    let (shape, bytes) = s.npy_u8("u8.npy");
    let plane = (shape[1] * shape[2]) as usize;
    let want: Vec<f32> = (0..3)
        .flat_map(|c| (0..plane).map(move |i| (c, i)))
        .map(|(c, i)| (f32::from(bytes[i * 3 + c]) / 255.0 - stat("mean", c)) / stat("std", c))
        .collect();
    assert_close(&s.npy("f32.npy").1, &want, 1e-5);
}

#[test]
fn a_clip_has_its_frames_in_number_order() {
    let s = Session::new();
    let m = model("vjepa2");
    s.good(&["preprocess", "-m", &m, &clip(), "-o", "clip.npy", "--u8"]);
    let (shape, bytes) = s.npy_u8("clip.npy");
    assert_eq!(shape.len(), 5);
    let frame = bytes.len() / shape[1] as usize;
    let mut files: Vec<_> = std::fs::read_dir(clip()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let last = files[(shape[1] as usize - 1) * files.len() / shape[1] as usize].to_string_lossy().into_owned();
    s.good(&["preprocess", "-m", &m, &last, "-o", "still.npy", "--u8"]);
    assert_eq!(s.npy_u8("still.npy").1[..frame], bytes[bytes.len() - frame..]);
}

#[test]
fn a_jpeg_is_found_by_content_whatever_its_name() {
    let s = Session::new();
    std::fs::copy(fixture("quickstart/picture.jpg"), s.path("misnamed.png")).unwrap();
    s.good(&["preprocess", "-m", &model("ijepa"), "misnamed.png", "-o", "a.npy", "--u8"]);
    s.good(&["preprocess", "-m", &model("ijepa"), &fixture("quickstart/picture.jpg"), "-o", "b.npy", "--u8"]);
    assert_eq!(s.npy_u8("a.npy"), s.npy_u8("b.npy"));
}

#[test]
fn frames_of_an_npy_file_equal_the_same_frames_as_pictures() {
    let s = Session::new();
    let m = model("vjepa2");
    s.good(&["preprocess", "-m", &m, &clip(), "-o", "clip.npy", "--u8"]);
    let (shape, bytes) = s.npy_u8("clip.npy");
    let text = format!(
        "{{'descr': '|u1', 'fortran_order': False, 'shape': ({}, {}, {}, 3), }}\n",
        shape[1], shape[2], shape[3]
    );
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((text.len() as u16).to_le_bytes());
    npy.extend(text.bytes());
    npy.extend(&bytes);
    s.write("frames.npy", npy);
    let size = format!("{}x{}", shape[2], shape[3]);
    s.good(&["preprocess", "-m", &m, "frames.npy", "-o", "again.npy", "--u8", "--size", &size]);
    assert_eq!(s.npy_u8("again.npy").0, shape);
}
