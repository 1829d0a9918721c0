//! The steps, one after the other, as the plan says.

use std::convert::Infallible;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rowgen::Table;

use super::Observer;
use super::copy::Copy;
use super::ddl;
use super::outcome::Outcome;
use super::plan::{Method, Plan};
use super::predict::{Sizes, tables};
use super::remains::{Progress, Remains};
use super::request::InitStep;
use super::session::{Session, Sessions};
use crate::connect::{ConnectError, Target};
use crate::quote::{identifier, qualified};

/// How often the server is asked how far a vacuum or an index build has come.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// How long a server that may be gone is asked what is there.
const REMAINS_DEADLINE: Duration = Duration::from_secs(10);
/// Between forced checkpoints: enough comes in meanwhile to make the next one worth its fsync.
const WRITE_BEHIND_PAUSE: Duration = Duration::from_millis(20);

/// A fill that is being carried out.
pub(super) struct Filler<'a> {
    plan: &'a Plan,
    tables: [Table; 4],
    sessions: Sessions<'a>,
    progress: Progress,
    observer: &'a dyn Observer,
    own_checkpoints: AtomicU64,
}

impl<'a> Filler<'a> {
    pub(super) fn new(target: &'a Target, plan: &'a Plan, observer: &'a dyn Observer) -> Self {
        Self {
            plan,
            tables: tables(plan.accounts, plan.scale),
            sessions: Sessions::new(target),
            progress: Progress::new(),
            observer,
            own_checkpoints: AtomicU64::new(0),
        }
    }

    /// The step that is being done, or failed.
    pub(super) fn step(&self) -> InitStep {
        self.progress.step()
    }

    /// Cancels what runs.
    pub(super) async fn cancel(&self) {
        self.sessions.cancel_all().await;
    }

    /// All steps of the plan.
    pub(super) async fn execute(&self) -> Result<Outcome, ConnectError> {
        let session = self.open_loader().await?;
        let mut clock = Clock { filler: self, steps: Vec::new() };
        let wal_before = wal_position(&session).await?;
        if self.plan.includes(InitStep::Drop) {
            let started = clock.start(InitStep::Drop);
            if !self.plan.dropped.is_empty() {
                session.run(&ddl::drop_tables(self.plan)).await?;
                self.progress.commit_drop();
            }
            clock.finish(InitStep::Drop, started);
        }
        let cpu_before = cpu_time();
        let accounts = match self.plan.method {
            Method::FrozenCopy { chunk_rows } => self.load_frozen(&session, &mut clock, chunk_rows).await?,
            Method::ParallelCopy { streams, chunk_rows } => {
                self.load_parallel(&session, &mut clock, streams, chunk_rows).await?
            }
        };
        let client_cpu = cpu_time().saturating_sub(cpu_before);
        if let Some(options) = self.plan.vacuum {
            let started = clock.start(InitStep::Vacuum);
            self.vacuum(&session, options).await?;
            clock.finish(InitStep::Vacuum, started);
        }
        if self.plan.includes(InitStep::PrimaryKeys) {
            let started = clock.start(InitStep::PrimaryKeys);
            self.primary_keys(&session).await?;
            clock.finish(InitStep::PrimaryKeys, started);
        }
        let wal = wal_position(&session).await?.saturating_sub(wal_before);
        let sizes = self.sizes(&session).await?;
        let own_checkpoints = self.own_checkpoints.load(Ordering::Relaxed);
        Ok(Outcome { steps: clock.steps, accounts, sizes, wal, client_cpu, own_checkpoints })
    }

    /// A session that loads. Left to itself the kernel writes nothing until a tenth of the memory is
    /// dirty, and then stops whoever writes.
    async fn open_loader(&self) -> Result<Session, ConnectError> {
        let session = self.sessions.open().await?;
        if self.plan.flush_early {
            session.run("SET backend_flush_after = '2MB'").await?;
        }
        Ok(session)
    }

