use burn::prelude::*;
use jepa_models::{Head, Jepa, Pixels, mean_probabilities};
use serde::Serialize;

use super::model::{load, model_error};
use super::stream::{Consumer, Through, no_numbers};
use crate::args::{ClassifyArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, printable};
use crate::inputs::Cuts;
use crate::output::{Element, Format, RowWriter, refuse_overwriting};
use crate::report::{self, Report};

/// Name of the array in a `.safetensors` file.
const TENSOR_NAME: &str = "logits";

pub(crate) fn run(args: ClassifyArgs, shared: &Shared) -> Result<(), CliError> {
    let formats = [Format::Npy, Format::Safetensors, Format::Jsonl, Format::Csv];
    let format = args.logits.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    if let Some(output) = &args.logits {
        refuse_overwriting(output, args.input.paths().chain([args.model.model.as_path()]))?;
    }
    run_on(Classify { args: &args, shared, format }, shared)
}

struct Classify<'a> {
    args: &'a ClassifyArgs,
    shared: &'a Shared,
    format: Option<Format>,
}

impl Task for Classify<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared, format } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let head = model.load_head().map_err(refuse)?;
        let cuts = Cuts { segments: args.segments.get(), views: args.views.get(), ..Cuts::WHOLE };
        let through = Through::new(&model, &args.input, 0, args.batch.get(), &device, shared).map_err(refuse)?;
        let through = through.cut(cuts)?;
        let writer = match (&args.logits, format) {
            (Some(path), Some(format)) => Some(RowWriter::create(path, format, Element::F32, TENSOR_NAME)?),
            _ => None,
        };
        let mut sink =
            ClassSink { model, head, cuts, writer, top_k: args.top_k.get(), classified: Classified::default() };
        let tally = through.run(&mut sink)?;
        if let Some(writer) = sink.writer {
            writer.finish()?;
        }
        report::print(&sink.classified, shared)?;
        tally.verdict()
    }
}

struct ClassSink<B: Backend> {
    model: Jepa<B>,
    head: Head<B>,
    cuts: Cuts,
    writer: Option<RowWriter>,
    top_k: usize,
    classified: Classified,
}

impl<B: Backend> Consumer<B> for ClassSink<B> {
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError> {
        let Cuts { segments, views, .. } = self.cuts;
        let logits = match self.model.classify_clips(&self.head, pixels, segments, views) {
            Ok(logits) => logits,
            Err(error) => return Ok(names.iter().map(|name| (name.clone(), error.to_string())).collect()),
        };
        let [_, scores, n_classes] = logits.dims();
        let probabilities: Vec<f32> = mean_probabilities(logits.clone()).into_data().iter::<f32>().collect();
        let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
        if let Some(why) = no_numbers(&logits) {
            return Ok(names.iter().map(|name| (name.clone(), why.to_owned())).collect());
        }
        let labels = self.model.hparams().head.as_ref().and_then(|head| head.labels.as_deref());
        for ((name, logits), probabilities) in
            names.iter().zip(logits.chunks(scores * n_classes)).zip(probabilities.chunks(n_classes))
        {
            if let Some(writer) = &mut self.writer {
                let shape = if scores == 1 { vec![n_classes] } else { vec![scores, n_classes] };
                writer.push_f32(name, &shape, logits)?;
            }
            let mut order: Vec<usize> = (0..n_classes).collect();
            // A single score is ranked by its logits, which differ where probabilities may have run into 0 or 1.
            let ranked = if scores == 1 { logits } else { probabilities };
            order.sort_by(|&a, &b| ranked[b].total_cmp(&ranked[a]));
            let class = |&class: &usize| Class {
                class,
                label: labels.and_then(|labels| labels.get(class)).cloned(),
                probability: probabilities[class],
                logit: (scores == 1).then(|| logits[class]),
            };
            let top = order.iter().take(self.top_k).map(class).collect();
            self.classified.inputs.push(InputClasses { input: name.clone(), top });
        }
        Ok(Vec::new())
    }

    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError> {
        match &mut self.writer {
            Some(writer) => writer.note_failure(name, error),
            None => Ok(()),
        }
    }
}

/// The most likely classes of every input, most likely first.
#[derive(Default, Serialize)]
struct Classified {
    inputs: Vec<InputClasses>,
}

#[derive(Serialize)]
struct InputClasses {
    input: String,
    top: Vec<Class>,
}

#[derive(Serialize)]
struct Class {
    class: usize,
    label: Option<String>,
    probability: f32,
    /// Of an input with a single score; several have no logit in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    logit: Option<f32>,
}

impl Report for Classified {
    fn text(&self) -> String {
        let mut text = String::new();
        for InputClasses { input, top } in &self.inputs {
            text += &format!("{input}\n");
            for Class { class, label, probability, .. } in top {
                let label = label.clone().unwrap_or_else(|| format!("class {class}"));
                text += &format!("  {:5.1} %  {}\n", probability * 100.0, printable(&label));
            }
        }
        text
    }
}
