//! The database that is backed up: facts, the snapshot, and the content of its tables. Only read.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::path::PathBuf;

use connect::{ConnectError, ResolvedAddress, Target};
use server::Session;
use server::quote::{qualified, shown};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use crate::error::BackupError;
use crate::run::large::LargeObjects;
use crate::run::locked::locked;
use crate::run::sequences::{self, Sequence};
use crate::run::tablespaces::{self, Tablespace};
use crate::run::{hidden, incremental};
use crate::way::Way;

/// Bytes of a new server, about: its databases without tables of the user's, and a segment of WAL.
pub(super) const CLUSTER: u64 = 40 << 20;

/// Tables that one statement locks.
const LOCKED_AT_ONCE: usize = 500;
/// Snapshots that are tried while other sessions drop tables.
const ATTEMPTS: u32 = 10;
/// As long as pg_dump waits.
pub(super) const PATIENCE: &str = "SET lock_timeout = '60s'";

/// Facts of the database and its server, from the catalogs.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) database: String,
    pub(crate) major: u16,
    pub(crate) encoding: String,
    pub(crate) collate: String,
    pub(crate) ctype: String,
    /// Provider of the locale, `icu` or `builtin`, and its locale; none for that of the C library.
    pub(crate) provided: Option<(String, String)>,
    /// `lc_monetary`, in which dumps write values of type money.
    pub(crate) monetary: String,
    pub(crate) bytes: u64,
    pub(crate) server_bytes: u64,
    pub(crate) prepared: String,
    /// A role that may connect to a restored server and read all of it.
    pub(crate) superuser: Option<String>,
    pub(crate) roles: Vec<String>,
    /// Those of them that are superusers, or own objects that only superusers can own here: managed servers let other roles own these, too.
    pub(crate) superusers: Vec<String>,
    /// A role, and the member that has its rights.
    pub(crate) memberships: Vec<(String, String)>,
    pub(crate) extensions: Vec<String>,
    /// The role of the connection.
    role: String,
    may_replicate: bool,
    senders: i32,
    wal_level: String,
    /// Why the server refuses replication connections, if that was tried.
    pub(crate) refused_replication: Option<String>,
    pub(crate) tablespaces: Vec<Tablespace>,
    /// Why the role can make no dump, with the remedy.
    pub(crate) no_dump: Option<String>,
    /// Whether the server summarizes WAL, for incremental backups; false before version 17.
    pub(crate) summarizes_wal: bool,
    /// A note about event triggers at login, if they run for pgrig's sessions.
    pub(crate) logins: Option<String>,
    /// The server's data directory, if it is on this machine.
    pub(crate) data: Option<PathBuf>,
}

impl Facts {
    pub(crate) async fn of(session: &Session, version_num: u32) -> Result<Self, ConnectError> {
        let row = session.row(include_str!("../sql/source.sql"), &[]).await?;
        let bytes = |name: &str| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
        let mut memberships = Vec::new();
        for row in session.rows(include_str!("../sql/memberships.sql"), &[]).await? {
            memberships.push((row.get("granted"), row.get("member")));
        }
        let no_dump = hidden::no_dump(session, row.get("role")).await?;
        let tablespaces = tablespaces::read(session).await?;
        Ok(Self {
            database: row.get("database"),
            major: u16::try_from(version_num / 10_000).unwrap_or_default(),
            encoding: row.get("encoding"),
            collate: row.get("collate"),
            ctype: row.get("ctype"),
            provided: row.get::<_, Option<String>>("provider").zip(row.get("locale")),
            monetary: row.get("monetary"),
            bytes: bytes("bytes"),
            server_bytes: bytes("server_bytes").max(bytes("bytes")),
            prepared: row.get("prepared"),
            superuser: row.get("superuser"),
            roles: row.get("roles"),
            superusers: row.get("superusers"),
            memberships,
            extensions: row.get("extensions"),
            role: row.get("role"),
            may_replicate: row.get::<_, Option<bool>>("may_replicate").unwrap_or(false),
            senders: row.get("senders"),
            wal_level: row.get("wal_level"),
            refused_replication: None,
            tablespaces,
            no_dump,
            summarizes_wal: row.get("summarizes_wal"),
            logins: None,
            data: None,
        })
    }

