//! Arguments of `pgrig testdb unlog`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::app::args::ServerChoice;
use crate::app::duration::Length;

/// Make tables unlogged, in a live database or in a dump
///
/// Unlogged tables are faster to write, but empty after a crash of the server: use them for data that you can make
/// again. With a server named (-d, -h, -p, -U, --instance …), pgrig changes the tables of that database. Otherwise it
/// reads a dump from FILE or standard input, and writes it with CREATE UNLOGGED TABLE.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig testdb unlog schema.sql -o unlogged.sql\n  \
    pgrig testdb unlog -d mydb --dry-run\n  \
    pgrig testdb unlog -d mydb && pgrig testdb unlog -d mydb --back")]
pub(crate) struct UnlogArgs {
    /// Dump to read: plain, gzip, zstd, or an archive of pg_dump (needs pg_restore); - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Write the dump to FILE in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Compression of the output [default: by the name of the output file, or the input's]
    #[arg(long, value_enum, value_name = "METHOD")]
    pub(crate) compress: Option<Compress>,

    /// Change only tables of this schema; may be repeated (live only)
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) schema: Vec<String>,

    /// Leave this table logged: TABLE or SCHEMA.TABLE; may be repeated
    #[arg(long, value_name = "TABLE")]
    pub(crate) keep: Vec<String>,

    /// Leave sequences logged (PostgreSQL 15 and later can make them unlogged)
    #[arg(long)]
    pub(crate) no_sequences: bool,

    /// Make unlogged tables logged again (live only)
    #[arg(long)]
    pub(crate) back: bool,

    /// Print the statements without running them (live only)
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Wait this long for each lock, then give up without changes (live only)
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
    /// No compression
    None,
    /// gzip
    Gzip,
    /// zstd
    Zstd,
}
