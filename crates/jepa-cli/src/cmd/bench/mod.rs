//! `bench`: how long a part of a model takes.

mod line;
mod subject;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use burn::prelude::*;
use cpu_time::ProcessTime;
use jepa_models::{Jepa, ModelError};

use self::line::{Line, Measured, forget_peak, peak_rss_mb};
use self::subject::{Choice, Subject};
use super::memory::{beyond_buffers, refuse_too_big};
use super::model::{model_error, open_bundle};
use crate::args::{BenchArgs, Shared};
use crate::backend::{Task, run_on, with_threads};
use crate::exit::CliError;
use crate::report;

const SEED: u64 = 0;

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
        let mut lines = Vec::new();
        match &self.args.model {
            Some(path) => {
                let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
                lines.extend(self.measured::<B>(&device, &name, || self.of_file(path, &device))?);
            }
            None => {
                for shape in &self.args.shape {
                    let load = || {
                        B::seed(&device, SEED);
                        let subject = Subject::of_shape(self.choice(), shape, &device);
                        Ok((subject.expect("clap lets these names pass only"), "f32".to_owned()))
                    };
                    lines.extend(self.measured::<B>(&device, shape, load)?);
                }
            }
        }
        report::print(&Measured(lines), self.shared)
    }
}

impl Bench<'_> {
    fn choice(&self) -> Choice {
        Choice {
            task: self.args.task,
            frames: self.args.frames.map(NonZeroUsize::get),
            dtype: self.shared.dtype.dtype(),
        }
    }

    /// The part of a file that is timed, and the type that most of the file's numbers have.
    fn of_file<B: Backend>(&self, path: &Path, device: &B::Device) -> Result<(Subject<B>, String), CliError> {
        let refuse = |error| model_error(path, error);
        let bundle = open_bundle(path, false, self.shared)?;
        let weights = bundle.gguf().type_mix().into_iter().max_by_key(|share| share.elements);
        let model = Jepa::from_bundle_as(bundle, device, self.shared.dtype.dtype()).map_err(refuse)?;
        let subject = Subject::of_model(self.choice(), &model).map_err(refuse)?;
        Ok((subject, weights.map_or("f32", |share| share.dtype.name()).to_owned()))
    }

    /// Times a model at every batch size, with every number of threads.
    fn measured<B: Backend>(
        &self,
        device: &B::Device,
        shape: &str,
        load: impl FnOnce() -> Result<(Subject<B>, String), CliError>,
    ) -> Result<Vec<Line>, CliError> {
        let loading = Instant::now();
        let (subject, weights) = load()?;
        let mut load_ms = Some(milliseconds(loading));
        let mut lines = Vec::new();
        for &threads in &self.shared.threads_or_all() {
            for batch in self.args.batch.iter().map(|n| n.get()) {
                let what = format!("a batch of {batch} on {shape}");
                refuse_too_big::<B>(&what, subject.pass_bytes(batch), "lower --batch")?;
                if !subject.fits_device(batch) {
                    return Err(beyond_buffers(what, "lower --batch, or run with `--backend cpu`"));
                }
                forget_peak();
                let time = || self.timed(&subject, batch, device);
                let timed = with_threads(threads, time)?.map_err(|error| model_error(Path::new(shape), error))?;
                lines.push(Line {
                    task: self.args.task.word(),
                    shape: shape.to_owned(),
                    precision: self.shared.precision.word(),
                    dtype: self.shared.dtype.dtype().name(),
                    weights: weights.clone(),
                    threads,
                    batch,
                    tokens: timed.tokens,
                    layers: subject.layers(),
                    ms_median: f64::midpoint(timed.wall[timed.wall.len() / 2], timed.wall[(timed.wall.len() - 1) / 2]),
                    ms_min: timed.wall[0],
                    cpu_ms_min: timed.cpu[0],
                    peak_rss_mb: peak_rss_mb(),
                    load_ms: load_ms.take(),
                });
            }
        }
        Ok(lines)
    }

    /// Runs the passes, after one that is not timed.
    fn timed<B: Backend>(&self, subject: &Subject<B>, batch: usize, device: &B::Device) -> Result<Timed, ModelError> {
        B::seed(device, SEED);
        let pass = subject.pass(batch, SEED, device);
        let tokens = pass()?;
        let (mut wall, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..self.args.repeat.get() {
            let (started, cpu_started) = (Instant::now(), ProcessTime::now());
            pass()?;
            wall.push(milliseconds(started));
            cpu.push(cpu_started.elapsed().as_secs_f64() * 1e3);
        }
        wall.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        Ok(Timed { tokens, wall, cpu })
    }
}

/// Milliseconds of all passes, ascending.
struct Timed {
    tokens: usize,
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
