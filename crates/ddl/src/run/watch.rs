//! The session beside the migration's, which reads its locks and state.

use std::collections::BTreeMap;

use connect::ConnectError;
use server::Session;

use crate::find::{Held, LockMode, Read};
use crate::run::files::File;

/// See the module.
pub(crate) struct Watcher {
    session: Session,
    /// The migration's server process.
    pid: i32,
}

/// Locks at one moment.
pub(crate) struct Locks {
    /// Locks on relations that it has or waits for.
    pub(crate) held: Held,
    /// Cause of its wait, if it waits.
    pub(crate) waits: Option<WaitsFor>,
}

/// Cause of a session's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// A lock that another transaction has.
    Lock,
    /// The end of another transaction.
    Transaction,
}

impl Watcher {
    pub(crate) fn new(session: Session, pid: i32) -> Self {
        Self { session, pid }
    }

    /// The locks of the migration's session. A lock that it waits for is one that it takes.
    pub(crate) async fn locks(&self) -> Result<Locks, ConnectError> {
        let rows = self.session.rows(include_str!("../sql/locks.sql"), &[&self.pid]).await?;
        let mut locks = Locks { held: Held::default(), waits: None };
        for row in &rows {
            if !row.get::<_, bool>("granted") {
                let is_lock = row.get::<_, &str>("locktype") == "relation";
                locks.waits = Some(if is_lock { WaitsFor::Lock } else { WaitsFor::Transaction });
            }
            let mode = LockMode::of_pg_locks(row.get("mode"));
            if let (Some(relation), Some(mode)) = (row.get::<_, Option<u32>>("relation"), mode) {
                locks.held.add(relation, mode);
            }
        }
        Ok(locks)
    }

    /// Whether the migration's session is in a transaction that has not failed. Each has a lock on its own virtual ID (xact.c: `StartTransaction`);
    /// `pg_stat_activity` would tell nothing under `track_activities = off`.
    pub(crate) async fn is_in_transaction(&self) -> Result<bool, ConnectError> {
        let query = "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE pid = $1 AND locktype = 'virtualxid' \
                     AND mode = 'ExclusiveLock' AND granted) AS is_in";
        Ok(self.session.row(query, &[&self.pid]).await?.get("is_in"))
    }

    /// The position up to which the server has inserted WAL, bytes.
    pub(crate) async fn wal(&self) -> Result<i64, ConnectError> {
        let query =
            "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::int8 AS at";
        Ok(self.session.row(query, &[]).await?.get("at"))
    }

    /// VACUUMs and ANALYZEs of each table and TOAST table that the server has counted, by OID.
    pub(crate) async fn vacuums(&self) -> Result<Vec<(u32, i64)>, ConnectError> {
        let query = "SELECT oid, pg_catalog.pg_stat_get_vacuum_count(oid) + pg_catalog.pg_stat_get_analyze_count(oid) AS number \
                     FROM pg_catalog.pg_class WHERE relkind IN ('r', 'm', 't') AND oid >= 16384";
        let rows = self.session.rows(query, &[]).await?;
        Ok(rows.iter().map(|row| (row.get("oid"), row.get("number"))).collect())
    }

    /// The files of the tables.
    pub(crate) async fn files(&self) -> Result<Vec<File>, ConnectError> {
        let rows = self.session.rows(include_str!("../sql/files.sql"), &[]).await?;
        let file = |row: &tokio_postgres::Row| File {
            number: row.get("file"),
            table: row.get("owner"),
            bytes: row.get("bytes"),
        };
        Ok(rows.iter().map(file).collect())
    }

    /// The server's version, as `server_version_num` has it.
    pub(crate) async fn version(&self) -> Result<u32, ConnectError> {
        let query = "SELECT pg_catalog.current_setting('server_version_num')::int8 AS number";
        let number: i64 = self.session.row(query, &[]).await?.get("number");
        Ok(u32::try_from(number).unwrap_or_default())
    }

    /// Temporary files of the database that the server has counted.
    pub(crate) async fn temporary_files(&self) -> Result<i64, ConnectError> {
        let query = "SELECT pg_catalog.pg_stat_get_db_temp_files(oid) AS number FROM pg_catalog.pg_database \
                     WHERE datname = pg_catalog.current_database()";
        Ok(self.session.row(query, &[]).await?.get("number"))
    }

    /// Scans of `pg_language` that the server has counted.
    pub(crate) async fn marks(&self) -> Result<i64, ConnectError> {
        let query =
            "SELECT pg_catalog.pg_stat_get_numscans('pg_catalog.pg_language'::pg_catalog.regclass) AS number";
        Ok(self.session.row(query, &[]).await?.get("number"))
    }

    /// The server's counters of reads and writes by OID.
    pub(crate) async fn counters(&self) -> Result<BTreeMap<u32, Read>, ConnectError> {
        let rows = self.session.rows(include_str!("../sql/counters.sql"), &[]).await?;
        Ok(rows.iter().map(|row| (row.get("oid"), read_of(row))).collect())
    }

    pub(crate) async fn close(self) {
        self.session.close().await;
    }
}

/// The counters in a row.
pub(crate) fn read_of(row: &tokio_postgres::Row) -> Read {
    Read {
        scans: row.get("scans"),
        returned: row.get("returned"),
        blocks: row.get("blocks"),
        inserted: row.get("inserted"),
        updated: row.get("updated"),
        deleted: row.get("deleted"),
    }
}
