//! The session that observes the server.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::{Error, Statement};

use connect::{ConnectError, Connection, Target};
use server::ServerInfo;
use server::machine;

use crate::watch::Watching;

/// Name of this session in pg_stat_activity.
const APPLICATION_NAME: &str = "pgrig watch";
/// Settings of the session: the server cancels an observation that takes longer.
const SET_UP: &str = "SET statement_timeout = '2s'; SET lock_timeout = '100ms'";
/// Time after which pgrig gives up an observation, if the server does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A session with the statements it repeats.
pub(super) struct Server {
    connection: Connection,
    watching: Watching,
    /// The role, quoted, if it may not see the activity of others' sessions.
    restricted_role: Option<String>,
    state: Statement,
    maintenance: Statement,
    waits: Statement,
}

/// Result of one observation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    /// The server's clock, seconds since 1970.
    pub(super) clock: f64,
    /// Position of the last finished checkpoint in the WAL, which identifies it.
    pub(super) last_checkpoint: String,
    /// Seconds since it began; none on a standby.
    pub(super) last_checkpoint_ago: Option<f64>,
    /// Whether the checkpointer is at work; false where that may not be seen.
    pub(super) checkpointing: bool,
    /// End of the WAL, bytes; none on a standby.
    pub(super) wal: Option<u64>,
    /// Number of other active sessions; none if the role may not see them.
    pub(super) others: Option<u64>,
    /// Tables that are being vacuumed or analyzed, as far as the role may see them.
    pub(super) maintenance: Vec<Maintenance>,
}

/// The maintenance of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Maintenance {
    /// `autovacuum`, `VACUUM` or `ANALYZE`.
    pub(super) who: String,
    /// As a query names it.
    pub(super) relation: String,
}

/// Why an observation failed.
#[derive(Debug)]
pub(super) enum ObserveError {
    /// Only this time; the next one may succeed.
    Transient(String),
    /// The session is gone.
    SessionLost(String),
}

impl Server {
    /// Opens the session.
    pub(super) async fn open(target: &Target, watching: &Watching) -> Result<Self, ConnectError> {
        let connection = target.clone().with_application_name(APPLICATION_NAME).connect().await?;
        match Self::prepare(&connection).await {
            Ok((restricted_role, [state, maintenance, waits])) => Ok(Self {
                connection,
                watching: watching.clone(),
                restricted_role,
                state,
                maintenance,
                waits,
            }),
            Err(error) => Err(connection.explain(error).await),
        }
    }

    async fn prepare(connection: &Connection) -> Result<(Option<String>, [Statement; 3]), Error> {
        let client = &connection.client;
        client.batch_execute(SET_UP).await?;
        let rights = client.query_one(include_str!("../sql/watch_rights.sql"), &[]).await?;
        let restricted_role = (!rights.get::<_, bool>("sees_all")).then(|| rights.get("role"));
        let statements = [
            client.prepare(include_str!("../sql/watch_server.sql")).await?,
            client.prepare(include_str!("../sql/watch_maintenance.sql")).await?,
            client.prepare(include_str!("../sql/watch_waits.sql")).await?,
        ];
        Ok((restricted_role, statements))
    }

    /// The role, quoted, if it may not see the activity of others' sessions.
    pub(super) fn restricted_role(&self) -> Option<&str> {
        self.restricted_role.as_deref()
    }

    /// The data directory, if it is on this machine and proved to be this server's.
    pub(super) async fn data_directory(&self) -> Option<PathBuf> {
        machine::is_local(&self.connection).filter(|local| *local)?;
        let server = ServerInfo::ask(&self.connection).await.ok()?;
        machine::data_directory(&self.connection, &server).await
    }

    /// Looks at the server's activity.
    pub(super) async fn look(&self) -> Result<Look, ObserveError> {
        // Both are sent at once.
        let client = &self.connection.client;
        let state = async {
            client.query_one(&self.state, &[&self.watching.clients, &self.watching.of_all_parts]).await
        };
        let maintenance = async { client.query(&self.maintenance, &[]).await };
        let (row, maintenance) = self.answered(futures_util::future::try_join(state, maintenance)).await?;
        let number = |number: i64| u64::try_from(number).unwrap_or_default();
        Ok(Look {
            clock: row.get("clock"),
            last_checkpoint: row.get("last_checkpoint"),
            last_checkpoint_ago: row.get("last_checkpoint_ago"),
            checkpointing: row.get("checkpointing"),
            wal: row.get::<_, Option<i64>>("wal").map(number),
            others: self.restricted_role.is_none().then(|| number(row.get("others"))),
            maintenance: maintenance.iter().map(Maintenance::from).collect(),
        })
    }

    /// Waits of the run's sessions, with the number of sessions for each.
    pub(super) async fn waits(&self) -> Result<Vec<(String, u64)>, ObserveError> {
        let rows =
            self.answered(self.connection.client.query(&self.waits, &[&self.watching.clients])).await?;
        let sessions =
            |row: &tokio_postgres::Row| u64::try_from(row.get::<_, i64>("sessions")).unwrap_or_default();
        Ok(rows.iter().map(|row| (row.get("event"), sessions(row))).collect())
    }

    /// Tables that were vacuumed or analyzed after a time of the server's clock, with the time when each was finished; seconds since
    /// 1970.
    pub(super) async fn maintained(&self, after: f64) -> Result<Vec<(Maintenance, f64)>, ObserveError> {
        let query = include_str!("../sql/watch_maintained.sql");
        let rows = self.answered(self.connection.client.query(query, &[&after])).await?;
        Ok(rows.iter().map(|row| (Maintenance::from(row), row.get("at"))).collect())
    }

    /// Ends the session.
    pub(super) async fn close(self) {
        self.connection.close().await;
    }

    /// The answer of the server, within [`PATIENCE`].
    async fn answered<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, ObserveError> {
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let error = self.connection.explain(error).await;
                let kind = if matches!(error, ConnectError::Query { .. }) {
                    ObserveError::Transient
                } else {
                    ObserveError::SessionLost
                };
                Err(kind(error.to_string()))
            }
            Err(_) => Err(ObserveError::SessionLost(format!("no answer for {} s", PATIENCE.as_secs()))),
        }
    }
}

impl From<&tokio_postgres::Row> for Maintenance {
    fn from(row: &tokio_postgres::Row) -> Self {
        Self { who: row.get("who"), relation: row.get("relation") }
    }
}
