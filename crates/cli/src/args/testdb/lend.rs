//! Arguments of `pgrig testdb new`, `list`, `drop` and `serve`.

use clap::Args;

use crate::args::ServerChoice;

/// To be written
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// To be written
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// To be written
#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

/// To be written
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}
