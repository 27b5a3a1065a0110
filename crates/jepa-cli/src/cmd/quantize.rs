use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use burn::prelude::*;
use globset::{GlobSet, GlobSetBuilder};
use jepa_gguf::quantize::{ImportanceMatrix, Options, Plan, Reason, RoundingError};
use jepa_gguf::{GgmlType, GgufError};
use jepa_models::{Fidelity, Jepa, Pixels, RowAgreement, noise};
use serde::Serialize;

use super::model::{load, model_error, open_bundle, write_error};
use super::stream::{Consumer, Tally, Through};
use crate::args::{InputArgs, ModelArgs, QuantizeArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::interrupt::Unfinished;
use crate::output::refuse_overwriting;
use crate::progress::Progress;
use crate::report::{self, Report};

/// Inputs of noise that stand in for pictures.
const NOISE_INPUTS: usize = 4;
/// What rounding costs does not depend on the length of a clip, its time does.
const NOISE_FRAMES: usize = 8;
const NOISE_SEED: u64 = 0;

pub(crate) fn run(args: &QuantizeArgs, shared: &Shared) -> Result<(), CliError> {
    if let Some(output) = &args.output {
        let pictures = args.report.iter().flatten().map(|path| path.as_path());
        let read = [args.input.as_path()].into_iter().chain(args.imatrix.as_deref()).chain(pictures);
        refuse_overwriting(output, read)?;
    }
    let bundle = open_bundle(&args.input, false, shared)?;
    let keep = globs(args)?;
    let importance = args
        .imatrix
        .as_deref()
        .map(|path| ImportanceMatrix::open(path).map_err(|error| CliError::input(path.display().to_string(), error)))
        .transpose()?;
    let options = Options {
        dtype: args.dtype,
        keep: &|name| keep.is_match(name),
        allow_requantize: args.allow_requantize,
        importance: importance.as_ref(),
    };
    let plan = Plan::new(&bundle, &options).map_err(|error| refusal(args, error))?;
    let mut summary = Quantized::new(args, &plan)?;
    if !args.dry_run {
        let output = args.output.as_deref().expect("clap wants one unless it is a dry run");
        summary.take_errors(write(&plan, &args.input, output, shared)?);
    }
    if let (Some(pictures), Some(output)) = (&args.report, &args.output) {
        summary.features = Some(run_on(Compare { args, pictures, output, shared }, shared)?);
    }
    if shared.json || args.dry_run || args.report.is_some() {
        report::print(&summary, shared)?;
    }
    if !shared.json && !shared.quiet {
        summary.say();
    }
    summary.features.map_or(Ok(()), |features| features.tally.verdict())
}

fn globs(args: &QuantizeArgs) -> Result<GlobSet, CliError> {
    let mut set = GlobSetBuilder::new();
    for glob in &args.keep {
        set.add(glob.clone());
    }
    set.build().map_err(|error| CliError::usage(format!("--keep: {error}")))
}

/// What to do about a tensor that cannot become what was asked for.
fn refusal(args: &QuantizeArgs, error: GgufError) -> CliError {
    match error {
        GgufError::Requantize { .. } => {
            CliError::usage(format!("{}: {error}; --allow-requantize does it all the same", args.input.display()))
        }
        GgufError::ImportanceColumns { .. } => {
            let path = args.imatrix.as_deref().unwrap_or(Path::new("--imatrix"));
            CliError::input(path.display().to_string(), error)
        }
        other => model_error(&args.input, other),
    }
}

/// Writes the file and gives the error of every tensor, in the order of the plan.
fn write(plan: &Plan<'_>, input: &Path, output: &Path, shared: &Shared) -> Result<Vec<RoundingError>, CliError> {
    let progress = Progress::new(plan.tensors().len(), shared);
    let quantization = plan.start(output).map_err(|error| write_error(output, error))?;
    let _unfinished = Unfinished::new(quantization.temporary_path());
    let mut errors = Vec::with_capacity(plan.tensors().len());
    quantization
        .finish(|written| {
            errors.push(written.error);
            progress.advance(1);
        })
        .map_err(|error| match error {
            GgufError::WeightRange { .. } => model_error(input, error),
            other => write_error(output, other),
        })?;
    Ok(errors)
}

/// What every tensor became, and what that costs.
#[derive(Serialize)]
struct Quantized {
    input: String,
    output: Option<String>,
    #[serde(rename = "type")]
    dtype: &'static str,
    bytes_before: u64,
    bytes_after: u64,
    dry_run: bool,
    tensors: Vec<TensorLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<FeatureLine>,
}

#[derive(Serialize)]
struct TensorLine {
    name: String,
    shape: Vec<usize>,
    from: &'static str,
    to: &'static str,
    bytes: u64,
    /// Why it is not the type that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether the importance matrix had a say.
    weighted: bool,
    /// Root of the squared differences over the squared values; absent for what was copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative_error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_abs_error: Option<f32>,
    #[serde(skip)]
    fell_back: bool,
}

impl Quantized {
    fn new(args: &QuantizeArgs, plan: &Plan<'_>) -> Result<Self, CliError> {
        let refuse = |error| model_error(&args.input, error);
        let line = |t: &jepa_gguf::quantize::PlannedTensor<'_>| TensorLine {
            name: t.info.name().to_owned(),
            shape: t.info.shape().to_vec(),
            from: t.info.dtype().name(),
            to: t.dtype.name(),
            bytes: t.byte_len(),
            reason: t.reason.map(|reason| reason.to_string()),
            weighted: t.is_weighted(),
            relative_error: None,
            max_abs_error: None,
            fell_back: t.reason == Some(Reason::RowLength),
        };
        Ok(Self {
            input: args.input.display().to_string(),
            output: args.output.as_ref().map(|path| path.display().to_string()),
            dtype: args.dtype.name(),
            bytes_before: plan.source_len(),
            bytes_after: plan.file_len().map_err(refuse)?,
            dry_run: args.dry_run,
            tensors: plan.tensors().iter().map(line).collect(),
            features: None,
        })
    }

    fn take_errors(&mut self, errors: Vec<RoundingError>) {
        for (line, error) in self.tensors.iter_mut().zip(errors).filter(|(line, _)| line.from != line.to) {
            line.relative_error = Some(error.relative());
            line.max_abs_error = Some(error.max_abs);
        }
    }

    /// The remarks that go to stderr: what fell back, what the importance matrix left out, how large the file is.
    fn say(&self) {
        let rows = |line: &TensorLine| line.shape.last().copied().unwrap_or(1);
        let mut fallbacks: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for line in self.tensors.iter().filter(|line| line.fell_back) {
            fallbacks.entry((rows(line), line.to)).or_default().push(&line.name);
        }
        let block = GgmlType::from_name(self.dtype).map_or(1, GgmlType::block_len);
        for ((row, to), names) in fallbacks {
            let places = places(&names).join(", ");
            let count = names.len();
            say_on_stderr(&format!(
                "note: {count} tensors with rows of {row}, no whole blocks of {block}, became {to}: {places}"
            ));
        }
        if self.tensors.iter().any(|line| line.weighted) {
            let plain: Vec<_> = self.tensors.iter().filter(|line| line.to == self.dtype && !line.weighted).collect();
            if !plain.is_empty() {
                let names: Vec<_> = plain.iter().map(|line| line.name.as_str()).collect();
                let (count, places) = (names.len(), places(&names).join(", "));
                say_on_stderr(&format!("note: the importance matrix says nothing of {count} tensors: {places}"));
            }
        }
        let (before, after) = (megabytes(self.bytes_before), megabytes(self.bytes_after));
        match &self.output {
            _ if self.dry_run => say_on_stderr(&format!("{before} would become {after}; nothing was written")),
            Some(output) => say_on_stderr(&format!("{} written to {output}: {before} became {after}", self.dtype)),
            None => {}
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Names with `*` for the number of the block, each once.
fn places(names: &[&str]) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for name in names {
        let parts = name.split('.').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part });
        let place = parts.collect::<Vec<_>>().join(".");
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

impl Report for Quantized {
    fn text(&self) -> String {
        let mut text = String::new();
        let width = self.tensors.iter().map(|line| line.name.len()).max().unwrap_or(0);
        for line in &self.tensors {
            let _ = write!(text, "{:width$}  {:>5} -> {:5}", line.name, line.from, line.to);
            if let Some(error) = line.relative_error {
                let _ = write!(text, "  relative error {error:.2e}");
            }
            if line.weighted {
                text.push_str("  weighted");
            }
            match &line.reason {
                Some(reason) => drop(writeln!(text, "  {reason}")),
                None => text.push('\n'),
            }
        }
        if let Some(features) = &self.features {
            let FeatureLine { on, pooled, tokens, .. } = features;
            for (what, rows) in [("pooled", pooled), ("tokens", tokens)] {
                let RowLine { rows, cos_mean, cos_min, rel_max } = rows;
                let _ = writeln!(
                    text,
                    "{what} features on {on}: cosine mean {cos_mean:.6}, worst {cos_min:.6} of {rows}, largest difference {rel_max:.2e}"
                );
            }
        }
        text
    }
}

/// How well the features agree with those of the file the new one was made from.
#[derive(Clone, Serialize)]
struct FeatureLine {
    on: String,
    pooled: RowLine,
    tokens: RowLine,
    #[serde(skip)]
    tally: Tally,
}

#[derive(Clone, Copy, Serialize)]
struct RowLine {
    rows: usize,
    cos_mean: f64,
    cos_min: f64,
    rel_max: f64,
}

impl From<RowAgreement> for RowLine {
    fn from(r: RowAgreement) -> Self {
        Self { rows: r.rows, cos_mean: r.cos_mean, cos_min: r.cos_min, rel_max: r.rel_max }
    }
}

struct Compare<'a> {
    args: &'a QuantizeArgs,
    pictures: &'a [std::path::PathBuf],
    output: &'a Path,
    shared: &'a Shared,
}

impl Task for Compare<'_> {
    type Output = FeatureLine;

    fn run<B: Backend>(self, device: B::Device) -> Result<FeatureLine, CliError> {
        let Self { args, pictures, output, shared } = self;
        let open = |path: &Path| load::<B>(&ModelArgs { model: path.to_owned(), no_mmap: false }, &device, shared);
        let mut sink = FidelitySink { wanted: open(&args.input)?, got: open(output)?, fidelity: Fidelity::default() };
        let (on, tally) = if pictures.is_empty() {
            let config = sink.wanted.encoder().config();
            let frames = config.hparams.n_frames.min(NOISE_FRAMES);
            let pixels = noise(config, NOISE_INPUTS, frames, NOISE_SEED, &device);
            sink.fidelity.add(&sink.wanted, &sink.got, pixels).map_err(|error| model_error(&args.input, error))?;
            (format!("{NOISE_INPUTS} inputs of seeded noise"), Tally::default())
        } else {
            let inputs = InputArgs { inputs: pictures.to_vec(), size: None, frames: None, input_tensor: None };
            let through = Through::new(&sink.wanted, &inputs, 0, NOISE_INPUTS, &device, shared)
                .map_err(|error| model_error(&args.input, error))?;
            let tally = through.run(&mut sink)?;
            (format!("{} inputs", tally.total - tally.failed), tally)
        };
        let Fidelity { pooled, tokens } = sink.fidelity;
        Ok(FeatureLine { on, pooled: pooled.into(), tokens: tokens.into(), tally })
    }
}

struct FidelitySink<B: Backend> {
    wanted: Jepa<B>,
    got: Jepa<B>,
    fidelity: Fidelity,
}

impl<B: Backend> Consumer<B> for FidelitySink<B> {
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError> {
        match self.fidelity.add(&self.wanted, &self.got, pixels) {
            Ok(()) => Ok(Vec::new()),
            Err(error) => Ok(names.iter().map(|name| (name.clone(), error.to_string())).collect()),
        }
    }

    fn failed(&mut self, _name: &str, _error: &str) -> Result<(), CliError> {
        Ok(())
    }
}
