//! From file to file: what every tensor becomes, that the bits are right, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bundles;

use std::path::{Path, PathBuf};

use bundles::{Draft, ijepa};
use jepa_gguf::quantize::{ImportanceMatrix, Options, Plan, Reason, WrittenTensor};
use jepa_gguf::{Bundle, GgmlType, Gguf, GgufError, quant};

/// An I-JEPA whose feed-forward matrices have rows of 256 values, all others rows of 64.
fn model(folder: &Path) -> PathBuf {
    let path = folder.join("model-f32.gguf");
    std::fs::write(&path, ijepa().bytes()).unwrap();
    path
}

fn quantized(source: &Path, options: &Options<'_>) -> (Gguf, Vec<(String, f64)>) {
    let out = source.with_extension("out.gguf");
    let bundle = Bundle::open(source).unwrap();
    let plan = Plan::new(&bundle, options).unwrap();
    let mut errors = Vec::new();
    plan.start(&out)
        .unwrap()
        .finish(|WrittenTensor { planned, error }| errors.push((planned.info.name().to_owned(), error.relative())))
        .unwrap();
    assert_eq!(std::fs::metadata(&out).unwrap().len(), plan.file_len().unwrap());
    (Gguf::open(&out).unwrap(), errors)
}

#[test]
fn the_schema_decides_what_is_packed_and_into_what() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    for (wanted, wide, narrow) in [
        (GgmlType::Q8_0, GgmlType::Q8_0, GgmlType::Q8_0),
        (GgmlType::Q4_0, GgmlType::Q4_0, GgmlType::Q4_0),
        (GgmlType::Q4K, GgmlType::Q4K, GgmlType::Q8_0),
        (GgmlType::Q6K, GgmlType::Q6K, GgmlType::Q8_0),
        (GgmlType::F16, GgmlType::F16, GgmlType::F16),
    ] {
        let (file, errors) = quantized(&source, &Options::to(wanted));
        for (name, dtype) in [
            ("enc.blk.0.ffn_down.weight", wide),
            ("enc.blk.1.attn_qkv.weight", narrow),
            ("enc.blk.1.attn_qkv.bias", GgmlType::F32),
            ("enc.patch_embed.weight", GgmlType::F32),
            ("enc.pos_embed", GgmlType::F32),
            ("enc.norm.weight", GgmlType::F32),
        ] {
            assert_eq!(file.tensor(name).unwrap().info().dtype(), dtype, "{wanted}: {name}");
        }
        assert_eq!(file.file_type(), Some(wanted.file_type()));
        let version = file.metadata().get("general.quantization_version").and_then(jepa_gguf::Value::as_integer);
        assert_eq!(version, (!wanted.is_float()).then_some(2));
        // What was copied has no error, what was packed has one, and not a large one.
        for (name, error) in errors {
            let packed = file.tensor(&name).unwrap().info().dtype() != GgmlType::F32;
            assert!(if packed { error > 0.0 && error < 0.2 } else { error == 0.0 }, "{wanted}: {name} {error}");
        }
    }
}

#[test]
fn tensors_hold_what_the_packer_gives_and_copies_are_exact() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let before = Gguf::open(&source).unwrap();
    for &wanted in GgmlType::ALL {
        let (after, _) = quantized(&source, &Options::to(wanted));
        assert_eq!(before.tensors().len(), after.tensors().len());
        for info in before.tensors() {
            let (a, b) = (before.tensor(info.name()).unwrap(), after.tensor(info.name()).unwrap());
            let mut packed = vec![0; b.bytes().len()];
            quant::quantize(b.info().dtype(), &a.to_f32(), info.row_len(), None, &mut packed).unwrap();
            assert!(packed == b.bytes(), "{wanted}: {}", info.name());
        }
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let bytes = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| quantized(&source, &Options::to(GgmlType::Q5K)));
        std::fs::read(source.with_extension("out.gguf")).unwrap()
    };
    assert!(bytes(1) == bytes(5));
}

#[test]
fn kept_tensors_stay_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let bundle = Bundle::open(&source).unwrap();
    let keep = |name: &str| name.starts_with("enc.blk.0.");
    let plan = Plan::new(&bundle, &Options { keep: &keep, ..Options::to(GgmlType::Q4K) }).unwrap();
    let reason = |name: &str| plan.tensors().iter().find(|t| t.info.name() == name).unwrap().reason;
    assert_eq!(reason("enc.blk.0.ffn_down.weight"), Some(Reason::Kept));
    assert_eq!(reason("enc.blk.1.ffn_down.weight"), None);
    assert_eq!(reason("enc.blk.1.attn_out.weight"), Some(Reason::RowLength));
    assert_eq!(reason("enc.norm.weight"), Some(Reason::Schema));
}

#[test]
fn what_is_rounded_already_is_rounded_again_only_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    quantized(&source, &Options::to(GgmlType::Q8_0));
    let small = source.with_extension("out.gguf");
    let bundle = Bundle::open(&small).unwrap();
    let refused = Plan::new(&bundle, &Options::to(GgmlType::Q4_0)).unwrap_err();
    assert!(matches!(&refused, GgufError::Requantize { found: GgmlType::Q8_0, .. }), "{refused}");
    Plan::new(&bundle, &Options { allow_requantize: true, ..Options::to(GgmlType::Q4_0) }).unwrap();
    // The same type again is a copy, bit for bit.
    let again = Plan::new(&bundle, &Options::to(GgmlType::Q8_0)).unwrap();
    let out = folder.path().join("again.gguf");
    again.start(&out).unwrap().finish(|_| ()).unwrap();
    assert!(std::fs::read(&small).unwrap() == std::fs::read(&out).unwrap());
}

