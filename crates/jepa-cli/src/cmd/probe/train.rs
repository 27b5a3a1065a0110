//! `probe train`.

use std::path::{Path, PathBuf};

use burn::backend::Autodiff;
use burn::module::AutodiffModule;
use burn::prelude::*;
use burn_store::ModuleSnapshot;
use jepa_gguf::BundleWriter;
use jepa_gguf::schema::{HeadHparams, HeadKind, HeadPool};
use jepa_models::head::AttentiveHeadConfig;
use jepa_models::nn::Grid;
use jepa_models::probe::{
    Evaluation, Features, FineTuned, LinearProbe, Method, Scores, Split, Standardiser, Training, TrainingOptions,
    attentive_config, attentive_probe, evaluate, fold, nearest_neighbours, standardise_tokens,
};
use jepa_models::tail::{EncoderTail, Unfreeze};
use jepa_models::{HeadReads, Jepa, ModelError};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::dashboard::Display;
use super::dataset::Dataset;
use super::features::{About, Entered, Rows, Takes, Wanted, extract};
use crate::args::{ProbeKind, ProbeTrainArgs, Shared};
use crate::backend::{Task, run_on};
use crate::cmd::model::{load, model_error, write_error};
use crate::cmd::stream::Tally;
use crate::exit::{CliError, say_on_stderr};
use crate::interrupt::{self, Unfinished};
use crate::output::{PartialFile, beside, refuse_overwriting};
use crate::report::{self, Report};

/// Inputs encoded at once, when the user does not say.
const ENCODED: usize = 8;
/// Epochs without a better result that end a training.
const PATIENCE: usize = 20;
/// Neighbours that vote, as in DINO's evaluation.
const NEIGHBOURS: usize = 20;
const WEIGHT_DECAY: f32 = 1e-3;

/// AdamW at this learning rate.
const fn adam_w(lr: f64) -> Method {
    Method::AdamW { lr, weight_decay: WEIGHT_DECAY }
}

pub(super) fn run(args: &ProbeTrainArgs, shared: &Shared) -> Result<(), CliError> {
    if let (Some(unfreeze), ProbeKind::Knn) = (args.unfreeze, args.kind) {
        return Err(CliError::usage(format!("--unfreeze {unfreeze}: --kind knn trains nothing")));
    }
    if args.kind == ProbeKind::Attentive && args.pool != HeadPool::Auto {
        return Err(CliError::usage(format!("--pool {}: --kind attentive reads all tokens", args.pool.word())));
    }
    match (&args.output, args.kind) {
        (Some(_), ProbeKind::Knn) => {
            return Err(CliError::usage("--kind knn trains no head, so there is no -o to write"));
        }
        (None, ProbeKind::Linear | ProbeKind::Attentive) => {
            return Err(CliError::usage(format!(
                "--kind {}: name the file to write with -o OUT.gguf",
                args.kind.word()
            )));
        }
        (Some(output), _) => {
            refuse_overwriting(output, [args.model.model.as_path(), args.data.as_path()])?;
            // A target that cannot be written is to be known before hours of work.
            drop(PartialFile::create(output)?);
        }
        (None, ProbeKind::Knn) => {}
    }
    run_on(Train { args, shared }, shared)
}

struct Train<'a> {
    args: &'a ProbeTrainArgs,
    shared: &'a Shared,
}

impl Task for Train<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let config = model.encoder().config();
        let wanted = wanted(args, &model)?;
        if args.kind != ProbeKind::Attentive {
            config.check_pool(wanted.reads.pool).map_err(refuse)?;
        }
        let dataset = Dataset::read(&args.data, model.preprocess().takes_clips())?;
        if let Some(output) = &args.output {
            refuse_overwriting(output, dataset.files())?;
        }
        if let [only] = &dataset.labels[..] {
            let what = format!("all inputs are of one class, {only:?}; wanted at least two");
            return Err(CliError::input(args.data.display().to_string(), what));
        }
        let (rows, key) = extract(&model, &args.model.model, &dataset, &wanted, &device, shared)?;
        let Rows { values, about: About { row_shape, places, failed, entered, .. } } = rows;
        let tally = Tally { total: dataset.inputs.len(), failed: failed.len() };
        let classes: Vec<usize> = places.iter().map(|&place| dataset.classes[place]).collect();
        if let Some(gone) = (0..dataset.labels.len()).find(|class| !classes.contains(class)) {
            let what = format!("no input of class {:?} can be read", dataset.labels[gone]);
            return Err(CliError::input(args.data.display().to_string(), what));
        }
        let views = 1 + wanted.augmented;
        let split = Split::new(&classes, args.val_split, args.seed).over_views(views);
        let classes = classes.into_iter().flat_map(|class| std::iter::repeat_n(class, views)).collect();
        let features = Features::new(values, row_shape, classes).map_err(refuse)?;
        let job = Job { args, shared, model: &model, dataset: &dataset, wanted: &wanted, split, key, tally };
        let trained = match (args.kind, args.unfreeze, entered) {
            (ProbeKind::Knn, ..) => job.neighbours(&features, &device)?,
            (kind, Some(unfreeze), Some(entered)) => job.fine_tuned(kind, unfreeze, entered, &features, &device)?,
            (ProbeKind::Linear, ..) => job.linear(features, &device)?,
            (ProbeKind::Attentive, ..) => job.attentive(&features, &device)?,
        };
        report::print(&trained, shared)?;
        tally.verdict()
    }
}

