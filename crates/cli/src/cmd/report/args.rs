//! `pgrig report`'s arguments.

use clap::{Args, ValueEnum};

/// Show saved runs as one HTML page with plots
///
/// The page needs no server and no network: it contains styles, plots, tables, and the whole run documents, so `pgrig
/// compare` and `pgrig report` accept it where they accept a run. Several runs of one verb are drawn on top of each other and
/// compared: two runs, or the runs of two labels.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig report    # the latest run, as report.html\n  \
    pgrig report before after -o change.html\n  \
    pgrig report latest --format md\n  \
    pgrig report latest --format svg -o plots\n  \
    pgrig report latest~1 --redact -o public.html")]
pub(crate) struct ReportArgs {
    /// Runs: files, reports, ids, beginnings of ids, labels, latest, latest~1 [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Write the report to FILE and replace what is there; - is standard output. For svg, a directory [default: for html
    /// report.html, if there is none; for md and csv standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,

    /// Format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "html")]
    pub(crate) format: Format,

    /// Leave out host, role, database, paths, labels, notes, names of tables, SQL and its literals
    #[arg(long)]
    pub(crate) redact: bool,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A page with plots, tables, and the run documents
    Html,
    /// A file for each plot, for articles
    Svg,
    /// Markdown without plots, for pull requests
    Md,
    /// All numbers, a row for each
    Csv,
}
