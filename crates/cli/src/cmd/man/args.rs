//! Arguments of `pgrig man`.

use std::path::PathBuf;

use clap::Args;

/// Write a man page for pgrig and one for each of its commands into a directory, for packages
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pgrig man man1 && man -l man1/pgrig-fill.1")]
pub(crate) struct ManArgs {
    /// Directory, which is created if it does not exist; existing pages in it are overwritten
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
