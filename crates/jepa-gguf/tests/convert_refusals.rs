//! Checkpoints and requests that are refused, by name.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use jepa_gguf::GgmlType;
use jepa_gguf::convert::{Conversion, ConvertError, EncoderChoice, Hints, Options};
use jepa_gguf::schema::Family;
use serde_json::{Map, Value, json};

/// A copy of a fixture's checkpoint that can be edited.
struct Copy {
    _guard: tempfile::TempDir,
    folder: PathBuf,
}

impl Copy {
    fn of(name: &str) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let folder = guard.path().join("src");
        std::fs::create_dir(&folder).unwrap();
        for entry in std::fs::read_dir(source(name)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        Self { _guard: guard, folder }
    }

    /// Changes a JSON file.
    fn json(self, file: &str, edit: impl FnOnce(&mut Map<String, Value>)) -> Self {
        let path = self.folder.join(file);
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(value.as_object_mut().unwrap());
        std::fs::write(path, value.to_string()).unwrap();
        self
    }

    fn set(self, file: &str, key: &str, value: Value) -> Self {
        self.json(file, |map| drop(map.insert(key.to_owned(), value)))
    }

    /// Changes the tensor table of `model.safetensors`; the data stay.
    fn tensors(self, edit: impl FnOnce(&mut Map<String, Value>)) -> Self {
        let path = self.folder.join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
        edit(header.as_object_mut().unwrap());
        let header = header.to_string();
        let out = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes[end..]].concat();
        std::fs::write(path, out).unwrap();
        self
    }

    fn rename(self, from: &str, to: &str) -> Self {
        self.tensors(|map| {
            let tensor = map.remove(from).unwrap_or_else(|| panic!("no {from}"));
            map.insert(to.to_owned(), tensor);
        })
    }

    /// What the refusal says.
    fn refusal(&self) -> String {
        said(&self.folder, &Options::default())
    }
}

fn source(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/convert").join(name).join("src");
    assert!(folder.is_dir(), "the fixtures are committed");
    folder
}

/// The error and its causes in one line.
fn said(path: &Path, options: &Options) -> String {
    let Err(error) = Conversion::plan(path, options) else { panic!("{} was planned", path.display()) };
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[track_caller]
fn names(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not name {part:?}");
    }
}

const NORM: &str = "ijepa.layernorm.weight";

#[test]
fn refuses_tensors_that_are_missing_left_over_or_misshaped() {
    names(
        &Copy::of("ijepa_hub").rename(NORM, "ijepa.pooler.x").refusal(),
        &["layernorm.weight", "missing", "enc.norm.weight"],
    );
    let left = Copy::of("ijepa_hub").rename("ijepa.pooler.dense.weight", "ijepa.head.extra");
    names(&left.refusal(), &["ijepa.head.extra", "not part of a ijepa checkpoint"]);
    let misshaped = Copy::of("ijepa_hub").tensors(|map| map[NORM]["shape"] = json!([3, 4]));
    names(&misshaped.refusal(), &[NORM, "[3, 4]", "[12]", "jepa.enc.embed_dim"]);
    let transposed = Copy::of("ijepa_hub")
        .tensors(|map| map["ijepa.encoder.layer.0.intermediate.dense.weight"]["shape"] = json!([12, 20]));
    names(&transposed.refusal(), &["intermediate.dense.weight", "[12, 20]", "[20, 12]"]);
    let integers = Copy::of("ijepa_hub").tensors(|map| map[NORM]["dtype"] = json!("I32"));
    names(&integers.refusal(), &[NORM, "integers"]);
}

#[test]
fn refuses_another_number_of_blocks_than_the_configuration_says() {
    for blocks in [1, 3] {
        let text = Copy::of("ijepa_hub").set("config.json", "num_hidden_layers", json!(blocks)).refusal();
        names(&text, &["config.json", "num_hidden_layers", &blocks.to_string(), "2 blocks"]);
    }
    names(
        &Copy::of("vjepa2_hub").set("config.json", "pred_num_hidden_layers", json!(2)).refusal(),
        &["pred_num_hidden_layers"],
    );
    names(&Copy::of("levjepa").set("config.json", "depth", json!(1)).refusal(), &["depth", "encoder.blocks.{i}"]);
}

