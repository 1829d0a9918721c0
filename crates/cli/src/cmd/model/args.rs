//! `pgrig model`'s arguments.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::app::args::{INSTANCE_IF_NAMED, SaveArgs, ServerChoice};
use crate::app::duration::whole_seconds;

/// Rows below which a value is replaced, unless asked otherwise.
pub(crate) const K: u32 = 20;

/// Capture a database's statistics as a model for test data; compare a database that was filled from the model with the original
///
/// A model is a TOML file. It contains the statements that create the schema, and statistics for each column. `pgrig fill
/// --model` makes any number of rows from it. pgrig replaces each text value with another of the same length, and keeps the sort order. Enum labels, numbers and dates can stay in the model; before you pass it on, read `pgrig model show FILE --values`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig model capture -d shop -o shop.model.toml\n  \
    pgrig fill --model shop.model.toml --scale 0.1 -d copy\n  \
    pgrig model check shop copy")]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    pub(crate) action: ModelAction,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ModelAction {
    /// Read a database's catalogs and statistics into a model
    ///
    /// One read-only transaction reads catalogs, sizes and pg_stats. It reads no table, unless you give --aggregates. The role
    /// needs USAGE on the schemas, and SELECT on at least one column; for columns that it may not SELECT, the model has no
    /// statistics. Run ANALYZE first if the statistics are old.
    Capture(Box<CaptureArgs>),
    /// Print a model's tables and columns
    Show(ShowArgs),
    /// Compare the statistics of a copy (with --queries, also its query plans) with those of the original
    ///
    /// pgrig compares each value in pg_stats (a field). ANALYZE reads a random sample, so its results vary.
    /// pgrig therefore runs ANALYZE five times on the copy, and takes the median of each field. With
    /// --analyze-original, it also runs ANALYZE eleven times on the original, and takes the mean; otherwise
    /// it takes the present statistics of the original. A field agrees if it differs by no more than
    /// ANALYZE's own scatter (the tolerance).
    ///
    /// ORIGINAL and COPY are each a database name, a URI or a keyword string; ORIGINAL can also be a model file. A name means a database on the server that -h, -p, -U or
    /// --instance selects; without these options, on the server that psql would use.
    Check(Box<CheckArgs>),
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig model capture -d shop -o shop.model.toml --force\n  \
    pgrig model capture -d shop -o public.model.toml --schema public --k 100\n  \
    pgrig model capture -d shop --aggregates --explain")]
pub(crate) struct CaptureArgs {
    /// Write the model to FILE; with -, to standard output. Required without --explain
    #[arg(short, long, value_name = "FILE", required_unless_present = "explain", help_heading = "Model")]
    pub(crate) output: Option<PathBuf>,

    /// Read only the tables of this schema [default: all schemas]
    #[arg(long, value_name = "SCHEMA", help_heading = "Model")]
    pub(crate) schema: Option<String>,

    /// Replace each number, date or time that occurs in fewer than ROWS rows with a random value between the next smaller and the next
    /// larger value in the statistics. If these two are close, the original value can stay in the model. Replace all numbers
    /// of a column with codes, such as phone numbers: nine tenths of its numbers have seven digits or more, there are large gaps between them, and a
    /// number occurs in fewer than ROWS rows on average. For a table with fewer than ROWS rows, record only the number of rows. (pgrig replaces
    /// texts in any case.)
    #[arg(long, value_name = "ROWS", default_value_t = K, help_heading = "Privacy")]
    pub(crate) k: u32,

    /// Do not replace the texts of this column: TABLE.COLUMN; may be repeated. The model then contains the
    /// column's most common texts and the bounds of its histogram, even those that occur in fewer than --k
    /// rows. For a column with codes (see --k), keep only the numbers that occur in at least --k rows
    #[arg(long, value_name = "COLUMN", help_heading = "Privacy")]
    pub(crate) keep_values: Vec<String>,

