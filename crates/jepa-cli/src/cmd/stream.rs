//! Many inputs in batches: prepared on all cores, handed on in their order, the bad ones reported and left out.

use burn::prelude::*;
use jepa_models::{Pixels, Preprocess};
use rayon::prelude::*;

use crate::exit::CliError;
use crate::inputs::{Input, Prepared};
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
    batch: usize,
    progress: &Progress,
    sink: &mut impl Sink,
) -> Result<Tally, CliError> {
    let mut tally = Tally { total: inputs.len(), failed: 0 };
    for chunk in inputs.chunks(batch) {
        let prepared: Vec<_> = chunk.par_iter().map(|input| input.prepare(preprocess, most_frames)).collect();
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
                    report_failure(&input.name, &error.to_string(), progress, sink)?;
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

/// The normalised pixels of inputs with equally many frames, `[inputs, 3, frames, height, width]`.
pub(crate) fn pixels<B: Backend>(
    batch: &[Ready],
    preprocess: &Preprocess,
    device: &B::Device,
) -> Result<Pixels<B>, jepa_models::ModelError> {
    let (height, width) = preprocess.output_size();
    let frames = batch[0].prepared.frames.len();
    let mut values = Vec::with_capacity(batch.len() * 3 * frames * height * width);
    for input in batch {
        values.extend(preprocess.normalise(&input.prepared.frames)?);
    }
    let data = TensorData::new(values, [batch.len(), 3, frames, height, width]);
    Ok(Pixels::from_normalised_clips(Tensor::from_data(data, device)))
}
