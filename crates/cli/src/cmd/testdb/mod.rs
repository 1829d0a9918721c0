//! `pgrig testdb`.

pub(crate) mod args;
mod bench;
mod lend;
mod unlog;

pub(crate) use lend::fail_in_eval;

use crate::app::args::{TestdbAction, TestdbArgs};
use crate::app::failure::Failure;
use crate::app::printer::Printer;

/// Runs the verb.
pub(crate) fn run(arguments: &TestdbArgs, printer: &Printer) -> Result<(), Failure> {
    match &arguments.action {
        TestdbAction::Unlog(arguments) => unlog::run(arguments, printer),
        TestdbAction::Bench(arguments) => bench::run(arguments, printer),
        TestdbAction::New(arguments) => lend::new(arguments, printer),
        TestdbAction::List(arguments) => lend::list(arguments, printer),
        TestdbAction::Keep(arguments) => lend::keep(arguments, printer),
        TestdbAction::Drop(arguments) => lend::drop(arguments, printer),
        TestdbAction::Serve(arguments) => lend::serve(arguments, printer),
    }
}
