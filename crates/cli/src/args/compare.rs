//! `pgrig compare`'s arguments.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use measure::Verdict;

/// A verdict between two saved runs: improved, regressed, no change or inconclusive, figure by figure.
#[derive(Debug, Args)]
#[command(
    after_help = "Reads run documents of any verb (--json FILE, or PGRIG_HOME/runs), and needs no server. Runs compare\n\
        if request, server version, settings, machine and transport are the same; whatever was otherwise is\n\
        named. Fewer than four trials each tell nothing.\n\n\
        Examples:\n  \
        pgrig blockio 1GB --trials 5 --json before.json\n  \
        pgrig blockio 1GB --trials 5 --json after.json\n  \
        pgrig compare before.json after.json --fail-on regressed\n"
)]
pub(crate) struct CompareArgs {
    /// The run document to compare with
    pub(crate) baseline: PathBuf,

    /// The run document to judge
    pub(crate) candidate: PathBuf,

    /// Compare even what was otherwise: results may then differ by that alone
    #[arg(long)]
    pub(crate) anyway: bool,

    /// Changes of less than this do not matter
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = super::share)]
    pub(crate) threshold: f64,

    /// Exit with status 3 if a figure is judged so; may be repeated
    #[arg(long, value_enum, value_name = "VERDICT", value_delimiter = ',')]
    pub(crate) fail_on: Vec<FailOn>,

    /// Write the comparison as JSON to this file too; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<String>,
}

/// Verdicts that may fail a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// It got worse
    Regressed,
    /// It cannot be told
    Inconclusive,
}

impl FailOn {
    /// Which verdict that is.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Self::Regressed => Verdict::Regressed,
            Self::Inconclusive => Verdict::Inconclusive,
        }
    }
}
