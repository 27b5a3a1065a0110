//! Replays parity cases: stored inputs through the model of the case, outputs against the stored ones.

use std::path::Path;

use burn::prelude::Backend;
use jepa_models::Jepa;
use serde::Serialize;

use super::model::{model_error, open_bundle};
use crate::args::{Shared, VerifyArgs};
use crate::backend::{Task, run_on};
use crate::exit::{CliError, one_line, say_on_stderr};
use crate::output::{Format, write_safetensors};
use crate::parity::{Case, Dump, Line, Outcome, ParityError, replay};
use crate::report::{self, Report};

pub(crate) fn run(args: VerifyArgs, shared: &Shared) -> Result<(), CliError> {
    if let Some(dump) = &args.dump {
        Format::of(dump, &[Format::Safetensors])?;
        if args.cases.len() > 1 {
            return Err(CliError::usage(format!("--dump takes one case at a time, {} were given", args.cases.len())));
        }
    }
    run_on(Verify { args: &args, shared }, shared)
}

struct Verify<'a> {
    args: &'a VerifyArgs,
    shared: &'a Shared,
}

impl Task for Verify<'_> {
    type Output = ();

    fn run<B: Backend>(self, device: B::Device) -> Result<(), CliError> {
        let Self { args, shared } = self;
        let mut verdict = Verdict::default();
        let mut dump = Dump::new();
        let mut broken = None;
        for folder in &args.cases {
            match self.case::<B>(folder, &device, &mut verdict, &mut dump) {
                Ok(()) => {}
                Err(error) if args.cases.len() == 1 => return Err(error),
                Err(error) => {
                    say_on_stderr(&format!("error: {}", one_line(&error)));
                    verdict.unreadable.push(folder.display().to_string());
                    broken.get_or_insert(error);
                }
            }
        }
        if let Some(path) = &args.dump {
            write_safetensors(path, &dump)?;
        }
        report::print(&verdict, shared)?;
        let (missed, compared) =
            (verdict.lines.iter().filter(|line| line.outcome == Outcome::Miss).count(), verdict.compared());
        match broken {
            Some(error) => Err(error),
            None if missed > 0 => {
                Err(CliError::Missed { what: format!("{missed} of {compared} outputs miss their bar") })
            }
            None if verdict.lines.is_empty() => Err(CliError::Missed { what: "the cases hold no test".into() }),
            None => {
                if compared == 0 && !shared.quiet {
                    say_on_stderr("note: nothing was compared");
                }
                Ok(())
            }
        }
    }
}

impl Verify<'_> {
    fn case<B: Backend>(
        &self,
        folder: &Path,
        device: &B::Device,
        verdict: &mut Verdict,
        dump: &mut Dump,
    ) -> Result<(), CliError> {
        let fail = |error: ParityError| match error {
            ParityError::Type { .. } => CliError::usage(error.to_string()),
            _ => CliError::input(folder.display().to_string(), error),
        };
        let case = Case::read(folder).map_err(fail)?;
        for variant in case.variants(self.args.model_type.as_deref()).map_err(fail)? {
            let bundle = open_bundle(&variant.model, false, self.shared)?;
            let model = Jepa::<B>::from_bundle_as(bundle, device, self.shared.dtype.dtype())
                .map_err(|error| model_error(&variant.model, error))?;
            let replay = replay(&case, &variant, model, device).map_err(fail)?;
            verdict.lines.extend(replay.lines);
            dump.extend(replay.outputs);
        }
        Ok(())
    }
}

#[derive(Default, Serialize)]
struct Verdict {
    lines: Vec<Line>,
    unreadable: Vec<String>,
}

impl Verdict {
    fn compared(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line.outcome, Outcome::Pass | Outcome::Miss)).count()
    }
}

impl Report for Verdict {
    fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let outcome = match line.outcome {
                Outcome::Pass => "pass",
                Outcome::Miss => "MISS",
                Outcome::Optional => "other",
                Outcome::Skip => "skip",
            };
            let output = line.output.as_ref().map_or(String::new(), |output| format!(" {output}"));
            text += &format!("{outcome:5} {} {} {} ({}){output}", line.case, line.model_type, line.test, line.kind);
            if let (Some(cos), Some(rel)) = (line.cos_min, line.rel_max) {
                text += &format!("  cos_min {cos:.8}  rel_max {rel:.2e}");
            }
            if let Some(note) = &line.note {
                text += &format!("  {note}");
            }
            text.push('\n');
        }
        let count = |outcome| self.lines.iter().filter(|line| line.outcome == outcome).count();
        text += &format!(
            "{} passed, {} missed, {} skipped, {} other conventions shown\n",
            count(Outcome::Pass),
            count(Outcome::Miss),
            count(Outcome::Skip),
            count(Outcome::Optional)
        );
        text
    }
}
