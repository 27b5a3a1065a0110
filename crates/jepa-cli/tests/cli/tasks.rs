//! `classify` and `predict`.

use crate::session::{Session, assert_close, clip, fixture, model, picture};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON on stdout")
}

#[test]
fn classify_names_the_most_likely_classes_first() {
    let s = Session::new();
    for (case, input) in [("ijepa_split", picture()), ("hfvit", picture()), ("vjepa2_cls", clip())] {
        let ran = s.good(&["classify", "-m", &model(case), &input, "--top-k", "3", "--json", "--logits", "logits.npy"]);
        let top = json(&ran.stdout)["inputs"][0]["top"].as_array().unwrap().clone();
        assert_eq!(top.len(), 3, "{case}");
        let (shape, logits) = s.npy("logits.npy");
        assert_eq!(shape[0], 1);
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(top[0]["logit"].as_f64().unwrap() as f32, best);
        assert_eq!(logits[top[0]["class"].as_u64().unwrap() as usize], best);
        let sum: f32 = logits.iter().map(|l| (l - best).exp()).sum();
        assert!((top[0]["probability"].as_f64().unwrap() as f32 - 1.0 / sum).abs() < 1e-6);
    }
}

#[test]
fn classify_of_a_tensor_equals_classify_of_its_picture() {
    let s = Session::new();
    let m = model("ijepa_split");
    s.good(&["preprocess", "-m", &m, &picture(), "-o", "pixels.npy"]);
    s.good(&["classify", "-m", &m, &picture(), "--logits", "a.npy"]);
    s.good(&["classify", "-m", &m, "--input-tensor", "pixels.npy", "--logits", "b.npy"]);
    assert_eq!(s.npy("a.npy"), s.npy("b.npy"));
}

/// One crop in one piece is the ordinary clip; several give one score per view, and their probabilities sum to 1.
#[test]
fn classify_averages_over_views_and_joins_segments() {
    let s = Session::new();
    let m = model("vjepa2_cls");
    s.good(&["classify", "-m", &m, &clip(), "--logits", "plain.npy"]);
    s.good(&["classify", "-m", &m, &clip(), "--segments", "1", "--views", "1", "--logits", "one.npy"]);
    assert_eq!(s.npy("plain.npy"), s.npy("one.npy"));
    let ran = s.good(&[
        "classify",
        "-m",
        &m,
        &clip(),
        "--segments",
        "2",
        "--views",
        "3",
        "--top-k",
        "99",
        "--json",
        "--logits",
        "many.npy",
    ]);
    let (shape, logits) = s.npy("many.npy");
    let n = shape[2] as usize;
    assert_eq!(shape[..2], [1, 3]);
    assert_ne!(logits[..n], logits[n..2 * n]);
    let top = json(&ran.stdout)["inputs"][0]["top"].as_array().unwrap().clone();
    assert!(top.windows(2).all(|pair| pair[0]["probability"].as_f64() >= pair[1]["probability"].as_f64()));
    let sum: f64 = top.iter().map(|class| class["probability"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    assert!(top[0].get("logit").is_none());
}

#[test]
fn clips_that_cannot_be_cut_are_refused() {
    let s = Session::new();
    let line = |args: &[&str], code: i32| {
        let ran = s.run(args);
        assert_eq!(ran.code, code, "{ran:?}");
        ran.stderr.lines().find(|line| line.starts_with("error:")).expect("an error line").to_owned()
    };
    let (video, picture_model) = (model("vjepa2_cls"), model("ijepa_split"));
    let time = line(&["classify", "-m", &picture_model, &picture(), "--segments", "2"], 2);
    assert!(time.contains("--segments") && time.contains("pictures"), "{time}");
    let squash = line(&["classify", "-m", &picture_model, &picture(), "--views", "3"], 2);
    assert!(squash.contains("--views") && squash.contains("squash"), "{squash}");
    let still = line(&["classify", "-m", &video, &picture(), "--segments", "2"], 1);
    assert!(still.contains("still picture"), "{still}");
    let short = line(&["classify", "-m", &video, &clip(), "--segments", "99"], 1);
    assert!(short.contains("99 segments"), "{short}");
}

#[test]
fn predict_gives_the_targets_in_their_order() {
    let s = Session::new();
    let m = model("ijepa");
    let predict = |targets: &str, out: &str| {
        s.good(&["predict", "-m", &m, &picture(), "--context", "0,1,4-6", "--targets", targets, "-o", out]);
        s.npy(out)
    };
    let (shape, values) = predict("2,3", "a.npy");
    let width = shape[2] as usize;
    assert_eq!(shape[..2], [1, 2]);
    let (_, swapped) = predict("3,2", "b.npy");
    assert_close(&values[..width], &swapped[width..], 1e-5);
    assert_close(&values[width..], &swapped[..width], 1e-5);
}

#[test]
fn predict_writes_the_context_rows_of_v_jepa_2_1_too() {
    let s = Session::new();
    for input in [picture(), clip()] {
        s.good(&[
            "predict",
            "-m",
            &model("vjepa2_1"),
            &input,
            "--context",
            "0-3",
            "--targets",
            "4,5",
            "-o",
            "out.safetensors",
        ]);
        let bytes = std::fs::read(s.path("out.safetensors")).unwrap();
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let rows = |name| tensors.tensor(name).unwrap().shape()[1];
        assert_eq!((rows("pred"), rows("context")), (2, 4));
    }
}

#[test]
fn ids_off_the_grid_and_models_without_the_part_are_refused() {
    let s = Session::new();
    let line = |args: &[&str], code: i32| {
        let ran = s.run(args);
        assert_eq!(ran.code, code, "{ran:?}");
        ran.stderr.lines().find(|line| line.starts_with("error:")).expect("an error line").to_owned()
    };
    let (ijepa, lewm) = (model("ijepa"), model("lewm"));
    let p = picture();
    let off = line(&["predict", "-m", &ijepa, &p, "--context", "0", "--targets", "9999", "-o", "x.npy"], 2);
    assert!(off.contains("9999") && off.contains("off the grid"), "{off}");
    let off = line(&["predict", "-m", &ijepa, &p, "--context", "9999", "--targets", "0", "-o", "x.npy"], 2);
    assert!(off.contains("off the grid"), "{off}");
    let none = line(&["predict", "-m", &lewm, &p, "--context", "0", "--targets", "1", "-o", "x.npy"], 3);
    assert!(none.contains("no masked predictor") && none.contains("rollout, plan"), "{none}");
    let none = line(
        &["predict", "-m", &fixture("quickstart/tiny.gguf"), &p, "--context", "0", "--targets", "1", "-o", "x.npy"],
        3,
    );
    assert!(none.contains("no predictor") && none.contains("embed"), "{none}");
    let none = line(&["classify", "-m", &ijepa, &p], 3);
    assert!(none.contains("no head") && none.contains("predict"), "{none}");
    assert_eq!(s.run(&["predict", "-m", &ijepa, &p, "--context", "5-1", "--targets", "1", "-o", "x.npy"]).code, 2);
    assert_eq!(
        s.run(&["predict", "-m", &ijepa, &p, "--context", "absent.npy", "--targets", "1", "-o", "x.npy"]).code,
        2
    );
    assert!(s.files().is_empty(), "{:?}", s.files());
}
