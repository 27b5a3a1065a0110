//! `probe train` and `probe eval`, and what `classify` makes of their files.

use std::process::Stdio;

use serde_json::Value;

use crate::session::{Session, fixture, model, picture};
use crate::shapes;

fn tiny() -> String {
    fixture("quickstart/tiny.gguf")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on stdout")
}

/// The only error line of a run that ends with `code`.
fn refusal(s: &Session, args: &[&str], code: i32) -> String {
    let ran = s.run(args);
    assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    let lines: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("error:")).collect();
    assert_eq!(lines.len(), 1, "{ran:?}");
    lines[0].to_owned()
}

fn bytes(s: &Session, name: &str) -> Vec<u8> {
    std::fs::read(s.path(name)).expect(name)
}

/// A session with `train` and `test`, drawn apart.
fn with_shapes(classes: usize, train: usize, test: usize) -> Session {
    let s = Session::new();
    shapes::write(&s, "train", 0..classes, train, 1);
    shapes::write(&s, "test", 0..classes, test, 2);
    s
}

/// `models/dot-world.gguf`, which learned in another world than that of the shapes.
fn dot_world() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/dot-world.gguf").to_owned()
}

/// What `probe eval` says of `out` on the `n` inputs of `data`; `classify` must give every input the same class.
fn judged_by_every_command(s: &Session, out: &str, data: &str, n: u64) -> f64 {
    let judged = json(&s.good(&["probe", "eval", "-q", "-m", out, data, "--json"]).stdout);
    assert_eq!((judged["inputs"].as_u64(), judged["failed"].as_u64()), (Some(n), Some(0)));
    assert_eq!(judged["top_5"].as_f64().map(|top| top >= judged["accuracy"].as_f64().unwrap()), Some(true));
    let classified = json(&s.good(&["classify", "-q", "-m", out, data, "--json"]).stdout);
    let given = |input: &Value| {
        let line = classified["inputs"].as_array().unwrap().iter().find(|line| &line["input"] == input);
        line.unwrap()["top"][0]["label"].clone()
    };
    for line in judged["predictions"].as_array().unwrap() {
        assert_eq!(given(&line["input"]), line["predicted"], "{line}");
    }
    judged["accuracy"].as_f64().unwrap()
}

/// Accuracies of the linear and the attentive probe of model `m` on `test`.
fn accuracies(s: &Session, m: &str) -> [f64; 2] {
    ["linear", "attentive"].map(|kind| {
        let out = format!("{kind}.gguf");
        s.good(&["probe", "train", "-q", "-m", m, "train", "-o", &out, "--kind", kind]);
        judged_by_every_command(s, &out, "test", 160)
    })
}

#[test]
fn shapes_are_learned_and_every_command_gives_the_same_classes() {
    let s = with_shapes(8, 80, 20);
    let neighbours = |m: &str| {
        let said = s.good(&["probe", "train", "-q", "-m", m, "train", "--kind", "knn", "--json"]).stdout;
        json(&said)["accuracy"].as_f64().unwrap()
    };
    // The features of an untrained encoder are worth less, but not nothing.
    for (m, least) in [(dot_world(), 0.98), (tiny(), 0.9)] {
        let [linear, attentive] = accuracies(&s, &m);
        eprintln!("{m}: linear {linear}, attentive {attentive}, k-NN {}", neighbours(&m));
        assert!(linear >= least, "linear {linear}");
        // One of 160 pictures less is what another processor's rounding may do.
        assert!(attentive > linear - 0.01, "attentive {attentive}, linear {linear}");
        assert!(neighbours(&m) > 0.3);
    }
    assert_eq!(s.files(), ["attentive.gguf", "linear.gguf", "test", "train"], "no checkpoint is left");
}

/// Rows of an `.npy` that `embed` wrote, and the class folder of each.
fn exported(s: &Session, folder: &str) -> (Vec<Vec<f64>>, Vec<String>) {
    s.good(&["embed", "-q", "-m", &dot_world(), folder, "-o", "features.npy"]);
    let (shape, values) = s.npy("features.npy");
    let rows = values.chunks_exact(shape[1] as usize).map(|row| row.iter().map(|&v| f64::from(v)).collect()).collect();
    let index = String::from_utf8(bytes(s, "features.npy.index.jsonl")).unwrap();
    let class = |line: &str| json(line)["input"].as_str().unwrap().split('/').nth_back(1).unwrap().to_owned();
    (rows, index.lines().map(class).collect())
}