#[test]
fn refuses_values_of_configurations_that_are_mistyped_or_absurd() {
    for (key, value) in [
        ("hidden_size", json!("12")),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(-12)),
        ("hidden_size", json!(1e30)),
        ("hidden_size", json!(18_446_744_073_709_551_615_u64)),
        ("num_hidden_layers", json!(4_000_000_000_u64)),
        ("num_attention_heads", json!(5)),
        ("num_attention_heads", json!([2])),
        ("patch_size", json!(null)),
        ("layer_norm_eps", json!(0)),
        ("layer_norm_eps", json!("1e-6")),
        ("hidden_act", json!("relu")),
        ("model_type", json!(7)),
        ("id2label", json!({ "0": "cat" })),
        ("id2label", json!({ "0": "cat", "1": "dog", "3": "owl" })),
        ("id2label", json!({ "0": "cat", "1": 1, "2": "owl" })),
        ("id2label", json!(["cat"])),
    ] {
        names(&Copy::of("ijepa_hub").set("config.json", key, value).refusal(), &["config.json", key]);
    }
    for (key, value) in [
        ("image_std", json!([0.5, 0, 0.5])),
        ("image_mean", json!([0.5, 0.5])),
        ("resample", json!(1)),
        ("do_normalize", json!(false)),
        ("rescale_factor", json!("1/255")),
        ("size", json!({ "height": 6, "width": 8 })),
        ("size", json!({ "height": 1_000_000, "width": 1_000_000 })),
    ] {
        let text = Copy::of("ijepa_hub").set("preprocessor_config.json", key, value).refusal();
        names(&text, &["preprocessor_config.json", key]);
    }
    names(
        &Copy::of("vjepa2_hub").set("config.json", "mlp_ratio", json!(4.0)).refusal(),
        &["mlp_ratio", "mlp.fc1.weight"],
    );
    names(
        &Copy::of("lewm").json("config.json", |map| map["predictor"]["heads"] = json!(3)).refusal(),
        &["predictor.heads"],
    );
}

