//! Why there is no keeper.

use failure::{Class, Classified};
use std::io;

use super::super::clone::CloneError;
use connect::ConnectError;
use measure::human::counted;
use server::SurveyError;

/// Why databases cannot be lent, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// The server cannot be reached, or failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server cannot be asked for its ways to copy databases.
    #[error(transparent)]
    Clone(#[from] CloneError),
    /// The server or the role cannot create databases.
    #[error(transparent)]
    Unfit(#[from] SurveyError),
    /// Another keeper has the same id.
    #[error(
        "another keeper with this id (server process {pid}, {seen}) uses the server, from a machine or container with \
         the same machine-id and host name. Give one of them another PGRIG_HOME. If that keeper has ended, wait one \
         minute, or run SELECT pg_terminate_backend({pid})"
    )]
    Taken {
        /// The server's process.
        pid: i32,
        /// Address and start of that session, as a phrase.
        seen: String,
    },
    /// Sessions of an earlier keeper do not end.
    #[error(
        "pg_terminate_backend did not end {} of an earlier keeper: look with SELECT * FROM pg_stat_activity WHERE \
         application_name = '{named}', and try again when no such session is left",
        counted(sessions.unsigned_abs(), "session")
    )]
    Lingering {
        /// Number of sessions.
        sessions: i64,
        /// Their application name.
        named: String,
    },
    /// The connection ended while databases were lent.
    #[error(
        "the keeper lost its connection to the server and ends: {0}. The next pgrig testdb command drops its databases"
    )]
    ServerGone(ConnectError),
    /// A socket failed.
    #[error("cannot listen: {0}; give another --listen")]
    Listen(#[from] io::Error),
}

impl Classified for LendError {
    fn class(&self) -> Class {
        match self {
            Self::Connect(error) => error.class(),
            Self::Clone(error) => error.class(),
            Self::Unfit(error) => error.class(),
            Self::Taken { .. } => Class::Request,
            Self::Lingering { .. } | Self::ServerGone(_) | Self::Listen(_) => Class::Machine,
        }
    }
}
