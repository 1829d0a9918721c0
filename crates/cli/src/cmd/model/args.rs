//! `pgrig model`'s arguments.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::app::args::{SaveArgs, ServerChoice};

/// Capture a model of a database's data, for near-real test data
///
/// A model is a TOML file: the statements that make the schema, and for each column its statistics. `pgrig fill --model`
/// makes rows from it, of any amount. Text of the original is replaced by text of the same length and order.
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
    /// One read-only transaction reads catalogs, sizes and pg_stats; no table is read unless --aggregates is given. Any role
    /// can do that; it sees the statistics of columns that it may select from. Run ANALYZE first if the statistics are old.
    Capture(Box<CaptureArgs>),
    /// Print a model's tables and columns
    Show(ShowArgs),
    /// Compare a copy's statistics and plans with those of the original
    ///
    /// pgrig runs ANALYZE five times on the copy. A field of pg_stats agrees if it differs from the original's by at most
    /// 3·√2 standard deviations of repeated ANALYZE runs: on the original with --analyze-original, otherwise on the copy.
    Check(Box<CheckArgs>),
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig model capture -d shop -o shop.model.toml --force\n  \
    pgrig model capture -d shop -o public.model.toml --schema public --k 100\n  \
    pgrig model capture -d shop --aggregates --explain")]
pub(crate) struct CaptureArgs {
    /// File that the model is written to; with -, standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "explain", help_heading = "Model")]
    pub(crate) output: Option<PathBuf>,

    /// Only the tables of this schema [default: all schemas]
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) schema: Option<String>,

    /// Replace values that fewer than ROWS rows have; of a table with fewer rows, record only their number
    #[arg(long, value_name = "ROWS", default_value_t = 20, help_heading = "Privacy")]
    pub(crate) k: u32,

    /// Keep the original text of this column: table.column; may be repeated
    #[arg(long, value_name = "COLUMN", help_heading = "Privacy")]
    pub(crate) keep_values: Vec<String>,

    /// Overwrite FILE if it exists
    #[arg(long, help_heading = "Model")]
    pub(crate) force: bool,

    /// Also read tables, by queries that return aggregates only: rows for each row of a referenced table, pairs of values,
    /// correlations, lengths of texts; in the same transaction, 60 s a statement at most
    #[arg(long, help_heading = "Model")]
    pub(crate) aggregates: bool,

    /// Print the statements that read tables, and run none of them
    #[arg(long, help_heading = "Model")]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) server: ServerChoice,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig model show shop.model.toml\n  \
    pgrig model show shop.model.toml --values")]
pub(crate) struct ShowArgs {
    /// The model
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print every value of the original that the model holds
    #[arg(long)]
    pub(crate) values: bool,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig model check shop copy\n  \
    pgrig model check shop.model.toml copy\n  \
    pgrig model check shop copy --analyze-original --queries queries/")]
pub(crate) struct CheckArgs {
    /// The original: database name, URI or keyword string; or a model
    #[arg(value_name = "ORIGINAL")]
    pub(crate) original: String,

    /// The copy: database name, URI or keyword string
    #[arg(value_name = "COPY")]
    pub(crate) copy: String,

    /// Only the tables of this schema [default: all schemas]
    #[arg(long, value_name = "NAME", help_heading = "Check")]
    pub(crate) schema: Option<String>,

    /// Run ANALYZE eleven times on the original, to measure how much its results vary
    #[arg(long, help_heading = "Check")]
    pub(crate) analyze_original: bool,

    /// Also compare the plans of the queries in DIR: files *.sql, a query each
    #[arg(long, value_name = "DIR", help_heading = "Check")]
    pub(crate) queries: Option<PathBuf>,

    /// Run these queries once on both (EXPLAIN ANALYZE, in a read-only transaction), and compare the rows of their operators
    #[arg(long, requires = "queries", help_heading = "Check")]
    pub(crate) execute: bool,

    /// End a query of --execute after this time; it is left out then
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Check")]
    pub(crate) execute_timeout: u32,

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
