//! `quantize` and `imatrix`.

use jepa_gguf::Gguf;
use serde_json::Value;

use crate::session::{Session, fixture, model, picture};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_smaller_file_has_the_stored_bits_and_runs() {
    let s = Session::new();
    let ran = s.good(&["quantize", &model("ijepa"), "small.gguf", "--type", "q8_0"]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("q8_0 written to small.gguf"), "{ran:?}");
    let (made, stored) =
        (Gguf::open(s.path("small.gguf")).unwrap(), Gguf::open(fixture("cases/ijepa/model-q8_0.gguf")).unwrap());
    for info in stored.tensors() {
        let (a, b) = (made.tensor(info.name()).unwrap(), stored.tensor(info.name()).unwrap());
        assert!(a.info().dtype() == b.info().dtype() && a.bytes() == b.bytes(), "{}", info.name());
    }
    s.good(&["embed", "-m", "small.gguf", &picture(), "-o", "out.npy"]);
}

#[test]
fn a_dry_run_tells_what_would_happen_and_writes_nothing() {
    let s = Session::new();
    let ran = s.good(&["quantize", &model("ijepa"), "--type", "q4_k", "--dry-run", "--keep", "enc.blk.0.*"]);
    assert!(s.files().is_empty());
    let line = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("enc.blk.0.attn_qkv.weight").contains("kept"), "{}", ran.stdout);
    assert!(line("enc.blk.1.attn_qkv.weight").contains("f32 -> q8_0"), "{}", ran.stdout);
    assert!(line("enc.norm.weight").contains("never quantised"), "{}", ran.stdout);
    assert!(ran.stderr.contains("became q8_0: enc.blk.*.attn_qkv.weight"), "{}", ran.stderr);
}

#[test]
fn a_report_measures_tensors_and_features_on_noise_or_pictures() {
    let s = Session::new();
    let report = |dtype: &str, more: &[&str]| {
        let source = model("ijepa");
        let args = [&["quantize", &source, "small.gguf", "--json", "--type", dtype, "--report"], more].concat();
        json(&s.good(&args).stdout)
    };
    let (fine, coarse) = (report("q8_0", &[]), report("q4_0", &[]));
    let error = |report: &Value| {
        let tensors = report["tensors"].as_array().unwrap();
        tensors.iter().find(|t| t["name"] == "enc.blk.0.ffn_up.weight").unwrap()["relative_error"].as_f64().unwrap()
    };
    assert!(0.0 < error(&fine) && error(&fine) < 0.01 && error(&coarse) > 5.0 * error(&fine));
    let worst = |report: &Value, what: &str| report["features"][what]["cos_min"].as_f64().unwrap();
    assert!(worst(&fine, "tokens") > 0.999 && worst(&fine, "tokens") < 1.0);
    assert!(worst(&coarse, "tokens") < worst(&fine, "tokens"));
    let seen = report("q8_0", &[&picture()]);
    assert_eq!(seen["features"]["pooled"]["rows"], 1);
    assert!(worst(&seen, "pooled") > 0.999);
    // The same file a second time has nothing to lose.
    let same = json(&s.good(&["quantize", "small.gguf", "again.gguf", "--json", "--type", "q8_0", "--report"]).stdout);
    assert_eq!(worst(&same, "tokens"), 1.0);
}

#[test]
fn statistics_of_pictures_steer_the_packing() {
    let s = Session::new();
    let gathered = s.good(&["imatrix", "-m", &model("ijepa"), &picture(), "-o", "stats.gguf", "--json"]);
    let rows = &json(&gathered.stdout)["matrices"];
    assert_eq!(rows["enc.blk.0.attn_qkv.weight"], rows["enc.blk.2.ffn_down.weight"]);
    let source = model("ijepa");
    let small = |out: &str, more: &[&str]| {
        s.good(&[&["quantize", &source, out, "--type", "q4_0"], more].concat());
        Gguf::open(s.path(out)).unwrap()
    };
    let (plain, weighted) = (small("plain.gguf", &[]), small("weighted.gguf", &["--imatrix", "stats.gguf"]));
    let bytes = |file: &Gguf, name: &str| file.tensor(name).unwrap().bytes().to_vec();
    assert_ne!(bytes(&plain, "enc.blk.0.ffn_up.weight"), bytes(&weighted, "enc.blk.0.ffn_up.weight"));
    // The statistics are those of the encoder.
    assert_eq!(bytes(&plain, "pred.blk.0.ffn_up.weight"), bytes(&weighted, "pred.blk.0.ffn_up.weight"));
    let other = s.run(&["quantize", &model("vjepa2"), "x.gguf", "--type", "q4_0", "--imatrix", "stats.gguf"]);
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.stderr.contains("another model"), "{other:?}");
}

#[test]
fn what_would_lose_something_is_refused() {
    let s = Session::new();
    let refused = |code: i32, word: &str, args: &[&str]| {
        let ran = s.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{ran:?}");
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    };
    let quantised = fixture("cases/ijepa/model-q8_0.gguf");
    refused(2, "--allow-requantize", &["quantize", &quantised, "x.gguf", "--type", "q4_0"]);
    refused(2, "wanted one of", &["quantize", &model("ijepa"), "x.gguf", "--type", "f32"]);
    refused(1, "no importance matrix", &["quantize", &quantised, "x.gguf", "--type", "q8_0", "--imatrix", &quantised]);
    refused(3, "No such file", &["quantize", "absent.gguf", "x.gguf", "--type", "q4_0"]);
    refused(3, "absent/x.gguf", &["quantize", &model("ijepa"), "absent/x.gguf", "--type", "q4_0"]);
    assert!(s.files().is_empty());

    std::fs::copy(model("ijepa"), s.path("a.gguf")).unwrap();
    std::fs::hard_link(s.path("a.gguf"), s.path("b.gguf")).unwrap();
    refused(2, "would overwrite", &["quantize", "a.gguf", "./a.gguf", "--type", "q4_0"]);
    refused(2, "would overwrite", &["quantize", "a.gguf", "b.gguf", "--type", "q4_0"]);
}

#[cfg(unix)]
#[test]
fn links_devices_and_a_full_disk() {
    use std::os::unix::fs::FileTypeExt;
    use std::process::Command;

    let s = Session::new();
    std::fs::copy(model("ijepa"), s.path("a.gguf")).unwrap();
    std::os::unix::fs::symlink("a.gguf", s.path("link.gguf")).unwrap();
    assert_eq!(s.run(&["quantize", "a.gguf", "link.gguf", "--type", "q4_0"]).code, 2);
    assert!(Command::new("mkfifo").arg(s.path("pipe")).status().unwrap().success());
    let ran = s.run(&["quantize", "a.gguf", "pipe", "--type", "q4_0"]);
    assert!(ran.code == 3 && ran.stderr.contains("no regular file"), "{ran:?}");
    assert!(std::fs::metadata(s.path("pipe")).unwrap().file_type().is_fifo());

    let before = s.files();
    let ran = s.on_a_full_disk(16, &["quantize", "a.gguf", "x.gguf", "--type", "q8_0"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(ran.stderr.trim_end().lines().last(), Some("error: output x.gguf: File too large (os error 27)"));
    assert_eq!(s.files(), before);
}