    /// Those of a server that pgrig is going to start, and of a database of so many bytes there.
    pub(crate) fn of_scratch(major: u16, database: &str, bytes: u64) -> Self {
        Self {
            database: database.to_owned(),
            major,
            encoding: "UTF8".to_owned(),
            collate: "C".to_owned(),
            ctype: "C".to_owned(),
            provided: None,
            monetary: "C".to_owned(),
            bytes,
            server_bytes: bytes + CLUSTER,
            prepared: "0".to_owned(),
            superuser: Some("postgres".to_owned()),
            roles: Vec::new(),
            superusers: Vec::new(),
            memberships: Vec::new(),
            extensions: Vec::new(),
            role: "postgres".to_owned(),
            may_replicate: true,
            senders: 10,
            wal_level: "replica".to_owned(),
            refused_replication: None,
            tablespaces: Vec::new(),
            no_dump: None,
            summarizes_wal: major >= incremental::FIRST,
            logins: None,
            // Its place is known once it is started.
            data: Some(PathBuf::new()),
        }
    }

    /// Bytes that a way backs up: those of the server's databases, or those of the one.
    pub(crate) fn bytes_of(&self, way: &Way) -> u64 {
        if way.is_base() { self.server_bytes } else { self.bytes }
    }

    /// Why pgrig cannot start a copy of the server's files.
    pub(crate) fn no_restore(&self) -> Option<String> {
        self.superuser.is_none().then(|| "the server has no superuser that may log in".to_owned())
    }

    /// Why no base backup can be made, with the remedy.
    pub(crate) fn no_base_backup(&self) -> Option<String> {
        if !self.may_replicate {
            let role = shown(&self.role);
            return Some(format!("role {role} may not replicate: run ALTER ROLE {role} REPLICATION"));
        }
        if self.wal_level == "minimal" || self.senders < 2 {
            return Some(format!(
                "the server has wal_level = {} and max_wal_senders = {}: a base backup needs wal_level = replica and two senders (pgrig's \
                 own server has them with --profile stock; if it runs, run pgrig server stop first)",
                self.wal_level, self.senders
            ));
        }
        if let Some(why) = &self.refused_replication {
            return Some(format!(
                "the server refuses replication connections ({why}): allow them in pg_hba.conf by a line for the database \"replication\""
            ));
        }
        tablespaces::hindrance(&self.tablespaces).or_else(|| self.no_restore())
    }
}

/// The snapshot that is dumped, and the content that it sees.
pub(crate) struct Source {
    /// Holds the snapshot.
    session: Session,
    /// The process of that session.
    pub(crate) pid: i32,
    /// Its name, for pg_dump.
    pub(crate) snapshot: String,
    /// The transactions that it sees.
    transactions: String,
    pub(crate) content: Content,
}