#[test]
fn refuses_configurations_that_are_absent_or_no_json() {
    let copy = Copy::of("ijepa_hub");
    std::fs::write(copy.folder.join("config.json"), "[1, 2]").unwrap();
    names(&copy.refusal(), &["config.json", "a list", "an object"]);
    std::fs::write(copy.folder.join("config.json"), "{\"hidden_size\": ").unwrap();
    names(&copy.refusal(), &["config.json", "not valid JSON"]);
    std::fs::write(copy.folder.join("config.json"), "[".repeat(1 << 20)).unwrap();
    names(&copy.refusal(), &["config.json", "not valid JSON"]);
    std::fs::remove_file(copy.folder.join("config.json")).unwrap();
    names(&copy.refusal(), &["config.json"]);
    let copy = Copy::of("ijepa_hub");
    std::fs::remove_file(copy.folder.join("preprocessor_config.json")).unwrap();
    names(&copy.refusal(), &["preprocessor_config.json"]);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_links_to_itself_ends() {
    let copy = Copy::of("ijepa_hub");
    let config = copy.folder.join("config.json");
    std::fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink("config.json", &config).unwrap();
    names(&copy.refusal(), &["config.json"]);
}

fn hinted(hints: &[(&str, &str)]) -> Options {
    let mut all = Hints::default();
    for (key, value) in hints {
        all.add(key, value).unwrap();
    }
    Options { hints: all, ..Options::default() }
}

#[test]
fn refuses_hints_that_are_unknown_missing_or_contradicted() {
    let mut hints = Hints::default();
    let unknown = hints.add("heads", "3").unwrap_err().to_string();
    names(&unknown, &["heads", "img_size", "patch_size", "n_frames", "tubelet_size", "enc_n_head", "pred_n_head"]);
    for value in ["", "0", "-1", "x", "99999999999999999999"] {
        names(&hints.add("enc_n_head", value).unwrap_err().to_string(), &["enc_n_head"]);
    }
    let meta = source("vjepa2_meta").join("vjepa2.pt");
    names(&said(&meta, &Options::default()), &["enc_n_head"]);
    let full = [("img_size", "6"), ("n_frames", "4"), ("enc_n_head", "2"), ("pred_n_head", "2")];
    assert!(Conversion::plan(&meta, &hinted(&full)).is_ok());
    for left_out in 0..full.len() {
        let mut hints = full.to_vec();
        let (key, _) = hints.remove(left_out);
        names(&said(&meta, &hinted(&hints)), &[key, "--hint"]);
    }
    for (key, value) in [("patch_size", "4"), ("tubelet_size", "1"), ("patch_size", "16384")] {
        names(&said(&meta, &hinted(&[&full[..], &[(key, value)]].concat())), &[key, value, "2"]);
    }
    let odd = [("img_size", "6"), ("n_frames", "4"), ("enc_n_head", "5"), ("pred_n_head", "2")];
    names(&said(&meta, &hinted(&odd)), &["enc_n_head", "5", "12"]);
    names(&said(&source("ijepa_hub"), &hinted(&[("img_size", "8")])), &["img_size", "8", "6"]);
    names(&said(&source("ijepa_hub"), &hinted(&[("pred_n_head", "2")])), &["pred_n_head", "no predictor"]);
    assert!(Conversion::plan(&source("ijepa_hub"), &hinted(&[("img_size", "6")])).is_ok());
}

#[test]
fn refuses_families_and_encoders_that_are_not_there() {
    for family in [Family::Vjepa2, Family::Lewm, Family::Levjepa, Family::Hfvit] {
        let options = Options { family: Some(family), ..Options::default() };
        names(&said(&source("ijepa_hub"), &options), &[family.word(), "missing"]);
    }
    let forced = Options { family: Some(Family::Ijepa), ..Options::default() };
    assert!(Conversion::plan(&source("ijepa_hub"), &forced).is_ok());
    names(
        &Copy::of("ijepa_hub").set("config.json", "model_type", json!("clip")).refusal(),
        &["no known checkpoint layout"],
    );

    let hints =
        [("img_size", "12"), ("n_frames", "4"), ("enc_n_head", "2"), ("pred_n_head", "2"), ("hier_layers", "0,2")];
    let context = Options { encoder: Some(EncoderChoice::Context), ..hinted(&hints) };
    names(&said(&source("vjepa2_1").join("vjepa2_1.pt"), &context), &["no context encoder", "ema_encoder"]);
}

#[test]
fn an_output_that_is_an_input_is_refused_also_through_a_link() {
    let copy = Copy::of("ijepa_hub");
    let conversion = Conversion::plan(&copy.folder, &Options::default()).unwrap();
    let before = std::fs::read(copy.folder.join("model.safetensors")).unwrap();
    let mut outputs = vec![copy.folder.join("model.safetensors"), copy.folder.join("../src/config.json")];
    #[cfg(unix)]
    {
        let link = copy.folder.parent().unwrap().join("link.gguf");
        std::os::unix::fs::symlink(copy.folder.join("model.safetensors"), &link).unwrap();
        let hard = copy.folder.parent().unwrap().join("hard.gguf");
        std::fs::hard_link(copy.folder.join("model.safetensors"), &hard).unwrap();
        outputs.extend([link, hard]);
    }
    for output in outputs {
        let refused = conversion.start(&output).unwrap_err();
        assert!(matches!(refused, ConvertError::OutputIsInput { .. }), "{refused}");
    }
    assert_eq!(std::fs::read(copy.folder.join("model.safetensors")).unwrap(), before);
}

#[test]
fn weights_that_their_type_cannot_hold_leave_no_file() {
    let copy = Copy::of("ijepa_hub");
    let path = copy.folder.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let at = header["ijepa.encoder.layer.0.output.dense.weight"]["data_offsets"][0].as_u64().unwrap() as usize + end;
    for (value, holds) in [(1e6_f32, [false, true, true]), (f32::NAN, [false; 3]), (f32::INFINITY, [false; 3])] {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        for (dtype, holds) in [GgmlType::F16, GgmlType::Bf16, GgmlType::F32].into_iter().zip(holds) {
            let out = copy.folder.parent().unwrap().join("out.gguf");
            let options = Options { dtype, ..Options::default() };
            let done = Conversion::plan(&copy.folder, &options).unwrap().start(&out).unwrap().finish(|_| ());
            assert_eq!(done.is_ok(), holds, "{value} as {dtype}");
            if let Err(error) = done {
                names(&error.to_string(), &["enc.blk.0.ffn_down.weight"]);
            }
            assert_eq!(out.exists(), holds);
            let _ = std::fs::remove_file(out);
            let left = std::fs::read_dir(copy.folder.parent().unwrap()).unwrap().count();
            assert_eq!(left, 1, "only the checkpoint");
        }
    }
}
