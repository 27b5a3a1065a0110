use std::collections::BTreeMap;

use burn::prelude::*;
use jepa_gguf::quantize::ImportanceMatrix;
use jepa_models::{ActivationStatistics, Jepa, Pixels};

use super::model::{finish_gguf, load, model_error, write_error};
use super::stream::{Consumer, Through};
use crate::args::{ImatrixArgs, Shared};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, say_on_stderr};
use crate::output::refuse_overwriting;
use crate::report;

pub(crate) fn run(args: &ImatrixArgs, shared: &Shared) -> Result<(), CliError> {
    refuse_overwriting(&args.output, args.input.paths().chain([args.model.model.as_path()]))?;
    run_on(Imatrix { args, shared }, shared)
}

struct Imatrix<'a> {
    args: &'a ImatrixArgs,
    shared: &'a Shared,
}

impl Task for Imatrix<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let refuse = |error| model_error(&args.model.model, error);
        let model = load::<B>(&args.model, &device, shared)?;
        let through = Through::new(&model, &args.input, 0, args.batch.get(), &device, shared).map_err(refuse)?;
        let mut sink = StatisticsSink { model: &model, statistics: ActivationStatistics::default() };
        let tally = through.run(&mut sink)?;
        let inputs = tally.total - tally.failed;
        if inputs == 0 {
            return tally.verdict();
        }
        let statistics = sink.statistics;
        let most = statistics.matrices().map(|(_, energy)| energy.rows).max().unwrap_or(0);
        let mut matrix = ImportanceMatrix::new(inputs as u64, most / inputs as u64);
        for (name, energy) in statistics.matrices() {
            matrix.insert(name, &energy.sum_of_squares, energy.rows);
        }
        finish_gguf(&args.output, matrix.start(&args.output).map_err(|error| write_error(&args.output, error))?)?;
        if shared.json {
            let rows: BTreeMap<_, _> = statistics.matrices().map(|(name, energy)| (name, energy.rows)).collect();
            let output = args.output.display().to_string();
            report::print_json(&serde_json::json!({ "output": output, "inputs": inputs, "matrices": rows }))?;
        } else if !shared.quiet {
            let matrices = statistics.matrices().count();
            let output = args.output.display();
            say_on_stderr(&format!("{matrices} matrices seen by {inputs} inputs, written to {output}"));
        }
        tally.verdict()
    }
}

struct StatisticsSink<'a, B: Backend> {
    model: &'a Jepa<B>,
    statistics: ActivationStatistics,
}

impl<B: Backend> Consumer<B> for StatisticsSink<'_, B> {
    fn push(&mut self, names: &[String], pixels: Pixels<B>) -> Result<Vec<(String, String)>, CliError> {
        match self.statistics.add(self.model, pixels) {
            Ok(()) => Ok(Vec::new()),
            Err(error) => Ok(names.iter().map(|name| (name.clone(), error.to_string())).collect()),
        }
    }

    fn failed(&mut self, _name: &str, _error: &str) -> Result<(), CliError> {
        Ok(())
    }
}
