//! The loop of a training, one epoch at a time, and its state on disk.

use std::f64::consts::PI;

use burn::module::AutodiffModule;
use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{AdamW, AdamWConfig, GradientsAccumulator, GradientsParams, LBFGSConfig, LineSearchFn, Optimizer};
use burn::prelude::*;
use burn::record::{FullPrecisionSettings, NamedMpkBytesRecorder, Recorder};
use burn::tensor::backend::AutodiffBackend;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Evaluation, Examples, Split};
use crate::error::ModelError;

/// First bytes of a saved state.
const MAGIC: &[u8] = b"jepa-training 1\n";

/// What gives every class a score.
pub trait Scores<B: Backend, const D: usize> {
    /// **Shapes** `inputs` `[batch, ..]` → logits `[batch, n_classes]`.
    fn scores(&self, inputs: Tensor<B, D>) -> Tensor<B, 2>;

    /// What is added to the mean loss of every step, for weights that are to stay small.
    fn penalty(&self) -> Option<Tensor<B, 1>> {
        None
    }
}

/// How a training goes.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingOptions {
    /// Most passes over the examples.
    pub epochs: usize,
    /// How the loss is made smaller.
    pub method: Method,
    /// Examples of one step of AdamW.
    pub batch: usize,
    /// Pieces that a step is computed in, one after the other, to take less memory; their gradients are added.
    pub accumulate: usize,
    /// Decides the order of the examples.
    pub seed: u64,
    /// Epochs without a better result after which the training ends.
    pub patience: usize,
}

/// How a loss is made smaller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// AdamW, over batches in an order that is drawn.
    AdamW {
        /// Learning rate at the start; it falls to 0 along half a cosine.
        lr: f64,
        /// Weight decay.
        weight_decay: f32,
    },
    /// L-BFGS with a line search, over all examples at once, for modules that learn with all their parameters and whose loss has one minimum
    /// ([`super::LinearProbe`]): it needs no learning rate and ends there. An epoch is ten iterations that begin without the memory of those before.
    Lbfgs,
}

/// Iterations of L-BFGS in an epoch.
const ITERATIONS: usize = 10;
/// Examples that L-BFGS looks at in one piece.
const PIECE: usize = 1024;

/// What an epoch did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochReport {
    /// Mean loss of the steps, with the penalty where there is one.
    pub loss: f64,
    /// What the held-out examples say, where there are any.
    pub held_out: Option<Held>,
}

/// What held-out examples say about a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Mean loss.
    pub loss: f64,
    /// Part that was given its class, 0..=1.
    pub accuracy: f64,
}

impl EpochReport {
    /// Whether it is better than `other`: of lower loss on what is held out, which says more than the accuracy on a few examples.
    fn beats(&self, other: &Self) -> bool {
        let judged = |report: &Self| report.held_out.map_or(report.loss, |held| held.loss);
        judged(self) < judged(other)
    }
}

