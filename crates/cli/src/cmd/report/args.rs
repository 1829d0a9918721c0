//! `pgrig report`'s arguments.

use std::path::Path;

use clap::{Args, ValueEnum};

use crate::app::failure::Usage;
use crate::app::runs::RUN;

/// Write saved runs as an HTML report with plots, or as Markdown, SVG or CSV
///
/// The report needs no server and no network. It contains plots, tables, and the whole run documents, so `pgrig compare`,
/// `pgrig report` and `pgrig runs import` accept the file where they accept a run. If you give two runs, or two
/// labels, the report also compares them.
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN}\n\nExamples:\n  \
    pgrig report -o run.html    # the latest run\n  \
    pgrig report before after -o change.html\n  \
    pgrig report latest --format md\n  \
    pgrig report latest --format svg -o plots\n  \
    pgrig report latest~1 --redact -o public.html"))]
pub(crate) struct ReportArgs {
    /// Runs to report (see RUN below) [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Write the report to FILE; an existing FILE is overwritten. With -, write it to standard output. With --format svg, give a
    /// directory [default: report.html, which must not exist; standard output for md and csv]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,

    /// Write the report in this format [default: by the ending of FILE (.html, .md, .csv), else html]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// Leave out host, role, database, paths, labels, notes, names of tables, and SQL, also in the run documents within the
    /// report
    #[arg(long)]
    pub(crate) redact: bool,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Page with plots, tables, and the run documents
    Html,
    /// One file for each plot, for articles
    Svg,
    /// Markdown without plots, for pull requests
    Md,
    /// One row for each number
    Csv,
}

impl ReportArgs {
    /// The format: that of --format, else that of the name of -o.
    ///
    /// # Errors
    /// If no report is written in the format that the name has.
    pub(crate) fn format(&self) -> Result<Format, Usage> {
        let name = self.output.as_deref().unwrap_or_default();
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        match (self.format, ending.as_deref()) {
            (Some(format), _) => Ok(format),
            (None, None | Some("html" | "htm")) => Ok(Format::Html),
            (None, Some("md" | "markdown")) => Ok(Format::Md),
            (None, Some("csv")) => Ok(Format::Csv),
            (None, Some("svg")) => Err(Usage(
                "a report has several plots: give a directory, with --format svg -o DIRECTORY".to_owned(),
            )),
            (None, Some(_)) => Err(Usage(format!(
                "-o {name} has no ending of a format: give .html, .md or .csv, or --format"
            ))),
        }
    }
}
