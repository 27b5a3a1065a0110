//! Checkpoints as PyTorch and safetensors write them. The files come from `tests/reference/checkpoints.py`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use jepa_gguf::Access;
use jepa_gguf::checkpoint::{Checkpoint, CheckpointError, Plain, SourceType};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint").join(name)
}

fn open(name: &str) -> Checkpoint {
    Checkpoint::open(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refusal(name: &str) -> String {
    Checkpoint::open(&fixture(name)).err().unwrap_or_else(|| panic!("{name} was accepted")).to_string()
}

/// Number i of every float fixture but the f64 one.
fn eighths(count: usize) -> Vec<f32> {
    (0..count).map(|i| i as f32 / 8.0 - 1.0).collect()
}

const TYPES: [&str; 3] = ["types.safetensors", "types.pt", "types-legacy.pt"];

#[test]
fn reads_every_type_in_every_format() {
    for file in TYPES {
        let checkpoint = open(file);
        assert_eq!(checkpoint.tensors().len(), 10, "{file}");
        for (name, shape, dtype, count) in [
            ("f32", &[2, 3][..], SourceType::F32, 6),
            ("f16", &[3, 2], SourceType::F16, 6),
            ("bf16", &[6], SourceType::Bf16, 6),
            ("scalar", &[], SourceType::F32, 1),
            ("empty", &[0, 4], SourceType::F32, 0),
        ] {
            let tensor = checkpoint.tensor(name).unwrap();
            assert_eq!((tensor.shape.as_slice(), tensor.dtype), (shape, dtype), "{file} {name}");
            assert_eq!(checkpoint.read(name).unwrap(), eighths(count), "{file} {name}");
        }
    }
}

#[test]
fn f64_is_exact_as_f64_and_rounded_as_f32() {
    for file in TYPES {
        let checkpoint = open(file);
        let exact: Vec<f64> = (0..6).map(|i| f64::from(i) / 3.0).collect();
        assert_eq!(checkpoint.read_f64("f64").unwrap(), exact, "{file}");
        let rounded: Vec<f32> = exact.iter().map(|&v| v as f32).collect();
        assert_eq!(checkpoint.read("f64").unwrap(), rounded, "{file}");
        assert_ne!(f64::from(rounded[1]), exact[1]);
    }
}

#[test]
fn integers_are_listed_and_not_read() {
    for file in TYPES {
        let checkpoint = open(file);
        for (name, shape) in [("i64", &[][..]), ("i32", &[3]), ("u8", &[5]), ("bool", &[2])] {
            let tensor = checkpoint.tensor(name).unwrap();
            assert_eq!((tensor.shape.as_slice(), tensor.dtype), (shape, SourceType::Integer), "{file} {name}");
            assert!(matches!(checkpoint.read(name), Err(CheckpointError::NotFloats { .. })), "{file} {name}");
        }
    }
    assert_eq!(open("uint16.pt").tensor("a").unwrap().dtype, SourceType::Integer);
}

#[test]
fn views_of_one_storage_are_read_in_the_order_of_their_axes() {
    for file in ["views.pt", "views-legacy.pt"] {
        let checkpoint = open(file);
        let base = |row: usize, column: usize| (row * 6 + column) as f32 / 8.0 - 1.0;
        let read = |name| checkpoint.read(name).unwrap();
        assert_eq!(read("base"), eighths(24), "{file}");
        assert_eq!(read("same_again"), eighths(24), "{file}");
        assert_eq!(checkpoint.tensor("transposed").unwrap().shape, [6, 4]);
        let transposed: Vec<f32> = (0..6).flat_map(|column| (0..4).map(move |row| base(row, column))).collect();
        assert_eq!(read("transposed"), transposed, "{file}");
        assert_eq!(read("row"), eighths(24)[12..18], "{file}");
        let columns: Vec<f32> = (0..4).flat_map(|row| [base(row, 1), base(row, 2)]).collect();
        assert_eq!(read("columns"), columns, "{file}");
        let flat = |i: usize, j: usize, k: usize| ((i * 3 + j) * 4 + k) as f32 / 8.0 - 1.0;
        let mut permuted = Vec::new();
        for k in 0..4 {
            for i in 0..2 {
                permuted.extend((0..3).map(|j| flat(i, j, k)));
            }
        }
        assert_eq!(read("permuted"), permuted, "{file}");
        let other: Vec<f32> = eighths(24).into_iter().step_by(2).collect();
        assert_eq!(read("every_other"), other, "{file}");
        assert_eq!(read("unsqueezed"), [0.0, 1.0, 2.0], "{file}");
        let error = checkpoint.read("expanded").unwrap_err().to_string();
        assert!(error.contains("tensor expanded: 12 elements of 1 stored"), "{error}");
    }
}

#[test]
fn a_training_checkpoint_is_flattened_to_dotted_names() {
    for file in ["training.pt", "training-legacy.pt", "protocol-5.pt"] {
        let checkpoint = open(file);
        let names: Vec<&str> = checkpoint.tensors().iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names[0], "target_encoder.module.0.weight", "{file}: the order is the checkpoint's");
        for name in ["encoder.1.running_var", "opt.state.0.exp_avg", "opt.state.3.step", "torch_rng"] {
            assert!(names.contains(&name), "{file}: {name}");
        }
        assert_eq!(checkpoint.read("encoder.0.weight").unwrap(), eighths(6), "{file}");
        assert_eq!(checkpoint.read("parameter").unwrap(), eighths(2), "{file}");
        assert_eq!(checkpoint.read("attributes").unwrap(), eighths(2), "{file}: a parameter with attributes");
        assert_eq!(checkpoint.read("layers.1").unwrap(), eighths(3), "{file}: a list");
        let text = |words: &str| Plain::Text(words.to_owned());
        for (name, wanted) in [
            ("epoch", Plain::Int(3)),
            ("seed", Plain::Int(-5)),
            ("best", Plain::Bool(true)),
            ("loss", Plain::Float(0.5)),
            ("loss_f32", Plain::Float(0.25)),
            ("steps", Plain::Int(1234)),
            ("large_step", Plain::Int(65535)),
            ("done", Plain::Bool(true)),
            ("words.0", text("a")),
            ("words.1.b", text("ü")),
            ("words.2.1", Plain::Float(2.5)),
            ("args.lr", Plain::Float(0.001)),
            ("args.name", text("tiny")),
            ("args.sizes.1", Plain::Int(3)),
            ("milestones.30", Plain::Int(2)),
            ("opt.param_groups.0.betas.1", Plain::Float(0.999)),
            ("groups.x.0", Plain::Int(1)),
        ] {
            assert_eq!(checkpoint.plain(name), Some(&wanted), "{file} {name}");
        }
        for opaque in ["scaler", "initial_seed", "date", "args.folder", "device", "dtype", "raw", "names"] {
            assert_eq!(checkpoint.plain(opaque), None, "{file} {opaque}");
        }
        assert_eq!(checkpoint.plain_values().find(|(name, _)| *name == "epoch"), Some(("epoch", &Plain::Int(3))));
    }
}

#[test]
fn shards_are_put_together_by_their_index() {
    for folder in ["shards", "bin-shards"] {
        let checkpoint = open(folder);
        let names: Vec<&str> = checkpoint.tensors().iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a.weight", "c.weight", "b.weight"], "{folder}");
        assert_eq!(checkpoint.read("a.weight").unwrap(), eighths(6), "{folder}");
        assert_eq!(checkpoint.read("b.weight").unwrap(), eighths(4), "{folder}");
        assert_eq!(checkpoint.files().count(), 2, "{folder}");
    }
}

#[test]
fn safetensors_win_over_a_pickle_beside_them() {
    assert_eq!(open("both").read("from").unwrap(), [1.0]);
    assert_eq!(open("both/pytorch_model.bin").read("from").unwrap(), [0.0]);
}

#[test]
fn the_content_tells_the_format_and_not_the_name() {
    let folder = tempfile::tempdir().unwrap();
    for file in TYPES {
        let renamed = folder.path().join("renamed.zip.json");
        std::fs::copy(fixture(file), &renamed).unwrap();
        for access in [Access::Map, Access::Read] {
            assert_eq!(Checkpoint::open_with(&renamed, access).unwrap().read("f32").unwrap(), eighths(6), "{file}");
        }
        assert_eq!(Checkpoint::from_bytes(std::fs::read(&renamed).unwrap()).unwrap().tensors().len(), 10);
    }
}

#[test]
fn refuses_what_is_no_dictionary_of_tensors() {
    for (file, wanted) in [
        ("module.pt", "torch.nn.modules.linear.Linear: a Python object"),
        ("module.pt", "torch.save(model.state_dict(), …)"),
        ("script.pt", "TorchScript"),
        ("bare.pt", "found a tensor, wanted a dictionary"),
        ("float8.pt", "torch.float8_e4m3fn"),
        ("complex.pt", "torch.ComplexFloatStorage"),
    ] {
        let error = refusal(file);
        assert!(error.contains(wanted) && error.lines().count() == 1, "{file}: {error}");
    }
}

#[test]
fn says_what_a_path_is_instead() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| Checkpoint::open(path).unwrap_err().to_string();
    assert!(refusal(folder.path()).contains("none of model.safetensors"));
    assert!(matches!(Checkpoint::open(&folder.path().join("absent")), Err(CheckpointError::Io { op: "open", .. })));
    let path = folder.path().join("model.safetensors");
    for (content, wanted) in [
        (&b""[..], "empty"),
        (b"GGUF\x03\0\0\0", "gguf"),
        (b"<!DOCTYPE html>\n<html>", "text that begins \"<!DOCTYPE html>\""),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-lfs pointer"),
        (b"\x1f\x8b\x08\0", "\\x1f\\x8b"),
    ] {
        std::fs::write(&path, content).unwrap();
        for path in [&path, folder.path()] {
            let error = refusal(path);
            assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
        }
    }
}

#[test]
fn no_prefix_of_a_good_file_is_accepted() {
    for file in TYPES.iter().chain(&["views.pt", "views-legacy.pt"]) {
        let bytes = std::fs::read(fixture(file)).unwrap();
        for len in 0..bytes.len() {
            assert!(Checkpoint::from_bytes(bytes[..len].to_vec()).is_err(), "{file} cut to {len} bytes");
        }
        // Zip archives end with their directory, legacy files and safetensors with numbers: nothing may follow.
        let longer = [bytes.as_slice(), b"x"].concat();
        assert!(Checkpoint::from_bytes(longer).is_err(), "{file} with a byte behind its end");
    }
}

#[test]
fn asks_for_tensors_that_exist() {
    let error = open("types.pt").read("g32").unwrap_err();
    assert_eq!(error.to_string(), "tensor g32: not in the checkpoint");
}
