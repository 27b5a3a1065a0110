//! Parity: committed cases, other people's cases, and published files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Outcome, cargo, root, step};

/// Base names of the published files, as the repositories `jepacpp/*-GGUF` spell them.
const PUBLISHED: [&str; 9] = [
    "lejepa-vits16-pretrain-in1k",
    "lewm-pusht",
    "vjepa2_1-vitb-384",
    "levjepa-vitl16",
    "vjepa2-vitl-fpc64-256",
    "vjepa2-vitl-fpc16-256-ssv2",
    "ijepa_vith14_1k",
    "vjepa2-vitg-fpc64-256",
    "vjepa2-ac-vitg",
];

/// Types that every repository holds, and the least cosine with the f32 file's vector that is expected of each.
const TYPES: [(&str, f64); 5] = [("f32", 1.0 - 1e-9), ("f16", 0.9999), ("q8_0", 0.999), ("q4_0", 0.9), ("q4_k", 0.9)];

/// Replays cases with the command line, as a user would.
pub(crate) fn cases(folders: &[PathBuf], backend: &str) -> Outcome {
    let committed;
    let folders = if folders.is_empty() {
        committed = folders_of_cases(&root().join("tests/fixtures/cases"))?;
        &committed
    } else {
        folders
    };
    step(&format!("parity on {backend}, {} cases", folders.len()), cli(backend).arg("verify").args(folders))
}

/// Sub-folders that hold a case.
fn folders_of_cases(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    let mut folders: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    folders.retain(|folder| folder.join("case.json").is_file());
    folders.sort();
    Ok(folders)
}

/// Loads every published file that is there, embeds the quick start's picture and compares each type with the f32 file.
pub(crate) fn published(folder: &Path, backend: &str) -> Outcome {
    let picture = root().join("tests/fixtures/quickstart/picture.png");
    let out = tempfile::tempdir()?;
    let mut failed = Vec::new();
    for base in PUBLISHED {
        for (dtype, min_cos) in TYPES {
            let file = format!("{base}-{dtype}.gguf");
            let model = folder.join(&file);
            if !model.is_file() {
                eprintln!("skipped: {} is not here", model.display());
                continue;
            }
            let vector = |dtype: &str| out.path().join(format!("{base}-{dtype}.npy"));
            let embed = step(
                &format!("{file}: embed"),
                cli(backend).args(["embed", "-m"]).arg(&model).arg(&picture).arg("-o").arg(vector(dtype)),
            );
            let compare = match (&embed, vector("f32").is_file()) {
                (Ok(()), true) => step(
                    &format!("{file}: compare with f32"),
                    cli(backend)
                        .arg("compare")
                        .arg(vector(dtype))
                        .arg(vector("f32"))
                        .args(["--min-cos", &min_cos.to_string()]),
                ),
                _ => Ok(()),
            };
            if embed.and(compare).is_err() {
                failed.push(file);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// The command line with the features of the test suite, so that it is not compiled again; a card has its own build for release.
fn cli(backend: &str) -> std::process::Command {
    let run = match backend {
        "cuda" => &["run", "--quiet", "--release", "--package", "jepa-cli", "--features", "cuda"][..],
        // Trying kernels out takes longer than a case.
        "wgpu" => &["run", "--quiet", "--package", "jepa-cli", "--features", "ndarray,wgpu-untuned"],
        _ => &["run", "--quiet", "--package", "jepa-cli", "--features", "ndarray"],
    };
    let mut command = cargo(run);
    command.args(["--", "--backend", backend]);
    command
}
