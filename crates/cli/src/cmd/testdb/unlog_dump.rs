//! `pgrig testdb unlog` of a dump.

use crate::args::UnlogArgs;
use crate::printer::Printer;

/// To be written.
pub(crate) fn run(_arguments: &UnlogArgs, _printer: &Printer) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}
