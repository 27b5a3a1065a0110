//! How fast we are beside PyTorch, candle and ggml, on the same weights and the same input, in one interleaved run.
//!
//! Every round gives each program its passes, one program after another, so that whatever else the machine does meets all of them. Ratios are taken
//! within a round; the page shows their medians.

mod model;
mod other;
mod page;
mod peer;

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::model::{SIZES, Size};
use self::other::Other;
use self::peer::{Cli, Pass, Peer};
use crate::process::{Outcome, cargo, root, step};

pub(crate) use self::page::page;

/// Our name in the figures.
const OWN: &str = "jepa-cli";

/// The figures that the page is made from.
pub(crate) const FIGURES: &str = "docs/performance.json";

/// Options of `cargo xtask bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Sizes to run; may be given several times
    #[arg(long, value_name = "SHAPE", value_parser = clap::builder::PossibleValuesParser::new(SIZES.map(|size| size.name)), default_values = SIZES.map(|size| size.name))]
    shape: Vec<String>,
    /// Threads of every program; may be given several times
    #[arg(long, value_name = "N", default_values = ["1", "2"])]
    threads: Vec<usize>,
    /// Rounds of all programs
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: usize,
    /// Passes of a program in a round, of which the best counts
    #[arg(long, value_name = "N", default_value = "3")]
    passes: usize,
    /// Python with torch, numpy and gguf
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Leave candle out, which has to be compiled
    #[arg(long)]
    no_candle: bool,
    /// Checkout of ggml to run too; it is built twice, with and without llamafile's products (needs cmake and a C++ compiler)
    #[arg(long, value_name = "DIR")]
    ggml: Option<PathBuf>,
    /// Folder for models (12 GB) [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// What runs on one machine found out; a run replaces the figures of the sizes that it runs.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Figures {
    machine: Machine,
    rows: Vec<Row>,
    start: Vec<Start>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Machine {
    cpu: String,
    kernels: String,
    versions: BTreeMap<String, String>,
}

/// One program at one size.
#[derive(Debug, Deserialize, Serialize)]
struct Row {
    shape: String,
    title: String,
    tokens: usize,
    layers: usize,
    threads: usize,
    batch: usize,
    program: String,
    /// Our words for how products are formed; for others the type that everything is in.
    precision: String,
    weights: String,
    file_mb: f64,
    peak_rss_mb: Option<f64>,
    /// Lowest row cosine with PyTorch's f32 tokens.
    cos_min: f64,
    /// Passes of a round, of which the best is here.
    passes: usize,
    rounds: Vec<Pass>,
}

/// Time from the start of the process to an embedding on the disk.
#[derive(Debug, Deserialize, Serialize)]
struct Start {
    shape: String,
    title: String,
    weights: String,
    threads: usize,
    file_mb: f64,
    embed_ms: f64,
    forward_ms: f64,
}

/// Runs it and writes figures and page.
pub(crate) fn run(args: &BenchArgs) -> Outcome {
    let mut build = cargo(&["build", "--release", "--package", "jepa-cli"]);
    step("jepa-cli", &mut build)?;
    let cli = Cli::built()?;
    let mut others = vec![Other::torch(&args.python, "f32"), Other::torch(&args.python, "bf16")];
    if !args.no_candle {
        others.push(Other::candle()?);
    }
    if let Some(source) = &args.ggml {
        others.extend(Other::ggml(source)?);
    }
    let temporary;
    let folder = match &args.folder {
        Some(folder) => folder,
        None => {
            temporary = tempfile::tempdir()?;
            temporary.path()
        }
    };
    let mut figures = Figures { machine: machine(&cli, &others)?, rows: Vec::new(), start: Vec::new() };
    for size in SIZES.iter().filter(|size| args.shape.iter().any(|shape| shape == size.name)) {
        let bench = Bench { args, cli: &cli, others: &others, size, files: Files::written(&cli, size, folder)? };
        for &threads in &args.threads {
            figures.rows.extend(bench.rows(threads, &figures.machine.kernels)?);
        }
        figures.start.push(bench.start()?);
    }
    let before: Option<Figures> =
        fs::read_to_string(root().join(FIGURES)).ok().and_then(|json| serde_json::from_str(&json).ok());
    figures.keep(before);
    fs::write(root().join(FIGURES), serde_json::to_string_pretty(&figures)? + "\n")?;
    crate::docs::run(false)
}