fn wanted<B: Backend>(args: &ProbeTrainArgs, model: &Jepa<B>) -> Result<Wanted, CliError> {
    let hparams = model.hparams();
    let layers = args.layers.as_ref().map(|layers| layers.resolve(hparams.enc.n_layer)).transpose();
    let layers = layers.map_err(|error| model_error(&args.model.model, error))?.unwrap_or_default();
    // The last block alone is the encoder's output, which needs no key in the file.
    let usual = layers == [hparams.enc.n_layer - 1] && hparams.enc.hier_layers.is_empty();
    let layers = if usual { Vec::new() } else { layers };
    let first = args.unfreeze.map(|unfreeze| unfreeze.first_block(hparams.enc.n_layer)).transpose();
    let first = first.map_err(|error| model_error(&args.model.model, error))?;
    let takes = match (first, args.kind) {
        (Some(first), _) => Takes::Entering(first),
        (None, ProbeKind::Attentive) => Takes::Tokens,
        (None, ProbeKind::Linear | ProbeKind::Knn) => Takes::Pooled,
    };
    Ok(Wanted {
        reads: HeadReads { pool: args.pool.into(), layers },
        takes,
        augmented: args.augment.into(),
        seed: args.seed,
        batch: args.batch.map_or(ENCODED, Into::into),
    })
}

/// Examples of one step, when the user does not say: few examples make enough steps that way, many do not take forever.
fn usual_batch(examples: usize) -> usize {
    (examples / 16).clamp(16, 256)
}

/// A state with the hash of it behind it: a disk may give back other bytes than it was given.
fn sealed(mut state: Vec<u8>) -> Vec<u8> {
    let hash = Sha256::digest(&state);
    state.extend_from_slice(&hash);
    state
}

fn unsealed(bytes: &[u8]) -> Result<&[u8], ModelError> {
    let parts = bytes.split_last_chunk::<32>().filter(|(state, hash)| Sha256::digest(state)[..] == hash[..]);
    parts.map(|(state, _)| state).ok_or(ModelError::Checkpoint { what: "it is damaged, or none" })
}

/// The kind of an attentive head, as keys say it.
fn attentive_kind(config: &AttentiveHeadConfig) -> HeadKind {
    let &AttentiveHeadConfig { n_pool_layers, ffn_dim, xattn_ffn_dim, .. } = config;
    HeadKind::AttentivePool { n_pool_layers, ffn_dim, xattn_ffn_dim }
}

/// Everything that a training has to know.
struct Job<'a, B: Backend> {
    args: &'a ProbeTrainArgs,
    shared: &'a Shared,
    model: &'a Jepa<B>,
    dataset: &'a Dataset,
    wanted: &'a Wanted,
    split: Split,
    /// Hash of all that the features depend on.
    key: String,
    tally: Tally,
}

