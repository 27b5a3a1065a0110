//! `rollout` and `plan`.

use crate::session::{Ran, Session, assert_close, fixture, model, npy_bytes, picture};

fn frame(i: usize) -> String {
    let mut files: Vec<_> =
        std::fs::read_dir(fixture("quickstart/clip")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files[i].to_string_lossy().into_owned()
}

/// Width of an action and of a state, from the file.
fn widths(s: &Session, model: &str) -> (usize, usize) {
    let info: serde_json::Value = serde_json::from_str(&s.good(&["info", "--json", model]).stdout).unwrap();
    let width = |key: &str| info["predictor"][key].as_u64().unwrap_or(0) as usize;
    (width("action_dim"), width("state_dim"))
}

fn error_line(ran: &Ran, code: i32) -> String {
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran.stderr.lines().find(|line| line.starts_with("error:")).expect("an error line").to_owned()
}

#[test]
fn candidates_of_lewm_roll_out_together_as_they_do_alone() {
    let s = Session::new();
    let m = model("lewm");
    let (width, _) = widths(&s, &m);
    let values: Vec<f32> = (0..2 * 5 * width).map(|i| (i as f32).sin()).collect();
    s.write("both.npy", npy_bytes(&[2, 5, width], &values));
    s.write("second.npy", npy_bytes(&[5, width], &values[5 * width..]));
    let (a, b) = (frame(0), frame(3));
    // Two context frames take one action, so that four steps are predicted.
    let roll =
        |actions: &str, out: &str| s.good(&["rollout", "-m", &m, "--context", &a, &b, "--actions", actions, "-o", out]);
    roll("both.npy", "both_out.npy");
    roll("second.npy", "second_out.npy");
    let ((shape, both), (_, second)) = (s.npy("both_out.npy"), s.npy("second_out.npy"));
    assert_eq!(shape[..2], [2, 4]);
    assert_close(&both[second.len()..], &second, 1e-5);
}

#[test]
fn v_jepa_2_ac_rolls_poses_and_energies_along() {
    let s = Session::new();
    let m = model("vjepa2_ac");
    let (width, state) = widths(&s, &m);
    s.write("actions.npy", npy_bytes(&[3, width], &vec![0.1; 3 * width]));
    s.write("pose.npy", npy_bytes(&[state], &vec![0.2; state]));
    let (a, goal) = (frame(0), frame(5));
    let args = [
        "rollout",
        "-m",
        &m,
        "--context",
        &a,
        "--actions",
        "actions.npy",
        "--states",
        "pose.npy",
        "--goal",
        &goal,
        "-o",
        "out.safetensors",
    ];
    s.good(&args);
    let bytes = std::fs::read(s.path("out.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("energy").unwrap().shape(), [1, 3]);
    assert_eq!(tensors.tensor("states").unwrap().shape(), [1, 4 * state]);
    let x: Vec<f32> =
        tensors.tensor("states").unwrap().data().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_close(&[x[0], x[state], x[2 * state]], &[0.2, 0.3, 0.4], 1e-6);
}

#[test]
fn a_plan_is_the_same_for_the_same_seed_and_its_cost_falls() {
    let s = Session::new();
    let m = model("lewm");
    let (a, b) = (frame(0), frame(6));
    let plan = |seed: &str, backend: &str| {
        let args = [
            "plan",
            "--backend",
            backend,
            "-m",
            &m,
            "--observation",
            &a,
            "--goal",
            &b,
            "--horizon",
            "3",
            "--samples",
            "64",
            "--seed",
            seed,
            "--json",
        ];
        s.good(&args).stdout
    };
    let first = plan("1", "cpu");
    assert_eq!(first, plan("1", "cpu"));
    assert_ne!(first, plan("2", "cpu"));
    let costs = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(json["actions"].as_array().unwrap().len(), 3);
        json["costs"].as_array().unwrap().iter().map(|c| c.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let here = costs(&first);
    assert!(here[here.len() - 1] < here[0], "{here:?}");
    let there = costs(&plan("1", "ndarray"));
    let (a, b) = (here[here.len() - 1], there[there.len() - 1]);
    assert!((a - b).abs() <= 1e-3 * a, "{a} and {b}");
}

#[test]
fn a_plan_for_v_jepa_2_ac_moves_within_the_reference_bounds() {
    let s = Session::new();
    let m = model("vjepa2_ac");
    let (_, state) = widths(&s, &m);
    s.write("pose.npy", npy_bytes(&[state], &vec![0.2; state]));
    let (a, b) = (frame(0), frame(6));
    let args = [
        "plan",
        "-m",
        &m,
        "--observation",
        &a,
        "--goal",
        &b,
        "--state",
        "pose.npy",
        "--samples",
        "20",
        "--top-k",
        "4",
        "--iterations",
        "3",
        "--json",
    ];
    let json: serde_json::Value = serde_json::from_str(&s.good(&args).stdout).unwrap();
    for action in json["actions"].as_array().unwrap() {
        let value = |i: usize| action[i].as_f64().unwrap().abs();
        assert!((0..3).all(|i| value(i) <= 0.05) && (3..6).all(|i| value(i) == 0.0) && value(6) <= 0.75, "{action}");
    }
}

#[test]
fn wrong_actions_states_and_goals_get_one_clear_line() {
    let s = Session::new();
    let (lewm, ac) = (model("lewm"), model("vjepa2_ac"));
    let ((width, _), (ac_width, state)) = (widths(&s, &lewm), widths(&s, &ac));
    s.write("wide.npy", npy_bytes(&[3, width + 1], &vec![0.0; 3 * (width + 1)]));
    s.write("nan.npy", npy_bytes(&[3, width], &vec![f32::NAN; 3 * width]));
    s.write("good.npy", npy_bytes(&[3, width], &vec![0.0; 3 * width]));
    s.write("few.npy", npy_bytes(&[1, width], &vec![0.0; width]));
    s.write("long.npy", npy_bytes(&[200, ac_width], &vec![0.0; 200 * ac_width]));
    s.write("pose.npy", npy_bytes(&[state], &vec![0.0; state]));
    s.write("short_pose.npy", npy_bytes(&[state - 1], &vec![0.0; state - 1]));
    s.write("text.png", "not a picture");
    let p = picture();
    let roll = |extra: &[&str]| s.run(&[&["rollout", "--context", &p, "-o", "x.npy"], extra].concat());

    assert!(error_line(&roll(&["-m", &lewm, "--actions", "wide.npy"]), 2).contains("jepa.pred.action_dim"));
    assert!(error_line(&roll(&["-m", &lewm, "--actions", "nan.npy"]), 1).contains("NaN"));
    assert!(error_line(&roll(&["-m", &lewm, "--actions", "absent.npy"]), 1).contains("absent.npy"));
    assert!(
        error_line(&roll(&["-m", &lewm, "--actions", "good.npy", "--goal", "text.png"]), 1).contains("not a picture")
    );
    assert!(
        error_line(&roll(&["-m", &ac, "--actions", "long.npy", "--states", "pose.npy"]), 2)
            .contains("jepa.pred.n_frames")
    );
    let stateless = error_line(&roll(&["-m", &ac, "--actions", "long.npy"]), 2);
    assert!(stateless.contains("--states") && stateless.contains("jepa.pred.state_dim"), "{stateless}");
    assert!(error_line(&roll(&["-m", &model("ijepa"), "--actions", "good.npy"]), 3).contains("no world model"));
    let two = s.run(&["rollout", "-m", &lewm, "--context", &p, &p, "--actions", "few.npy", "-o", "x.npy"]);
    assert!(error_line(&two, 2).contains("context frames"));

    let plan = |extra: &[&str]| s.run(&[&["plan", "--observation", &p], extra].concat());
    assert!(error_line(&plan(&["-m", &ac, "--goal", &p]), 2).contains("--state"));
    assert!(
        error_line(&plan(&["-m", &ac, "--goal", &p, "--state", "short_pose.npy"]), 2).contains("jepa.pred.state_dim")
    );
    assert!(error_line(&plan(&["-m", &lewm, "--goal", &p, "--top-k", "1"]), 2).contains("top-k"));
    assert!(error_line(&plan(&["-m", &lewm, "--goal", &p, "--action-std", "-1"]), 2).contains("--action-std"));
    assert!(error_line(&plan(&["-m", &lewm, "--goal", "absent.png"]), 1).contains("absent.png"));
    assert!(error_line(&plan(&["-m", &lewm, "--goal", &p, "--samples", "1000000000"]), 3).contains("--samples"));
    assert!(!s.files().iter().any(|name| name.starts_with("x.npy")), "{:?}", s.files());
}

/// The model that `examples/dot_world` of jepa-models trained, and pictures of its world: a dot at (0.2, 0.25) and at (0.3, 0.45) of the box.
fn dot_world(file: &str) -> String {
    format!("{}/../../models/{file}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_model_that_was_trained_here_is_a_model_like_any_other() {
    let s = Session::new();
    let (m, start, goal) =
        (dot_world("dot-world.gguf"), dot_world("dot-world-start.png"), dot_world("dot-world-goal.png"));
    assert!(s.good(&["info", &m]).stdout.contains("lewm"));
    s.good(&["embed", "-m", &m, &start, &goal, "-o", "states.npy"]);
    let (shape, states) = s.npy("states.npy");
    let width = shape[1] as usize;
    assert_eq!(shape[0], 2);

    // A push of 1 moves the dot by 0.15 of the box, so that these two bring it from start to goal.
    s.write("actions.npy", npy_bytes(&[2, 2], &[0.333, 0.667, 0.333, 0.667]));
    s.good(&["rollout", "-m", &m, "--context", &start, "--actions", "actions.npy", "-o", "rolled.npy"]);
    let (_, rolled) = s.npy("rolled.npy");
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
    let (from, to) = states.split_at(width);
    let last = &rolled[width..];
    assert!(distance(last, to) < 0.1 * distance(from, to), "{} of {}", distance(last, to), distance(from, to));

    let plan = ["plan", "-m", &m, "--observation", &start, "--goal", &goal, "--action-bound", "1", "--json"];
    let json: serde_json::Value = serde_json::from_str(&s.good(&plan).stdout).unwrap();
    let moved =
        |axis: usize| json["actions"].as_array().unwrap().iter().map(|a| a[axis].as_f64().unwrap()).sum::<f64>();
    assert!((moved(0) - 0.667).abs() < 0.4 && (moved(1) - 1.333).abs() < 0.4, "{json}");
}