impl Figures {
    /// Keeps what was found before on the same machine with the same programs, of sizes that did not run now.
    fn keep(&mut self, before: Option<Self>) {
        let Some(before) = before.filter(|before| before.machine == self.machine) else { return };
        let ran: Vec<String> = self.start.iter().map(|start| start.shape.clone()).collect();
        self.rows.extend(before.rows.into_iter().filter(|row| !ran.contains(&row.shape)));
        self.start.extend(before.start.into_iter().filter(|start| !ran.contains(&start.shape)));
        let place = |shape: &str| SIZES.iter().position(|size| size.name == shape);
        self.rows.sort_by_key(|row| place(&row.shape));
        self.start.sort_by_key(|start| place(&start.shape));
    }
}

/// The bundle of a size in three types, and an input.
struct Files {
    models: BTreeMap<&'static str, PathBuf>,
    input: PathBuf,
}

impl Files {
    fn written(cli: &Cli, size: &Size, folder: &Path) -> Result<Self, Box<dyn Error>> {
        eprintln!("== {}: model and input", size.name);
        let path = |dtype: &str| folder.join(format!("{}-{dtype}.gguf", size.name));
        let input = folder.join(format!("{}-input.npy", size.name));
        size.write_input(&input)?;
        size.write_model(&path("f32"))?;
        for dtype in ["f16", "q8_0"] {
            let args = ["quantize".into(), "-q".into(), path("f32").into(), path(dtype).into(), "--type".into()];
            cli.run(args.into_iter().chain([OsString::from(dtype)]))?;
        }
        Ok(Self { models: ["f32", "f16", "q8_0"].map(|dtype| (dtype, path(dtype))).into(), input })
    }

    fn megabytes(&self, weights: &str) -> Result<f64, Box<dyn Error>> {
        Ok(fs::metadata(&self.models[weights])?.len() as f64 / 1e6)
    }
}

/// What one size is run with.
struct Bench<'a> {
    args: &'a BenchArgs,
    cli: &'a Cli,
    others: &'a [Other],
    size: &'a Size,
    files: Files,
}

