//! The checks and timings of an NVIDIA card: a folder to carry to a machine that has one, and the figures that come back.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::process::{Outcome, cargo, root, step};

/// The figures of the last run on a card.
pub(crate) const FIGURES: &str = "docs/gpu.json";

/// What such machines take, in bytes.
const MOST_TO_CARRY: u64 = 64 << 20;

/// Seconds after which nothing more is started.
const SECONDS: &str = "420";

/// Options of `cargo xtask gpu`.
#[derive(Args, Debug)]
pub(crate) struct GpuArgs {
    /// Only make the folder that is carried to the machine: the program, the script and the cases
    #[arg(long, value_name = "DIR")]
    pack: Option<PathBuf>,
    /// Take the figures of a run on another machine
    #[arg(long, value_name = "FILE", conflicts_with = "pack")]
    figures: Option<PathBuf>,
    /// Python, with torch for the comparison
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
}

/// Packs, runs, or takes figures.
pub(crate) fn run(args: &GpuArgs) -> Outcome {
    if let Some(figures) = &args.figures {
        return take(figures);
    }
    let temporary = tempfile::tempdir()?;
    let folder = args.pack.as_deref().unwrap_or(temporary.path());
    pack(folder)?;
    if args.pack.is_some() {
        eprintln!(
            "there: python3 gpu.py ./jepa-cli --cases cases --out gpu.json --seconds {SECONDS}\nhere:  cargo xtask gpu --figures gpu.json"
        );
        return Ok(());
    }
    let figures = folder.join("gpu.json");
    let mut script = Command::new(&args.python);
    script.arg(folder.join("gpu.py")).arg(folder.join("jepa-cli")).arg("--cases").arg(folder.join("cases"));
    step("gpu.py", script.arg("--out").arg(&figures).args(["--seconds", SECONDS]))?;
    take(&figures)
}

/// The release build with every GPU backend, the script and the committed cases.
fn pack(folder: &Path) -> Outcome {
    let features = ["build", "--release", "--package", "jepa-cli", "--features", "cuda,wgpu"];
    let mut build = cargo(&features);
    step("jepa-cli", build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols"))?;
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).ok_or("xtask does not lie in a target folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(target.join("release/jepa-cli"), folder.join("jepa-cli"))?;
    fs::copy(root().join("xtask/peers/gpu.py"), folder.join("gpu.py"))?;
    copy_folder(&root().join("tests/fixtures/cases"), &folder.join("cases"))?;
    let bytes = size_of_folder(folder)?;
    eprintln!("{}: {} MiB", folder.display(), bytes >> 20);
    if bytes > MOST_TO_CARRY {
        return Err(format!("{} MiB, wanted at most {}", bytes >> 20, MOST_TO_CARRY >> 20).into());
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn size_of_folder(folder: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size_of_folder(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Keeps the figures and writes the page.
fn take(path: &Path) -> Outcome {
    let figures: Figures = serde_json::from_str(&fs::read_to_string(path)?)?;
    fs::write(root().join(FIGURES), serde_json::to_string_pretty(&figures)? + "\n")?;
    crate::docs::run(false)
}

/// What `gpu.py` writes.
#[derive(Debug, Deserialize, Serialize)]
struct Figures {
    machine: serde_json::Map<String, Value>,
    cases: Vec<Cases>,
    speed: Vec<Timing>,
    left_out: Vec<String>,
    seconds: Option<f64>,
}

/// All committed cases in one type.
#[derive(Debug, Deserialize, Serialize)]
struct Cases {
    dtype: String,
    passed: Option<usize>,
    missed: Option<Vec<Value>>,
    worst_rel_max: Option<f64>,
    error: Option<String>,
}

/// One size on both sides, medians in ms.
#[derive(Debug, Deserialize, Serialize)]
struct Timing {
    task: String,
    shape: String,
    frames: usize,
    batch: usize,
    dtype: String,
    tokens: Option<usize>,
    ms_median: Option<f64>,
    torch_ms: Option<f64>,
    torch_compiled_ms: Option<f64>,
    error: Option<String>,
}

/// The part of docs/performance.md about cards, from the figures of a run where there are any.
pub(crate) fn section(json: Option<&str>) -> Result<String, serde_json::Error> {
    let mut text = String::from(
        "\n## On NVIDIA cards\n\n`cargo xtask gpu` runs the cases and times encoders and V-JEPA 2-AC's predictor beside PyTorch on a card, in f16, bf16 and f32 \
         (which is TF32 there). ",
    );
    let Some(json) = json else {
        text += "No card was at hand: **not measured**.\n";
        return Ok(text);
    };
    let figures: Figures = serde_json::from_str(json)?;
    let word = |key: &str| figures.machine.get(key).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let _ = writeln!(text, "Machine: {}; PyTorch {}.", word("card"), word("torch"));
    text += "\n| cases in | passed | missed | worst `rel_max` |\n|---|---|---|---|\n";
    for cases in &figures.cases {
        let missed = cases.missed.as_ref().map(Vec::len);
        let number = |n: Option<usize>| n.map_or("-".to_owned(), |n| n.to_string());
        let worst = cases.worst_rel_max.map_or("-".to_owned(), |rel| format!("{rel:.1e}"));
        let _ = writeln!(text, "| {} | {} | {} | {worst} |", cases.dtype, number(cases.passed), number(missed));
    }
    text += "\nMedians of 20 passes in ms; above 1 we are faster.\n\n| | type | frames | batch | tokens | jepa-cli | PyTorch eager | PyTorch compiled | × eager | × compiled |\n|---|---|---|---|---|---|---|---|---|---|\n";
    for timing in &figures.speed {
        let ms = |time: Option<f64>| time.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
        let ratio = |other: Option<f64>| match (other, timing.ms_median) {
            (Some(other), Some(own)) => format!("{:.2}", other / own),
            _ => "-".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            timing.task,
            timing.shape,
            timing.dtype,
            timing.frames,
            timing.batch,
            timing.tokens.map_or("-".to_owned(), |n| n.to_string()),
            ms(timing.ms_median),
            ms(timing.torch_ms),
            ms(timing.torch_compiled_ms),
            ratio(timing.torch_ms),
            ratio(timing.torch_compiled_ms),
        );
    }
    if !figures.left_out.is_empty() {
        let _ = writeln!(text, "\nLeft out for want of time: {}.", figures.left_out.join("; "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_run_there_is_no_number() {
        let text = section(None).expect("nothing to read");
        assert!(text.contains("not measured") && !text.contains('|'), "{text}");
    }

    #[test]
    fn ratios_are_of_the_other_side_to_ours_and_failures_are_dashes() {
        let json = r#"{"machine": {"card": "X"}, "left_out": ["b"], "seconds": null,
            "cases": [{"dtype": "f16", "error": "no"}],
            "speed": [
                {"task": "encoder", "shape": "vit-l", "frames": 16, "batch": 1, "dtype": "f16", "tokens": 2048, "ms_median": 4.0, "torch_ms": 6.0},
                {"task": "encoder", "shape": "vit-s", "frames": 1, "batch": 1, "dtype": "f16", "error": "no"}
            ]}"#;
        let text = section(Some(json)).expect("it is what gpu.py writes");
        assert!(text.contains("| encoder vit-l | f16 | 16 | 1 | 2048 | 4.00 | 6.00 | - | 1.50 | - |"), "{text}");
        assert!(text.contains("| encoder vit-s | f16 | 1 | 1 | - | - | - | - | - | - |"), "{text}");
        assert!(text.contains("Left out for want of time: b."), "{text}");
    }
}
