//! Counters of the server, before and after a step.

use std::time::Duration;

use crate::error::BlockioError;
use connect::ConnectError;
use server::Session;

/// The first major version in which a session can be told to report its counters.
const FLUSHES_FROM: u32 = 15;
/// The first major version with pg_stat_io.
const IO_FROM: u32 = 16;
/// The first major version whose pg_stat_io counts bytes.
const IO_BYTES_FROM: u32 = 18;
/// Before 15, a session reports its counters at most every 500 ms, and a reader may get values that
/// are 500 ms old (`PGSTAT_STAT_INTERVAL`, pgstat.c).
const COLLECTOR_INTERVAL: Duration = Duration::from_millis(600);

/// Counters since the server's statistics were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    database: Option<Database>,
    io: Option<Io>,
    wal: Option<u64>,
}

/// Counters of the database, for all sessions together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Database {
    /// Blocks found in shared_buffers.
    pub(crate) hits: u64,
    /// Blocks not found there.
    pub(crate) reads: u64,
    /// Seconds waited for reads, all processes together.
    pub(crate) read_time: f64,
    /// Seconds waited for writes.
    pub(crate) write_time: f64,
}

/// pg_stat_io of the whole server: I/O through shared_buffers, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes read.
    pub reads: u64,
    /// Bytes written to existing blocks.
    pub writes: u64,
    /// Bytes written as new blocks.
    pub extends: u64,
    /// Number of fsync calls.
    pub fsyncs: u64,
}

/// Resources that a step used, where the server reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) database: Option<Database>,
    pub(crate) io: Option<Io>,
    /// Bytes of WAL.
    pub(crate) wal: Option<u64>,
}

/// The queries for counters of this major version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    pub(crate) major: u32,
}

impl Counting {
    /// Whether counters can be read without waiting.
    pub(crate) fn is_prompt(self) -> bool {
        self.major >= FLUSHES_FROM
    }

    /// Makes the session report its counters. Takes more than a second before PostgreSQL 15.
    pub(crate) async fn flush(self, session: &Session) -> Result<(), ConnectError> {
        if self.is_prompt() {
            return session.run("SELECT pg_stat_force_next_flush()").await;
        }
        tokio::time::sleep(COLLECTOR_INTERVAL).await;
        // Counters go out when a statement ends.
        session.run("SELECT 1").await?;
        tokio::time::sleep(COLLECTOR_INTERVAL).await;
        Ok(())
    }

    /// The counters at this moment. Counters that a server does not tell (some managed ones) are
    /// none.
    ///
    /// # Errors
    /// If the connection is lost.
    pub(crate) async fn now(self, lead: &Session) -> Result<Counters, BlockioError> {
        let wal = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS wal";
        let wal = told(lead.row(wal, &[]).await)?;
        let database = told(lead.row(include_str!("../sql/database.sql"), &[]).await)?;
        let io = match self.major {
            ..IO_FROM => None,
            IO_FROM..IO_BYTES_FROM => told(lead.row(include_str!("../sql/io_16.sql"), &[]).await)?,
            _ => told(lead.row(include_str!("../sql/io_18.sql"), &[]).await)?,
        };
        let number = |row: &tokio_postgres::Row, column: &str| {
            u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
        };
        let seconds = |row: &tokio_postgres::Row, column: &str| row.get::<_, f64>(column) / 1e3;
        Ok(Counters {
            wal: wal.map(|row| number(&row, "wal")),
            database: database.map(|row| Database {
                hits: number(&row, "hits"),
                reads: number(&row, "reads"),
                read_time: seconds(&row, "read_time"),
                write_time: seconds(&row, "write_time"),
            }),
            io: io.map(|row| Io {
                reads: number(&row, "reads"),
                writes: number(&row, "writes"),
                extends: number(&row, "extends"),
                fsyncs: number(&row, "fsyncs"),
            }),
        })
    }
}

impl Counters {
    /// The differences to `earlier`. Statistics that were reset in between count as 0.
    pub(crate) fn since(&self, earlier: &Self) -> Used {
        Used {
            database: self.database.zip(earlier.database).map(|(now, then)| Database {
                hits: now.hits.saturating_sub(then.hits),
                reads: now.reads.saturating_sub(then.reads),
                read_time: (now.read_time - then.read_time).max(0.0),
                write_time: (now.write_time - then.write_time).max(0.0),
            }),
            io: self.io.zip(earlier.io).map(|(now, then)| Io {
                reads: now.reads.saturating_sub(then.reads),
                writes: now.writes.saturating_sub(then.writes),
                extends: now.extends.saturating_sub(then.extends),
                fsyncs: now.fsyncs.saturating_sub(then.fsyncs),
            }),
            wal: self.wal.zip(earlier.wal).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// An answer; none if the server refuses to give it.
fn told<T>(answer: Result<T, ConnectError>) -> Result<Option<T>, BlockioError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ConnectError::Query { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
