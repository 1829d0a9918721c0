//! Arguments of `pgrig testdb bench`.

use clap::Args;

use crate::args::ServerChoice;

/// To be written
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}
