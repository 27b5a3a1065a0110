//! The binary `jepa-cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    jepa_cli::run(std::env::args_os())
}