/// A module that learns to classify.
pub struct Training<B: AutodiffBackend, M: AutodiffModule<B>> {
    options: TrainingOptions,
    model: M,
    /// As it was after the best epoch.
    best: M,
    optimizer: OptimizerAdaptor<AdamW, M, B>,
    history: Vec<EpochReport>,
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> std::fmt::Debug for Training<B, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Training")
            .field("options", &self.options)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> Training<B, M> {
    /// Starts with `model`.
    pub fn new(model: M, options: TrainingOptions) -> Self {
        let weight_decay = match options.method {
            Method::AdamW { weight_decay, .. } => weight_decay,
            Method::Lbfgs => 0.0,
        };
        let optimizer = AdamWConfig::new().with_weight_decay(weight_decay).with_epsilon(1e-8).init();
        Self { options, best: model.clone(), model, optimizer, history: Vec::new() }
    }

    /// What every epoch so far did.
    pub fn history(&self) -> &[EpochReport] {
        &self.history
    }

    /// The best epoch so far, counted from 0; `None` before the first.
    pub fn best_epoch(&self) -> Option<usize> {
        let first = (!self.history.is_empty()).then_some(0)?;
        Some(
            (1..self.history.len())
                .fold(first, |best, i| if self.history[i].beats(&self.history[best]) { i } else { best }),
        )
    }

    /// The model as it was after the best epoch.
    pub fn best(&self) -> M::InnerModule {
        self.best.valid()
    }

    /// Whether all epochs have been run, or the last ones brought nothing. Losses of single batches go up and down, so where nothing is held out
    /// AdamW runs them all.
    pub fn is_over(&self) -> bool {
        let since_best = self.best_epoch().map_or(0, |best| self.history.len() - 1 - best);
        let steady = self.options.method == Method::Lbfgs || self.history.iter().all(|epoch| epoch.held_out.is_some());
        self.history.len() >= self.options.epochs || steady && since_best >= self.options.patience
    }

    /// Learns from every example of `split.train` once, in an order drawn from the seed and the number of the epoch, and judges the result by
    /// `split.held_out`.
    ///
    /// # Errors
    /// [`ModelError::Diverged`] when the loss is no number, [`ModelError::Probe`] without examples, and whatever [`Examples::batch`] says.
    pub fn run_epoch<const D: usize>(
        &mut self,
        examples: &impl Examples,
        split: &Split,
    ) -> Result<EpochReport, ModelError>
    where
        M: Scores<B, D>,
        M::InnerModule: Scores<B::InnerBackend, D>,
    {
        if split.train.is_empty() {
            return Err(ModelError::Probe { what: "there is no example to learn from".to_owned() });
        }
        let loss = match self.options.method {
            Method::AdamW { lr, .. } => self.descend(lr, examples, split)?,
            Method::Lbfgs => self.minimise(examples, split)?,
        };
        let held_out = match split.held_out.is_empty() {
            true => None,
            false => {
                let judged = evaluate(&self.model.valid(), examples, &split.held_out, 0, self.options.batch);
                let judged = judged.map_err(|error| match error {
                    ModelError::NoNumbers { .. } => ModelError::Diverged { epoch: self.history.len() + 1 },
                    error => error,
                })?;
                Some(Held { loss: judged.loss(), accuracy: judged.accuracy() })
            }
        };
        let report = EpochReport { loss, held_out };
        let better = self.best_epoch().is_none_or(|best| report.beats(&self.history[best]));
        self.history.push(report);
        if better {
            self.best = self.model.clone();
        }
        Ok(report)
    }

    /// Steps of AdamW over all batches; gives the mean loss of the examples.
    fn descend<const D: usize>(&mut self, lr: f64, examples: &impl Examples, split: &Split) -> Result<f64, ModelError>
    where
        M: Scores<B, D>,
    {
        let TrainingOptions { epochs, batch, accumulate, seed, .. } = self.options;
        let epoch = self.history.len();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(epoch as u64 + 1);
        let mut order = split.train.clone();
        order.shuffle(&mut random);
        let mut sum = 0.0;
        for (step, indices) in order.chunks(batch.max(1)).enumerate() {
            let mut gradients = GradientsAccumulator::new();
            for indices_of_piece in indices.chunks(indices.len().div_ceil(accumulate.max(1))) {
                let piece = Piece::new(examples, indices_of_piece, indices.len(), &self.model)?;
                let loss = piece.learn_from(&self.model, &mut gradients);
                // Before the first step nothing was learned that could have run away.
                match (loss.is_finite(), epoch + step) {
                    (true, _) => {}
                    (false, 0) => {
                        return Err(ModelError::NoNumbers { what: "scores of the first examples".to_owned() });
                    }
                    (false, _) => return Err(ModelError::Diverged { epoch: epoch + 1 }),
                }
                sum += loss * indices.len() as f64;
            }
            let done = (epoch as f64 + (step * batch) as f64 / order.len() as f64) / epochs as f64;
            let lr = lr * 0.5 * (1.0 + (PI * done).cos());
            self.model = self.optimizer.step(lr, self.model.clone(), gradients.grads());
        }
        Ok(sum / order.len() as f64)
    }

    /// Iterations of L-BFGS; gives the loss that they lead to.
    fn minimise<const D: usize>(&mut self, examples: &impl Examples, split: &Split) -> Result<f64, ModelError>
    where
        M: Scores<B, D>,
    {
        let all = split.train.len();
        let pieces = split.train.chunks(PIECE).map(|indices| Piece::new(examples, indices, all, &self.model));
        let pieces: Vec<Piece<B, D>> = pieces.collect::<Result<_, _>>()?;
        let mut optimizer =
            LBFGSConfig::new().with_max_iter(ITERATIONS).with_line_search_fn(LineSearchFn::StrongWolfe).init::<B>();
        let (model, loss) = optimizer.step(1.0, self.model.clone(), |model| {
            let mut gradients = GradientsAccumulator::new();
            let loss = pieces.iter().map(|piece| piece.learn_from(&model, &mut gradients)).sum();
            (loss, gradients.grads())
        });
        if !loss.is_finite() {
            return Err(ModelError::Diverged { epoch: self.history.len() + 1 });
        }
        self.model = model;
        Ok(loss)
    }

    /// The complete state: weights, moments of the optimiser, best weights so far and what the epochs did. `run` names data and options;
    /// [`Self::resume`] wants the same.
    pub fn save(&self, run: &str) -> Vec<u8> {
        let history: Vec<(f64, Option<[f64; 2]>)> =
            self.history.iter().map(|e| (e.loss, e.held_out.map(|h| [h.loss, h.accuracy]))).collect();
        let state = (
            run.to_owned(),
            history,
            self.model.clone().into_record(),
            self.best.clone().into_record(),
            self.optimizer.to_record(),
        );
        let bytes = Recorder::<B>::record(&recorder(), state, ()).expect("numbers and tensors have a form in bytes");
        [MAGIC, &bytes].concat()
    }

    /// Goes on from a saved state; `model` is one of the same shape and `run` what it was saved with.
    ///
    /// # Errors
    /// [`ModelError::Checkpoint`] for bytes that are no such state, or that of another run.
    pub fn resume(model: M, options: TrainingOptions, run: &str, bytes: &[u8]) -> Result<Self, ModelError> {
        let wrong = |what: &'static str| ModelError::Checkpoint { what };
        type History = Vec<(f64, Option<[f64; 2]>)>;
        let bytes = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("it is none, or one of another version"))?;
        let mut training = Self::new(model, options);
        type State<B, M> = (
            String,
            History,
            <M as Module<B>>::Record,
            <M as Module<B>>::Record,
            <OptimizerAdaptor<AdamW, M, B> as Optimizer<M, B>>::Record,
        );
        let device = training.model.devices().into_iter().next().unwrap_or_default();
        let state: State<B, M> = Recorder::<B>::load(&recorder(), bytes.to_vec(), &device)
            .map_err(|_| wrong("it is damaged, or of another model"))?;
        let (of, history, model, best, optimizer) = state;
        if of != run {
            return Err(wrong("it is of other data or options"));
        }
        training.history = history
            .into_iter()
            .map(|(loss, held)| EpochReport { loss, held_out: held.map(|[loss, accuracy]| Held { loss, accuracy }) })
            .collect();
        training.model = training.model.load_record(model);
        training.best = training.best.load_record(best);
        training.optimizer = training.optimizer.load_record(optimizer);
        Ok(training)
    }
}

