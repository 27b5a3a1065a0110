//! `probe eval`.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;

use burn::prelude::*;
use jepa_models::probe::Evaluation;
use jepa_models::{Head, Jepa, Pixels};
use serde::Serialize;

use super::confusion;
use super::dataset::Dataset;
use crate::args::{InputArgs, ProbeEvalArgs, Shared};
use crate::backend::{Task, run_on};
use crate::cmd::model::{load, model_error};
use crate::cmd::stream::{Consumer, Tally, Through, no_numbers};
use crate::exit::CliError;
use crate::output::{PartialFile, refuse_overwriting};
use crate::report::{self, Report};

/// Classes up to which the confusion matrix is printed.
const PRINTED_CLASSES: usize = 16;

pub(super) fn run(args: &ProbeEvalArgs, shared: &Shared) -> Result<(), CliError> {
    if let Some(picture) = &args.confusion {
        if !picture.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
            return Err(CliError::usage(format!("--confusion {}: wanted a name ending in .png", picture.display())));
        }
        refuse_overwriting(picture, [args.model.model.as_path(), args.data.as_path()])?;
        drop(PartialFile::create(picture)?);
    }
    run_on(Eval { args, shared }, shared)
}

struct Eval<'a> {
    args: &'a ProbeEvalArgs,
    shared: &'a Shared,
}

impl Task for Eval<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let head = model.load_head().map_err(refuse)?;
        let keys = model.hparams().head.as_ref().expect("a head was loaded");
        let labels = match &keys.labels {
            Some(labels) => labels.clone(),
            None => (0..keys.n_classes).map(|class| class.to_string()).collect(),
        };
        let dataset = Dataset::read(&args.data, model.preprocess().takes_clips())?;
        if let Some(picture) = &args.confusion {
            refuse_overwriting(picture, dataset.files())?;
        }
        let truths = classes_of(args, &dataset, &labels)?;
        let none = InputArgs::default();
        let through =
            Through::new(&model, &none, keys.layers.len(), args.batch.get(), &device, shared).map_err(refuse)?;
        let judged = Evaluation::new(labels.len());
        let mut judge = Judge {
            model: &model,
            head,
            truths: &truths,
            places: dataset.places(),
            judged,
            predictions: Vec::new(),
            labels: &labels,
        };
        let tally = through.run_inputs(&dataset.inputs, &mut judge)?;
        let Judge { judged, predictions, .. } = judge;
        if let Some(picture) = &args.confusion {
            confusion::write(picture, &judged, &labels)?;
        }
        report::print(&Judged::new(&judged, predictions, &labels, tally), shared)?;
        tally.verdict()
    }
}

/// The model's class of every input of the dataset.
fn classes_of(args: &ProbeEvalArgs, dataset: &Dataset, labels: &[String]) -> Result<Vec<usize>, CliError> {
    let known: HashMap<&str, usize> = labels.iter().enumerate().rev().map(|(i, label)| (label.as_str(), i)).collect();
    let class = |label: &String| {
        known.get(label.as_str()).copied().ok_or_else(|| {
            let some: Vec<_> = labels.iter().take(5).map(|label| format!("{label:?}")).collect();
            let more = if labels.len() > 5 { ", …" } else { "" };
            let what = format!("label {label:?} is none of the model's {}: {}{more}", labels.len(), some.join(", "));
            CliError::input(args.data.display().to_string(), what)
        })
    };
    let classes = dataset.labels.iter().map(class).collect::<Result<Vec<_>, _>>()?;
    Ok(dataset.classes.iter().map(|&own| classes[own]).collect())
}

struct Judge<'a, B: Backend> {
    model: &'a Jepa<B>,
    head: Head<B>,
    truths: &'a [usize],
    places: HashMap<&'a str, VecDeque<usize>>,
    judged: Evaluation,
    predictions: Vec<Prediction>,
    labels: &'a [String],
}

impl<B: Backend> Judge<'_, B> {
    fn truth_of(&mut self, name: &str) -> usize {
        let place = self.places.get_mut(name).and_then(VecDeque::pop_front);
        self.truths[place.expect("every input comes back once, by its name")]
    }
}

