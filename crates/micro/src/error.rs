//! Errors of a `micro`.

use failure::{Class, Classified};
use measure::human::counted;
use thiserror::Error;

use connect::ConnectError;
use server::SurveyError;
use server::fault::Panicked;

/// Why a `micro` was refused or failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MicroError {
    /// The server could not be reached or asked.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server or the schema is not fit for tables.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// The request is not possible.
    #[error("{0}")]
    Request(String),
    /// A suite that cannot be read.
    #[error("suite {name}: {why}")]
    Suite {
        /// Its name or file.
        name: String,
        /// Why it cannot be read.
        why: String,
    },
    /// The server refuses a candidate.
    #[error("{name}: {why}")]
    Candidate {
        /// Name of the candidate.
        name: String,
        /// The server's message, its place, and the remedy.
        why: String,
    },
    /// The plans differ from the candidates' text.
    #[error(
        "pgrig refuses candidates whose plan does not do the work that you want to time:\n  {}\nTo measure them nevertheless, give --anyway",
        findings.join("\n  ")
    )]
    Refused {
        /// A sentence each.
        findings: Vec<String>,
    },
    /// A table that pgrig did not make has the name of a candidate's.
    #[error(
        "schema {schema} has {name}, which pgrig did not make and does not drop: rename it, or give another --schema"
    )]
    Taken {
        /// Schema of the relation.
        schema: String,
        /// Name of the relation.
        name: String,
    },
    /// SQL that the user gave to be run before or after.
    #[error("{what}: {source}")]
    Script {
        /// The option with the SQL.
        what: &'static str,
        /// The server's error.
        source: ConnectError,
    },
    /// SQL that the user gave to be run at the end.
    #[error("--teardown failed, so results of --setup may remain: {0}")]
    TearDown(ConnectError),
    /// A candidate failed while it was measured.
    #[error("{name} failed: {source}")]
    Sample {
        /// Name of the candidate.
        name: String,
        /// The server's error.
        source: ConnectError,
    },
    /// A candidate was executed for so long that the budget has no room for rounds.
    #[error(
        "{name}: one sample takes more than {most} s, three times --budget: give a longer --budget{}",
        if *has_rows { ", or fewer --rows" } else { "" }
    )]
    TooLong {
        /// Name of the candidate.
        name: String,
        /// Time after which pgrig cancelled it, seconds.
        most: f64,
        /// Whether the number of rows can be chosen.
        has_rows: bool,
    },
    /// A plan is not as expected.
    #[error(
        "{name}: pgrig cannot read the server's EXPLAIN output: {what}. Report this as a bug, with the server's version"
    )]
    Explain {
        /// The candidate's name.
        name: String,
        /// The unexpected part of the plan.
        what: String,
    },
    /// Results cannot be saved in the database.
    #[error("--save-in-database: {0}")]
    Save(String),
    /// The code of pgrig panicked during the run.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The user interrupted it.
    #[error("interrupted after {}", counted(*rounds as u64, "round"))]
    Interrupted {
        /// Number of complete rounds.
        rounds: usize,
    },
}

impl Classified for MicroError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Unfit(error) => error.class(),
            Self::Script { source, .. } | Self::Sample { source, .. } | Self::TearDown(source) => {
                source.class_of_own_sql()
            }
            Self::Request(_)
            | Self::Suite { .. }
            | Self::Candidate { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. }
            | Self::Taken { .. }
            | Self::Save(_) => Class::Request,
            Self::Explain { .. } | Self::Panicked(_) => Class::Machine,
            Self::Interrupted { .. } => Class::Interrupted,
        }
    }
}