/// Logistic regression as in scikit-learn (C = 1, standardised features), by gradient descent with momentum until it stands still.
fn logistic_regression(train: &[Vec<f64>], labels: &[String], test: &[Vec<f64>]) -> Vec<String> {
    let mut names = labels.to_vec();
    names.sort();
    names.dedup();
    let (n, width, k) = (train.len() as f64, train[0].len(), names.len());
    let mean: Vec<f64> = (0..width).map(|i| train.iter().map(|row| row[i]).sum::<f64>() / n).collect();
    let deviation = |i: usize| (train.iter().map(|row| (row[i] - mean[i]).powi(2)).sum::<f64>() / n).sqrt();
    let deviations: Vec<f64> = (0..width).map(deviation).collect();
    // The last column is for the bias.
    let standard =
        |row: &Vec<f64>| (0..width).map(|i| (row[i] - mean[i]) / deviations[i]).chain([1.0]).collect::<Vec<f64>>();
    let rows: Vec<_> = train.iter().map(standard).collect();
    let scores = |weights: &[Vec<f64>], row: &[f64]| -> Vec<f64> {
        weights.iter().map(|w| w.iter().zip(row).map(|(w, v)| w * v).sum()).collect()
    };
    let (mut weights, mut speed) = (vec![vec![0.0; width + 1]; k], vec![vec![0.0; width + 1]; k]);
    for _ in 0..600 {
        let mut gradient = weights.clone();
        gradient.iter_mut().for_each(|of_class| {
            of_class.iter_mut().for_each(|g| *g /= n);
            of_class[width] = 0.0;
        });
        for (row, label) in rows.iter().zip(labels) {
            let scores: Vec<f64> = scores(&weights, row).iter().map(|score| score.exp()).collect();
            let sum: f64 = scores.iter().sum();
            for (c, of_class) in gradient.iter_mut().enumerate() {
                let error = (scores[c] / sum - f64::from(u8::from(&names[c] == label))) / n;
                of_class.iter_mut().zip(row).for_each(|(g, v)| *g += error * v);
            }
        }
        for ((w, s), g) in weights.iter_mut().zip(&mut speed).zip(&gradient) {
            for ((w, s), g) in w.iter_mut().zip(s).zip(g) {
                *s = 0.95 * *s - 0.2 * g;
                *w += *s;
            }
        }
    }
    let best = |row: &Vec<f64>| {
        let scores = scores(&weights, &standard(row));
        let best = (0..k).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
        names[best].clone()
    };
    test.iter().map(best).collect()
}

#[test]
fn a_linear_probe_agrees_with_logistic_regression_on_exported_features() {
    let s = with_shapes(8, 12, 20);
    let ((train, labels), (test, truth)) = (exported(&s, "train"), exported(&s, "test"));
    let given = logistic_regression(&train, &labels, &test);
    let theirs = given.iter().zip(&truth).filter(|(given, truth)| given == truth).count() as f64 / truth.len() as f64;
    s.good(&["probe", "train", "-q", "-m", &dot_world(), "train", "-o", "out.gguf", "--val-split", "0"]);
    let judged = json(&s.good(&["probe", "eval", "-q", "-m", "out.gguf", "test", "--json"]).stdout);
    let ours = judged["accuracy"].as_f64().unwrap();
    eprintln!("ours {ours}, theirs {theirs}");
    assert!((ours - theirs).abs() <= 0.02, "ours {ours}, theirs {theirs}");
}

#[test]
fn clips_are_learned_from_as_pictures_are() {
    let s = Session::new();
    // Four pictures each, of a red or a blue shape.
    for (class, clips) in [(0, 6), (2, 6)] {
        for clip in 0..clips {
            let name = format!("train/{}/clip {clip}", shapes::label(class));
            std::fs::create_dir_all(s.path(&name)).unwrap();
            for frame in 0..4 {
                s.write(&format!("{name}/{frame}.bmp"), shapes::picture(class, clip, 3));
            }
        }
    }
    for rest in [&["--kind", "linear", "--layers", "last2"][..], &["--kind", "attentive"]] {
        let args = ["probe", "train", "-q", "-m", &model("vjepa2"), "train", "-o", "out.gguf", "--json"];
        let trained = json(&s.good(&[&args[..], rest].concat()).stdout);
        assert_eq!((trained["inputs"].as_u64(), trained["held_out"].as_u64()), (Some(12), Some(2)), "{trained}");
        assert_eq!(judged_by_every_command(&s, "out.gguf", "train", 12), 1.0, "{rest:?}");
    }
}