impl<B: Backend> Consumer<B> for Judge<'_, B> {
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError> {
        let logits = match self.model.classify(&self.head, pixels) {
            Ok(logits) => logits,
            Err(error) => return Ok(names.iter().map(|name| (name.clone(), error.to_string())).collect()),
        };
        let n_classes = logits.dims()[1];
        let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
        if let Some(why) = no_numbers(&logits) {
            return Ok(names.iter().map(|name| (name.clone(), why.to_owned())).collect());
        }
        for (name, logits) in names.iter().zip(logits.chunks_exact(n_classes)) {
            let truth = self.truth_of(name);
            let given = self.judged.add(truth, logits);
            let word = |class: usize| self.labels[class].clone();
            self.predictions.push(Prediction { input: name.clone(), label: word(truth), predicted: word(given) });
        }
        Ok(Vec::new())
    }

    fn failed(&mut self, name: &str, _error: &str) -> Result<(), CliError> {
        self.truth_of(name);
        Ok(())
    }
}

/// How good the head is.
#[derive(Serialize)]
struct Judged {
    inputs: usize,
    failed: usize,
    correct: usize,
    accuracy: f64,
    top_5: f64,
    loss: f64,
    classes: Vec<ClassLine>,
    confusion: Vec<Pair>,
    predictions: Vec<Prediction>,
}

/// A class that occurs.
#[derive(Serialize)]
struct ClassLine {
    class: usize,
    label: String,
    inputs: usize,
    predicted: usize,
    correct: usize,
    recall: Option<f64>,
    precision: Option<f64>,
}

/// How often a class was given to inputs of a class.
#[derive(Serialize)]
struct Pair {
    label: usize,
    predicted: usize,
    inputs: usize,
}

#[derive(Serialize)]
struct Prediction {
    input: String,
    label: String,
    predicted: String,
}

impl Judged {
    fn new(judged: &Evaluation, predictions: Vec<Prediction>, labels: &[String], tally: Tally) -> Self {
        let lines = judged.classes().into_iter().enumerate().filter(|(_, score)| score.examples + score.predicted > 0);
        let line = |(class, score): (usize, jepa_models::probe::ClassScore)| ClassLine {
            class,
            label: labels[class].clone(),
            inputs: score.examples,
            predicted: score.predicted,
            correct: score.correct,
            recall: score.recall(),
            precision: score.precision(),
        };
        let pair = |(label, predicted, inputs)| Pair { label, predicted, inputs };
        Self {
            inputs: tally.total,
            failed: tally.failed,
            correct: judged.correct(),
            accuracy: judged.accuracy(),
            top_5: judged.top_5(),
            loss: judged.loss(),
            classes: lines.map(line).collect(),
            confusion: judged.pairs().map(pair).collect(),
            predictions,
        }
    }

    /// The confusion matrix, true classes downwards; empty where it would be too wide.
    fn matrix(&self) -> String {
        if self.classes.len() > PRINTED_CLASSES {
            return String::new();
        }
        let mut text = String::from("\ntrue classes downwards, given classes to the right\n");
        let head: String = self.classes.iter().map(|class| format!("{:>6}", class.class)).collect();
        let _ = writeln!(text, "      {head}");
        for row in &self.classes {
            let cell = |column: &ClassLine| {
                let is_pair = |pair: &&Pair| (pair.label, pair.predicted) == (row.class, column.class);
                self.confusion.iter().find(is_pair).map_or("     ·".to_owned(), |pair| format!("{:>6}", pair.inputs))
            };
            let _ = writeln!(text, "{:>6}{}", row.class, self.classes.iter().map(cell).collect::<String>());
        }
        text
    }
}

impl Report for Judged {
    fn text(&self) -> String {
        let total = self.predictions.len();
        let mut text = format!(
            "accuracy {:.1} % ({} of {total}), top-5 {:.1} %\n\n class  inputs  recall  precision  label\n",
            self.accuracy * 100.0,
            self.correct,
            self.top_5 * 100.0
        );
        let percent = |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1} %", part * 100.0));
        for ClassLine { class, label, inputs, recall, precision, .. } in &self.classes {
            let (recall, precision) = (percent(*recall), percent(*precision));
            let label = crate::exit::printable(label);
            let _ = writeln!(text, "{class:>6}  {inputs:>6} {recall:>8}  {precision:>8}  {label}");
        }
        text + &self.matrix()
    }
}
