use std::collections::BTreeMap;

use burn::prelude::*;
use globset::{Glob, GlobMatcher};
use jepa_models::Trace;

use super::memory::refuse_tracing;
use super::model::{load, model_error};
use super::stream::Through;
use crate::args::{Shared, TraceArgs};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::output::{Format, refuse_overwriting, write_safetensors};
use crate::report;

pub(crate) fn run(args: TraceArgs, shared: &Shared) -> Result<(), CliError> {
    Format::of(&args.output, &[Format::Safetensors])?;
    let filter = args
        .filter
        .as_deref()
        .map(|pattern| Glob::new(pattern).map_err(|error| CliError::usage(format!("--filter: {error}"))))
        .transpose()?
        .map(|glob| glob.compile_matcher());
    refuse_overwriting(&args.output, args.input.paths().chain([args.model.model.as_path()]))?;
    run_on(TraceTask { args: &args, shared, filter }, shared)
}

struct TraceTask<'a> {
    args: &'a TraceArgs,
    shared: &'a Shared,
    filter: Option<GlobMatcher>,
}

impl Task for TraceTask<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared, filter } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let through = Through::new(&model, &args.input, 0, 1, &device, shared).map_err(refuse)?;
        let (name, pixels) = through.only()?;
        refuse_tracing(model.encoder().config(), pixels.dims())?;

        let mut seen = BTreeMap::new();
        let mut sink = |name: &str, x: &Tensor<B, 3>| {
            if filter.as_ref().is_none_or(|filter| filter.is_match(name)) {
                seen.insert(name.to_owned(), (x.dims().to_vec(), x.to_data().iter::<f32>().collect::<Vec<f32>>()));
            }
        };
        model.walk(pixels, &mut Trace::to(&mut sink)).map_err(|error| CliError::input(name, error))?;
        if seen.is_empty() {
            let pattern = args.filter.as_deref().unwrap_or("*");
            return Err(CliError::usage(format!(
                "--filter {pattern}: no tensor has such a name; without it all are written"
            )));
        }
        write_safetensors(&args.output, &seen)?;
        if shared.json {
            let shapes: BTreeMap<_, _> = seen.iter().map(|(name, (shape, _))| (name, shape)).collect();
            report::print_json(&shapes)?;
        } else if !shared.quiet {
            say_on_stderr(&format!("{} tensors written to {}", seen.len(), args.output.display()));
        }
        Ok(())
    }
}
