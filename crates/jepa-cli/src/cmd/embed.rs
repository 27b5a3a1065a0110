use burn::prelude::*;
use jepa_models::{EncodeOptions, Jepa, Pixels, Trace};
use serde::Serialize;

use super::model::{load, model_error};
use super::stream::{Consumer, Tally, Through, no_numbers};
use crate::args::{EmbedArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::output::{Element, Format, RowWriter, refuse_overwriting};
use crate::report::{self, Report};

/// Name of the array in a `.safetensors` file.
const TENSOR_NAME: &str = "features";

pub(crate) fn run(args: EmbedArgs, shared: &Shared) -> Result<(), CliError> {
    let formats = [Format::Npy, Format::Safetensors, Format::Jsonl, Format::Csv];
    let format = args.output.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    if let Some(output) = &args.output {
        refuse_overwriting(output, args.input.paths().chain([args.model.model.as_path()]))?;
    }
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
        let kept = layers.as_ref().map_or(0, Vec::len);
        let through = Through::new(&model, &args.input, kept, args.batch.get(), &device, shared).map_err(refuse)?;
        let mut sink = EmbedSink { args, model, layers, rows };
        let tally = through.run(&mut sink)?;
        sink.rows.finish(tally, args, shared)?;
        tally.verdict()
    }
}

struct EmbedSink<'a, B: Backend> {
    args: &'a EmbedArgs,
    model: Jepa<B>,
    layers: Option<Vec<usize>>,
    rows: Rows,
}

impl<B: Backend> Consumer<B> for EmbedSink<'_, B> {
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
        if let Some(why) = no_numbers(&values) {
            return Ok(names.iter().map(|name| (name.clone(), why.to_owned())).collect());
        }
        if self.args.l2 {
            let width = *shape.last().expect("features have a last axis");
            values.chunks_exact_mut(width).for_each(scale_to_length_one);
        }
        for (name, row) in names.iter().zip(values.chunks_exact(shape.iter().product())) {
            self.rows.push(name, &shape, row)?;
        }
        Ok(Vec::new())
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
