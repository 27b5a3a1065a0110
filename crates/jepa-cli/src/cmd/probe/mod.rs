//! `probe`: heads trained on the features of a model, and how good they are.

mod confusion;
mod dashboard;
mod dataset;
mod eval;
mod features;
mod train;

use crate::args::{ProbeAction, ProbeArgs, Shared};
use crate::exit::CliError;

pub(crate) fn run(args: ProbeArgs, shared: &Shared) -> Result<(), CliError> {
    match args.action {
        ProbeAction::Train(args) => train::run(&args, shared),
        ProbeAction::Eval(args) => eval::run(&args, shared),
    }
}