impl Source {
    /// Takes a snapshot and reads all tables in it.
    ///
    /// # Errors
    /// [`BackupError::Locked`] if one of them stays locked; [`BackupError::Changing`] if one is gone in each attempt.
    pub(crate) async fn read(target: &Target) -> Result<Self, BackupError> {
        let mut attempt = 1;
        loop {
            match Box::pin(Self::read_all(target)).await {
                Ok(source) => return Ok(source),
                Err(error) if error.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    return Err(Box::pin(locked(target)).await?);
                }
                // The snapshot sees a table that was dropped before it was locked: a later one does not.
                Err(error) if is_gone(&error) && attempt < ATTEMPTS => attempt += 1,
                Err(error) if is_gone(&error) => {
                    let (database, error) = (target.dbname().to_owned(), error.to_string());
                    return Err(BackupError::Changing { database, error });
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn read_all(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        session.run(include_str!("../sql/session.sql")).await?;
        session.run(PATIENCE).await?;
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let query = "SELECT pg_export_snapshot() AS name, pg_current_snapshot()::text AS transactions";
        let row = session.row(query, &[]).await?;
        let (snapshot, transactions) = (row.get("name"), row.get("transactions"));
        lock(&session).await?;
        let pid = session.pid().await?;
        let content = Content::read(&session).await?;
        Ok(Self { session, pid, snapshot, transactions, content })
    }

    /// Whether no transaction has committed anything since the snapshot, not even one that waits for a synchronous standby.
    pub(crate) async fn is_unchanged(&self, target: &Target) -> Result<bool, ConnectError> {
        let session = Session::open(target).await?;
        // First: if the wait ends between the two queries, the snapshot is another one.
        let waits = session.row(include_str!("../sql/waiting_commit.sql"), &[]).await?.get("may_wait");
        let query = "SELECT pg_current_snapshot()::text AS now, pg_is_in_recovery() AS in_recovery";
        let row = session.row(query, &[]).await?;
        session.close().await;
        Ok(has_none_ended((&self.transactions, row.get("now")), row.get("in_recovery"), waits))
    }

    /// Gives up the snapshot, so that vacuum can remove rows that it sees. No dump can be made of it then.
    pub(crate) async fn release(&self) -> Result<(), ConnectError> {
        self.session.run("COMMIT").await
    }

    /// Why no dump can be made of it any more, if its session has ended.
    pub(crate) async fn lost(&self) -> Option<String> {
        let error = self.session.run("SELECT").await.err()?;
        Some(format!(
            "the session that holds the snapshot of all dumps has ended ({error}): run pgrig again once the server is up. On a standby, first set \
             max_standby_streaming_delay = -1 or hot_standby_feedback = on"
        ))
    }

    /// The address of the server that it was read from.
    pub(crate) fn address(&self) -> &ResolvedAddress {
        self.session.connection.address()
    }

    pub(crate) async fn close(self) {
        self.session.close().await;
    }

    /// The content alone, without the snapshot and its locks.
    pub(crate) async fn into_content(self) -> Content {
        self.session.close().await;
        self.content
    }
}

/// Locks all tables that are read, so that none is dropped before its turn.
async fn lock(session: &Session) -> Result<(), ConnectError> {
    let rows = session.rows(include_str!("../sql/tables.sql"), &[]).await?;
    let are_read = rows.iter().filter(|row| row.get("permitted") && row.get("readable"));
    let names: Vec<String> =
        are_read.map(|row| format!("ONLY {}", qualified(row.get("schema"), row.get("name")))).collect();
    for part in names.chunks(LOCKED_AT_ONCE) {
        session.run(&format!("LOCK TABLE {} IN ACCESS SHARE MODE", part.join(", "))).await?;
    }
    Ok(())
}

/// Whether a table or sequence is not there any more, or has another name.
fn is_gone(error: &ConnectError) -> bool {
    let codes = [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN, SqlState::INVALID_SCHEMA_NAME];
    error.sqlstate().is_some_and(|code| codes.contains(code))
}

/// Whether no transaction has ended between two snapshots, `xmin:xmax:running`. The first that ends with a number from `xmax` on makes
/// `xmax` greater, and others are in the list until they end (procarray.c: `GetSnapshotData`): prepared transactions, and those that
/// somebody keeps open. The list of a standby is empty, so there none may run. Nor may one run while a commit waits (`waits`): that one is in
/// the list, too.
fn has_none_ended((before, now): (&str, &str), in_recovery: bool, waits: bool) -> bool {
    // The newest transaction that waits is not below the end of the snapshot, so it is not listed.
    before == now && !waits && (is_quiet(now) || !in_recovery)
}

/// Whether no transaction runs in this snapshot, `xmin:xmax:running`.
fn is_quiet(snapshot: &str) -> bool {
    let mut parts = snapshot.split(':');
    let ends = (parts.next(), parts.next());
    ends.0.is_some() && ends.0 == ends.1
}

/// The content of all tables, sequences and large objects: rows, values and hashes.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) tables: Vec<Table>,
    /// With the values of the time at which they were read: no snapshot holds these.
    pub(crate) sequences: Vec<Sequence>,
    pub(crate) large: LargeObjects,
    /// Valid constraints and indexes, by name, without the foreign keys that partitions have from their table.
    pub(crate) valid: BTreeSet<String>,
}

/// A table's content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) is_logged: bool,
    /// Whether its rows were read: a standby cannot read unlogged tables.
    pub(crate) is_read: bool,
    /// Whether the role may not read all of them.
    pub(crate) is_hidden: bool,
    pub(crate) rows: i64,
    pub(crate) hash: Hash,
    /// The topmost table of which it is a partition by hash, over whose partitions a restore may distribute the rows anew.
    pub(crate) family: Option<String>,
}

/// Sums of two hashes of each row: the order does not matter, but each row counts as often as it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hash(pub(crate) i128, pub(crate) i128);

impl Hash {
    /// That of a row of [`rows_of`].
    fn of(row: &Row) -> Self {
        let sum =
            |name: &str| -> i128 { row.get::<_, &str>(name).parse().expect("a sum of 64-bit integers") };
        Self(sum("first"), sum("second"))
    }
}

impl AddAssign for Hash {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
        self.1 += other.1;
    }
}

impl Content {
    /// Reads all sequences, all rows of all tables, and all large objects. The session has the settings of `session.sql`.
    pub(crate) async fn read(session: &Session) -> Result<Self, ConnectError> {
        // First, because one that is dropped meanwhile cannot be read any more.
        let sequences = Sequence::read(session).await?;
        Self::with(session, sequences).await
    }

