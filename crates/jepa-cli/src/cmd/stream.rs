//! Many inputs in batches: prepared on all cores, handed on in their order, the bad ones reported and left out.

use std::path::Path;

use burn::prelude::*;
use jepa_models::{EncoderConfig, Jepa, ModelError, Pixels, Preprocess};
use rayon::prelude::*;

use super::memory::{fitting_batch, refuse_too_big};
use crate::args::{InputArgs, Shared};
use crate::arrays::Array;
use crate::exit::{CliError, one_line};
use crate::inputs::{self, Cuts, Input, Prepared};
use crate::progress::Progress;

/// An input that is ready for the network.
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) prepared: Prepared,
}

/// How many inputs there were and how many failed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) total: usize,
    pub(crate) failed: usize,
}

impl Tally {
    /// An error when an input failed.
    pub(crate) fn verdict(self) -> Result<(), CliError> {
        match self.failed {
            0 => Ok(()),
            failed => Err(CliError::InputsFailed { failed, total: self.total }),
        }
    }
}

/// What happens to the inputs of a command.
pub(crate) trait Sink {
    /// Takes inputs with equally many frames. Gives back those that could not be used, with the reason.
    fn take(&mut self, batch: &[Ready]) -> Result<Vec<(String, String)>, CliError>;

    /// An input failed.
    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError>;
}

/// Prepares `inputs` and hands them to `sink`, `batch` at a time and in order; says on stderr what happened to each bad one.
pub(crate) fn run(
    inputs: &[Input],
    preprocess: &Preprocess,
    most_frames: Option<usize>,
    cuts: Cuts,
    batch: usize,
    progress: &Progress,
    sink: &mut impl Sink,
) -> Result<Tally, CliError> {
    let mut tally = Tally { total: inputs.len(), failed: 0 };
    for chunk in inputs.chunks(batch) {
        let prepared: Vec<_> = chunk.par_iter().map(|input| input.prepare(preprocess, most_frames, cuts)).collect();
        let mut ready = Vec::new();
        for (input, prepared) in chunk.iter().zip(prepared) {
            match prepared {
                Ok(prepared) => {
                    for note in &prepared.notes {
                        progress.remark(&input.name, note);
                    }
                    ready.push(Ready { name: input.name.clone(), prepared });
                }
                Err(error) => {
                    tally.failed += 1;
                    report_failure(&input.name, &one_line(&*error), progress, sink)?;
                }
            }
        }
        for run in ready.chunk_by(|a, b| a.prepared.frames.len() == b.prepared.frames.len()) {
            for (name, error) in sink.take(run)? {
                tally.failed += 1;
                report_failure(&name, &error, progress, sink)?;
            }
        }
        progress.advance(chunk.len());
    }
    Ok(tally)
}

fn report_failure(name: &str, error: &str, progress: &Progress, sink: &mut impl Sink) -> Result<(), CliError> {
    progress.error(&format!("error: {name}: {error}"));
    sink.failed(name, error)
}

/// What happens to normalised pixels on a backend.
pub(crate) trait Consumer<B: Backend> {
    /// Takes a batch `[inputs · clips, chans, frames, height, width]`, one clip an input unless it is cut. Gives back the inputs that could not be used, with the reason.
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError>;

    /// An input failed.
    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError>;
}

/// Which inputs go through which model, and how many at a time.
pub(crate) struct Through<'a, B: Backend> {
    input: &'a InputArgs,
    preprocess: Preprocess,
    encoder: EncoderConfig,
    kept: usize,
    batch: usize,
    cuts: Cuts,
    device: &'a B::Device,
    shared: &'a Shared,
}

