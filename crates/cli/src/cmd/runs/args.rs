//! `pgrig runs`' arguments.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::civil::Date;
use jiff::fmt::friendly::SpanParser;
use jiff::{SignedDuration, SpanRelativeTo, Timestamp, tz::TimeZone};

use crate::app::runs::{RUN, VERBS};

/// List, show, remove, export and import saved runs
///
/// fill, blockio, micro, tps, ddl, backup rehearse, testdb bench, model check and merge save a run document (JSON) in PGRIG_HOME/runs. `pgrig compare`
/// and `pgrig report` read these documents.
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN}\n\nExamples:\n  \
    pgrig runs list --verb tps --since 7d\n  \
    pgrig runs show latest\n  \
    pgrig runs prune --keep 100 --older-than 90d --explain\n  \
    pgrig runs export 'before*' -o before.runs.json\n  \
    pgrig runs import before.runs.json"))]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) action: RunsAction,
}

impl RunsArgs {
    /// Whether standard output is for JSON alone.
    pub(crate) fn json_to_stdout(&self) -> bool {
        match &self.action {
            RunsAction::List(list) => list.json,
            RunsAction::Show(show) => show.json,
            RunsAction::Export(export) => export.output == Path::new("-"),
            RunsAction::Rm(_) | RunsAction::Prune(_) | RunsAction::Import(_) => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// List the saved runs, the newest first
    ///
    /// The first column is the start time (UTC). It is the beginning of the run's id, so you can use it as RUN.
    /// The status is done, failed, interrupted, running, or unfinished (pgrig was killed).
    List(ListArgs),
    /// Show one run: its work, server, figures and notes
    Show(ShowArgs),
    /// Remove saved runs
    Rm(RmArgs),
    /// Remove old runs
    ///
    /// Give --keep, --older-than, or both. With both, prune removes only runs that are older than AGE and not among the
    /// newest N. It also removes truncated documents that are more than a day old. It never removes running runs or other files.
    Prune(PruneArgs),
    /// Write runs into one file, to import or compare elsewhere
    ///
    /// The file contains the documents unchanged, one after the other. jq can read it. Every command that takes RUN,
    /// except runs rm, accepts the file.
    Export(ExportArgs),
    /// Import runs from files that `runs export`, `report` or the option --json wrote
    ///
    /// import skips a run that is already saved. If a saved run has the same id and different content, or a document is
    /// damaged, import fails and saves nothing.
    Import(ImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig runs list\n  \
    pgrig runs list --label 'before*' --since 2026-11-01\n  \
    pgrig runs list --verb tps --limit 5 --json")]
pub(crate) struct ListArgs {
    /// List only runs of this verb: fill, model, blockio, micro, tps, ddl, backup or testdb
    #[arg(long, value_name = "VERB", value_parser = verb)]
    pub(crate) verb: Option<String>,

    /// List only runs with this label; *, ? and [...] are wildcards
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,

    /// List only runs that began since TIME: an age (7d, 12h), or a date or time in UTC (2026-11-01, 2026-11-01T12:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<Timestamp>,

    /// List only the newest N runs
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,

    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = RUN)]
pub(crate) struct ShowArgs {
    /// Run to show (see RUN below); an error if RUN names several
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// Print the run document (JSON) instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{RUN}\n\nExamples:\n  \
    pgrig runs rm latest\n  \
    pgrig runs rm 'try*'"))]
pub(crate) struct RmArgs {
    /// Saved runs to remove (see RUN below; not files). If you give a label, all its runs are removed
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pgrig runs prune --keep 100 --older-than 90d --explain\n  \
    pgrig runs prune --keep 100 --older-than 90d")]
pub(crate) struct PruneArgs {
    /// Remove all runs except the newest N
    #[arg(long, value_name = "N", required_unless_present = "older_than")]
    pub(crate) keep: Option<usize>,

    /// Remove runs that began longer ago than this: 90d, 12h
    #[arg(long, value_name = "AGE", value_parser = length)]
    pub(crate) older_than: Option<SignedDuration>,

    /// List the runs that prune would remove, and remove none
    #[arg(long, visible_alias = "dry-run")]
    pub(crate) explain: bool,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{RUN}\n\nExamples:\n  \
    pgrig runs export before -o before.runs.json\n  \
    pgrig runs export latest~1 latest -o - | gzip > two.runs.json.gz"))]
pub(crate) struct ExportArgs {
    /// Runs to write (see RUN below)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,

    /// Write the runs to FILE; with -, to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Overwrite FILE if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files to import from
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Parses the name of a command that saves runs.
fn verb(text: &str) -> Result<String, String> {
    let known = VERBS.contains(&text);
    known.then(|| text.to_owned()).ok_or_else(|| format!("give one of {}", VERBS.join(", ")))
}

/// Parses a number above 0.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "give a whole number, 1 or more".to_owned())
}

/// Parses a length of time. Days have 24 hours.
fn length(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("\"{text}\" is not a length of time: give one like 90d, 2w or 12h");
    let span = SpanParser::new().parse_span(text.trim()).map_err(|_| wrong())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if length.is_negative() || text.trim().starts_with('P') { Err(wrong()) } else { Ok(length) }
}

/// Parses a point in time: that long ago, or the beginning of a day, UTC.
fn since(text: &str) -> Result<Timestamp, String> {
    let wrong =
        || format!("\"{text}\" is not a time: give one like 7d, 12h, 2026-11-01 or 2026-11-01T12:00:00Z");
    if let Ok(length) = length(text) {
        return Timestamp::now().checked_sub(length).map_err(|_| wrong());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    // A Date would leave out the time of a text that has one.
    let day: Date =
        Some(text).filter(|text| !text.contains(':')).and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
    Ok(day.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_lengths_days_or_moments() {
        assert_eq!(length("90d"), Ok(SignedDuration::from_hours(90 * 24)));
        assert_eq!(length("2w"), Ok(SignedDuration::from_hours(14 * 24)));
        assert_eq!(length("12h 30min"), Ok(SignedDuration::from_mins(750)));
        assert_eq!(length("0d"), Ok(SignedDuration::ZERO));
        for wrong in ["90", "-1d", "1mo", "1y", "", "soon", "P1D", "99999999999d"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
        let second = |text: &str| since(text).map(Timestamp::as_second);
        assert_eq!(second("2026-11-01"), Ok(1_793_491_200));
        assert_eq!(second("2026-11-01T01:00:00+01:00"), Ok(1_793_491_200));
        let ago = Timestamp::now().as_second() - second("7d").unwrap();
        assert!((7 * 86_400..7 * 86_400 + 60).contains(&ago), "{ago}");
        for wrong in ["", "2026-13-01", "yesterday", "2026-11-01T01:00", "99999999d"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
