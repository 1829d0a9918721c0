//! The server's errors that mean that there is no room.

use std::fmt;
use tokio_postgres::error::SqlState;

use serde::Serialize;

use connect::{ConnectError, ServerError};

/// The resource that the server lacks. Room may come back, so that a chunk can be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortage {
    /// The volume is full: SQLSTATE 53100.
    DiskFull,
    /// The quota of the server's operating-system user is used up.
    Quota,
    /// The server has become read-only: SQLSTATE 25006. Managed services do this shortly before a
    /// volume is full.
    ReadOnly,
}

impl Shortage {
    /// The shortage that an error reports. None for any other error, and if the server crashed
    /// because of the shortage: if WAL cannot be written, that is a PANIC, with 53100 too.
    pub fn of(error: &ConnectError) -> Option<Self> {
        match error {
            ConnectError::Query { error, .. } => Self::said_by(error),
            _ => None,
        }
    }

    fn said_by(error: &ServerError) -> Option<Self> {
        match error.code {
            SqlState::DISK_FULL => Some(Self::DiskFull),
            SqlState::READ_ONLY_SQL_TRANSACTION => Some(Self::ReadOnly),
            // `errcode_for_file_access` knows no code for EDQUOT: internal error.
            SqlState::INTERNAL_ERROR | SqlState::IO_ERROR
                if error.message.contains("Disk quota exceeded") =>
            {
                Some(Self::Quota)
            }
            SqlState::INTERNAL_ERROR | SqlState::IO_ERROR
                if error.message.contains("No space left on device") =>
            {
                Some(Self::DiskFull)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiskFull => "the server reports disk full (53100)",
            Self::Quota => "the server's disk quota is used up",
            Self::ReadOnly => "the server became read-only (25006), probably because its disk is almost full",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: SqlState, message: &str) -> ServerError {
        ServerError {
            severity: "ERROR".to_owned(),
            code,
            message: message.to_owned(),
            detail: None,
            hint: None,
            row: None,
            position: None,
            table: None,
            column: None,
            constraint: None,
            statement: None,
        }
    }

    #[test]
    fn what_means_no_room() {
        let full = "could not extend file \"base/5/16384\": No space left on device";
        let quota = "could not extend file \"base/5/16384\": Disk quota exceeded";
        for (code, message, expected) in [
            (SqlState::DISK_FULL, full, Some(Shortage::DiskFull)),
            (
                SqlState::DISK_FULL,
                "konnte Datei nicht erweitern: Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
                Some(Shortage::DiskFull),
            ),
            (SqlState::INTERNAL_ERROR, quota, Some(Shortage::Quota)),
            (SqlState::INTERNAL_ERROR, "could not extend file \"base/5/16384\": File too large", None),
            (
                SqlState::READ_ONLY_SQL_TRANSACTION,
                "cannot execute COPY FROM in a read-only transaction",
                Some(Shortage::ReadOnly),
            ),
            (SqlState::OUT_OF_MEMORY, "out of memory", None),
            // Waiting does not raise temp_file_limit.
            (
                SqlState::CONFIGURATION_LIMIT_EXCEEDED,
                "temporary file size exceeds temp_file_limit (1kB)",
                None,
            ),
        ] {
            let error =
                ConnectError::Query { at: "here".to_owned(), error: Box::new(said(code.clone(), message)) };
            assert_eq!(Shortage::of(&error), expected, "{code:?} {message}");
        }
    }

    #[test]
    fn a_server_that_crashed_is_not_merely_full() {
        let error = ConnectError::Lost {
            at: "here".to_owned(),
            error: Some(Box::new(said(
                SqlState::DISK_FULL,
                "could not write to file: No space left on device",
            ))),
            why: String::new(),
        };
        assert_eq!(Shortage::of(&error), None);
    }
}