    /// Overwrite FILE if it exists
    #[arg(short, long, help_heading = "Model")]
    pub(crate) force: bool,

    /// Also query the tables, for aggregates only: for each foreign key, how many rows refer to one row of the
    /// referenced table; pairs of values; correlations; lengths of texts. pgrig cancels a query after --timeout; the
    /// model then lacks its result
    #[arg(long, help_heading = "Model")]
    pub(crate) aggregates: bool,

    /// Print the queries of --aggregates, run none of them, and write no model
    #[arg(long, visible_alias = "dry-run", help_heading = "Model")]
    pub(crate) explain: bool,

    /// Cancel a statement after this time. If the server does not answer the request to cancel, pgrig ends with an error
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = whole_seconds, help_heading = "Model")]
    pub(crate) timeout: u64,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig model show shop.model.toml\n  \
    pgrig model show shop.model.toml --values")]
pub(crate) struct ShowArgs {
    /// Model file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print only the original values that the model discloses
    #[arg(long)]
    pub(crate) values: bool,
}

/// Help of -h where the databases are arguments.
const HOST: &str =
    "Host name, or directory of the Unix socket [default: PGHOST, else the local socket, as for psql]";

#[derive(Clone, Debug, Args)]
#[command(mut_arg("dbname", |dbname| dbname.hide(true)), mut_arg("host", |host| host.help(HOST)), mut_arg("instance", |instance| instance.help(INSTANCE_IF_NAMED)),
    after_help = "Examples:\n  \
    pgrig model check shop copy\n  \
    pgrig model check shop.model.toml copy\n  \
    pgrig model check shop copy --analyze-original --queries queries/")]
pub(crate) struct CheckArgs {
    /// The original: name of a database, URI or keyword string; or a model file
    #[arg(value_name = "ORIGINAL")]
    pub(crate) original: String,

    /// The copy: name of a database, URI or keyword string
    #[arg(value_name = "COPY")]
    pub(crate) copy: String,

    /// Compare only the tables of this schema [default: all schemas]
    #[arg(long, value_name = "SCHEMA", help_heading = "Check")]
    pub(crate) schema: Option<String>,

    /// Run ANALYZE eleven times on the original, to measure how much its results vary. This replaces its statistics
    #[arg(long, help_heading = "Check")]
    pub(crate) analyze_original: bool,

    /// Also compare the plans of the queries in DIR/*.sql; each file contains one query
    #[arg(long, value_name = "DIR", help_heading = "Check")]
    pub(crate) queries: Option<PathBuf>,

    /// Run each query of --queries once on both databases (EXPLAIN ANALYZE in a read-only transaction). Compare the row
    /// counts of their scans and joins between the databases, and the planner's estimates with these counts
    #[arg(long, requires = "queries", help_heading = "Check")]
    pub(crate) execute: bool,

    /// Cancel a query of --execute after this time, and leave it out of the comparison
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = whole_seconds, help_heading = "Check")]
    pub(crate) execute_timeout: u64,

    /// Also read both databases' tables (only a sample of the rows of large tables). Compare the distributions of columns, of pairs of
    /// columns, and of the number of rows that reference one row. Check that all foreign keys hold
    #[arg(long, help_heading = "Check")]
    pub(crate) columns: bool,

    #[command(flatten)]
    pub(crate) save: SaveArgs,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

impl ModelArgs {
    /// Where the run document goes, if it measures.
    pub(crate) fn save(&self) -> Option<&SaveArgs> {
        match &self.action {
            ModelAction::Check(check) => Some(&check.save),
            ModelAction::Capture(_) | ModelAction::Show(_) => None,
        }
    }

    /// The server that it works on, if it does.
    pub(crate) fn server(&self) -> Option<ServerChoice> {
        match &self.action {
            ModelAction::Capture(capture) => Some(capture.server.clone()),
            ModelAction::Show(_) => None,
            ModelAction::Check(check) => Some(check.server.clone()),
        }
    }
}
