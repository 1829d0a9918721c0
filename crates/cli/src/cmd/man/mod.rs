//! `pgrig man`: man pages, from the command line's own description.

pub(crate) mod args;

use std::fs;

use clap::CommandFactory;

use crate::app::failure::{Failure, Usage};
use crate::app::printer::Printer;
use crate::cmd::line::Cli;
use crate::cmd::man::args::ManArgs;

/// Writes the pages `pgrig.1`, `pgrig-fill.1`, `pgrig-server-start.1` …
pub(crate) fn run(arguments: &ManArgs, printer: &Printer) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let refused = |error| Usage(format!("cannot write man pages to {}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(refused)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(refused)?;
    printer.say(format!("man pages: {}", directory.display()));
    Ok(())
}