impl<'a, B: Backend> Through<'a, B> {
    /// Inputs of `input` for `model`, at the size asked for. `kept` is the number of intermediate outputs kept; of `batch` inputs at a time less
    /// are taken where memory is short.
    pub(crate) fn new(
        model: &Jepa<B>,
        input: &'a InputArgs,
        kept: usize,
        batch: usize,
        device: &'a B::Device,
        shared: &'a Shared,
    ) -> Result<Self, ModelError> {
        let preprocess = match input.size {
            Some(size) => model.preprocess().clone().with_size(size.height, size.width)?,
            None => model.preprocess().clone(),
        };
        let encoder = model.encoder().config().clone();
        Ok(Self { input, preprocess, encoder, kept, batch, cuts: Cuts::WHOLE, device, shared })
    }

    /// Cuts every input into clips.
    ///
    /// # Errors
    /// [`CliError::Usage`] for cuts that no input of this model can have.
    pub(crate) fn cut(self, cuts: Cuts) -> Result<Self, CliError> {
        if cuts.segments > 1 && !self.preprocess.takes_clips() {
            return Err(CliError::usage("--segments: this model takes pictures, which have no time to cut"));
        }
        // A picture of one pixel has every view that the pipeline allows at all.
        let views = self.preprocess.pipeline().view_plans(1, 1, cuts.views);
        views.map_err(|error| CliError::usage(format!("--views: {error}")))?;
        Ok(Self { cuts, ..self })
    }

    /// Brings every input of the command line to `consumer`, normalised and in batches.
    pub(crate) fn run(&self, consumer: &mut impl Consumer<B>) -> Result<Tally, CliError> {
        let Self { input, preprocess, .. } = self;
        if let Some(path) = &input.input_tensor {
            return self.run_tensor(path, consumer);
        }
        self.run_inputs(&inputs::expand(&input.inputs, preprocess.takes_clips()), consumer)
    }

    /// Brings `inputs` to `consumer`, normalised and in batches.
    pub(crate) fn run_inputs(&self, inputs: &[Input], consumer: &mut impl Consumer<B>) -> Result<Tally, CliError> {
        let Self { input, preprocess, shared, .. } = self;
        let frames = input.frames.map(usize::from);
        let (height, width) = preprocess.output_size();
        let longest = inputs.iter().map(|input| input.frames_at_most(preprocess, frames)).max().unwrap_or(1);
        let batch = self.fitting([3, longest, height, width], inputs.len())?;
        let progress = Progress::new(inputs.len(), shared);
        let mut sink = PixelSink { preprocess, clips: self.cuts.clips(), device: self.device, consumer };
        run(inputs, preprocess, frames, self.cuts, batch, &progress, &mut sink)
    }

    /// Rows of an array that has been normalised already.
    fn run_tensor(&self, path: &Path, consumer: &mut impl Consumer<B>) -> Result<Tally, CliError> {
        let (values, [n, chans, frames, height, width]) = read_pixels(path)?;
        let per_input = chans * frames * height * width;
        let batch = self.fitting([chans, frames, height, width], n)?;
        let progress = Progress::new(n, self.shared);
        let mut tally = Tally { total: n, failed: 0 };
        for (i, values) in values.chunks(per_input * batch).enumerate() {
            let rows = values.len() / per_input;
            let names: Vec<_> = (0..rows).map(|row| format!("{}[{}]", path.display(), i * batch + row)).collect();
            let data = TensorData::new(values.to_vec(), [rows, chans, frames, height, width]);
            let pixels = Pixels::from_normalised_clips(Tensor::from_data(data, self.device));
            for (name, error) in consumer.push(&names, pixels)? {
                tally.failed += 1;
                progress.error(&format!("error: {name}: {error}"));
                consumer.failed(&name, &error)?;
            }
            progress.advance(rows);
        }
        Ok(tally)
    }

