//! Converts checkpoints and compares the bundles with what an independent script made of the same weights: `fixtures/convert`, and every case with a
//! `src` below the folder `JEPA_CASES`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jepa_gguf::convert::{Conversion, ConvertError, Hints, Options};
use jepa_gguf::export::{Export, ExportError};
use jepa_gguf::{Bundle, GgmlType, Gguf, Value};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/convert")
}

/// A checkpoint and the bundle that it has to become.
struct Case {
    name: String,
    source: PathBuf,
    options: Options,
    wanted: PathBuf,
    /// Whether name, licence and origin are in the source.
    speaks: bool,
}

impl Case {
    fn read(folder: &Path, speaks: bool) -> Option<Self> {
        let text = std::fs::read(folder.join("case.json")).ok()?;
        let case: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let source = case.get("source")?;
        let mut hints = Hints::default();
        for (key, value) in source.get("hints").and_then(|h| h.as_object()).into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            hints.add(key, &value).unwrap();
        }
        Some(Self {
            name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            source: folder.join(source["path"].as_str().unwrap()),
            options: Options { hints, dtype: GgmlType::F32, ..Options::default() },
            wanted: folder.join(case["models"]["f32"].as_str().unwrap()),
            speaks,
        })
    }
}

fn cases() -> Vec<Case> {
    let below = |root: PathBuf, speaks| {
        let mut folders: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders.into_iter().filter_map(move |folder| Case::read(&folder, speaks)).collect::<Vec<_>>()
    };
    let mut cases = below(fixtures(), true);
    assert!(!cases.is_empty(), "the fixtures are committed");
    match std::env::var_os("JEPA_CASES") {
        Some(root) => cases.extend(below(root.into(), false)),
        None => eprintln!("JEPA_CASES is not set: own fixtures only"),
    }
    cases
}

/// Converts into a folder that goes away with the guard.
fn convert(source: &Path, options: &Options) -> Result<(tempfile::TempDir, PathBuf), ConvertError> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.gguf");
    Conversion::plan(source, options)?.start(&out)?.finish(|_| ())?;
    Ok((folder, out))
}

/// All values by name, with separate q, k and v joined.
fn values(file: &Gguf) -> BTreeMap<String, Vec<f32>> {
    let mut all: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for part in ["attn_q.", "attn_k.", "attn_v.", ""] {
        for t in file.tensors() {
            let split = ["attn_q.", "attn_k.", "attn_v."].into_iter().find(|p| t.name().contains(p));
            if split.unwrap_or("") == part {
                let name = if part.is_empty() { t.name().to_owned() } else { t.name().replace(part, "attn_qkv.") };
                all.entry(name).or_default().extend(file.tensor(t.name()).unwrap().to_f32());
            }
        }
    }
    all
}

fn ulps(a: f32, b: f32) -> u32 {
    let order = |v: f32| {
        let bits = v.to_bits() as i32;
        if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits }
    };
    order(a).abs_diff(order(b))
}

/// Tensors that conversion computes: everything else is copied.
fn is_folded(name: &str) -> bool {
    ["enc.proj.0.", "pred.proj.0.", "pred.action_embed.0."].iter().any(|folded| name.starts_with(folded))
}

#[test]
fn every_layout_becomes_the_bundle_that_it_should() {
    for case in cases() {
        let (_guard, out) = convert(&case.source, &case.options).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let found = Bundle::open(&out).unwrap();
        let wanted = Bundle::open(&case.wanted).unwrap();
        assert_eq!(found.warnings(), [], "{}", case.name);
        compare_keys(&case, found.gguf(), wanted.gguf());
        let (found, wanted) = (values(found.gguf()), values(wanted.gguf()));
        assert!(found.keys().eq(wanted.keys()), "{}: {:?}", case.name, found.keys());
        for (name, values) in &found {
            assert_eq!(values.len(), wanted[name].len(), "{}: {name}", case.name);
            for (&a, &b) in values.iter().zip(&wanted[name]) {
                let fits = if is_folded(name) { (a - b).abs() <= 1e-6 * b.abs().max(1.0) } else { ulps(a, b) <= 1 };
                assert!(fits, "{}: {name}: {a} instead of {b}", case.name);
            }
        }
    }
}

fn compare_keys(case: &Case, found: &Gguf, wanted: &Gguf) {
    let told = |key: &str| case.speaks || !matches!(key, "general.name" | "general.license" | "general.source_url");
    let split = wanted.metadata().get("jepa.enc.qkv_fused") == Some(&Value::Bool(false));
    for (key, value) in wanted.metadata().iter().filter(|(key, _)| told(key)) {
        if key == "jepa.enc.qkv_fused" && split {
            continue;
        }
        assert_eq!(found.metadata().get(key), Some(value), "{}: {key}", case.name);
    }
    for (key, value) in found.metadata().iter() {
        // Other writers have no key for the rule of Hugging Face's tables.
        let extra = key == "jepa.enc.pos_interp" && !case.speaks;
        assert!(extra || wanted.metadata().get(key).is_some(), "{}: {key} = {value:?} is new", case.name);
    }
}

#[test]
fn two_conversions_give_the_same_bytes() {
    for case in cases() {
        for dtype in [GgmlType::F16, GgmlType::Q8_0] {
            let options = Options { dtype, ..case.options.clone() };
            let (_first, a) = convert(&case.source, &options).unwrap();
            let (_second, b) = convert(&case.source, &options).unwrap();
            assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap(), "{} {dtype}", case.name);
        }
    }
}

#[test]
fn an_exported_bundle_converts_back_to_the_same_bytes() {
    let mut exported = Vec::new();
    for case in cases() {
        let (folder, first) = convert(&case.source, &case.options).unwrap();
        let bundle = Bundle::open(&first).unwrap();
        let hub = folder.path().join("hub");
        let export = match Export::plan(&bundle) {
            Ok(export) => export,
            Err(error) => {
                let family = bundle.hparams().family.word();
                assert!(error.to_string().contains(family) || error.to_string().contains("jepa.pred.kind"), "{error}");
                continue;
            }
        };
        export.start(&hub).unwrap().finish(|_| ()).unwrap();
        let options = Options { dtype: GgmlType::F32, ..Options::default() };
        let (_guard, second) = convert(&hub, &options).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if export.dropped().is_empty() {
            assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(second).unwrap(), "{}", case.name);
        }
        exported.push(case.name);
        assert!(matches!(export.start(&hub), Err(ExportError::Exists { .. })));
    }
    assert!(exported.len() >= 5, "{exported:?}");
}
