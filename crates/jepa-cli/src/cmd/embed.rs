use burn::prelude::*;
use jepa_models::{EncodeOptions, Jepa, Pixels, Trace};
use serde::Serialize;

use super::memory::fitting_batch;
use super::model::{load, model_error};
use super::stream::{self, Ready, Sink, Tally};
use crate::args::{EmbedArgs, Shared};
use crate::arrays::Array;
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::inputs;
use crate::output::{Element, Format, RowWriter};
use crate::progress::Progress;
use crate::report::{self, Report};

/// Name of the array in a `.safetensors` file.
const TENSOR_NAME: &str = "features";

pub(crate) fn run(args: EmbedArgs, shared: &Shared) -> Result<(), CliError> {
    let formats = [Format::Npy, Format::Safetensors, Format::Jsonl, Format::Csv];
    let format = args.output.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    run_on(Embed { args: &args, shared, format }, shared)
}

struct Embed<'a> {
    args: &'a EmbedArgs,
    shared: &'a Shared,
    format: Option<Format>,
}

impl Task for Embed<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared, format } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let config = model.encoder().config();
        if let Some(pool) = args.pool.pool() {
            config.check_pool(pool).map_err(refuse)?;
        }
        let layers =
            args.layers.as_ref().map(|layers| layers.resolve(config.hparams.n_layer)).transpose().map_err(refuse)?;
        let rows = match (&args.output, format) {
            (Some(path), Some(format)) => {
                Rows::File(Box::new(RowWriter::create(path, format, Element::F32, TENSOR_NAME)?))
            }
            _ => Rows::Summary(Summary::default()),
        };
        let mut sink = EmbedSink { args, model, layers, device, rows };
        let tally = match &args.input.input_tensor {
            Some(_) => sink.take_tensor(shared)?,
            None => {
                let mut preprocess = sink.model.preprocess().clone();
                if let Some(size) = args.input.size {
                    preprocess = preprocess.with_size(size.height, size.width).map_err(refuse)?;
                }
                *sink.model.preprocess_mut() = preprocess.clone();
                let inputs = inputs::expand(&args.input.inputs, preprocess.takes_clips());
                let progress = Progress::new(inputs.len(), shared);
                let frames = args.input.frames.map(usize::from);
                let (height, width) = preprocess.output_size();
                let clip = [3, frames.unwrap_or(preprocess.clip_frames()), height, width];
                let batch = sink.fitting_batch(clip, shared)?;
                stream::run(&inputs, &preprocess, frames, batch, &progress, &mut sink)?
            }
        };
        sink.rows.finish(tally, args, shared)?;
        tally.verdict()
    }
}

struct EmbedSink<'a, B: Backend> {
    args: &'a EmbedArgs,
    model: Jepa<B>,
    layers: Option<Vec<usize>>,
    device: B::Device,
    rows: Rows,
}

impl<B: Backend> EmbedSink<'_, B> {
    /// The batch size asked for, or less where memory is short.
    fn fitting_batch(&self, input: [usize; 4], shared: &Shared) -> Result<usize, CliError> {
        let kept = self.layers.as_ref().map_or(0, Vec::len);
        fitting_batch::<B>(self.model.encoder().config(), input, kept, self.args.batch.get(), shared)
    }

    /// Encodes a batch and appends its rows.
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError> {
        let layers = self.layers.as_deref().unwrap_or_default();
        let options = EncodeOptions { layers, ..Default::default() };
        let features = self.model.encoder().encode_with(pixels, options, &mut Trace::none()).and_then(|out| {
            Ok(match (self.args.pool.pool(), layers.is_empty()) {
                (Some(pool), true) => out.pooled(pool)?.into_data(),
                (Some(pool), false) => out.pooled_layers(pool)?.into_data(),
                (None, true) => out.tokens.into_data(),
                (None, false) => Tensor::cat(out.layers, 2).into_data(),
            })
        });
        let data = match features {
            Ok(data) => data,
            Err(error) => return Ok(names.iter().map(|name| (name.clone(), error.to_string())).collect()),
        };
        let shape = data.shape[1..].to_vec();
        if let Err(why) = self.rows.accepts(&shape) {
            return Ok(names.iter().map(|name| (name.clone(), why.clone())).collect());
        }
        let mut values: Vec<f32> = data.iter::<f32>().collect();
        if self.args.l2 {
            let width = *shape.last().expect("features have a last axis");
            values.chunks_exact_mut(width).for_each(scale_to_length_one);
        }
        for (name, row) in names.iter().zip(values.chunks_exact(shape.iter().product())) {
            self.rows.push(name, &shape, row)?;
        }
        Ok(Vec::new())
    }

    /// Rows of an array that has been normalised already.
    fn take_tensor(&mut self, shared: &Shared) -> Result<Tally, CliError> {
        let Some(path) = &self.args.input.input_tensor else { return Ok(Tally::default()) };
        let name = path.display().to_string();
        let (values, shape) = read_pixels(path)?;
        let per_input: usize = shape[1..].iter().product();
        let batch = self.fitting_batch([shape[1], shape[2], shape[3], shape[4]], shared)?;
        let progress = Progress::new(shape[0], shared);
        let mut tally = Tally { total: shape[0], failed: 0 };
        for (first, values) in values.chunks(per_input * batch).enumerate() {
            let n = values.len() / per_input;
            let first = first * batch;
            let names: Vec<_> = (first..first + n).map(|i| format!("{name}[{i}]")).collect();
            let data = TensorData::new(values.to_vec(), [n, shape[1], shape[2], shape[3], shape[4]]);
            let pixels = Pixels::from_normalised_clips(Tensor::from_data(data, &self.device));
            for (name, error) in self.push(&names, pixels)? {
                tally.failed += 1;
                progress.error(&format!("error: {name}: {error}"));
                self.failed(&name, &error)?;
            }
            progress.advance(n);
        }
        Ok(tally)
    }
}

