//! Arguments of `pgrig testdb unlog`.

use clap::Args;

use crate::args::ServerChoice;

/// To be written
#[derive(Debug, Args)]
pub(crate) struct UnlogArgs {
    #[command(flatten)]
    pub(crate) server: ServerChoice,
}
