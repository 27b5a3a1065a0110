//! Wrong input gets one clear line and the right exit code.

use jepa_gguf::Gguf;

use crate::session::{Ran, Session, clip, fixture, model, npy_bytes, picture};

/// Exactly one line on stderr that starts with `error:` and holds every word; no panic.
fn assert_one_line(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{ran:?}");
    let errors: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert!(words.iter().all(|word| errors[0].contains(word)), "{words:?} in {errors:?}");
    let summaries = errors.iter().filter(|line| line.ends_with("inputs failed")).count();
    assert_eq!(errors.len() - summaries, 1, "{errors:?}");
}

#[test]
fn a_model_that_is_not_there_or_no_model() {
    let s = Session::new();
    s.write("text.gguf", "hello, I am not a model");
    s.write("empty.gguf", "");
    for (model, words) in [
        ("absent.gguf", ["absent.gguf", "No such file"]),
        ("text.gguf", ["text.gguf", "magic"]),
        ("empty.gguf", ["empty.gguf", "header"]),
    ] {
        assert_one_line(&s.run(&["info", model]), 3, &words);
        assert_one_line(&s.run(&["embed", "-m", model, &picture()]), 3, &words);
        assert_one_line(&s.run(&["preprocess", "-m", model, &picture(), "-o", "x.npy"]), 3, &words);
    }
    assert_one_line(&s.run(&["info", "."]), 3, &["."]);
    assert_one_line(&s.run(&["info", &picture()]), 3, &["magic"]);
}

#[test]
fn a_file_cut_short_names_a_tensor() {
    let s = Session::new();
    let bytes = std::fs::read(model("ijepa")).unwrap();
    s.write("cut.gguf", &bytes[..bytes.len() - 100]);
    assert_one_line(&s.run(&["info", "cut.gguf"]), 3, &["tensor ", "damaged or an incomplete download"]);
}

#[test]
fn inputs_that_are_no_pictures() {
    let s = Session::new();
    s.write("text.png", "this is text");
    s.write("empty.png", "");
    std::fs::create_dir(s.path("folder")).unwrap();
    std::fs::copy(picture(), s.path("cut.png")).unwrap();
    let cut = std::fs::read(s.path("cut.png")).unwrap();
    s.write("cut.png", &cut[..cut.len() / 2]);
    for input in ["absent.png", "text.png", "empty.png", "folder", "cut.png"] {
        let ran = s.run(&["embed", "-m", &model("ijepa"), input, "-o", "out.npy"]);
        assert_one_line(&ran, 1, &[input]);
        assert!(!s.files().contains(&"out.npy".to_owned()), "no row, no file");
    }
}

#[test]
fn what_the_model_cannot_do() {
    let s = Session::new();
    assert_one_line(
        &s.run(&["embed", "-m", &model("ijepa"), &picture(), "--pool", "cls"]),
        3,
        &["cls", "no CLS token", "mean"],
    );
    assert_one_line(&s.run(&["embed", "-m", &model("hfvit"), &picture(), "--pool", "state"]), 3, &["no projector"]);
    assert_one_line(
        &s.run(&["embed", "-m", &model("ijepa"), &picture(), "--size", "33x32"]),
        2,
        &["33×32", "no multiple"],
    );
    assert_one_line(&s.run(&["embed", "-m", &model("ijepa"), &picture(), "--layers", "99"]), 2, &["99", "0 to"]);
}

#[test]
fn arguments_that_make_no_sense() {
    let s = Session::new();
    for args in [
        vec!["embed", "-m", "m.gguf"],
        vec!["embed", "-m", "m.gguf", "a.png", "--layers", "first"],
        vec!["embed", "-m", "m.gguf", "a.png", "--size", "0x0"],
        vec!["embed", "-m", "m.gguf", "a.png", "--batch", "0"],
        vec!["embed", "a.png"],
        vec!["nonsense"],
        vec![],
    ] {
        assert_eq!(s.run(&args).code, 2, "{args:?}");
    }
    assert_one_line(
        &s.run(&["embed", "-m", &model("ijepa"), &picture(), "-o", "out.txt"]),
        2,
        &["out.txt", ".npy", ".csv"],
    );
    assert_one_line(&s.run(&["verify", "a", "b", "--dump", "x.safetensors"]), 2, &["one case at a time"]);
    assert_one_line(
        &s.run(&["trace", "-m", &model("ijepa"), &picture(), &picture(), "-o", "x.safetensors"]),
        2,
        &["takes one input"],
    );
}