impl<B: Backend> Job<'_, B> {
    fn n_classes(&self) -> usize {
        self.dataset.labels.len()
    }

    fn output(&self) -> &Path {
        self.args.output.as_deref().expect("it was asked for before anything ran")
    }

    fn refuse(&self, error: ModelError) -> CliError {
        match error {
            ModelError::Diverged { .. } => CliError::usage(format!("--lr: {error}")),
            error => model_error(&self.args.model.model, error),
        }
    }

    fn neighbours(&self, features: &Features, device: &B::Device) -> Result<Trained, CliError> {
        if self.split.held_out.is_empty() {
            return Err(CliError::usage("--val-split: nothing is held out that could be classified by its neighbours"));
        }
        let judged = nearest_neighbours::<B>(features, &self.split, self.n_classes(), NEIGHBOURS, device);
        Ok(self.trained(None, &judged.map_err(|error| self.refuse(error))?))
    }

    fn linear(&self, mut features: Features, device: &B::Device) -> Result<Trained, CliError> {
        let standardiser = Standardiser::fit(&features, &self.split.train);
        standardiser.apply(&mut features);
        // As strong as scikit-learn's, whose C is 1.
        let l2 = 1.0 / self.split.train.len() as f64;
        let start = LinearProbe::<Autodiff<B>>::new(features.width(), self.n_classes(), l2, device);
        let (probe, trained) = self.fit::<_, 2>(start, &features, Method::Lbfgs)?;
        self.write_with(HeadKind::LinearCls, &fold(&probe.head, &standardiser), None)?;
        Ok(trained)
    }

    fn attentive(&self, features: &Features, device: &B::Device) -> Result<Trained, CliError> {
        let config = attentive_config(&self.model.hparams().enc, self.n_classes());
        let mut start = attentive_probe::<Autodiff<B>>(&config, self.args.seed, device);
        standardise_tokens(&mut start, &config, features, &self.split.train);
        let (head, trained) = self.fit::<_, 3>(start, features, adam_w(1e-3))?;
        self.write_with(attentive_kind(&config), &head, None)?;
        Ok(trained)
    }

    /// A head with the part of the encoder that `unfreeze` names.
    fn fine_tuned(
        &self,
        kind: ProbeKind,
        unfreeze: Unfreeze,
        entered: Entered,
        features: &Features,
        device: &B::Device,
    ) -> Result<Trained, CliError> {
        const USUAL: Method = adam_w(3e-4);
        let refuse = |error| self.refuse(error);
        // Weights are read when they are asked for: those of frozen blocks never are.
        let tracked = Jepa::<Autodiff<B>>::from_bundle(self.model.bundle().clone(), device).map_err(refuse)?;
        let [frames, rows, cols] = entered.grid;
        let grid = Grid { frames, rows, cols };
        let tail = EncoderTail::new(tracked.encoder(), unfreeze, grid, entered.prefix).map_err(refuse)?;
        let pool = self.args.pool.into();
        match kind {
            ProbeKind::Attentive => {
                let config = attentive_config(&self.model.hparams().enc, self.n_classes());
                let head = attentive_probe::<Autodiff<B>>(&config, self.args.seed, device);
                let start = FineTuned::new(tail, head, pool).map_err(refuse)?;
                let (FineTuned { tail, head, .. }, trained) = self.fit::<_, 3>(start, features, USUAL)?;
                self.write_with(attentive_kind(&config), &head, Some((&tail, unfreeze)))?;
                Ok(trained)
            }
            _ => {
                let width = self.model.hparams().enc.embed_dim;
                let LinearProbe { head, .. } = LinearProbe::<Autodiff<B>>::new(width, self.n_classes(), 0.0, device);
                let start = FineTuned::new(tail, head, pool).map_err(refuse)?;
                let (FineTuned { tail, head, .. }, trained) = self.fit::<_, 3>(start, features, USUAL)?;
                self.write_with(HeadKind::LinearCls, &head, Some((&tail, unfreeze)))?;
                Ok(trained)
            }
        }
    }

    /// Trains, from a checkpoint of the same run where there is one, and gives the best head.
    fn fit<M, const D: usize>(
        &self,
        start: M,
        features: &Features,
        usual: Method,
    ) -> Result<(M::InnerModule, Trained), CliError>
    where
        M: AutodiffModule<Autodiff<B>> + Scores<Autodiff<B>, D>,
        M::InnerModule: Scores<B, D>,
    {
        let Self { args, shared, split, .. } = self;
        let options = TrainingOptions {
            epochs: args.epochs.into(),
            method: match (args.lr, usual) {
                (None, usual) => usual,
                (Some(lr), Method::AdamW { weight_decay, .. }) => Method::AdamW { lr, weight_decay },
                // The loss itself keeps the weights small.
                (Some(lr), Method::Lbfgs) => Method::AdamW { lr, weight_decay: 0.0 },
            },
            batch: args.batch.map_or_else(|| usual_batch(split.train.len()), Into::into),
            accumulate: args.accumulate.into(),
            seed: args.seed,
            patience: PATIENCE,
        };
        let (epochs, batch) = (options.epochs, options.batch);
        let run = format!("{} {:?} {options:?} {}", self.key, self.dataset.labels, args.val_split);
        let run = format!("{run} {:?} {:?}", features.classes(), args.unfreeze);
        let checkpoint = self.checkpoint();
        let mut training = match std::fs::read(&checkpoint) {
            Ok(bytes) => match unsealed(&bytes)
                .and_then(|bytes| Training::resume(start.clone(), options.clone(), &run, bytes))
            {
                Ok(training) => {
                    self.say(&format!("going on after epoch {} of {}", training.history().len(), checkpoint.display()));
                    training
                }
                Err(error) => {
                    self.say(&format!("note: {}: {error}; starting anew", checkpoint.display()));
                    Training::new(start, options)
                }
            },
            Err(_) => Training::new(start, options),
        };
        let mut display = Display::new(shared);
        let mut stopped = false;
        while !training.is_over() && !stopped {
            let report = match training.run_epoch(features, split) {
                Ok(report) => report,
                Err(error) => {
                    display.close();
                    if matches!(error, ModelError::Diverged { .. }) {
                        // Going on from there leads nowhere else.
                        let _ = std::fs::remove_file(&checkpoint);
                    }
                    return Err(self.refuse(error));
                }
            };
            let mut file = PartialFile::create(&checkpoint)?;
            file.write(&sealed(training.save(&run)))?;
            file.finish()?;
            interrupt::say_when_stopped(&format!("stopped; the same command goes on from {}", checkpoint.display()));
            stopped = display.epoch(training.history().len(), epochs, &report);
        }
        display.close();
        let best = training.best();
        let judged = evaluate(&best, features, &split.held_out, self.n_classes(), batch);
        let judged = judged.map_err(|error| self.refuse(error))?;
        let course = Course {
            epochs: training.history().len(),
            best_epoch: training.best_epoch().map_or(0, |epoch| epoch + 1),
            stopped_early: training.history().len() < epochs,
        };
        Ok((best, self.trained(Some(course), &judged)))
    }

    /// Where the state of the training is kept until it is over.
    fn checkpoint(&self) -> PathBuf {
        beside(self.output(), ".checkpoint")
    }

    /// Writes the bundle with its head and what was trained of the encoder; the checkpoint has served.
    fn write_with<M: ModuleSnapshot<B>>(
        &self,
        kind: HeadKind,
        head: &M,
        tail: Option<(&EncoderTail<B>, Unfreeze)>,
    ) -> Result<(), CliError> {
        let output = self.output();
        let mut keys = HeadHparams::new(kind, self.n_classes(), Some(self.dataset.labels.clone()));
        if self.args.kind == ProbeKind::Linear {
            keys.pool = self.args.pool;
        }
        keys.layers.clone_from(&self.wanted.reads.layers);
        let mut writer = BundleWriter::from_bundle(self.model.bundle());
        writer.set_head(&keys).put_module("head.", head);
        if let Some((tail, unfreeze)) = tail {
            for (i, block) in tail.blk.iter().enumerate() {
                let at = format!("enc.blk.{}.", tail.first() + i);
                match unfreeze {
                    Unfreeze::Last(_) => writer.put_module(&at, block),
                    Unfreeze::Norms => {
                        writer.put_module(&format!("{at}ln1."), &block.ln1).put_module(&format!("{at}ln2."), &block.ln2)
                    }
                };
            }
            writer.put_module("enc.norm.", &tail.norm);
        }
        let writing = writer.start(output).map_err(|error| write_error(output, error))?;
        let _unfinished = Unfinished::new(writing.temporary_path());
        writing.finish().map_err(|error| write_error(output, error))?;
        // One that stays is of a run that is over; it would be gone on from and end at once.
        let _ = std::fs::remove_file(self.checkpoint());
        Ok(())
    }

    fn say(&self, line: &str) {
        if !self.shared.quiet {
            say_on_stderr(line);
        }
    }

    fn trained(&self, course: Option<Course>, judged: &Evaluation) -> Trained {
        let held = judged.total() > 0;
        Trained {
            kind: self.args.kind.word(),
            output: self.args.output.as_ref().map(|path| path.display().to_string()),
            classes: self.n_classes(),
            inputs: self.tally.total,
            failed: self.tally.failed,
            learned_from: self.split.train.len(),
            held_out: judged.total(),
            accuracy: held.then(|| judged.accuracy()),
            top_5: held.then(|| judged.top_5()),
            loss: (held && course.is_some()).then(|| judged.loss()),
            course,
        }
    }
}

/// What came of a training.
#[derive(Serialize)]
struct Trained {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    classes: usize,
    inputs: usize,
    failed: usize,
    /// Rows: views count.
    learned_from: usize,
    held_out: usize,
    /// Of what is held out, as the rest.
    accuracy: Option<f64>,
    top_5: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
    #[serde(flatten)]
    course: Option<Course>,
}

#[derive(Serialize)]
struct Course {
    epochs: usize,
    best_epoch: usize,
    stopped_early: bool,
}

impl Report for Trained {
    fn text(&self) -> String {
        let judged = match (self.accuracy, self.top_5) {
            (Some(accuracy), Some(top_5)) => format!(
                "accuracy {:.1} % and top-5 {:.1} % on {} held out",
                accuracy * 100.0,
                top_5 * 100.0,
                self.held_out
            ),
            _ => "nothing was held out".to_owned(),
        };
        let course = match &self.course {
            Some(Course { epochs, best_epoch, .. }) => format!("; epoch {best_epoch} of {epochs} was the best"),
            None => String::new(),
        };
        let Self { kind, learned_from, classes, .. } = self;
        format!("{kind}: {judged}; learned from {learned_from} in {classes} classes{course}\n")
    }
}
