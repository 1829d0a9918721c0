//! `pgrig testdb bench`.

use crate::args::BenchArgs;
use crate::printer::Printer;

/// To be written.
pub(crate) fn run(_arguments: &BenchArgs, _printer: &Printer) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}
