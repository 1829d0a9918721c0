//! Arguments of `pgrig testdb unlog`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::app::args::ServerChoice;
use crate::app::duration::Length;

/// Make tables unlogged: in a live database, or in a dump on its way.
///
/// Unlogged tables are faster to write, and empty after a crash of the server: for data that can be made again.
/// With a server named (-d, -h, -p, -U, --instance …) the tables of that database are changed; otherwise a dump is read
/// from FILE or standard input, and written with CREATE UNLOGGED TABLE.
#[derive(Debug, Args)]
pub(crate) struct UnlogArgs {
    /// A dump: plain, gzip or zstd, or an archive of pg_dump's, for which pg_restore is needed; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Write the dump here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Compress what is written [default: by the output's name, else as the input]
    #[arg(long, value_enum, value_name = "METHOD")]
    pub(crate) compress: Option<Compress>,

    /// Only tables of this schema; may be repeated (live only)
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Vec<String>,

    /// Leave this table, [schema.]table, as it is; may be repeated
    #[arg(long, value_name = "TABLE")]
    pub(crate) keep: Vec<String>,

    /// Leave sequences as they are (they can be unlogged from PostgreSQL 15 on)
    #[arg(long)]
    pub(crate) no_sequences: bool,

    /// Make unlogged tables logged again (live only)
    #[arg(long)]
    pub(crate) back: bool,

    /// Print the statements, and run none (live only)
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Wait so long for each lock that others hold, then give up with nothing changed (live only) [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) lock_timeout: Option<Length>,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl UnlogArgs {
    /// Whether a live database is meant, rather than a dump.
    pub(crate) fn is_live(&self) -> bool {
        self.server.any()
    }
}

/// How a dump is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compress {
    /// Not at all
    None,
    /// gzip
    Gzip,
    /// zstd
    Zstd,
}