/// Examples whose gradients are computed at one time.
struct Piece<B: Backend, const D: usize> {
    inputs: Tensor<B, D>,
    classes: Tensor<B, 1, Int>,
    /// Its part of the examples of a step: a piece weighs as many examples as it has.
    share: f64,
    cross_entropy: CrossEntropyLoss<B>,
}

impl<B: AutodiffBackend, const D: usize> Piece<B, D> {
    fn new(examples: &impl Examples, indices: &[usize], of: usize, model: &impl Module<B>) -> Result<Self, ModelError> {
        let device = model.devices().into_iter().next().unwrap_or_default();
        let classes: Vec<i64> = indices.iter().map(|&i| examples.classes()[i] as i64).collect();
        Ok(Self {
            inputs: Tensor::from_data(examples.batch(indices)?, &device),
            classes: Tensor::from_data(TensorData::new(classes, [indices.len()]), &device),
            share: indices.len() as f64 / of as f64,
            cross_entropy: CrossEntropyLossConfig::new().init(&device),
        })
    }

    /// Adds the piece's share to the gradients, and gives its share of the loss.
    fn learn_from<M: AutodiffModule<B> + Scores<B, D>>(
        &self,
        model: &M,
        gradients: &mut GradientsAccumulator<M>,
    ) -> f64 {
        let mut loss = self.cross_entropy.forward(model.scores(self.inputs.clone()), self.classes.clone());
        if let Some(penalty) = model.penalty() {
            loss = loss + penalty;
        }
        let loss = loss * self.share;
        let value: f64 = loss.clone().into_scalar().elem();
        gradients.accumulate(model, GradientsParams::from_grads(loss.backward(), model));
        value
    }
}

fn recorder() -> NamedMpkBytesRecorder<FullPrecisionSettings> {
    NamedMpkBytesRecorder::new()
}