impl<B: Backend> Sink for EmbedSink<'_, B> {
    fn take(&mut self, batch: &[Ready]) -> Result<Vec<(String, String)>, CliError> {
        let names: Vec<_> = batch.iter().map(|input| input.name.clone()).collect();
        match stream::pixels(batch, self.model.preprocess(), &self.device) {
            Ok(pixels) => self.push(&names, pixels),
            Err(error) => Ok(names.into_iter().map(|name| (name, error.to_string())).collect()),
        }
    }

    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError> {
        match &mut self.rows {
            Rows::File(writer) => writer.note_failure(name, error),
            Rows::Summary(summary) => {
                summary.failed.push(Failed { input: name.to_owned(), error: error.to_owned() });
                Ok(())
            }
        }
    }
}

/// Normalised pixels of a `.npy` file as `[inputs, chans, frames, height, width]`, all finite.
pub(super) fn read_pixels(path: &std::path::Path) -> Result<(Vec<f32>, [usize; 5]), CliError> {
    let fail = |what: String| CliError::input(path.display().to_string(), what);
    let array = Array::read_npy(path).map_err(|error| CliError::input(path.display().to_string(), error))?;
    let shape = match array.shape[..] {
        [n, c, h, w] => [n, c, 1, h, w],
        [n, c, t, h, w] => [n, c, t, h, w],
        _ => return Err(fail(format!("shape {:?}, wanted [N,C,H,W] or [N,C,T,H,W]", array.shape))),
    };
    if shape.contains(&0) {
        return Err(fail(format!("shape {shape:?} has an axis of length 0")));
    }
    let values = array.into_f32().map_err(|error| CliError::input(path.display().to_string(), error))?;
    match values.iter().position(|v| !v.is_finite()) {
        Some(at) => Err(fail(format!("value {at} is {}, wanted finite numbers", values[at]))),
        None => Ok((values, shape)),
    }
}

fn scale_to_length_one(row: &mut [f32]) {
    let length = length(row);
    if length > 0.0 {
        row.iter_mut().for_each(|v| *v = (f64::from(*v) / length) as f32);
    }
}

fn length(row: &[f32]) -> f64 {
    row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt()
}

/// Where rows go.
enum Rows {
    File(Box<RowWriter>),
    Summary(Summary),
}

impl Rows {
    fn accepts(&self, shape: &[usize]) -> Result<(), String> {
        match self {
            Self::File(writer) => writer.accepts(shape),
            Self::Summary(_) => Ok(()),
        }
    }

    fn push(&mut self, input: &str, shape: &[usize], values: &[f32]) -> Result<(), CliError> {
        match self {
            Self::File(writer) => writer.push_f32(input, shape, values),
            Self::Summary(summary) => {
                summary.rows.push(Row { input: input.to_owned(), shape: shape.to_vec(), values: values.to_vec() });
                Ok(())
            }
        }
    }

    fn finish(self, tally: Tally, args: &EmbedArgs, shared: &Shared) -> Result<(), CliError> {
        match self {
            Self::Summary(summary) => report::print(&summary, shared),
            Self::File(writer) => {
                let output = args.output.as_ref().expect("a file writer was made for this path").display().to_string();
                let shape = writer.shape();
                writer.finish()?;
                let (rows, failed) = (tally.total - tally.failed, tally.failed);
                if shared.json {
                    report::print_json(
                        &serde_json::json!({ "output": output, "shape": shape, "rows": rows, "failed": failed }),
                    )?;
                } else if !shared.quiet && rows > 0 {
                    let failures = if failed > 0 {
                        format!(", {failed} failed (see {output}.index.jsonl)")
                    } else {
                        String::new()
                    };
                    say_on_stderr(&format!("{rows} embedded into {output} {shape:?}{failures}"));
                }
                Ok(())
            }
        }
    }
}

/// What is printed when no file was asked for.
#[derive(Default, Serialize)]
struct Summary {
    rows: Vec<Row>,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct Row {
    input: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

#[derive(Serialize)]
struct Failed {
    input: String,
    error: String,
}

impl Report for Summary {
    fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let first: Vec<_> = row.values.iter().take(4).map(|v| format!("{v:.4}")).collect();
            text += &format!(
                "{}  {:?}  length {:.4}  [{}, …]\n",
                row.input,
                row.shape,
                length(&row.values),
                first.join(", ")
            );
        }
        text
    }
}
