//! `pgrig completions`: a shell's completion, from the command line's own description.

pub(crate) mod args;

use clap::CommandFactory;

use crate::app::failure::Failure;
use crate::app::printer::Printer;
use crate::cmd::completions::args::CompletionsArgs;
use crate::cmd::line::Cli;

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArgs, printer: &Printer) -> Result<(), Failure> {
    let mut script = Vec::new();
    // In fish and zsh, -? is a pattern of file names.
    let mut command = Cli::command().mut_arg("help", |help| help.short(None));
    clap_complete::generate(arguments.shell, &mut command, "pgrig", &mut script);
    Ok(printer.result(String::from_utf8_lossy(&script).trim_end())?)
}