    /// The only input of the command line with its name; an array may hold several in one batch.
    pub(crate) fn only(&self) -> Result<(String, Pixels<B>), CliError> {
        if let Some(path) = &self.input.input_tensor {
            let (values, shape) = read_pixels(path)?;
            let [n, input @ ..] = shape;
            let needed = self.encoder.activation_bytes(shape, self.kept);
            let what = format!("{n} inputs of {} frames at {}×{}", input[1], input[2], input[3]);
            refuse_too_big::<B>(&what, needed, "give fewer at a time")?;
            let pixels = Tensor::from_data(TensorData::new(values, shape), self.device);
            return Ok((path.display().to_string(), Pixels::from_normalised_clips(pixels)));
        }
        let inputs = inputs::expand(&self.input.inputs, self.preprocess.takes_clips());
        let [input] = &inputs[..] else {
            return Err(CliError::usage(format!("this command takes one input, {} were given", inputs.len())));
        };
        let fail = |error: String| CliError::input(input.name.clone(), error);
        let prepared = input
            .prepare(&self.preprocess, self.input.frames.map(usize::from), Cuts::WHOLE)
            .map_err(|error| fail(error.to_string()))?;
        let progress = Progress::new(1, self.shared);
        prepared.notes.iter().for_each(|note| progress.remark(&input.name, note));
        let (height, width) = self.preprocess.output_size();
        self.fitting([3, prepared.frames.len(), height, width], 1)?;
        let ready = [Ready { name: input.name.clone(), prepared }];
        let pixels = pixels(&ready, 1, &self.preprocess, self.device).map_err(|error| fail(error.to_string()))?;
        Ok((input.name.clone(), pixels))
    }

    /// The batch size for `n` inputs.
    fn fitting(&self, input: [usize; 4], n: usize) -> Result<usize, CliError> {
        fitting_batch::<B>(&self.encoder, input, self.kept, self.cuts.clips(), self.batch.min(n.max(1)), self.shared)
    }
}

/// Turns prepared inputs into pixels for a consumer.
struct PixelSink<'a, B: Backend, C> {
    preprocess: &'a Preprocess,
    /// Clips of one input.
    clips: usize,
    device: &'a B::Device,
    consumer: &'a mut C,
}

impl<B: Backend, C: Consumer<B>> Sink for PixelSink<'_, B, C> {
    fn take(&mut self, batch: &[Ready]) -> Result<Vec<(String, String)>, CliError> {
        let names: Vec<_> = batch.iter().map(|input| input.name.clone()).collect();
        match pixels(batch, self.clips, self.preprocess, self.device) {
            Ok(pixels) => self.consumer.push(&names, pixels),
            Err(error) => Ok(names.into_iter().map(|name| (name, error.to_string())).collect()),
        }
    }

    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError> {
        self.consumer.failed(name, error)
    }
}

/// Why a result is refused that holds NaN or infinity; `None` for numbers.
pub(crate) fn no_numbers(values: &[f32]) -> Option<&'static str> {
    let bad = values.iter().any(|v| !v.is_finite());
    bad.then_some("the model gave values that are no numbers: its weights or its preprocessing are damaged")
}

/// The normalised pixels of inputs with equally many frames, cut into `clips` each: `[inputs · clips, 3, frames, height, width]`.
fn pixels<B: Backend>(
    batch: &[Ready],
    clips: usize,
    preprocess: &Preprocess,
    device: &B::Device,
) -> Result<Pixels<B>, ModelError> {
    let (height, width) = preprocess.output_size();
    let frames = batch[0].prepared.frames.len() / clips;
    let mut values = Vec::with_capacity(batch.len() * clips * 3 * frames * height * width);
    for clip in batch.iter().flat_map(|input| input.prepared.frames.chunks(frames)) {
        values.extend(preprocess.normalise(clip)?);
    }
    let data = TensorData::new(values, [batch.len() * clips, 3, frames, height, width]);
    Ok(Pixels::from_normalised_clips(Tensor::from_data(data, device)))
}

/// Normalised pixels of a `.npy` file as `[inputs, chans, frames, height, width]`, all finite.
pub(crate) fn read_pixels(path: &Path) -> Result<(Vec<f32>, [usize; 5]), CliError> {
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