    /// Everything in the transaction that creates the tables, so that rows can be frozen and, with
    /// wal_level = minimal, need no WAL.
    async fn load_frozen(
        &self,
        session: &Session,
        clock: &mut Clock<'_, '_>,
        chunk_rows: u64,
    ) -> Result<u64, ConnectError> {
        let started = clock.start(InitStep::Create);
        session.run("BEGIN").await?;
        self.create(session).await?;
        clock.finish(InitStep::Create, started);

        let started = clock.start(InitStep::Generate);
        let [small @ .., accounts] = &self.tables;
        for table in small.iter().filter(|table| table.rows > 0) {
            let copy = Copy::new(&self.plan.schema, table, self.plan.format, true);
            self.copy(session, &copy, table, 0..table.rows).await?;
        }
        let copy = Copy::new(&self.plan.schema, accounts, self.plan.format, true);
        let load = async {
            let mut loaded = 0;
            let mut start = 0;
            while start < accounts.rows {
                let end = accounts.rows.min(start + chunk_rows);
                loaded += self.copy(session, &copy, accounts, start..end).await?;
                start = end;
            }
            Ok::<u64, ConnectError>(loaded)
        };
        let loaded = if self.plan.write_behind {
            tokio::select! {
                loaded = load => loaded?,
                never = self.write_behind() => match never {},
            }
        } else {
            load.await?
        };
        self.drop_defaults(session).await?;
        session.run("COMMIT").await?;
        self.progress.commit_tables();
        self.progress.commit_rows(loaded);
        clock.finish(InitStep::Generate, started);
        Ok(loaded)
    }

    /// Keeps the checkpointer writing. A courtesy too: without it the commit writes all.
    async fn write_behind(&self) -> Infallible {
        if let Ok(session) = self.sessions.open().await {
            while session.run("CHECKPOINT").await.is_ok() {
                self.own_checkpoints.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(WRITE_BEHIND_PAUSE).await;
            }
        }
        std::future::pending().await
    }

    /// Tables first; then each stream takes chunk after chunk, a transaction each.
    async fn load_parallel(
        &self,
        session: &Session,
        clock: &mut Clock<'_, '_>,
        streams: NonZeroU16,
        chunk_rows: u64,
    ) -> Result<u64, ConnectError> {
        let started = clock.start(InitStep::Create);
        session.run("BEGIN").await?;
        self.create(session).await?;
        session.run("COMMIT").await?;
        self.progress.commit_tables();
        clock.finish(InitStep::Create, started);

        let started = clock.start(InitStep::Generate);
        let [small @ .., accounts] = &self.tables;
        for table in small.iter().filter(|table| table.rows > 0) {
            let copy = Copy::new(&self.plan.schema, table, self.plan.format, false);
            self.copy(session, &copy, table, 0..table.rows).await?;
        }
        let copy = Copy::new(&self.plan.schema, accounts, self.plan.format, false);
        let next = AtomicU64::new(0);
        let stream = || async {
            let session = self.open_loader().await?;
            let mut loaded = 0;
            loop {
                let start = next.fetch_add(chunk_rows, Ordering::Relaxed);
                if start >= accounts.rows {
                    return Ok::<u64, ConnectError>(loaded);
                }
                let chunk = start..accounts.rows.min(start + chunk_rows);
                let rows = self.copy(&session, &copy, accounts, chunk).await?;
                self.progress.commit_rows(rows);
                loaded += rows;
            }
        };
        let loaded = try_join_all((0..streams.get()).map(|_| stream())).await?;
        self.drop_defaults(session).await?;
        clock.finish(InitStep::Generate, started);
        Ok(loaded.iter().sum())
    }

    async fn create(&self, session: &Session) -> Result<(), ConnectError> {
        if self.plan.create_schema {
            session.run(&format!("CREATE SCHEMA {}", identifier(&self.plan.schema))).await?;
        }
        for table in &self.tables {
            session.run(&ddl::create_table(self.plan, table)).await?;
        }
        Ok(())
    }

