//! How the program ends: 0 all good; 1 an input failed or a comparison missed its bar; 2 wrong usage; 3 the model, the device or the output
//! is at fault.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use jepa_gguf::convert::ConvertError;
use jepa_gguf::export::ExportError;
use jepa_models::{ModelError, WrongOnDevice};

/// Everything that ends a command early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    // 1: inputs and comparisons.
    /// Some inputs failed; each has been reported, the others were written.
    #[error("{failed} of {total} inputs failed")]
    InputsFailed {
        /// How many.
        failed: usize,
        /// Of how many.
        total: usize,
    },
    /// One input that the command cannot do without.
    #[error("{path}")]
    Input {
        /// Its name.
        path: String,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A comparison missed its bar; the report has been printed.
    #[error("{what}")]
    Missed {
        /// What was missed.
        what: String,
    },

    // 2: usage.
    /// Arguments that parse but do not make sense.
    #[error("{what}")]
    Usage {
        /// What is wrong and what to write.
        what: String,
    },
    /// A backend that this binary was built without.
    #[error(
        "backend {name} is not in this binary, which has {compiled}; build it with `cargo build --release -p jepa-cli --features {name}`"
    )]
    BackendNotCompiled {
        /// The backend asked for.
        name: &'static str,
        /// Backends that are there.
        compiled: String,
    },

    // 3: the model, the device, the output.
    /// The model file is missing, bad, or cannot do what was asked.
    #[error("model {}", path.display())]
    Model {
        /// The model file.
        path: PathBuf,
        /// What is wrong.
        source: ModelError,
    },
    /// A checkpoint that does not become a bundle.
    #[error("checkpoint {}", path.display())]
    Convert {
        /// The checkpoint.
        path: PathBuf,
        /// Why.
        source: Box<ConvertError>,
    },
    /// A bundle that does not become a folder of Hugging Face.
    #[error("model {}", path.display())]
    Export {
        /// The model file.
        path: PathBuf,
        /// Why.
        source: ExportError,
    },
    /// A backend that is in this binary and finds nothing to run on.
    #[error("backend {backend}: {what}; {next}")]
    NoDevice {
        /// The backend.
        backend: &'static str,
        /// What is missing.
        what: String,
        /// What to do.
        next: &'static str,
    },
    /// A type of numbers that the device cannot compute in.
    #[error("--dtype {dtype}: {device} cannot compute in it; f32 always works")]
    Dtype {
        /// The type asked for.
        dtype: &'static str,
        /// The device.
        device: String,
    },
    /// A device that computes something wrong at the sizes of a model.
    #[error(
        "{device} is not to be trusted with this model; run with `--backend cpu`, or with --no-self-check all the same"
    )]
    WrongOnDevice {
        /// The device.
        device: String,
        /// What is wrong.
        source: Box<WrongOnDevice>,
    },
    /// A device that `doctor` found wrong; the report has been printed.
    #[error("{device} is wrong at {wrong} of {total} sizes")]
    Sick {
        /// The device.
        device: String,
        /// At how many sizes.
        wrong: usize,
        /// Of how many.
        total: usize,
    },
    /// A request with a tensor that is larger than the largest buffer of the device.
    #[error("{what} needs a larger buffer than {device} has; {next}")]
    BeyondBuffers {
        /// What was asked for.
        what: String,
        /// The device.
        device: String,
        /// What to change.
        next: &'static str,
    },
    /// A request that the machine has no memory for.
    #[error("{what} needs about {} of memory, {} are available; {next}", gib(*needed), gib(*available))]
    TooBig {
        /// What was asked for.
        what: String,
        /// Bytes it needs.
        needed: u64,
        /// Bytes there are.
        available: u64,
        /// What to change.
        next: &'static str,
    },
    /// The output cannot be written.
    #[error("output {}", path.display())]
    Output {
        /// The output file.
        path: PathBuf,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The reader of stdout went away: not an error.
    #[error("stdout was closed")]
    BrokenPipe,
}

impl CliError {
    /// Wrong usage, in one sentence.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::Usage { what: what.into() }
    }

    /// A fault of the input `path`.
    pub fn input(path: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Input { path: path.into(), source: source.into() }
    }

    /// A fault of the output `path`.
    pub fn output(path: impl Into<PathBuf>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Output { path: path.into(), source: source.into() }
    }

    /// The code that scripts see.
    pub fn code(&self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::InputsFailed { .. } | Self::Input { .. } | Self::Missed { .. } => 1,
            Self::Usage { .. } | Self::BackendNotCompiled { .. } => 2,
            Self::Model {
                source:
                    ModelError::Size { .. }
                    | ModelError::Layer { .. }
                    | ModelError::LayerWord { .. }
                    | ModelError::Blocks { .. },
                ..
            } => 2,
            Self::Convert { source, .. } => {
                if is_about_flags(source) {
                    2
                } else {
                    3
                }
            }
            Self::Export { .. }
            | Self::Model { .. }
            | Self::BeyondBuffers { .. }
            | Self::Dtype { .. }
            | Self::NoDevice { .. }
            | Self::Sick { .. }
            | Self::WrongOnDevice { .. }
            | Self::TooBig { .. }
            | Self::Output { .. } => 3,
        }
    }

    /// Says on stderr what happened and gives the code.
    pub fn report(&self) -> ExitCode {
        // The only input of a command has been reported already; its count adds nothing.
        if !matches!(self, Self::BrokenPipe | Self::InputsFailed { total: 1, .. }) {
            say_on_stderr(&format!("error: {}", one_line(self)));
        }
        ExitCode::from(self.code())
    }
}

/// Whether what was asked for does not fit the checkpoint, so that the flags are to be changed.
fn is_about_flags(error: &ConvertError) -> bool {
    matches!(
        error,
        ConvertError::NoEncoder { .. }
            | ConvertError::UnknownHint { .. }
            | ConvertError::HintValue { .. }
            | ConvertError::HintContradicts { .. }
            | ConvertError::MissingHint { .. }
            | ConvertError::WrongFamily { .. }
            | ConvertError::OutputIsInput { .. }
    )
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// An error and its causes, joined by colons.
pub fn one_line(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !line.ends_with(&text) {
            line = format!("{line}: {text}");
        }
        cause = next.source();
    }
    line
}

/// A line on stderr; a stderr that nobody reads is no reason to stop.
pub fn say_on_stderr(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// `text` with control characters spelled out: names come from files and may hold line breaks or codes that a terminal obeys.
pub fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// What clap found: help and version go to stdout and are no error.
pub fn from_clap(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
