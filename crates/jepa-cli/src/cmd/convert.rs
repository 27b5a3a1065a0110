use std::collections::BTreeMap;

use jepa_gguf::convert::{Conversion, ConvertError, Dropped, Hints, Options};
use serde::Serialize;

use crate::args::{ConvertArgs, Shared};
use crate::exit::{CliError, say_on_stderr};
use crate::interrupt::Unfinished;
use crate::progress::Progress;
use crate::report;

pub(crate) fn run(args: &ConvertArgs, shared: &Shared) -> Result<(), CliError> {
    let refuse = |source| CliError::Convert { path: args.source.clone(), source: Box::new(source) };
    let mut hints = Hints::default();
    for (key, value) in &args.hint {
        hints.add(key, value).map_err(|error| CliError::usage(error.to_string()))?;
    }
    let options = Options { family: args.family, encoder: args.encoder.map(Into::into), hints, dtype: args.dtype };
    let conversion = Conversion::plan(&args.source, &options).map_err(refuse)?;
    if !shared.quiet {
        say_dropped(conversion.dropped());
    }
    write(&conversion, args, shared).map_err(|error| match error {
        ConvertError::Write { source } => CliError::output(&args.output, source),
        other => refuse(other),
    })?;
    let summary = Converted::new(args, &conversion)?;
    if shared.json {
        return report::print_json(&summary);
    }
    if !shared.quiet {
        say_on_stderr(&summary.sentence());
    }
    Ok(())
}

fn write(conversion: &Conversion, args: &ConvertArgs, shared: &Shared) -> Result<(), ConvertError> {
    let writing = conversion.start(&args.output)?;
    let _unfinished = Unfinished::new(writing.temporary_path());
    let progress = Progress::new(conversion.tensors().len(), shared);
    writing.finish(|_| progress.advance(1))
}

/// What is left out, one line for each reason.
fn say_dropped(dropped: &[Dropped]) {
    const SHOWN: usize = 3;
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Dropped { tensor, why } in dropped {
        reasons.entry(why).or_default().push(tensor);
    }
    for (why, names) in reasons {
        let more = names.len().saturating_sub(SHOWN);
        let shown = names[..names.len().min(SHOWN)].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        say_on_stderr(&format!("note: left out, {why}: {shown}{more}"));
    }
}

/// What became of the checkpoint.
#[derive(Serialize)]
struct Converted {
    source: String,
    output: String,
    family: &'static str,
    layout: &'static str,
    name: Option<String>,
    license: Option<String>,
    #[serde(rename = "type")]
    dtype: &'static str,
    predictor: bool,
    head: bool,
    tensors: usize,
    parameters: u64,
    bytes: u64,
    /// Tensors that are stored otherwise than asked for because of their rows, by type.
    fallbacks: BTreeMap<&'static str, usize>,
    dropped: Vec<DroppedLine>,
}

#[derive(Serialize)]
struct DroppedLine {
    tensor: String,
    why: &'static str,
}

impl Converted {
    fn new(args: &ConvertArgs, conversion: &Conversion) -> Result<Self, CliError> {
        let hp = conversion.hparams();
        let bytes = conversion.file_len();
        let bytes =
            bytes.map_err(|source| CliError::Convert { path: args.source.clone(), source: Box::new(source) })?;
        let mut fallbacks = BTreeMap::new();
        let wanted = conversion.dtype();
        for t in conversion.tensors().iter().filter(|t| t.dtype() != wanted && t.dtype().name() != "f32") {
            *fallbacks.entry(t.dtype().name()).or_insert(0) += 1;
        }
        let dropped = conversion.dropped().iter();
        Ok(Self {
            source: args.source.display().to_string(),
            output: args.output.display().to_string(),
            family: hp.family.word(),
            layout: conversion.layout().name,
            name: hp.name.clone(),
            license: hp.license.clone(),
            dtype: wanted.name(),
            predictor: hp.pred.is_some(),
            head: hp.head.is_some(),
            tensors: conversion.tensors().len(),
            parameters: conversion.tensors().iter().map(|t| t.shape().iter().product::<usize>() as u64).sum(),
            bytes,
            fallbacks,
            dropped: dropped.map(|d| DroppedLine { tensor: d.tensor.clone(), why: d.why }).collect(),
        })
    }

    fn sentence(&self) -> String {
        let parts = match (self.predictor, self.head) {
            (false, false) => "an encoder",
            (true, false) => "an encoder and a predictor",
            (false, true) => "an encoder and a head",
            (true, true) => "an encoder, a predictor and a head",
        };
        let mut text = format!(
            "{} written to {}: {} ({}), {parts}, {} parameters in {} tensors, {:.1} MB",
            self.dtype,
            self.output,
            self.family,
            self.layout,
            self.parameters,
            self.tensors,
            self.bytes as f64 / 1e6,
        );
        for (dtype, count) in &self.fallbacks {
            text += &format!("; {count} tensors are {dtype}, since their rows are not whole blocks");
        }
        if self.license.is_none() {
            text += "; the source states no licence";
        }
        text
    }
}
