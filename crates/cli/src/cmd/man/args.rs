//! Arguments of `pgrig man`.

use std::path::PathBuf;

use clap::Args;

/// Write man pages for pgrig and each of its commands into a directory
///
/// The packages of pgrig contain these pages. If you installed pgrig in another way, write them into a directory that man searches.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig man man1                        # for a package\n  \
    pgrig man ~/.local/share/man/man1     # for yourself")]
pub(crate) struct ManArgs {
    /// Directory for the pages. pgrig creates it if it does not exist, and overwrites pages of the same names
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
