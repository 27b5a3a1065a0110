use std::path::Path;
use std::time::Instant;

use burn::prelude::*;
use cpu_time::ProcessTime;
use jepa_models::{Encoder, EncoderConfig, Jepa, ModelError, noise};
use serde::Serialize;

use super::model::{model_error, open_bundle};
use crate::args::{BenchArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::CliError;
use crate::report::{self, Report};

const SEED: u64 = 0;
/// Most frames of a clip.
const FRAMES: usize = 16;

pub(crate) fn run(args: &BenchArgs, shared: &Shared) -> Result<(), CliError> {
    run_on(Bench { args, shared }, shared)
}

struct Bench<'a> {
    args: &'a BenchArgs,
    shared: &'a Shared,
}

impl Task for Bench<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let mut lines = Vec::new();
        match &args.model {
            Some(path) => {
                let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
                let load = || from_file::<B>(path, &device, shared);
                lines.extend(measured::<B>(args, shared, &device, &name, load)?);
            }
            None => {
                for shape in &args.shape {
                    let config = EncoderConfig::of_shape(shape).expect("clap lets these names pass only");
                    let load = || {
                        B::seed(&device, SEED);
                        Ok((config.init::<B>(&device), "f32".to_owned()))
                    };
                    lines.extend(measured::<B>(args, shared, &device, shape, load)?);
                }
            }
        }
        report::print(&Measured(lines), shared)
    }
}

/// The encoder of a file, and the type that most of its numbers have.
fn from_file<B: Backend>(path: &Path, device: &B::Device, shared: &Shared) -> Result<(Encoder<B>, String), CliError> {
    let bundle = open_bundle(path, false, shared)?;
    let weights = bundle.gguf().type_mix().into_iter().max_by_key(|share| share.elements);
    let model = Jepa::from_bundle(bundle, device).map_err(|error| model_error(path, error))?;
    Ok((model.encoder().clone(), weights.map_or("f32", |share| share.dtype.name()).to_owned()))
}

/// Times one encoder at every batch size.
fn measured<B: Backend>(
    args: &BenchArgs,
    shared: &Shared,
    device: &B::Device,
    shape: &str,
    load: impl FnOnce() -> Result<(Encoder<B>, String), CliError>,
) -> Result<Vec<Line>, CliError> {
    let loading = Instant::now();
    let (encoder, weights) = load()?;
    let mut load_ms = Some(milliseconds(loading));
    let mut lines = Vec::new();
    for batch in args.batch.iter().map(|n| n.get()) {
        let pixels = noise::<B>(encoder.config(), batch, FRAMES, SEED, device);
        let pass = || {
            let encoded = encoder.encode(pixels.clone())?;
            let tokens = encoded.tokens.dims()[1];
            // Reading a value back waits for a device that works in the background.
            let _ = encoded.tokens.narrow(1, 0, 1).into_data();
            Ok(tokens)
        };
        let fail = |error: ModelError| model_error(Path::new(shape), error);
        let tokens = pass().map_err(fail)?;
        let (mut wall, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..args.repeat.get() {
            let (started, cpu_started) = (Instant::now(), ProcessTime::now());
            pass().map_err(fail)?;
            wall.push(milliseconds(started));
            cpu.push(cpu_started.elapsed().as_secs_f64() * 1e3);
        }
        wall.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        lines.push(Line {
            task: "encoder",
            shape: shape.to_owned(),
            precision: shared.precision.word(),
            dtype: "f32",
            weights: weights.clone(),
            threads: rayon::current_num_threads(),
            batch,
            tokens,
            layers: encoder.config().hparams.n_layer,
            ms_median: f64::midpoint(wall[wall.len() / 2], wall[(wall.len() - 1) / 2]),
            ms_min: wall[0],
            cpu_ms_min: cpu[0],
            peak_rss_mb: peak_rss_mb(),
            load_ms: load_ms.take(),
        });
    }
    Ok(lines)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// The most memory this process has had, mapped pages of files included; where the system tells.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}

#[derive(Serialize)]
#[serde(transparent)]
struct Measured(Vec<Line>);

#[derive(Serialize)]
struct Line {
    task: &'static str,
    shape: String,
    precision: &'static str,
    /// Type of the activations.
    dtype: &'static str,
    /// Type that most weights are stored in.
    weights: String,
    threads: usize,
    batch: usize,
    /// Tokens of one input, CLS and registers included.
    tokens: usize,
    layers: usize,
    ms_median: f64,
    ms_min: f64,
    cpu_ms_min: f64,
    peak_rss_mb: Option<f64>,
    /// Time to open and load; on the first line of a model only.
    load_ms: Option<f64>,
}

impl Report for Measured {
    fn text(&self) -> String {
        let mut text =
            String::from("model            batch  tokens  ms (median)  ms (best)  cpu ms (best)  tokens/s  peak MB\n");
        for line in &self.0 {
            let rate = (line.batch * line.tokens) as f64 / line.ms_median * 1e3;
            let peak = line.peak_rss_mb.map_or("-".to_owned(), |mb| format!("{mb:.0}"));
            text += &format!(
                "{:16} {:5}  {:6}  {:11.1}  {:9.1}  {:13.1}  {:8.0}  {peak:>7}\n",
                line.shape, line.batch, line.tokens, line.ms_median, line.ms_min, line.cpu_ms_min, rate
            );
        }
        text
    }
}
