//! Connecting to a server that is not ready yet: it starts, or recovers from a crash.

use futures_util::future::LocalBoxFuture;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

use super::connection::Connection;
use super::error::ConnectError;
use super::target::Target;

/// Time to wait for a server that reports that it is not ready.
const PATIENCE: Duration = Duration::from_mins(1);
/// The same for one that hangs up without saying why: a server whose process crashed does so for a moment.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);
/// Time between two attempts.
const INTERVAL: Duration = Duration::from_millis(200);
/// Time between two messages that pgrig waits for the server.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

impl Target {
    /// [`Target::connect`], which waits up to a minute for a server that is starting, stopping or in recovery.
    /// `tell` gets a line at first and then every ten seconds.
    ///
    /// # Errors
    ///
    /// As [`Target::connect`].
    pub fn connect_when_ready<'a>(
        &'a self,
        tell: &'a dyn Fn(&str),
    ) -> LocalBoxFuture<'a, Result<Connection, ConnectError>> {
        Box::pin(async move {
            let began = Instant::now();
            let mut told: Option<Instant> = None;
            let mut patience = Duration::ZERO;
            loop {
                let error = match self.connect().await {
                    Ok(connection) => return Ok(connection),
                    Err(error) => error,
                };
                patience = patience.max(match error.readiness() {
                    Readiness::Later => PATIENCE,
                    Readiness::Unknown => SHORT_PATIENCE,
                    // A server that has said that it is stopping is started again in a moment, or not.
                    Readiness::Absent => Duration::ZERO,
                    Readiness::Never => return Err(error),
                });
                if began.elapsed() >= patience {
                    return Err(error);
                }
                if told.is_none_or(|told| told.elapsed() >= TELL_INTERVAL) {
                    told = Some(Instant::now());
                    let left = patience.saturating_sub(began.elapsed()).as_secs();
                    let why = error.without_remedy();
                    tell(&format!("waiting up to {left} s for the server to be ready: {why}"));
                }
                tokio::time::sleep(INTERVAL).await;
            }
        })
    }
}

/// The consequence of a failed attempt for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Readiness {
    /// Another attempt fails as well.
    Never,
    /// No server listens there.
    Absent,
    /// The server, or something in its place, hung up.
    Unknown,
    /// The server says that it is not ready.
    Later,
}

impl ConnectError {
    fn without_remedy(&self) -> String {
        match self {
            Self::Rejected { at, error, .. } => format!("{at}: {error}"),
            error => error.to_string(),
        }
    }

    fn readiness(&self) -> Readiness {
        match self {
            // cannot_connect_now. A standby that takes no queries says so too, and for good.
            Self::Rejected { error, .. } if error.code == SqlState::CANNOT_CONNECT_NOW => Readiness::Later,
            Self::ClosedEarly { .. } => Readiness::Unknown,
            Self::Refused { .. } | Self::Unreachable { .. } | Self::Timeout { .. } => Readiness::Absent,
            Self::AllFailed(errors) => errors.iter().map(Self::readiness).max().unwrap_or(Readiness::Never),
            _ => Readiness::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::server_error::ServerError;
    use super::*;

    fn rejected(code: SqlState) -> ConnectError {
        let error = ServerError {
            severity: "FATAL".to_owned(),
            code,
            message: "no".to_owned(),
            detail: None,
            hint: None,
            row: None,
            position: None,
            table: None,
            column: None,
            constraint: None,
            statement: None,
        };
        ConnectError::Rejected { at: "db:1".to_owned(), error: Box::new(error), remedy: String::new() }
    }

    #[test]
    fn only_a_server_that_will_be_ready_is_waited_for() {
        let refused = || ConnectError::Refused { at: "db:2".to_owned(), remedy: "" };
        let closed = ConnectError::ClosedEarly { at: "db:1".to_owned(), why: String::new() };
        assert_eq!(rejected(SqlState::CANNOT_CONNECT_NOW).readiness(), Readiness::Later);
        assert_eq!(rejected(SqlState::INVALID_PASSWORD).readiness(), Readiness::Never);
        assert_eq!(closed.readiness(), Readiness::Unknown);
        assert_eq!(refused().readiness(), Readiness::Absent);
        let one_of_two = ConnectError::AllFailed(vec![rejected(SqlState::CANNOT_CONNECT_NOW), refused()]);
        assert_eq!(one_of_two.readiness(), Readiness::Later);
    }
}
