//! Causes for which a step of a fill fails.

use connect::{ConnectError, SqlState};
use failure::Class;
use thiserror::Error;

use crate::error::FillError;
use crate::limits::{LimitsError, OutOfSpace, Shortage};
use crate::probe::ProbeError;
use crate::run::direct::{Failure, NotDirect};

/// Why a step failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Cause {
    /// The server refused something, or is gone.
    #[error(transparent)]
    Server(#[from] ConnectError),
    /// There is no room for the next chunk.
    #[error(transparent)]
    Space(#[from] OutOfSpace),
    /// There is no room for the first chunk, even after tables were dropped.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// A step other than loading has run out of space.
    #[error("{0}. Free some space there, or give a smaller SIZE")]
    Full(ConnectError),
    /// Pages could not be written.
    #[error(transparent)]
    Direct(Failure),
    /// A row violates a foreign key. Its chunk is rolled back.
    #[error(
        "a row of {table} violates {constraint}: {row}. The referenced rows have changed since the fill began: run \
         TRUNCATE {table}, then repeat the command with --no-resume"
    )]
    Broken {
        /// The table's qualified name.
        table: String,
        /// The foreign key's name.
        constraint: String,
        /// The row as text.
        row: String,
    },
    /// A probe cannot be run.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Cause {
    /// Whether a row, a constraint or a trigger is at fault, so that the same rows fail again.
    pub(super) fn is_of_rows(&self) -> bool {
        match self {
            Self::Server(error @ ConnectError::Query { .. }) => error.class_of_own_sql() == Class::Request,
            Self::Broken { .. } => true,
            _ => false,
        }
    }

    /// Adds a remedy where the server's error has none.
    pub(super) fn with_remedy(self) -> Self {
        match self {
            Self::Server(error) if is_lack(&error) => Self::Full(error),
            other => other,
        }
    }

    /// The lack of disk space, without a remedy; none for other causes.
    fn lack_of_space(&self) -> Option<String> {
        match self {
            Self::Server(error) | Self::Full(error) => lack(error),
            Self::Space(error) => error.lack(),
            Self::Limits(error) => error.lack(),
            Self::Direct(error) => error.lack(),
            Self::Broken { .. } | Self::Probe(_) | Self::Interrupted => None,
        }
    }
}

impl FillError {
    /// The lack of disk space for which a fill failed, for a verb that has other options than `fill`: without a remedy. None for other errors.
    pub fn lack_of_space(&self) -> Option<String> {
        match self {
            Self::OfTable { source, .. } => source.lack_of_space(),
            Self::Step { source, .. } | Self::Pages(source) => source.lack_of_space(),
            Self::Limits(error) => error.lack(),
            Self::Rehearsal(error) => lack(error),
            _ => None,
        }
    }
}

impl FillError {
    /// The way to complete the fill of a schema, one of whose tables this error stopped.
    pub(crate) fn completed_by(&self) -> &'static str {
        match self {
            Self::Step { source, .. } if source.is_of_rows() => {
                "remove the cause and repeat the command; if a trigger refuses rows, give --triggers off, too"
            }
            _ => "repeat the command",
        }
    }

    /// The message on a function or table that is missing, and that tables to create or to fill use; without a remedy. None for other errors.
    pub fn missing_object(&self) -> Option<String> {
        let is_missing =
            |state: &SqlState| [SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_TABLE].contains(state);
        match self {
            Self::OfTable { source, .. } => source.missing_object(),
            Self::Table(error) => error.missing_object(),
            Self::Ddl { problem, sqlstate: Some(state) } if is_missing(state) => {
                Some(problem.replace(". Nothing was changed", ""))
            }
            Self::Step { source, .. } => match &**source {
                Cause::Server(error) if error.sqlstate().is_some_and(is_missing) => Some(error.to_string()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The lack of disk space that the server reports; none for its other errors.
fn lack(error: &ConnectError) -> Option<String> {
    is_lack(error).then(|| error.to_string())
}

/// Whether the server reports a lack of disk space, or has crashed because it could not write WAL.
fn is_lack(error: &ConnectError) -> bool {
    let has_crashed =
        matches!(error, ConnectError::Lost { .. }) && error.sqlstate() == Some(&SqlState::DISK_FULL);
    has_crashed || Shortage::of(error).is_some()
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Server(error) => Self::Server(error),
            failure => Self::Direct(failure),
        }
    }
}

impl From<NotDirect> for Cause {
    fn from(why: NotDirect) -> Self {
        Self::Direct(why.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::VolumeRole;

    #[test]
    fn a_lack_of_space_names_no_option() {
        let because = "for WAL".to_owned();
        let (volume, needed, free, kept) = (VolumeRole::Heap, 3_000_000, 2_000_000, 1_000_000);
        let next = OutOfSpace::NoRoom { volume, needed, free, kept, because };
        let reported = OutOfSpace::Reported(Shortage::DiskFull);
        for (cause, wanted) in [
            (Cause::Space(next), Some("no room for the next chunk (")),
            (Cause::Space(reported), Some("the server reports disk full (53100)")),
            (Cause::Interrupted, None),
        ] {
            let lack = FillError::Pages(Box::new(cause)).lack_of_space();
            assert_eq!(lack.is_some(), wanted.is_some(), "{lack:?}");
            let (lack, wanted) = (lack.unwrap_or_default(), wanted.unwrap_or_default());
            assert!(lack.starts_with(wanted) && !lack.contains("--"), "{lack}");
        }
    }
}