#[test]
fn a_backend_that_was_not_compiled_in_names_the_feature() {
    let s = Session::new();
    let ran = s.run(&["embed", "--backend", "cuda", "-m", &model("ijepa"), &picture()]);
    assert_one_line(&ran, 2, &["cuda", "--features cuda"]);
}

/// The Vulkan loader is told to look for drivers where there are none.
#[test]
fn a_machine_without_an_adapter_says_so() {
    let s = Session::new();
    let without = |args: &[&str]| {
        let mut command = s.command(args);
        command.env("VK_ICD_FILENAMES", "/nowhere.json").env("VK_DRIVER_FILES", "/nowhere.json");
        Ran::from(command.output().expect("the program starts"))
    };
    let ran = without(&["embed", "--backend", "wgpu", "-m", &model("ijepa"), &picture()]);
    assert_one_line(&ran, 3, &["backend wgpu", "adapter", "--backend cpu"]);
    let ran = without(&["devices"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("adapter was found"), "{ran:?}");
    let ran = without(&["embed", "-m", &model("ijepa"), &picture(), "-o", "o.npy"]);
    assert!(ran.code == 0 && ran.stderr.contains("backend: cpu"), "{ran:?}");
}

#[test]
fn tensors_that_are_no_pixels() {
    let s = Session::new();
    s.write("rank.npy", npy_bytes(&[2, 3], &[0.0; 6]));
    s.write("nan.npy", npy_bytes(&[1, 3, 16, 16], &[f32::NAN; 768]));
    s.write("chans.npy", npy_bytes(&[1, 1, 16, 16], &[0.0; 256]));
    s.write("small.npy", npy_bytes(&[1, 3, 2, 2], &[0.0; 12]));
    s.write("lying.npy", npy_bytes(&[1, 3, 60_000, 60_000], &[0.0; 12]));
    s.write("text.npy", "no array");
    for (file, word) in [
        ("rank.npy", "[N,C,H,W]"),
        ("nan.npy", "NaN"),
        ("chans.npy", "jepa.enc.in_chans"),
        ("small.npy", "patch"),
        ("lying.npy", "promised"),
        ("text.npy", "not an .npy file"),
        ("absent.npy", "No such file"),
    ] {
        assert_one_line(&s.run(&["embed", "-m", &model("ijepa"), "--input-tensor", file]), 1, &[file, word]);
    }
}

#[test]
fn a_clip_for_an_image_model() {
    let s = Session::new();
    s.good(&["preprocess", "-m", &model("vjepa2"), &clip(), "-o", "clip.npy"]);
    assert_one_line(
        &s.run(&["embed", "-m", &model("ijepa"), "--input-tensor", "clip.npy"]),
        1,
        &["frames", "one picture at a time"],
    );
}

#[test]
fn what_no_memory_can_hold_is_refused_with_both_numbers() {
    let s = Session::new();
    let ran = s.run(&["embed", "-m", &model("vjepa2"), &clip(), "--size", "16384x16384", "--frames", "4000"]);
    assert_one_line(&ran, 3, &["needs about", "are available", "--size"]);
}

#[test]
fn a_case_that_is_none() {
    let s = Session::new();
    assert_one_line(&s.run(&["verify", "."]), 1, &["case.json"]);
    s.write("case.json", "{}");
    assert_one_line(&s.run(&["verify", "."]), 1, &["case.json"]);
    assert_one_line(&s.run(&["compare", "a.txt", "b.txt"]), 1, &["a.txt"]);
    assert_one_line(&s.run(&["verify", &fixture("quickstart")]), 1, &["case.json"]);
}

#[test]
fn one_bad_input_gets_one_line_and_no_empty_output() {
    let s = Session::new();
    let ran = s.run(&["embed", "-q", "-m", &model("ijepa"), "absent.png"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.lines().count()), (1, "", 1), "{ran:?}");
}

#[test]
fn an_output_never_overwrites_what_is_read() {
    let s = Session::new();
    std::fs::copy(model("ijepa"), s.path("model.npy")).unwrap();
    std::fs::copy(picture(), s.path("x.npy.index.jsonl")).unwrap();
    assert_one_line(
        &s.run(&["embed", "-m", "model.npy", &picture(), "-o", "model.npy"]),
        2,
        &["overwrite", "model.npy"],
    );
    assert_one_line(&s.run(&["embed", "-m", "model.npy", "x.npy.index.jsonl", "-o", "x.npy"]), 2, &["overwrite"]);
    assert_one_line(&s.run(&["preprocess", "-m", "model.npy", &picture(), "-o", "./model.npy"]), 2, &["overwrite"]);
    assert_eq!(std::fs::read(s.path("model.npy")).unwrap(), std::fs::read(model("ijepa")).unwrap());
}

#[test]
fn when_every_input_fails_the_index_says_why() {
    let s = Session::new();
    assert_eq!(s.run(&["embed", "-m", &model("ijepa"), "absent.png", "-o", "out.npy"]).code, 1);
    assert_eq!(s.files(), ["out.npy.index.jsonl"]);
    let index = std::fs::read_to_string(s.path("out.npy.index.jsonl")).unwrap();
    assert!(index.contains("absent.png") && index.contains("No such file"), "{index}");
}

/// The last norm of these models multiplies by more than f32 holds.
#[test]
fn features_that_are_no_numbers_are_no_features() {
    let s = Session::new();
    for name in ["ijepa", "ijepa_split"] {
        let gguf = Gguf::open(model(name)).unwrap();
        let norm = gguf.tensor("enc.norm.weight").unwrap().bytes();
        let mut file = std::fs::read(model(name)).unwrap();
        let at = file.windows(norm.len()).position(|window| window == norm).unwrap();
        file[at..at + norm.len()].copy_from_slice(&f32::MAX.to_le_bytes().repeat(norm.len() / 4));
        s.write(&format!("{name}.gguf"), file);
    }
    s.write("x.npy", npy_bytes(&[1, 3, 16, 16], &[0.5; 768]));
    let refused = |args: &[&str]| {
        let ran = s.run(&[args, &["--input-tensor", "x.npy"]].concat());
        assert_one_line(&ran, 1, &["no numbers"]);
    };
    refused(&["embed", "-m", "ijepa.gguf"]);
    refused(&["classify", "-m", "ijepa_split.gguf"]);
    refused(&["predict", "-m", "ijepa.gguf", "--context", "0", "--targets", "1", "-o", "o.npy"]);
}

#[test]
fn names_cannot_talk_to_the_terminal() {
    let s = Session::new();
    let ran = s.run(&["embed", "-m", &model("ijepa"), "evil\u{1b}[31m\nname.png"]);
    assert_one_line(&ran, 1, &["evil\\u{1b}[31m\\nname.png"]);
}

#[test]
fn a_batch_of_any_size_and_too_many_threads() {
    let s = Session::new();
    s.good(&["embed", "-m", &model("ijepa"), &picture(), "--batch", "18446744073709551615"]);
    assert_eq!(s.run(&["embed", "-m", &model("ijepa"), &picture(), "--threads", "20000"]).code, 2);
    let ran = s.good(&["embed", "-m", &model("vjepa2"), &clip(), "--frames", "1000000"]);
    assert!(!ran.stderr.contains("do not fit"), "{}", ran.stderr);
}