#[test]
fn the_seed_decides_every_byte() {
    let s = with_shapes(3, 8, 0);
    for kind in ["linear", "attentive"] {
        let train = |seed: &str, out: &str| {
            let args = ["probe", "train", "-q", "-m", &tiny(), "train", "-o", out, "--kind", kind, "--epochs", "6"];
            s.good(&[&args[..], &["--seed", seed, "--augment", "2"]].concat());
            bytes(&s, out)
        };
        let first = train("1", "a.gguf");
        assert_eq!(train("1", "b.gguf"), first, "{kind}");
        assert_ne!(train("2", "c.gguf"), first, "{kind}");
    }
}

#[test]
fn a_killed_training_goes_on_and_ends_with_the_same_bytes() {
    let s = with_shapes(3, 16, 0);
    // With a learning rate a linear probe takes a step for every example too.
    for (kind, epochs, lr) in [("linear", "60", "0.01"), ("attentive", "8", "0.001")] {
        let m = tiny();
        let (whole, killed) = (format!("{kind}.gguf"), format!("{kind}-killed.gguf"));
        let rest = ["--kind", kind, "--epochs", epochs, "--lr", lr, "--batch", "1", "--val-split", "0"];
        s.good(&[&["probe", "train", "-m", &m, "train", "-o", &whole][..], &rest].concat());
        let again = [&["probe", "train", "-m", &m, "train", "-o", &killed][..], &rest].concat();
        let mut child = s.command(&again).stderr(Stdio::null()).spawn().unwrap();
        while !s.path(&format!("{killed}.checkpoint")).exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended without a checkpoint");
            std::thread::yield_now();
        }
        // SIGKILL on Unix.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!s.path(&killed).exists(), "it was killed in mid-training");
        let ran = s.good(&again);
        assert!(ran.stderr.contains("going on after epoch"), "{}", ran.stderr);
        assert_eq!(bytes(&s, &killed), bytes(&s, &whole), "{kind}");
        let left: Vec<_> = s.files().into_iter().filter(|name| name.ends_with(".checkpoint")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_checkpoint_of_another_run_is_not_gone_on_from() {
    let s = with_shapes(2, 6, 0);
    let train = |extra: &[&str]| {
        s.good(&[&["probe", "train", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "3"], extra].concat()).stderr
    };
    s.write("out.gguf.checkpoint", "jepa-training 1\nrubbish");
    let said = train(&[]);
    assert!(
        said.contains("out.gguf.checkpoint: the checkpoint cannot be used") && said.contains("starting anew"),
        "{said}"
    );
    assert!(!s.path("out.gguf.checkpoint").exists());
}

#[test]
fn features_are_computed_once() {
    let s = with_shapes(2, 6, 0);
    let train = |extra: &[&str]| {
        let args = ["probe", "train", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "1"];
        s.good(&[&args[..], extra].concat()).stderr.contains("from the cache")
    };
    assert!(!train(&[]));
    assert!(train(&["--lr", "0.5", "--seed", "9"]), "nothing that changes the features");
    assert!(!train(&["--pool", "mean", "--layers", "0"]));
    assert!(!train(&["--augment", "1"]));
    assert!(!train(&["--augment", "1", "--seed", "9"]));
    s.write(&format!("train/{}/0.bmp", shapes::label(0)), shapes::picture(0, 77, 5));
    assert!(!train(&[]), "a picture has changed");
    // The head is no part of what the features depend on.
    s.good(&["probe", "train", "-q", "-m", &tiny(), "train", "-o", "base.gguf", "--epochs", "1"]);
    let again = s.good(&["probe", "train", "-m", "base.gguf", "train", "-o", "out.gguf", "--epochs", "1"]);
    assert!(again.stderr.contains("from the cache"), "{}", again.stderr);
}

#[test]
fn the_usual_heads_need_no_key_of_ours_and_others_are_honoured() {
    let s = with_shapes(2, 6, 0);
    let keys = |extra: &[&str]| {
        s.good(&[&["probe", "train", "-q", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "2"], extra].concat());
        let file = jepa_gguf::Gguf::open(s.path("out.gguf")).unwrap();
        s.good(&["classify", "-q", "-m", "out.gguf", "train"]);
        let own = file.metadata().iter().map(|(key, _)| key.to_owned());
        own.filter(|key| key == "jepa.head.pool" || key == "jepa.head.layers").collect::<Vec<_>>()
    };
    assert!(keys(&["--kind", "attentive", "--layers", "last"]).is_empty());
    assert!(keys(&["--kind", "linear"]).is_empty());
    assert_eq!(keys(&["--layers", "0,1"]), ["jepa.head.layers"]);
    assert_eq!(keys(&["--pool", "mean"]), ["jepa.head.pool"]);
    assert_eq!(keys(&["--kind", "attentive", "--layers", "last2"]), ["jepa.head.layers"]);
}

#[test]
fn an_unreadable_picture_is_named_and_the_rest_goes_on() {
    let s = with_shapes(2, 5, 0);
    s.write(&format!("train/{}/broken.bmp", shapes::label(1)), "this is text");
    for _cached in [false, true] {
        let line = refusal_with_output(&s);
        assert!(line.contains("broken.bmp"), "{line}");
    }
    let ran = s.run(&["probe", "eval", "-m", "out.gguf", "train", "--json"]);
    assert_eq!((ran.code, json(&ran.stdout)["failed"].as_u64()), (1, Some(1)), "{ran:?}");
}

fn refusal_with_output(s: &Session) -> String {
    let ran = s.run(&["probe", "train", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "2"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(s.path("out.gguf").exists());
    assert!(ran.stderr.contains("1 of 11 inputs failed"), "{}", ran.stderr);
    ran.stderr.lines().find(|line| line.starts_with("error:")).unwrap().to_owned()
}

#[test]
fn data_that_cannot_be_learned_from_is_refused_in_one_line() {
    let s = with_shapes(2, 3, 0);
    let m = tiny();
    let train = |data: &str, code: i32| refusal(&s, &["probe", "train", "-m", &m, data, "-o", "out.gguf"], code);

    std::fs::create_dir_all(s.path("empty/a")).unwrap();
    shapes::write(&s, "empty", 0..1, 2, 1);
    let line = train("empty", 1);
    assert!(line.contains("empty/a") && line.contains("no picture") && line.contains("class \"a\""), "{line}");

    shapes::write(&s, "one", 0..1, 2, 1);
    assert!(train("one", 1).contains("one class"), "one class");
    std::fs::create_dir(s.path("none")).unwrap();
    assert!(train("none", 1).contains("sub-folder"), "no class");
    assert!(train("absent", 1).contains("no such file"), "no data");
    s.write("list.csv", "path,label\na.png,x\nb.png,y,z\n");
    let line = train("list.csv", 1);
    assert!(line.contains("line 3") && line.contains("3 fields") && line.contains("quote"), "{line}");
    s.write("list.jsonl", "{\"path\": \"a.png\"}\n");
    assert!(train("list.jsonl", 1).contains("line 1"), "no label");

    let usage = |extra: &[&str]| s.run(&[&["probe", "train", "-m", &m, "train"], extra].concat()).code;
    assert_eq!(usage(&[]), 2, "no output");
    assert_eq!(usage(&["-o", "out.gguf", "--kind", "knn"]), 2, "nothing to write");
    assert_eq!(usage(&["-o", "out.gguf", "--val-split", "1"]), 2);
    assert_eq!(usage(&["-o", "out.gguf", "--lr", "0"]), 2);
    assert_eq!(usage(&["-o", "out.gguf", "--layers", "9"]), 2);
    assert_eq!(usage(&["-o", &m]), 2, "the model would be gone");
    assert_eq!(usage(&["-o", "absent/out.gguf"]), 3);
    assert_eq!(usage(&["-o", "out.gguf", "--pool", "cls"]), 3, "this model has no CLS token");
    assert_eq!(s.run(&["probe", "eval", "-m", &m, "train"]).code, 3, "no head");
    assert!(!s.files().iter().any(|name| name.starts_with("out.gguf")), "{:?}", s.files());
}

#[test]
fn a_class_that_nothing_can_be_read_of_is_refused() {
    let s = with_shapes(2, 3, 0);
    std::fs::create_dir(s.path("train/zz")).unwrap();
    s.write("train/zz/broken.png", "this is text");
    let ran = s.run(&["probe", "train", "-m", &tiny(), "train", "-o", "out.gguf"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("no input of class \"zz\" can be read"), "{}", ran.stderr);
    assert!(!s.path("out.gguf").exists());
}

#[test]
fn features_that_are_no_numbers_are_the_models_fault() {
    let s = with_shapes(2, 3, 0);
    let mut file = std::fs::read(tiny()).unwrap();
    let tensor = jepa_gguf::Gguf::open(tiny()).unwrap();
    let weights = tensor.tensor("enc.blk.1.ffn_down.weight").unwrap().bytes().to_vec();
    let at = file.windows(64).position(|window| window == &weights[..64]).unwrap();
    file[at..at + 64].fill(0xff);
    s.write("nan.gguf", file);
    let line = refusal(&s, &["probe", "train", "-m", "nan.gguf", "train", "-o", "out.gguf"], 3);
    assert!(line.contains("nan.gguf") && line.contains("no numbers"), "{line}");
    assert!(!s.path("out.gguf").exists());
}

#[test]
fn lists_name_inputs_beside_themselves_and_labels_of_any_kind() {
    let s = with_shapes(2, 4, 0);
    let folder = |class: usize| format!("train/{}", shapes::label(class));
    let mut list = csv::Writer::from_writer(Vec::new());
    list.write_record(["path", "label"]).unwrap();
    let mut lines = String::new();
    for (class, label) in [(0, "été, \"quoted\"\nand broken"), (1, "猫")] {
        for number in 0..4 {
            let path = format!("{}/{number}.bmp", folder(class));
            list.write_record([path.as_str(), label]).unwrap();
            lines += &format!("{}\n", serde_json::json!({ "path": path, "label": label }));
        }
    }
    s.write("list.csv", list.into_inner().unwrap());
    s.write("list.jsonl", lines);
    for data in ["list.csv", "list.jsonl"] {
        s.good(&["probe", "train", "-q", "-m", &tiny(), data, "-o", &format!("{data}.gguf"), "--epochs", "4"]);
    }
    assert_eq!(bytes(&s, "list.csv.gguf"), bytes(&s, "list.jsonl.gguf"));
    let judged = json(&s.good(&["probe", "eval", "-q", "-m", "list.csv.gguf", "list.csv", "--json"]).stdout);
    let labels: Vec<_> = judged["classes"].as_array().unwrap().iter().map(|class| class["label"].clone()).collect();
    assert!(labels.contains(&"猫".into()) && labels.contains(&"été, \"quoted\"\nand broken".into()), "{labels:?}");

    s.write("other.csv", format!("{},dog\n", picture()));
    let line = refusal(&s, &["probe", "eval", "-m", "list.csv.gguf", "other.csv"], 1);
    assert!(line.contains("\"dog\"") && line.contains("猫"), "{line}");
}

#[test]
fn ten_thousand_classes_are_a_head_like_any_other() {
    let s = Session::new();
    s.write("a.bmp", shapes::bmp(8, 8, &[90; 192]));
    let rows: String = (0..10_000).map(|class| format!("a.bmp,class {class}\n")).collect();
    s.write("many.csv", rows);
    let args = ["probe", "train", "-q", "-m", &model("hfvit"), "many.csv", "-o", "out.gguf", "--epochs", "1"];
    s.good(&[&args[..], &["--batch", "512"]].concat());
    let info = json(&s.good(&["info", "--json", "out.gguf"]).stdout);
    assert_eq!(info["head"]["n_classes"], 10_000);
    s.write("few.csv", "a.bmp,class 7\na.bmp,class 9999\n");
    s.good(&["probe", "eval", "-q", "-m", "out.gguf", "few.csv", "--confusion", "few.png"]);
}

#[test]
fn the_confusion_matrix_is_a_picture_that_appears_whole() {
    let s = with_shapes(3, 6, 4);
    s.good(&["probe", "train", "-q", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "3"]);
    let text = s.good(&["probe", "eval", "-q", "-m", "out.gguf", "test", "--confusion", "c.png"]).stdout;
    assert!(text.starts_with("accuracy ") && text.contains("of 12)") && text.contains("true classes"), "{text}");
    assert!(bytes(&s, "c.png").starts_with(b"\x89PNG"));
    assert_eq!(s.run(&["probe", "eval", "-m", "out.gguf", "test", "--confusion", "c.jpg"]).code, 2);
    assert_eq!(s.run(&["probe", "eval", "-m", "out.gguf", "test", "--confusion", "absent/c.png"]).code, 3);
}

/// The last block, or the norms, are trained with the head; what is not trained stays as it is byte for byte, and the file runs like any other.
#[test]
fn parts_of_the_encoder_are_trained_and_written() {
    let s = with_shapes(3, 12, 6);
    let original = jepa_gguf::Gguf::open(tiny()).unwrap();
    let matrix = |block: usize| format!("enc.blk.{block}.ffn_up.weight");
    let norm = "enc.blk.0.ln1.weight";
    for (unfreeze, kind, moved, kept) in [
        ("last:1", "linear", vec![matrix(1), "enc.norm.weight".to_owned()], vec![matrix(0), norm.to_owned()]),
        ("norms", "attentive", vec![norm.to_owned(), "enc.norm.bias".to_owned()], vec![matrix(0), matrix(1)]),
    ] {
        let args = ["probe", "train", "-q", "-m", &tiny(), "train", "-o", "tuned.gguf", "--kind", kind, "--json"];
        let rest = ["--unfreeze", unfreeze, "--epochs", "12", "--accumulate", "2", "--lr", "0.003"];
        let trained = json(&s.good(&[&args[..], &rest].concat()).stdout);
        assert!(trained["accuracy"].as_f64().unwrap() > 0.5, "{trained}");
        let tuned = jepa_gguf::Gguf::open(s.path("tuned.gguf")).unwrap();
        let values = |file: &jepa_gguf::Gguf, name: &str| file.tensor(name).unwrap().to_f32();
        for name in moved {
            assert_ne!(values(&tuned, &name), values(&original, &name), "{unfreeze}: {name}");
        }
        for name in kept {
            assert_eq!(
                tuned.tensor(&name).unwrap().bytes(),
                original.tensor(&name).unwrap().bytes(),
                "{unfreeze}: {name}"
            );
        }
        let judged = json(&s.good(&["probe", "eval", "-q", "-m", "tuned.gguf", "test", "--json"]).stdout);
        assert!(judged["accuracy"].as_f64().unwrap() > 0.5, "{judged}");
        let first = bytes(&s, "tuned.gguf");
        s.good(&[&args[..], &rest].concat());
        assert_eq!(bytes(&s, "tuned.gguf"), first, "{unfreeze}: a second run");
    }
}

#[test]
fn what_cannot_be_unfrozen_is_refused() {
    let s = with_shapes(2, 3, 0);
    let train = |rest: &[&str]| refusal(&s, &[&["probe", "train", "-q", "-m", &tiny(), "train"], rest].concat(), 2);
    let too_many = train(&["-o", "o.gguf", "--unfreeze", "last:3"]);
    assert!(too_many.contains("last:3: the encoder has 2 blocks"), "{too_many}");
    let words = train(&["-o", "o.gguf", "--unfreeze", "all"]);
    assert!(words.contains("`all` is neither `last:N` nor `norms`"), "{words}");
    let knn = train(&["--kind", "knn", "--unfreeze", "norms"]);
    assert!(knn.contains("trains nothing"), "{knn}");
}

#[test]
fn no_picture_that_is_read_is_written_over() {
    let s = with_shapes(2, 4, 0);
    s.good(&["probe", "train", "-q", "-m", &tiny(), "train", "-o", "ok.gguf", "--epochs", "1"]);
    let picture = format!("train/{}/0.bmp", shapes::label(0));
    let png = format!("train/{}/own.png", shapes::label(0));
    s.write("list.csv", format!("path,label\n\"{picture}\",a\n\"train/{}/0.bmp\",b\n", shapes::label(1)));
    std::fs::copy(crate::session::picture(), s.path(&png)).unwrap();
    let (before, before_png) = (bytes(&s, &picture), bytes(&s, &png));
    for data in ["train", "list.csv"] {
        let said = refusal(&s, &["probe", "train", "-m", &tiny(), data, "-o", &picture, "--epochs", "1"], 2);
        assert!(said.contains("it would overwrite"), "{said}");
    }
    let said = refusal(&s, &["probe", "eval", "-m", "ok.gguf", "train", "--confusion", &png], 2);
    assert!(said.contains("it would overwrite an input in train"), "{said}");
    // The same kind of slip elsewhere: an array in the folder that is embedded.
    s.write("train/frames.npy", "frames");
    let said = refusal(&s, &["embed", "-m", &tiny(), "train", "-o", "train/frames.npy"], 2);
    assert!(said.contains("it would overwrite"), "{said}");
    assert_eq!((bytes(&s, &picture), bytes(&s, &png)), (before, before_png));
    s.good(&["embed", "-q", "-m", &tiny(), "train/rot Scheibe, glatt", "-o", "train/new.npy"]);
}

#[test]
fn a_learning_rate_that_runs_away_is_to_blame_and_leaves_nothing() {
    let s = with_shapes(2, 6, 0);
    let before = s.files();
    for rest in
        [&["--kind", "attentive", "--lr", "1e30"][..], &["--unfreeze", "norms", "--lr", "1e20"], &["--lr", "1e38"]]
    {
        let said =
            refusal(&s, &[&["probe", "train", "-q", "-m", &tiny(), "train", "-o", "out.gguf"], rest].concat(), 2);
        assert!(said.contains("--lr"), "{said}");
        assert_eq!(s.files(), before, "{rest:?}");
    }
}

#[test]
fn bytes_that_changed_in_the_cache_or_in_a_checkpoint_are_not_used() {
    let s = with_shapes(2, 10, 0);
    let train = || {
        let args = ["probe", "train", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "3"];
        let said = s.good(&args).stderr;
        (said.contains("from the cache"), bytes(&s, "out.gguf"))
    };
    let (_, first) = train();
    let kept = s.cached_features();
    let whole = std::fs::read(&kept).unwrap();
    assert_eq!(train(), (true, first.clone()));
    let mut flipped = whole.clone();
    let place = whole.len() - 10;
    flipped[place] ^= 1;
    // 20 inputs of 64 values: 800 bytes less leave a whole number of values an input.
    for damaged in [flipped, whole[..whole.len() - 800].to_vec()] {
        std::fs::write(&kept, damaged).unwrap();
        assert_eq!(train(), (false, first.clone()));
    }
}

#[test]
fn what_is_no_label_and_what_is_no_file_is_said() {
    let s = with_shapes(2, 3, 0);
    let m = tiny();
    let said = |data| refusal(&s, &["probe", "train", "-m", &m, data, "-o", "out.gguf"], 1);
    s.write("list.csv", "path,label\na.bmp,\n");
    assert!(said("list.csv").contains("line 2: no label"));
    s.write("list.jsonl", "{\"path\": \"a.bmp\", \"label\": \" \"}\n");
    assert!(said("list.jsonl").contains("line 1: no label"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere.bmp", s.path(&format!("train/{}/gone.bmp", shapes::label(1)))).unwrap();
        let ran = s.run(&["probe", "train", "-m", &tiny(), "train", "-o", "out.gguf", "--epochs", "1"]);
        assert!(ran.code == 1 && ran.stderr.contains("gone.bmp: a link that leads to no file"), "{ran:?}");
    }
    let none = refusal(&s, &["probe", "train", "-m", &tiny(), "train", "-o", "o.gguf", "--batch", "0"], 2);
    assert!(none.contains("wanted a whole number from 1"), "{none}");
    let pooled = ["probe", "train", "-m", &tiny(), "train", "-o", "o.gguf", "--kind", "attentive", "--pool", "mean"];
    assert!(refusal(&s, &pooled, 2).contains("reads all tokens"));
    let negative = refusal(&s, &["probe", "train", "-m", &tiny(), "train", "-o", "o.gguf", "--lr", "-1"], 2);
    assert!(negative.contains("wanted a number above 0"), "{negative}");
}