#[test]
fn weights_that_are_no_numbers_are_refused_by_place_and_leave_no_file() {
    for (value, dtype) in [(f32::NAN, GgmlType::Q4K), (f32::INFINITY, GgmlType::Bf16), (70_000.0, GgmlType::F16)] {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = ijepa().bytes();
        let file = Gguf::from_bytes(bytes.clone()).unwrap();
        let info = file.tensor("enc.blk.1.ffn_down.weight").unwrap().info();
        let data = bytes.len() - file.tensors().iter().map(|t| t.byte_len().next_multiple_of(32)).sum::<u64>() as usize;
        let at = data + info.offset() as usize + (3 * 256 + 17) * 4;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let bundle = Bundle::from_gguf(Gguf::from_bytes(bytes).unwrap()).unwrap();
        let out = folder.path().join("out.gguf");
        let plan = Plan::new(&bundle, &Options::to(dtype)).unwrap();
        let refused = plan.start(&out).unwrap().finish(|_| ()).unwrap_err().to_string();
        assert!(refused.starts_with("tensor enc.blk.1.ffn_down.weight, row 3, column 17: "), "{refused}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn importance_is_written_read_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let name = "enc.blk.0.ffn_down.weight";
    let mut matrix = ImportanceMatrix::new(3, 16);
    let energies: Vec<f64> = (0..256).map(|i| if i % 9 == 0 { 500.0 } else { 0.0 }).collect();
    matrix.insert(name, &energies, 48);
    let path = folder.path().join("importance.gguf");
    matrix.start(&path).unwrap().finish().unwrap();
    let back = ImportanceMatrix::open(&path).unwrap();
    assert_eq!(back, matrix);
    assert_eq!((back.inputs(), back.tensors().collect::<Vec<_>>()), (3, vec![name]));

    let (plain, _) = quantized(&source, &Options::to(GgmlType::Q4K));
    let (weighted, _) = quantized(&source, &Options { importance: Some(&back), ..Options::to(GgmlType::Q4K) });
    let wanted = Gguf::open(&source).unwrap().tensor(name).unwrap().to_f32();
    let error = |file: &Gguf| {
        let got = file.tensor(name).unwrap().to_f32();
        let of = |(i, (a, b)): (usize, (&f32, &f32))| energies[i % 256] * f64::from(a - b).powi(2);
        got.iter().zip(&wanted).enumerate().map(of).sum::<f64>()
    };
    assert!(error(&weighted) < 0.8 * error(&plain), "{} {}", error(&weighted), error(&plain));
    // A matrix that the file says nothing about is packed without.
    let other = "enc.blk.1.ffn_down.weight";
    assert_eq!(plain.tensor(other).unwrap().bytes(), weighted.tensor(other).unwrap().bytes());
}

#[test]
fn importance_of_another_model_or_of_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = model(folder.path());
    let bundle = Bundle::open(&source).unwrap();
    let mut matrix = ImportanceMatrix::new(1, 1);
    matrix.insert("enc.blk.0.ffn_down.weight", &[1.0; 64], 1);
    let refused = Plan::new(&bundle, &Options { importance: Some(&matrix), ..Options::to(GgmlType::Q4K) }).unwrap_err();
    assert!(matches!(refused, GgufError::ImportanceColumns { found: 64, wanted: 256, .. }), "{refused}");

    assert!(matches!(ImportanceMatrix::open(&source), Err(GgufError::NoImportance { .. })));
    let mut draft = Draft::new(vec![("general.type", "imatrix".into())]);
    draft.add("a.weight.in_sum2", &[1, 8]);
    let path = folder.path().join("no-counts.gguf");
    std::fs::write(&path, draft.bytes()).unwrap();
    let refused = ImportanceMatrix::open(&path).unwrap_err().to_string();
    assert!(refused.contains("a.weight.counts"), "{refused}");
    draft.add("a.weight.counts", &[1, 1]);
    let mut bytes = draft.bytes();
    let end = bytes.len();
    bytes[end - 32..].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let refused = ImportanceMatrix::open(&path).unwrap_err().to_string();
    assert!(refused.contains("a.weight.counts: 0"), "{refused}");
}

/// The parity case of quantised files, when `JEPA_CASES` names a folder that has one.
#[test]
fn the_stored_files_of_a_case_come_out_of_its_float_file() {
    let Some(folder) = std::env::var_os("JEPA_CASES").map(|f| PathBuf::from(f).join("quant_ijepa")) else { return };
    let out = tempfile::tempdir().unwrap();
    let source = out.path().join("model-f32.gguf");
    std::fs::copy(folder.join("model-f32.gguf"), &source).unwrap();
    for &wanted in GgmlType::ALL.iter().filter(|&&t| t != GgmlType::F32) {
        let Ok(stored) = Gguf::open(folder.join(format!("model-{wanted}.gguf"))) else { continue };
        let (made, _) = quantized(&source, &Options::to(wanted));
        for info in stored.tensors() {
            let (a, b) = (stored.tensor(info.name()).unwrap(), made.tensor(info.name()).unwrap());
            assert_eq!(a.info().dtype(), b.info().dtype(), "{wanted}: {}", info.name());
            assert!(a.bytes() == b.bytes(), "{wanted}: {} has other bits", info.name());
        }
    }
}