    async fn copy(
        &self,
        session: &Session,
        copy: &Copy,
        table: &Table,
        rows: std::ops::Range<u64>,
    ) -> Result<u64, ConnectError> {
        let bulk = table.name == self.tables[3].name;
        let sent = |rows| {
            if bulk {
                self.observer.rows_sent(rows);
            }
        };
        match copy.load(&session.connection, rows, &sent).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(session.connection.explain(error).await),
        }
    }

    async fn drop_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        for statement in self.tables.iter().filter_map(|table| ddl::drop_defaults(self.plan, table)) {
            session.run(&statement).await?;
        }
        Ok(())
    }

    async fn vacuum(&self, session: &Session, options: &str) -> Result<(), ConnectError> {
        for table in &self.tables {
            let name = qualified(&self.plan.schema, &table.name);
            self.watched(session, &format!("VACUUM ({options}) {name}")).await?;
        }
        Ok(())
    }

    async fn primary_keys(&self, session: &Session) -> Result<(), ConnectError> {
        if let Some(build) = self.plan.index_build {
            let kilobytes = build.maintenance_work_mem / 1024;
            session.run(&format!("SET maintenance_work_mem = '{kilobytes}kB'")).await?;
            if let Some(workers) = build.parallel_workers {
                session.run(&format!("SET max_parallel_maintenance_workers = {workers}")).await?;
            }
        }
        for statement in self.tables.iter().filter_map(|table| ddl::add_primary_key(self.plan, table)) {
            self.watched(session, &statement).await?;
        }
        Ok(())
    }

    /// Runs a long statement while another session asks how far it is. That is a courtesy: if it
    /// fails (no connection left, say), only the display is poorer.
    async fn watched(&self, session: &Session, sql: &str) -> Result<(), ConnectError> {
        let pid = session.pid().await?;
        tokio::select! {
            result = session.run(sql) => result,
            never = self.report_progress(pid) => match never {},
        }
    }

    async fn report_progress(&self, pid: i32) -> Infallible {
        let mut every = tokio::time::interval(PROGRESS_INTERVAL);
        every.tick().await;
        every.tick().await;
        if let Ok(watcher) = self.sessions.open().await {
            loop {
                let query = include_str!("../sql/step_progress.sql");
                let Ok(row) = watcher.connection.client.query_opt(query, &[&pid]).await else { break };
                if let Some(fraction) = row.and_then(|row| row.get("fraction")) {
                    self.observer.fraction_done(fraction);
                }
                every.tick().await;
            }
        }
        std::future::pending().await
    }

    async fn sizes(&self, session: &Session) -> Result<Sizes, ConnectError> {
        let names: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        let query = include_str!("../sql/sizes.sql");
        match session.connection.client.query_one(query, &[&self.plan.schema, &names]).await {
            Ok(row) => {
                let bytes = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
                Ok(Sizes { heap: bytes("heap"), index: bytes("index") })
            }
            Err(error) => Err(session.connection.explain(error).await),
        }
    }

    /// What stands in the database now. A commit may have been on its way when the fill ended, so
    /// the server is asked where it can be.
    pub(super) async fn remains(&self) -> Remains {
        let plan = self.plan;
        let told = self.progress.remains(plan);
        let in_doubt = matches!(told, Remains::Nothing { .. }) && self.step() == InitStep::Generate;
        let exist = tokio::time::timeout(REMAINS_DEADLINE, self.accounts_exist());
        if in_doubt && exist.await.unwrap_or(false) {
            self.progress.commit_tables();
            self.progress.commit_rows(plan.accounts);
            return self.progress.remains(plan);
        }
        told
    }

    async fn accounts_exist(&self) -> bool {
        let Ok(session) = self.sessions.open().await else { return false };
        let name = qualified(&self.plan.schema, &self.tables[3].name);
        let query = "SELECT to_regclass($1) IS NOT NULL";
        session.connection.client.query_one(query, &[&name]).await.is_ok_and(|row| row.get(0))
    }
}

/// Times steps and tells the observer.
struct Clock<'f, 'a> {
    filler: &'f Filler<'a>,
    steps: Vec<(InitStep, Duration)>,
}

impl Clock<'_, '_> {
    fn start(&self, step: InitStep) -> Instant {
        self.filler.progress.enter(step);
        self.filler.observer.step_started(step);
        Instant::now()
    }

    fn finish(&mut self, step: InitStep, started: Instant) {
        let elapsed = started.elapsed();
        self.steps.push((step, elapsed));
        self.filler.observer.step_finished(step, elapsed);
    }
}

/// The end of the server's WAL, bytes since its beginning.
async fn wal_position(session: &Session) -> Result<u64, ConnectError> {
    let query = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
    match session.connection.client.query_one(query, &[]).await {
        Ok(row) => Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default()),
        Err(error) => Err(session.connection.explain(error).await),
    }
}

/// User and system time of this process so far.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}
