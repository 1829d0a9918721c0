//! Arguments of `pgrig testdb unlog`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::app::args::{EXPLAIN, INSTANCE_IF_NAMED, ServerChoice};
use crate::app::duration::Length;

const HOST: &str = "Host name, or directory of the Unix socket [default, if -d, -p or -U is given: PGHOST, else the local \
                    socket]";

const DBNAME: &str = "Change the tables of this database: name, URI (postgresql://…) or keyword string (host=… dbname=…); with --instance, \
                      the name of a database of that instance [default: with --instance, postgres; with -h, -p or -U, PGDATABASE, \
                      else as for psql; without these options, pgrig reads a dump]";

/// Make tables unlogged, in a live database or in a dump
///
/// Unlogged tables are faster to write, but empty after a crash of the server: use them for data that you can create
/// again. With -d, -h, -p, -U, --instance or another option of pgrig's own PostgreSQL, pgrig changes the tables of that database: it locks and rewrites them.
/// Without these options, pgrig connects to no server, even if PGHOST is set: it reads a dump from FILE or standard
/// input, and writes it with CREATE UNLOGGED TABLE.
#[derive(Debug, Args)]
#[command(mut_arg("dbname", |dbname| dbname.help(DBNAME)), mut_arg("host", |host| host.help(HOST)), mut_arg("instance", |instance| instance.help(INSTANCE_IF_NAMED)), after_help = "Examples:\n  \
    pgrig testdb unlog schema.sql -o unlogged.sql\n  \
    pgrig testdb unlog -d mydb --explain\n  \
    pgrig testdb unlog -d mydb           # before the tests\n  \
    pgrig testdb unlog -d mydb --back    # after the tests")]
pub(crate) struct UnlogArgs {
    /// Dump to read: plain SQL, SQL compressed with gzip or zstd, or a pg_dump archive (needs pg_restore) [default:
    /// standard input, as with -]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Leave this table, and the tables that it references, logged: TABLE or SCHEMA.TABLE; may be repeated
    #[arg(long = "exclude-table", alias = "keep", value_name = "TABLE")]
    pub(crate) keep: Vec<String>,

    /// Leave sequences logged (PostgreSQL 15 and later can make them unlogged)
    #[arg(long)]
    pub(crate) no_sequences: bool,

    /// Write the dump to FILE; an existing FILE is overwritten [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Dump")]
    pub(crate) output: Option<PathBuf>,

    /// Compress the dump in this way [default: the compression that the name of the output file implies, otherwise that of the input]
    #[arg(long, value_enum, value_name = "METHOD", help_heading = "Dump")]
    pub(crate) compress: Option<Compress>,

    /// Change only the tables of this schema; may be repeated [default: all schemas]
    #[arg(long, value_name = "SCHEMA", help_heading = "Live database")]
    pub(crate) schema: Vec<String>,

    /// Make all unlogged tables logged, including those that pgrig did not make unlogged
    #[arg(long, help_heading = "Live database")]
    pub(crate) back: bool,

    #[arg(long, visible_alias = "dry-run", help = EXPLAIN, help_heading = "Live database")]
    pub(crate) explain: bool,

    /// Wait this long for each lock; if it is not free by then, end with an error, and change nothing [default: 10s]
    #[arg(long, value_name = "DURATION", help_heading = "Live database")]
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
    None,
    Gzip,
    Zstd,
}
