//! `pgrig testdb unlog`: of a live database, or of a dump.

use super::{unlog_dump, unlog_live};
use crate::args::UnlogArgs;
use crate::printer::Printer;

/// Runs the verb.
pub(crate) fn run(arguments: &UnlogArgs, printer: &Printer) -> anyhow::Result<()> {
    let names_a_server = arguments.server.any();
    if names_a_server { unlog_live::run(arguments, printer) } else { unlog_dump::run(arguments, printer) }
}