impl Bench<'_> {
    fn rows(&self, threads: usize, kernels: &str) -> Result<Vec<Row>, Box<dyn Error>> {
        let work = tempfile::tempdir()?;
        let tokens = |name: usize| work.path().join(format!("{name}.npy"));
        let mut peers = Vec::new();
        let mut rows = Vec::new();
        for (i, other) in self.others.iter().enumerate() {
            let model = &self.files.models[other.weights];
            let mut peer = Peer::start(other.command(model, &self.files.input, threads, &tokens(i)))?;
            peer.pass(other.word)?;
            let cos_min = self.compare(&tokens(i), &tokens(0))?;
            rows.push(self.row(other.program, other.word, other.weights, threads, 1, cos_min)?);
            peers.push(peer);
        }
        for (precision, weights, batch) in self.own_runs(kernels) {
            let own = tokens(self.others.len());
            self.embed(precision, weights, &own, threads)?;
            rows.push(self.row(OWN, precision, weights, threads, batch, self.compare(&own, &tokens(0))?)?);
        }
        for round in 1..=self.args.rounds {
            eprintln!("== {}, {threads} threads: round {round} of {}", self.size.name, self.args.rounds);
            let (others, own) = rows.split_at_mut(peers.len());
            for (row, peer) in others.iter_mut().zip(&mut peers) {
                row.rounds.push(peer.best(&row.precision, self.args.passes)?);
            }
            for row in own {
                let line = self.ours(&row.precision, &row.weights, threads, row.batch)?;
                let number = |key: &str| line[key].as_f64().ok_or_else(|| format!("jepa-cli bench: no {key}"));
                row.rounds.push(Pass { wall: number("ms_min")?, cpu: number("cpu_ms_min")? });
                row.peak_rss_mb = line["peak_rss_mb"].as_f64();
            }
        }
        Ok(rows)
    }

    /// Precision, weights and batch of what we run. `highest` is `high` where there are no AMX units.
    fn own_runs(&self, kernels: &str) -> Vec<(&'static str, &'static str, usize)> {
        let mut runs = vec![("high", "f32", 1), ("medium", "f32", 1), ("high", "f16", 1), ("high", "q8_0", 1)];
        if kernels == "amx" {
            runs.insert(0, ("highest", "f32", 1));
        }
        if self.size.name == "vit-s" {
            runs.push(("high", "f32", 8));
        }
        runs
    }

    fn row(
        &self,
        program: &str,
        precision: &str,
        weights: &str,
        threads: usize,
        batch: usize,
        cos_min: f64,
    ) -> Result<Row, Box<dyn Error>> {
        Ok(Row {
            shape: self.size.name.into(),
            title: self.size.title.into(),
            tokens: self.size.tokens(),
            layers: self.size.layers(),
            threads,
            batch,
            program: program.into(),
            precision: precision.into(),
            weights: weights.into(),
            file_mb: self.files.megabytes(weights)?,
            peak_rss_mb: None,
            cos_min,
            passes: self.args.passes,
            rounds: Vec::new(),
        })
    }

    /// The line that `jepa-cli bench` prints.
    fn ours(&self, precision: &str, weights: &str, threads: usize, batch: usize) -> Result<Value, Box<dyn Error>> {
        let (threads, batch, passes) = (threads.to_string(), batch.to_string(), self.args.passes.to_string());
        let model = self.files.models[weights].as_os_str();
        let words = ["bench", "--json", "-q", "--backend", "cpu", "--precision", precision, "--threads", &threads];
        let more = ["--batch", &batch, "--repeat", &passes, "-m"];
        let printed = self.cli.run(words.iter().chain(&more).map(OsString::from).chain([model.to_owned()]))?;
        let lines: Vec<Value> = serde_json::from_slice(&printed)?;
        lines.into_iter().next().ok_or_else(|| "jepa-cli bench printed no line".into())
    }

    fn embed(&self, precision: &str, weights: &str, out: &Path, threads: usize) -> Outcome {
        let threads = threads.to_string();
        let words = ["embed", "-q", "--no-progress", "--backend", "cpu", "--pool", "none", "--precision", precision];
        let paths = [("-m", self.files.models[weights].as_path()), ("--input-tensor", &self.files.input), ("-o", out)];
        let paths = paths.into_iter().flat_map(|(flag, path)| [OsString::from(flag), path.into()]);
        self.cli.run(words.iter().chain(&["--threads", &threads]).map(OsString::from).chain(paths))?;
        Ok(())
    }

    /// Lowest cosine of a row.
    fn compare(&self, a: &Path, b: &Path) -> Result<f64, Box<dyn Error>> {
        let words = ["compare", "--json"].map(OsString::from);
        let printed = self.cli.run(words.into_iter().chain([a.into(), b.into()]))?;
        let line: Value = serde_json::from_slice(&printed)?;
        find(&line, "cos_min").ok_or_else(|| "jepa-cli compare: no cos_min".into())
    }

    /// From the start of the process to the embedding of one input on the disk, the file's pages in memory; the best of five.
    fn start(&self) -> Result<Start, Box<dyn Error>> {
        let out = tempfile::tempdir()?;
        let threads = *self.args.threads.iter().max().ok_or("no number of threads")?;
        let mut embed_ms = f64::INFINITY;
        for _ in 0..5 {
            let started = Instant::now();
            self.embed("high", "f32", &out.path().join("tokens.npy"), threads)?;
            embed_ms = embed_ms.min(started.elapsed().as_secs_f64() * 1e3);
        }
        let line = self.ours("high", "f32", threads, 1)?;
        Ok(Start {
            shape: self.size.name.into(),
            title: self.size.title.into(),
            weights: "f32".into(),
            threads,
            file_mb: self.files.megabytes("f32")?,
            embed_ms,
            forward_ms: line["ms_min"].as_f64().ok_or("jepa-cli bench: no ms_min")?,
        })
    }
}

/// The first number called `key`, at any depth.
fn find(value: &Value, key: &str) -> Option<f64> {
    match value {
        Value::Object(map) => map.get(key).and_then(Value::as_f64).or_else(|| map.values().find_map(|v| find(v, key))),
        Value::Array(list) => list.iter().find_map(|v| find(v, key)),
        _ => None,
    }
}

/// What it ran on, and what ran.
fn machine(cli: &Cli, others: &[Other]) -> Result<Machine, Box<dyn Error>> {
    let devices: Value = serde_json::from_slice(&cli.run(["devices", "--json"])?)?;
    let kernels = devices["cpu"]["kernels"].as_str().unwrap_or("unknown").to_owned();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown").to_owned()
    };
    let cpu = format!("{}, family {}, model {}", field("model name"), field("cpu family"), field("model\t"));
    let own = String::from_utf8(cli.run(["--version"])?)?;
    let mut versions = BTreeMap::from([(OWN.to_owned(), own.trim().trim_start_matches("jepa-cli ").to_owned())]);
    for other in others {
        versions.insert(other.program.to_owned(), other.version()?);
    }
    Ok(Machine { cpu, kernels, versions })
}