/// Classifies the examples `indices`. With 0 for `n_classes` their number is that of the scores.
///
/// # Errors
/// Whatever [`Examples::batch`] says; [`ModelError::NoNumbers`] for scores that are none.
pub fn evaluate<B: Backend, M: Module<B> + Scores<B, D>, const D: usize>(
    model: &M,
    examples: &impl Examples,
    indices: &[usize],
    n_classes: usize,
    batch: usize,
) -> Result<Evaluation, ModelError> {
    let device = model.devices().into_iter().next().unwrap_or_default();
    let mut judged = Evaluation::new(n_classes);
    for indices in indices.chunks(batch.max(1)) {
        let scores = model.scores(Tensor::from_data(examples.batch(indices)?, &device));
        let width = scores.dims()[1];
        let scores: Vec<f32> = scores.into_data().iter::<f32>().collect();
        for (&index, scores) in indices.iter().zip(scores.chunks_exact(width)) {
            if scores.iter().any(|score| !score.is_finite()) {
                return Err(ModelError::NoNumbers { what: format!("scores of example {index}") });
            }
            judged.add(examples.classes()[index], scores);
        }
    }
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use burn::backend::Autodiff;
    use burn_flex::Flex;

    use super::*;
    use crate::probe::{Features, LinearProbe};

    /// Points around four corners, some on the wrong side.
    fn corners() -> (Features, Split) {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let classes: Vec<usize> = (0..120).map(|i| i % 4).collect();
        let values = classes
            .iter()
            .flat_map(|&class| [class % 2, class / 2])
            .map(|side| side as f32 * 2.0 - 1.0 + rand::Rng::random_range(&mut random, -1.1..1.1))
            .collect();
        let features = Features::new(values, vec![2], classes).unwrap();
        let split = Split::new(features.classes(), 0.25, 2);
        (features, split)
    }

    fn options(epochs: usize) -> TrainingOptions {
        let method = Method::AdamW { lr: 0.05, weight_decay: 1e-4 };
        TrainingOptions { epochs, method, batch: 16, accumulate: 1, seed: 3, patience: epochs }
    }

    type Linear = Training<Autodiff<Flex>, LinearProbe<Autodiff<Flex>>>;

    fn probe(l2: f64) -> LinearProbe<Autodiff<Flex>> {
        LinearProbe::new(2, 4, l2, &Default::default())
    }

    fn start(epochs: usize) -> Linear {
        Training::new(probe(0.0), options(epochs))
    }

    fn weights(training: &Linear) -> (Vec<f32>, Vec<f32>) {
        let values = |probe: &LinearProbe<Flex>| probe.head.cls.weight.val().into_data().to_vec::<f32>().unwrap();
        (values(&training.best()), values(&training.model.valid()))
    }

    /// 16 examples as 16, 8 + 8 or 6 + 6 + 4: the same steps up to rounding.
    #[test]
    fn pieces_of_a_step_add_up_to_it() {
        let (features, split) = corners();
        let trained = |accumulate| {
            let options = TrainingOptions { accumulate, ..options(3) };
            let mut training: Linear = Training::new(probe(0.0), options);
            while !training.is_over() {
                training.run_epoch(&features, &split).unwrap();
            }
            weights(&training).1
        };
        let whole = trained(1);
        for pieces in [2, 3, 100] {
            let worst = whole.iter().zip(trained(pieces)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-4, "{pieces}: {worst}");
        }
    }

    #[test]
    fn a_training_that_is_resumed_after_any_epoch_ends_with_the_same_bits() {
        let (features, split) = corners();
        for method in [options(6).method, Method::Lbfgs] {
            let options = || TrainingOptions { method, ..options(6) };
            let mut whole: Linear = Training::new(probe(1e-2), options());
            while !whole.is_over() {
                whole.run_epoch(&features, &split).unwrap();
            }
            for stop in 1..6 {
                let mut first: Linear = Training::new(probe(1e-2), options());
                (0..stop).for_each(|_| {
                    first.run_epoch(&features, &split).unwrap();
                });
                let bytes = first.save("run");
                let mut second = Linear::resume(probe(1e-2), options(), "run", &bytes).unwrap();
                while !second.is_over() {
                    second.run_epoch(&features, &split).unwrap();
                }
                assert_eq!(weights(&second), weights(&whole), "{method:?}, stopped after {stop}");
                assert_eq!(second.history(), whole.history());
            }
        }
    }

    #[test]
    fn corners_are_learned_and_the_seed_decides() {
        let (features, split) = corners();
        let mut training = start(30);
        while !training.is_over() {
            training.run_epoch(&features, &split).unwrap();
        }
        let judged = evaluate(&training.best(), &features, &split.held_out, 4, 7).unwrap();
        assert!(judged.accuracy() > 0.8, "{}", judged.accuracy());
        let best = training.history()[training.best_epoch().unwrap()].held_out.unwrap();
        assert_eq!((best.accuracy, best.loss), (judged.accuracy(), judged.loss()));
        let mut other: Linear = Training::new(probe(0.0), TrainingOptions { seed: 4, ..options(30) });
        other.run_epoch(&features, &split).unwrap();
        assert_ne!(other.history()[0].loss, training.history()[0].loss);
    }

    /// Gradient of mean cross-entropy plus `l2 / 2 · Σ w²` over two features and four classes, in f64: weights row by row, then biases.
    fn gradient(features: &Features, weight: &[f32], bias: &[f32], l2: f64) -> Vec<f64> {
        let n = features.classes().len() as f64;
        let mut gradient: Vec<f64> = weight.iter().map(|&w| f64::from(w) * l2).chain([0.0; 4]).collect();
        for (i, &class) in features.classes().iter().enumerate() {
            let row = features.row(i);
            let score = |k: usize| f64::from(row[0] * weight[k] + row[1] * weight[4 + k] + bias[k]);
            let sum: f64 = (0..4).map(|k| score(k).exp()).sum();
            for k in 0..4 {
                let error = (score(k).exp() / sum - f64::from(u8::from(k == class))) / n;
                gradient[k] += error * f64::from(row[0]);
                gradient[4 + k] += error * f64::from(row[1]);
                gradient[8 + k] += error;
            }
        }
        gradient
    }

    /// Where the gradient is 0 is the one minimum, which scikit-learn's logistic regression finds too.
    #[test]
    fn a_linear_probe_ends_at_the_minimum_of_logistic_regression() {
        let (features, _) = corners();
        let all = Split { train: (0..120).collect(), held_out: vec![] };
        for l2 in [1.0 / 120.0, 0.1] {
            let options = TrainingOptions { method: Method::Lbfgs, patience: 5, ..options(100) };
            let mut training: Linear = Training::new(probe(l2), options);
            while !training.is_over() {
                training.run_epoch(&features, &all).unwrap();
            }
            let cls = training.best().head.cls;
            let weight = cls.weight.val().into_data().to_vec::<f32>().unwrap();
            let bias = cls.bias.unwrap().val().into_data().to_vec::<f32>().unwrap();
            let steepest = |gradient: &[f64]| gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
            let start = steepest(&gradient(&features, &[0.0; 8], &[0.0; 4], l2));
            let end = steepest(&gradient(&features, &weight, &bias, l2));
            assert!(end < 1e-3 * start, "l2 {l2}: {end} of {start}");
            assert!(training.history().len() < 50, "it stands still and does not stop");
        }
    }

    #[test]
    fn epochs_that_bring_nothing_end_the_training() {
        let (features, split) = corners();
        let patient =
            TrainingOptions { method: Method::AdamW { lr: 0.0, weight_decay: 0.0 }, patience: 3, ..options(50) };
        let mut training: Linear = Training::new(probe(0.0), patient);
        while !training.is_over() {
            training.run_epoch(&features, &split).unwrap();
        }
        assert_eq!((training.history().len(), training.best_epoch()), (4, Some(0)));
    }

    #[test]
    fn states_of_other_runs_and_damaged_ones_are_refused() {
        let (features, split) = corners();
        let mut training = start(2);
        training.run_epoch(&features, &split).unwrap();
        let bytes = training.save("run");
        let resume =
            |run: &str, bytes: &[u8]| Linear::resume(probe(0.0), options(2), run, bytes).unwrap_err().to_string();
        assert!(resume("another", &bytes).contains("other data or options"));
        assert!(resume("run", &bytes[..bytes.len() - 7]).contains("damaged"));
        assert!(resume("run", b"GGUF").contains("none"));
    }

    #[test]
    fn a_loss_that_is_no_number_and_no_examples_are_errors() {
        let (features, split) = corners();
        let wild = TrainingOptions { method: Method::AdamW { lr: 1e38, weight_decay: 0.0 }, ..options(9) };
        let mut training: Linear = Training::new(probe(0.0), wild);
        let error = (0..9).find_map(|_| training.run_epoch(&features, &split).err()).expect("it runs away");
        assert!(error.to_string().contains("learning rate"), "{error}");
        assert!(matches!(start(1).run_epoch(&features, &Split::default()), Err(ModelError::Probe { .. })));
    }
}