    /// The same, after the sequences were read.
    pub(super) async fn with(session: &Session, sequences: Vec<Sequence>) -> Result<Self, ConnectError> {
        let mut tables = Vec::new();
        for row in session.rows(include_str!("../sql/tables.sql"), &[]).await? {
            let name = qualified(row.get("schema"), row.get("name"));
            let (is_logged, is_hidden) = (row.get("logged"), !row.get::<_, bool>("permitted"));
            let is_read = !is_hidden && row.get("readable");
            let family =
                row.get::<_, Option<&str>>("family_schema").zip(row.get::<_, Option<&str>>("family"));
            let family = family.map(|(schema, name)| qualified(schema, name));
            let (mut rows, mut hash) = (0, Hash::default());
            if is_read {
                let found = session.row(&rows_of(&name, row.get("columns")), &[]).await?;
                (rows, hash) = (found.get("rows"), Hash::of(&found));
            }
            tables.push(Table { name, is_logged, is_read, is_hidden, rows, hash, family });
        }
        let large = LargeObjects::read(session).await?;
        let valid = session.rows(include_str!("../sql/constraints.sql"), &[]).await?;
        let valid = valid.iter().filter(|row| row.get("dumped")).map(|row| row.get("name")).collect();
        Ok(Self { tables, sequences, large, valid })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.tables.iter().map(|table| u64::try_from(table.rows).unwrap_or_default()).sum()
    }

    /// Rows of the largest table, in rows.
    pub(crate) fn most_rows(&self) -> u64 {
        self.tables
            .iter()
            .map(|table| u64::try_from(table.rows).unwrap_or_default())
            .max()
            .unwrap_or_default()
    }

    /// Tells of tables, sequences and large objects that are not compared, because the role may not read them.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        hidden::note(&self.tables)
            .into_iter()
            .chain(sequences::note(&self.sequences))
            .chain(self.large.note())
    }

    /// The number of valid constraints.
    pub(crate) fn constraints(&self) -> u64 {
        self.valid.iter().filter(|name| name.starts_with("constraint ")).count() as u64
    }
}

/// The query for the rows of a table and their hash. OFFSET keeps the planner from making the text of each row twice, once for each sum; this
/// constant does not keep it from using parallel workers (planner.c: `limit_needed`).
fn rows_of(table: &str, columns: &str) -> String {
    format!(
        "SELECT count(*) AS rows, coalesce(sum(hashtextextended(r, 0)), 0)::text AS first, \
                coalesce(sum(hashtextextended(r, 4711)), 0)::text AS second \
         FROM (SELECT ROW({columns})::text COLLATE \"C\" AS r FROM ONLY {table} AS t OFFSET bigint '0') AS rows"
    )
}

#[cfg(test)]
mod tests {
    use testkit::{RELEASES, block_on, shared};

    use super::*;

    /// The function counts its calls.
    const COUNTED: &str = "
        CREATE TABLE public.t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 20000) i;
        CREATE SEQUENCE public.calls;
        CREATE FUNCTION public.counted(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
            'BEGIN PERFORM nextval(''public.calls''); RETURN i; END'";
    /// Workers cost nothing.
    const WORKERS: &str = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; \
                           SET max_parallel_workers_per_gather = 2";

    #[test]
    fn the_text_of_a_row_is_made_once_also_by_parallel_workers() {
        for major in RELEASES {
            block_on(async {
                let database = shared(major).database().await;
                let session = Session::open(&database.target).await.unwrap();
                session.run(COUNTED).await.unwrap();
                session.row(&rows_of("public.t", "public.counted(t.i)"), &[]).await.unwrap();
                let query = "SELECT last_value FROM public.calls";
                let calls: i64 = session.row(query, &[]).await.unwrap().get("last_value");
                assert_eq!(calls, 20_000, "{major}");
                session.run(WORKERS).await.unwrap();
                let explain = format!("EXPLAIN {}", rows_of("public.t", "t.i, t.v"));
                let plan = session.rows(&explain, &[]).await.unwrap();
                let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
                assert!(plan.iter().any(|line| line.contains("Parallel Seq Scan")), "{major}: {plan:#?}");
            });
        }
    }

    #[test]
    fn a_snapshot_is_quiet_if_nothing_runs_in_it() {
        assert!(is_quiet("745:745:"));
        assert!(!is_quiet("745:747:745,746") && !is_quiet(""));
    }

    #[test]
    fn a_transaction_that_stays_open_changes_nothing() {
        assert!(has_none_ended(("745:747:745,746", "745:747:745,746"), false, false));
        assert!(!has_none_ended(("745:747:745,746", "745:747:745"), false, false));
        assert!(!has_none_ended(("745:747:745", "745:748:745"), false, false));
        assert!(!has_none_ended(("745:747:", "745:747:"), true, false));
        assert!(has_none_ended(("747:747:", "747:747:"), true, false));
    }

    #[test]
    fn a_transaction_that_stays_open_may_be_a_commit_that_waits() {
        assert!(!has_none_ended(("745:747:745,746", "745:747:745,746"), false, true));
        assert!(!has_none_ended(("747:747:", "747:747:"), false, true));
        assert!(has_none_ended(("747:747:", "747:747:"), false, false));
    }
}
