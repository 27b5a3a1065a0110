use std::path::PathBuf;

use jepa_models::Preprocess;

use super::model::{model_error, open_bundle};
use super::stream::{self, Ready, Sink};
use crate::args::{PreprocessArgs, Shared};
use crate::exit::{CliError, say_on_stderr};
use crate::inputs::{self, Cuts};
use crate::output::{Element, Format, RowWriter, refuse_overwriting};
use crate::progress::Progress;
use crate::report;

/// Inputs prepared at once.
const BATCH: usize = 16;

pub(crate) fn run(args: &PreprocessArgs, shared: &Shared) -> Result<(), CliError> {
    let format = Format::of(&args.output, &[Format::Npy, Format::Safetensors])?;
    refuse_overwriting(&args.output, args.inputs.iter().chain([&args.model.model]).map(PathBuf::as_path))?;
    let bundle = open_bundle(&args.model.model, args.model.no_mmap, shared)?;
    let mut preprocess = Preprocess::new(bundle.hparams());
    if let Some(size) = args.size {
        preprocess =
            preprocess.with_size(size.height, size.width).map_err(|error| model_error(&args.model.model, error))?;
    }
    let (element, name) = if args.u8 { (Element::U8, "pixels_u8") } else { (Element::F32, "pixels") };
    let inputs = inputs::expand(&args.inputs, preprocess.takes_clips());
    let progress = Progress::new(inputs.len(), shared);
    let mut sink = PixelSink {
        writer: RowWriter::create(&args.output, format, element, name)?,
        preprocess: preprocess.clone(),
        u8: args.u8,
    };
    let tally =
        stream::run(&inputs, &preprocess, args.frames.map(usize::from), Cuts::WHOLE, BATCH, &progress, &mut sink)?;
    let (shape, output) = (sink.writer.shape(), args.output.display().to_string());
    sink.writer.finish()?;
    let rows = tally.total - tally.failed;
    if shared.json {
        report::print_json(
            &serde_json::json!({ "output": output, "shape": shape, "rows": rows, "failed": tally.failed }),
        )?;
    } else if !shared.quiet && rows > 0 {
        say_on_stderr(&format!("{rows} written to {output} {shape:?}"));
    }
    tally.verdict()
}

struct PixelSink {
    writer: RowWriter,
    preprocess: Preprocess,
    u8: bool,
}

impl PixelSink {
    /// Shape of one input's row; a model of pictures has no frame axis.
    fn row_shape(&self, frames: usize) -> Vec<usize> {
        let (height, width) = self.preprocess.output_size();
        match (self.u8, self.preprocess.takes_clips()) {
            (true, true) => vec![frames, height, width, 3],
            (true, false) => vec![height, width, 3],
            (false, true) => vec![3, frames, height, width],
            (false, false) => vec![3, height, width],
        }
    }
}

impl Sink for PixelSink {
    fn take(&mut self, batch: &[Ready]) -> Result<Vec<(String, String)>, CliError> {
        let mut refused = Vec::new();
        for input in batch {
            let frames = &input.prepared.frames;
            let shape = self.row_shape(frames.len());
            if let Err(why) = self.writer.accepts(&shape) {
                refused.push((input.name.clone(), why));
            } else if self.u8 {
                let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.pixels()).copied().collect();
                self.writer.push_u8(&input.name, &shape, &bytes)?;
            } else {
                match self.preprocess.normalise(frames) {
                    Ok(values) => self.writer.push_f32(&input.name, &shape, &values)?,
                    Err(error) => refused.push((input.name.clone(), error.to_string())),
                }
            }
        }
        Ok(refused)
    }

    fn failed(&mut self, name: &str, error: &str) -> Result<(), CliError> {
        self.writer.note_failure(name, error)
    }
}
