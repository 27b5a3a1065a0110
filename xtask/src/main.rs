//! Everything a contributor runs: `cargo xtask --help`.

mod bench;
mod checkpoint;
mod ci;
mod docs;
mod gpu;
mod links;
mod new_family;
mod parity;
mod process;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about)]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What CI runs: format, lints, docs, tests
    Ci {
        /// More parity cases, replayed by the tests when the folder is there
        #[arg(long, value_name = "DIR")]
        cases: Option<PathBuf>,
    },
    /// Write the pages that are generated from code, check the links of all pages and build the book in target/book
    Docs {
        /// Write no page, only check that they are fresh
        #[arg(long)]
        check: bool,
    },
    /// Time the command line beside PyTorch, candle and ggml, and write docs/performance.md
    Bench(bench::BenchArgs),
    /// Run the cases and time the program on an NVIDIA card beside PyTorch, here or on a machine without Rust and network
    Gpu(gpu::GpuArgs),
    /// Write a checkpoint of ViT-L's size with random weights (1.2 GB), to measure `convert` and `quantize` with
    Checkpoint {
        /// Folder to write to
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Add a model family that behaves like another one until its files are edited
    NewFamily(new_family::NewFamilyArgs),
    /// Replay parity cases, or published files
    Parity {
        /// Folders of cases [default: the committed ones]
        #[arg(value_name = "DIR")]
        cases: Vec<PathBuf>,
        /// Backend to replay on
        #[arg(long, default_value = "cpu")]
        backend: String,
        /// Folder with published GGUF files; those that are not there are named
        #[arg(long, value_name = "DIR", conflicts_with = "cases")]
        real: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let outcome = match Xtask::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Ci { cases } => ci::run(cases.as_deref()),
        Command::Checkpoint { folder } => checkpoint::vit_l(&folder),
        Command::Gpu(args) => gpu::run(&args),
        Command::Docs { check } => docs::run(check),
        Command::NewFamily(args) => new_family::run(&args),
        Command::Parity { real: Some(folder), backend, .. } => parity::published(&folder, &backend),
        Command::Parity { cases, backend, .. } => parity::cases(&cases, &backend),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
