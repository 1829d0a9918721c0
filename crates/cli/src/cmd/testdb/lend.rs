//! `pgrig testdb new`, `list`, `drop` and `serve`.

use crate::args::{DropArgs, ListArgs, NewArgs, ServeArgs};
use crate::printer::Printer;

/// To be written.
pub(crate) fn new(_arguments: &NewArgs, _printer: &Printer) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}

/// To be written.
pub(crate) fn list(_arguments: &ListArgs, _printer: &Printer) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}

/// To be written.
pub(crate) fn drop(_arguments: &DropArgs, _printer: &Printer) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}

/// To be written.
pub(crate) fn serve(_arguments: &ServeArgs, _printer: &Printer) -> anyhow::Result<()> {
    anyhow::bail!("to be written")
}
