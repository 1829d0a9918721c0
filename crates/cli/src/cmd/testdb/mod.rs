//! `pgrig testdb`.

mod bench;
mod bench_memory;
mod bench_results;
mod bench_text;
mod lend;
mod unlog;
mod unlog_dump;
mod unlog_dump_progress;
mod unlog_live;
mod unlog_live_progress;
mod unlog_live_text;

pub(crate) use lend::fail_in_eval;

use crate::args::{TestdbAction, TestdbArgs};
use crate::printer::Printer;

/// Runs the verb.
pub(crate) fn run(arguments: &TestdbArgs, printer: &Printer) -> anyhow::Result<()> {
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
