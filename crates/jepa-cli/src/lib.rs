//! The command line of the JEPA vision models: arguments, files, progress and exit codes. No arithmetic lives here.
//!
//! Data goes to stdout or `-o`, everything else to stderr. Exit codes are in [`exit`].

mod args;
mod arrays;
mod backend;
mod cmd;
pub mod exit;
mod inputs;
mod interrupt;
mod output;
pub mod parity;
mod progress;
mod report;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::CliError;

/// Runs the program with `args` (the first is its name) and says how it ended.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return exit::from_clap(&error),
    };
    interrupt::clean_up_on_ctrl_c();
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

/// An adapter that the wgpu backend can run on.
#[cfg(feature = "wgpu-untuned")]
#[derive(Clone, Debug)]
pub struct WgpuAdapter {
    /// Its name.
    pub name: String,
    /// Bytes of the largest buffer that a kernel can be given.
    pub largest_buffer: u64,
}

/// The adapter that `--backend wgpu` runs on; `None` where there is none.
#[cfg(feature = "wgpu-untuned")]
pub fn wgpu_adapter() -> Option<WgpuAdapter> {
    let found = backend::BackendName::Wgpu.devices().ok()?.into_iter().next()?;
    Some(WgpuAdapter { name: found.name, largest_buffer: found.largest_buffer.unwrap_or(u64::MAX) })
}

fn dispatch(cli: Cli) -> Result<(), CliError> {
    let shared = cli.shared;
    match (&shared.threads[..], &cli.command) {
        ([], _) | ([_, _, ..], Command::Bench(_)) => {}
        (&[threads], _) => backend::limit_threads(threads.into())?,
        _ => return Err(CliError::usage("--threads is given several times, which only `bench` takes".to_owned())),
    }
    match cli.command {
        Command::Info(args) => cmd::info::run(&args, &shared),
        Command::Devices => cmd::devices::run(&shared),
        Command::Embed(args) => cmd::embed::run(args, &shared),
        Command::Classify(args) => cmd::classify::run(args, &shared),
        Command::Predict(args) => cmd::predict::run(args, &shared),
        Command::Rollout(args) => cmd::rollout::run(args, &shared),
        Command::Plan(args) => cmd::plan::run(args, &shared),
        #[cfg(feature = "train")]
        Command::Probe(args) => cmd::probe::run(args, &shared),
        Command::Preprocess(args) => cmd::preprocess::run(&args, &shared),
        Command::Quantize(args) => cmd::quantize::run(&args, &shared),
        Command::Imatrix(args) => cmd::imatrix::run(&args, &shared),
        Command::Convert(args) => cmd::convert::run(&args, &shared),
        Command::Export(args) => cmd::export::run(&args, &shared),
        Command::Verify(args) => cmd::verify::run(args, &shared),
        Command::Compare(args) => cmd::compare::run(&args, &shared),
        Command::Trace(args) => cmd::trace::run(args, &shared),
        Command::Bench(args) => cmd::bench::run(&args, &shared),
        Command::Doctor(args) => cmd::doctor::run(&args, &shared),
        Command::Completions { shell } => cmd::completions::run(shell),
    }
}
