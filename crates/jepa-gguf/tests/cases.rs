//! Runs the reader over a folder of parity cases: `JEPA_CASES=FOLDER cargo test -p jepa-gguf --test cases`. Without the variable nothing is checked,
//! and the test says so.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use jepa_gguf::{Access, Bundle};

fn cases() -> Option<PathBuf> {
    let folder = std::env::var_os("JEPA_CASES").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: JEPA_CASES is not set");
    }
    folder
}

fn models(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| std::fs::read_dir(entry.unwrap().path()).ok())
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_str().is_some_and(|n| n.starts_with("model-") && n.ends_with(".gguf")))
        .collect();
    found.sort();
    found
}

#[test]
fn every_model_loads_mapped_and_read() {
    let Some(folder) = cases() else { return };
    let models = models(&folder);
    assert!(!models.is_empty(), "no models in {}", folder.display());
    for path in &models {
        for access in [Access::Map, Access::Read] {
            let bundle = Bundle::open_with(path, access).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(bundle.warnings(), [], "{}", path.display());
        }
    }
    eprintln!("{} models", models.len());
}

#[test]
fn every_malformed_file_is_refused_by_name() {
    let Some(folder) = cases().map(|f| f.join("malformed")) else { return };
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    for name in manifest["valid"].as_array().unwrap() {
        Bundle::open(folder.join(name.as_str().unwrap())).unwrap();
    }
    for case in manifest["files"].as_array().unwrap() {
        let file = case["file"].as_str().unwrap();
        for access in [Access::Map, Access::Read] {
            let message = match Bundle::open_with(folder.join(file), access) {
                Ok(_) => panic!("{file}: loaded although {}", case["defect"]),
                Err(e) => e.to_string(),
            };
            let named = case["names"].as_array().unwrap().iter().any(|n| message.contains(n.as_str().unwrap()));
            assert!(named, "{file}: {message} names none of {}", case["names"]);
            eprintln!("{file}: {message}");
        }
    }
}
