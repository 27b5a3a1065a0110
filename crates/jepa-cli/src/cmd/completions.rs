use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::CliError;
use crate::report;

pub(crate) fn run(shell: Shell) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jepa-cli", &mut script);
    report::print_text(&String::from_utf8_lossy(&script))
}
