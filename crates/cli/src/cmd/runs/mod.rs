//! `pgrig runs`: the saved runs.

pub(crate) mod args;
mod list;
mod remove;
mod show;
mod subject;
mod transfer;

use measure::Status;

use crate::app::failure::Failure;
use crate::app::printer::Printer;
use crate::app::runs::Saved;
use crate::cmd::runs::args::{RunsAction, RunsArgs};

/// Runs the subcommand.
pub(crate) fn run(arguments: &RunsArgs, printer: &Printer) -> Result<(), Failure> {
    match &arguments.action {
        RunsAction::List(arguments) => list::run(arguments, printer),
        RunsAction::Show(arguments) => show::run(arguments, printer),
        RunsAction::Rm(arguments) => remove::run(arguments, printer),
        RunsAction::Prune(arguments) => remove::prune(arguments, printer),
        RunsAction::Export(arguments) => transfer::export(arguments, printer),
        RunsAction::Import(arguments) => transfer::import(arguments, printer),
    }
}

/// The status as in documents, or `running` for a run that has not ended.
fn status(saved: &Saved) -> &'static str {
    match saved.head.status {
        Status::Unfinished if saved.is_running() => "running",
        status => status.name(),
    }
}
