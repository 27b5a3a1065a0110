//! `bench`.

use crate::session::{Session, model};

fn lines(s: &Session, args: &[&str]) -> Vec<serde_json::Value> {
    let ran = s.good(&[&["bench", "--repeat", "2", "--json", "-q"], args].concat());
    serde_json::from_str(&ran.stdout).expect("a JSON array")
}

#[test]
fn every_number_of_threads_meets_every_batch() {
    let s = Session::new();
    let args = ["-m", &model("hfvit"), "--threads", "2", "--threads", "1", "--batch", "1", "--batch", "3"];
    let lines = lines(&s, &args);
    let of = |key: &str| lines.iter().map(|line| line[key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(of("threads"), [2, 2, 1, 1]);
    assert_eq!(of("batch"), [1, 3, 1, 3]);
    for line in &lines {
        let [best, median] = ["ms_min", "ms_median"].map(|key| line[key].as_f64().unwrap());
        assert!(0.0 < best && best <= median, "{line}");
        assert!(line["cpu_ms_min"].as_f64().unwrap() > 0.0, "{line}");
    }
    assert_eq!(lines.iter().filter(|line| line["load_ms"].is_number()).count(), 1);
}

#[test]
fn every_part_that_a_model_has_is_timed_and_others_are_refused() {
    let s = Session::new();
    // Tokens of one input: two slots of 4 × 4 patches in the clips, two frames of as many in AC; a frame is one token in LeWM, which looks at three.
    for (name, task, tokens, layers) in [
        ("vjepa2", "predictor", 32, 1),
        ("vjepa2_cls", "head", 32, 2),
        ("hfvit", "head", 1, 1),
        ("lewm", "predictor", 3, 2),
        ("lewm", "rollout", 2, 2),
        ("vjepa2_ac", "predictor", 32, 2),
        ("vjepa2_ac", "rollout", 32, 2),
    ] {
        let lines = lines(&s, &["-m", &model(name), "--task", task, "--batch", "2"]);
        let [line] = &lines[..] else { panic!("{name}: {lines:?}") };
        assert_eq!((line["task"].as_str(), line["batch"].as_u64()), (Some(task), Some(2)));
        assert_eq!(line["tokens"].as_u64(), Some(tokens), "{name} {line}");
        assert_eq!(line["layers"].as_u64(), Some(layers), "{name} {line}");
    }
    for (name, task) in [("hfvit", "predictor"), ("lewm", "head"), ("vjepa2", "rollout")] {
        let ran = s.run(&["bench", "-q", "-m", &model(name), "--task", task]);
        assert_eq!(ran.code, 3);
        assert!(ran.stderr.contains(&format!("this {name} model has no ")), "{ran:?}");
    }
}

#[test]
fn a_size_without_a_file_runs_with_seeded_weights() {
    let s = Session::new();
    let lines = lines(&s, &["--shape", "vit-s", "--task", "head"]);
    assert_eq!(lines[0]["shape"], "vit-s");
    assert_eq!((lines[0]["tokens"].as_u64(), lines[0]["weights"].as_str()), (Some(196), Some("f32")));
}

#[test]
fn several_numbers_of_threads_are_for_bench_alone() {
    let s = Session::new();
    let ran = s.run(&["info", &model("hfvit"), "--threads", "1", "--threads", "2"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--threads"), "{ran:?}");
}

/// Nothing is allocated for what cannot fit.
#[test]
fn batches_that_no_memory_holds_are_refused_with_both_numbers() {
    let s = Session::new();
    let (hfvit, cls, lewm, ac) = (model("hfvit"), model("vjepa2_cls"), model("lewm"), model("vjepa2_ac"));
    for args in [
        &["-m", &hfvit][..],
        &["-m", &hfvit, "--task", "head"],
        &["-m", &cls, "--task", "head"],
        &["-m", &lewm, "--task", "rollout"],
        &["-m", &lewm, "--task", "predictor"],
        &["-m", &ac, "--task", "rollout"],
        &["--shape", "vit-s", "--task", "predictor"],
    ] {
        for batch in ["18446744073709551615", "100000000000"] {
            let ran = s.run(&[&["bench", "-q", "--batch", batch], args].concat());
            assert_eq!(ran.code, 3, "{args:?}: {ran:?}");
            assert!(ran.stderr.contains("GiB of memory") && ran.stderr.contains("lower --batch"), "{args:?}: {ran:?}");
        }
    }
}

/// The CPU is sound at the sizes of a model, and `doctor` says of what.
#[test]
fn a_sound_device_gets_a_clean_bill() {
    let s = Session::new();
    let ran = s.good(&["doctor", "--backend", "cpu", "-m", &model("hfvit"), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["checks"][0]["sound"], true, "{report}");
    assert!(report["device"].as_str().is_some_and(|device| device.contains("burn-flex")), "{report}");
}
