use crate::session::{Session, assert_close, clip, fixture, model, picture};

#[test]
fn one_picture_becomes_one_row_with_an_index() {
    let s = Session::new();
    s.good(&["embed", "-m", &model("hfvit"), &picture(), "-o", "out.npy"]);
    let (shape, values) = s.npy("out.npy");
    assert_eq!(shape[0], 1);
    assert!(values.iter().all(|v| v.is_finite()) && values.iter().any(|&v| v != 0.0));
    let index = std::fs::read_to_string(s.path("out.npy.index.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(index.trim()).unwrap();
    assert_eq!(line, serde_json::json!({ "row": 0, "input": picture() }));
    assert_eq!(s.files(), ["out.npy", "out.npy.index.jsonl"], "nothing else is left behind");
}

#[test]
fn a_bad_input_has_no_row_and_the_others_come_out() {
    let s = Session::new();
    s.write("broken.png", "this is text");
    let ran =
        s.run(&["embed", "-m", &model("hfvit"), &picture(), "broken.png", "absent.png", &picture(), "-o", "out.npy"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("error: broken.png: ") && ran.stderr.contains("error: absent.png: "), "{}", ran.stderr);
    assert_eq!(s.npy("out.npy").0[0], 2);
    let index = std::fs::read_to_string(s.path("out.npy.index.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = index.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line.get("error").is_some()).count(), 2);
    assert_eq!(lines.iter().filter_map(|line| line["row"].as_u64()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn every_format_holds_the_same_numbers() {
    let s = Session::new();
    for out in ["out.npy", "out.safetensors", "out.jsonl", "out.csv"] {
        s.good(&["embed", "-m", &model("ijepa"), &picture(), &picture(), "-o", out]);
    }
    let (shape, values) = s.npy("out.npy");
    let width = shape[1] as usize;

    let bytes = std::fs::read(s.path("out.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let view = tensors.tensor("features").unwrap();
    assert_eq!(view.shape(), [2, width]);
    assert_eq!(view.data(), values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());

    let jsonl = std::fs::read_to_string(s.path("out.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows[1]["input"], picture());
    assert_eq!(rows[1]["values"][3].as_f64().unwrap() as f32, values[width + 3]);

    let mut csv = csv::Reader::from_path(s.path("out.csv")).unwrap();
    let records: Vec<_> = csv.records().map(Result::unwrap).collect();
    assert_eq!((records.len(), records[0].len()), (2, width + 1));
    assert_eq!(records[1][4].parse::<f32>().unwrap(), values[width + 3]);
}

#[test]
fn preprocess_then_input_tensor_equals_the_direct_way() {
    let s = Session::new();
    for case in ["ijepa", "vjepa2_1", "lewm"] {
        s.good(&["embed", "-m", &model(case), &picture(), "-o", "direct.npy"]);
        s.good(&["preprocess", "-m", &model(case), &picture(), "-o", "pixels.npy"]);
        s.good(&["embed", "-m", &model(case), "--input-tensor", "pixels.npy", "-o", "tensor.npy"]);
        assert_eq!(s.npy("direct.npy"), s.npy("tensor.npy"), "{case}");
    }
}

#[test]
fn the_batch_size_and_the_way_of_reading_change_nothing() {
    let s = Session::new();
    let m = model("hfvit");
    let inputs = [picture(), fixture("quickstart/picture.jpg"), picture()];
    let with = |extra: &[&str], out: &str| {
        let mut args = vec!["embed", "-m", &m, "-o", out];
        args.extend(inputs.iter().map(String::as_str));
        args.extend(extra);
        s.good(&args);
        s.npy(out).1
    };
    let three = with(&["--batch", "3"], "three.npy");
    assert_close(&with(&["--batch", "1"], "one.npy"), &three, 1e-5);
    assert_eq!(with(&["--batch", "3", "--no-mmap"], "read.npy"), three);
    // Three passes, of which the first keeps the matrices of a mapped file as bf16 where the processor multiplies it.
    let medium = ["--batch", "1", "--precision", "medium"];
    let read = with(&[&medium[..], &["--no-mmap"]].concat(), "read.npy");
    assert_eq!(with(&medium, "kept.npy"), read);
    assert_close(&read, &three, 0.05);
}

#[test]
fn layers_are_joined_in_the_order_given_and_last_is_the_output() {
    let s = Session::new();
    let m = model("hfvit");
    let embed = |extra: &[&str]| {
        let mut args = vec!["embed", "-m", &m, "-o", "out.npy"];
        let p = picture();
        args.push(&p);
        args.extend(extra);
        s.good(&args);
        s.npy("out.npy")
    };
    let (shape, plain) = embed(&[]);
    let width = shape[1] as usize;
    assert_eq!(embed(&["--layers", "last"]).1, plain);
    let (shape, both) = embed(&["--layers", "last,0"]);
    assert_eq!(shape, [1, 2 * width as u64]);
    assert_eq!(both[..width], plain);
    assert_eq!(both[width..], embed(&["--layers", "0"]).1);
    assert_eq!(embed(&["--layers", "last2"]).1[width..], plain);
}

#[test]
fn poolings_differ_and_none_gives_the_token_map() {
    let s = Session::new();
    let m = model("lewm");
    let embed = |pool: &str| {
        s.good(&["embed", "-m", &m, &picture(), "-o", "out.npy", "--pool", pool]);
        s.npy("out.npy")
    };
    let (shape, tokens) = embed("none");
    let width = shape[2] as usize;
    assert_eq!(embed("cls").1, tokens[..width]);
    let mean: Vec<f32> = (0..width)
        .map(|c| tokens[width..].iter().skip(c).step_by(width).sum::<f32>() / (shape[1] - 1) as f32)
        .collect();
    assert_close(&embed("mean").1, &mean, 1e-5);
    assert_eq!(embed("auto").1, embed("state").1);
    assert_ne!(embed("state").1, embed("cls").1);
}

#[test]
fn l2_gives_rows_of_length_one() {
    let s = Session::new();
    s.good(&["embed", "-m", &model("ijepa"), &picture(), "-o", "out.npy", "--l2"]);
    let length = s.npy("out.npy").1.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    assert!((length - 1.0).abs() < 1e-6, "{length}");
}

#[test]
fn a_folder_of_frames_is_one_clip_for_a_video_model_and_many_pictures_for_an_image_model() {
    let s = Session::new();
    s.good(&["embed", "-m", &model("vjepa2"), &clip(), "-o", "clip.npy"]);
    assert_eq!(s.npy("clip.npy").0[0], 1);
    s.good(&["embed", "-m", &model("hfvit"), &clip(), "-o", "pictures.npy"]);
    assert_eq!(s.npy("pictures.npy").0[0], 8);
}

#[test]
fn a_still_picture_in_a_video_model_is_repeated_and_stderr_says_so() {
    let s = Session::new();
    let ran = s.good(&["embed", "-m", &model("vjepa2"), &picture(), "-o", "out.npy"]);
    assert!(ran.stderr.contains("a still picture, repeated to 2 frames"), "{}", ran.stderr);
    let ran = s.good(&["embed", "-m", &model("vjepa2_1"), &picture(), "-o", "out.npy"]);
    assert!(!ran.stderr.contains("repeated"), "V-JEPA 2.1 has a path for pictures: {}", ran.stderr);
}

#[test]
fn the_same_remark_on_many_inputs_is_made_once_and_counted() {
    let s = Session::new();
    let remarks = |extra: &[&str]| {
        let (m, p) = (model("vjepa2"), picture());
        let args = [&["embed", "-m", &m, &p, &p, &p, "-o", "out.npy"], extra].concat();
        s.good(&args).stderr.matches("still picture").count()
    };
    assert_eq!((remarks(&[]), remarks(&["-v"]), remarks(&["-q"])), (2, 3, 0));
    let ran = s.good(&["embed", "-m", &model("vjepa2"), &picture(), &picture(), &picture(), "-o", "out.npy"]);
    assert!(ran.stderr.contains("note: 2 more inputs: a still picture"), "{}", ran.stderr);
}

#[test]
fn frames_limits_a_clip_and_stderr_says_so() {
    let s = Session::new();
    let ran = s.good(&["embed", "-m", &model("vjepa2"), &clip(), "--frames", "4", "--pool", "none", "-o", "out.npy"]);
    assert!(ran.stderr.contains("4 of 8 frames taken, evenly spaced"), "{}", ran.stderr);
    let four = s.npy("out.npy").0[1];
    s.good(&["embed", "-m", &model("vjepa2"), &clip(), "--frames", "2", "--pool", "none", "-o", "out.npy"]);
    assert_eq!(four, 2 * s.npy("out.npy").0[1]);
}

#[test]
fn another_size_gives_another_grid() {
    let s = Session::new();
    let info: serde_json::Value = serde_json::from_str(&s.good(&["info", "--json", &model("vjepa2")]).stdout).unwrap();
    let patch = info["encoder"]["patch_size"].as_u64().unwrap();
    let size = format!("{}x{}", 6 * patch, 3 * patch);
    s.good(&["embed", "-m", &model("vjepa2"), &picture(), "--pool", "none", "--size", &size, "-o", "out.npy"]);
    assert_eq!(s.npy("out.npy").0[1], 6 * 3);
}

#[test]
fn without_an_output_file_a_summary_or_json_goes_to_stdout() {
    let s = Session::new();
    let text = s.good(&["embed", "-m", &model("hfvit"), &picture()]).stdout;
    assert!(text.starts_with(&picture()) && text.contains("length"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&s.good(&["embed", "-m", &model("hfvit"), &picture(), "--json"]).stdout).unwrap();
    assert_eq!(
        json["rows"][0]["shape"][0].as_u64().unwrap() as usize,
        json["rows"][0]["values"].as_array().unwrap().len()
    );
}

#[test]
fn backends_agree() {
    let s = Session::new();
    for backend in ["cpu", "ndarray"] {
        s.good(&["embed", "--backend", backend, "-m", &model("levjepa"), &clip(), "-o", &format!("{backend}.npy")]);
    }
    assert_close(&s.npy("cpu.npy").1, &s.npy("ndarray.npy").1, 1e-5);
}
