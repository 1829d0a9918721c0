//! The steps, one after the other, as the plan says.

use std::convert::Infallible;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use measure::Series;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rowgen::{Constants, Table};
use tokio::sync::watch;
use tokio_postgres::types::ToSql;

use super::Observer;
use crate::error::{Cause, FillError};
use crate::ledger::{self, Ledger};
use crate::limits::{Governor, StopReason};
use crate::outcome::Outcome;
use crate::plan::sizes::Sizes;
use crate::plan::{Method, Plan};
use crate::probe::{ProbePoint, Prober};
use crate::remains::{Progress, Remains};
use crate::request::{InitStep, Persistence, Subject};
use crate::run::ballast::Ballast;
use crate::run::compression::Compression;
use crate::run::copy::{Copy, Rows};
use crate::run::direct::{self, ColumnStatistics};
use crate::run::resume;
use crate::sql::ddl::{self, FOREIGN_KEYS};
use connect::{ConnectError, Target};
use server::quote::qualified;
use server::{Session, Sessions};

/// The first release with functions that set statistics.
const TAKES_STATISTICS: u32 = 18;
/// How often the server is asked how far a vacuum or an index build has come.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// How long a session that is at the same fill is waited for.
const IN_HAND_DEADLINE: Duration = Duration::from_secs(20);
/// How long a server that may be gone is asked what is there.
const REMAINS_DEADLINE: Duration = Duration::from_secs(10);

/// A fill that is being carried out.
pub(crate) struct Filler<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sessions: Sessions<'a>,
    pub(crate) progress: Progress,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) governor: Option<Governor<'a>>,
    pub(crate) prober: tokio::sync::Mutex<Option<Prober>>,
    pub(crate) generated: Mutex<Generated>,
    pub(crate) own_checkpoints: AtomicU64,
    /// Where a full disk may be met.
    pub(crate) ballast: Option<Ballast>,
    /// Where files are recorded before pages are written into them.
    pub(crate) records: Option<PathBuf>,
    /// Rows that were there when rows were frozen last; none before the first time.
    pub(crate) frozen: tokio::sync::Mutex<Option<u64>>,
    /// Once there is one.
    pub(crate) ledger: OnceLock<Ledger>,
    stop: watch::Sender<bool>,
}

/// What the step `generate` came to, beside its rows.
#[derive(Debug, Default)]
pub(crate) struct Generated {
    /// Rows handed to the server, second by second.
    pub rate: Option<Series>,
    /// Whether a chunk was rolled back.
    pub rolled_back: bool,
    /// Why it ended.
    pub stop: Option<StopReason>,
    /// Rows that are missing between others.
    pub gaps: Vec<Range<u64>>,
    /// What probes found, size by size.
    pub probes: Vec<ProbePoint>,
    /// What probes took, waiting for streams to pause included.
    pub probing: Duration,
}

impl<'a> Filler<'a> {
    pub(crate) fn new(
        target: &'a Target,
        plan: &'a Plan,
        governor: Option<Governor<'a>>,
        prober: Option<Prober>,
        ballast: bool,
        records: Option<PathBuf>,
        observer: &'a dyn Observer,
    ) -> Self {
        let ballast = ballast.then(|| Ballast::of(plan, &plan.tables.bulk.name));
        Self {
            governor,
            ballast,
            ledger: OnceLock::new(),
            prober: tokio::sync::Mutex::new(prober),
            generated: Mutex::default(),
            plan,
            sessions: Sessions::new(target),
            progress: Progress::new(plan),
            observer,
            own_checkpoints: AtomicU64::new(0),
            records,
            frozen: tokio::sync::Mutex::default(),
            stop: watch::Sender::new(false),
        }
    }

    /// Lets no chunk begin any more.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Resolves once it is.
    pub(crate) async fn stopped(&self) {
        // The sender is ours.
        let _ = self.stop.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// The step that is being done, or failed.
    pub(crate) fn step(&self) -> InitStep {
        self.progress.step()
    }

    /// Opens the session that leads, makes sure that no other one is at this fill, and rehearses. A session that a
    /// killed pgrig left behind ends by itself: it is waited for.
    ///
    /// # Errors
    /// If the server refuses, another session keeps at it, or a conflict shows.
    pub(crate) async fn begin(&self) -> Result<Session, FillError> {
        let session = self.open_loader().await?;
        let name = qualified(&self.plan.schema, &self.plan.tables.bulk.name);
        let started = Instant::now();
        loop {
            match session.try_lock(&name).await? {
                None => {
                    self.rehearse(&session).await?;
                    if let Some(begun) = &self.plan.unfinished {
                        let ledger = resume::resume(&session, self.plan, begun, self.observer).await?;
                        self.ledger.set(ledger).expect("nobody has begun it");
                    }
                    return Ok(session);
                }
                Some(pid) if started.elapsed() > IN_HAND_DEADLINE => return Err(FillError::InHand { pid }),
                Some(_) => tokio::time::sleep(PROGRESS_INTERVAL).await,
            }
        }
    }

    /// All steps of the plan, while the volumes are watched.
    pub(crate) async fn execute(&self, session: Session) -> Result<Outcome, Cause> {
        tokio::select! {
            outcome = self.execute_steps(session) => outcome,
            never = self.watch_volumes() => match never {},
        }
    }

    async fn watch_volumes(&self) -> Infallible {
        let Some(governor) = &self.governor else { return std::future::pending().await };
        let is_loading = || self.step() == InitStep::Generate;
        governor
            .watch(|outlook| {
                if is_loading() {
                    self.observer.outlook(outlook);
                }
            })
            .await
    }

    /// Announces what has become of the volumes since the last look.
    pub(crate) fn look_at_volumes(&self) {
        self.governor.iter().for_each(Governor::look);
    }

    /// Steps that an interrupted run has done are done again only where that costs nothing.
    async fn execute_steps(&self, session: Session) -> Result<Outcome, Cause> {
        if self.plan.stale_ledger {
            session.run(&ledger::remove(&self.plan.schema, &self.plan.tables.bulk.name)).await?;
        }
        let again = self.plan.unfinished.is_some();
        if again || self.plan.stale_ledger {
            // A run that was killed may have left it.
            Ballast::of(self.plan, &self.plan.tables.bulk.name).remove(&session).await?;
        }
        let mut clock = Clock { filler: self, steps: Vec::new() };
        let wal_before = wal_position(&session).await?;
        // Asking for sizes waits for others' locks: not before a drop, which says that it waits.
        let before = if self.plan.append { self.sizes(&session).await? } else { Sizes::default() };
        let cpu_before = cpu_time();
        let mut loaded = 0;
        let mut client_cpu = Duration::ZERO;
        for step in self.plan.steps.iter() {
            if self.plan.is_created() && matches!(step, InitStep::Drop | InitStep::Create) {
                continue;
            }
            if self.is_stopped() {
                return Err(Cause::Interrupted);
            }
            let started = clock.start(step);
            match step {
                InitStep::Drop => self.drop(&session).await?,
                InitStep::Create => self.create(&session).await?,
                InitStep::Generate => {
                    loaded = Box::pin(self.generate(&session)).await?;
                    client_cpu = cpu_time().saturating_sub(cpu_before);
                }
                InitStep::Vacuum => self.vacuum(&session).await?,
                InitStep::PrimaryKeys => self.indexes(&session).await?,
                InitStep::ForeignKeys => self.foreign_keys(&session).await?,
            }
            clock.finish(step, started);
        }
        if let Some(ledger) = self.ledger.get() {
            session.run(&ledger.drop()).await?;
        }
        self.look_at_volumes();
        let wal = wal_position(&session).await?.saturating_sub(wal_before);
        let sizes = self.sizes(&session).await?;
        let sampled = Instant::now();
        let compression =
            self.compression(&session, clock.steps.iter().map(|(_, elapsed)| *elapsed).sum()).await;
        let Generated { rate, rolled_back, stop, gaps, probes, probing } =
            std::mem::take(&mut *self.generated());
        Ok(Outcome {
            rate,
            rolled_back: rolled_back || again,
            stop: stop.unwrap_or(StopReason::Complete),
            gaps,
            probes,
            probing,
            events: self.governor.as_ref().map_or(Vec::new(), Governor::events),
            free: self.governor.as_ref().and_then(Governor::free),
            compression,
            sampling: sampled.elapsed(),
            steps: clock.steps,
            rows: loaded,
            sizes,
            before,
            wal,
            client_cpu,
            own_checkpoints: self.own_checkpoints.load(Ordering::Relaxed),
        })
    }

    pub(crate) fn generated(&self) -> MutexGuard<'_, Generated> {
        self.generated.lock().expect("nobody panics holding this")
    }

    /// How well the data compresses; none if no rows were asked for, or it cannot be told.
    async fn compression(&self, session: &Session, filled: Duration) -> Option<Compression> {
        if !self.plan.includes(InitStep::Generate) {
            return None;
        }
        let table = qualified(&self.plan.schema, &self.plan.tables.bulk.name);
        Compression::sample(&session.connection.client, &table, filled).await.ok().flatten()
    }

    /// A session that loads. Left to itself the kernel writes nothing until a tenth of the memory is
    /// dirty, and then stops whoever writes.
    pub(crate) async fn open_loader(&self) -> Result<Session, ConnectError> {
        let session = self.sessions.open().await?;
        if self.plan.flush_early {
            session.run("SET backend_flush_after = '2MB'").await?;
        }
        Ok(session)
    }

    async fn drop(&self, session: &Session) -> Result<(), ConnectError> {
        if !self.plan.dropped.is_empty() {
            self.watched(session, &ddl::drop_tables(self.plan)).await?;
            self.progress.commit_drop();
        }
        Ok(())
    }

    /// Tables and ledger. Where all is one transaction it stays open; so it does for the one
    /// statement that creates and fills a table.
    async fn create(&self, session: &Session) -> Result<(), ConnectError> {
        session.run("BEGIN").await?;
        session.run_all(&ddl::create(self.plan)).await?;
        if self.plan.has_ledger() {
            self.begin_ledger(session).await?;
        }
        let stays_open = self.plan.is_single_transaction() || self.plan.method == Method::CreateTableAs;
        if !stays_open || !self.plan.includes(InitStep::Generate) {
            session.run("COMMIT").await?;
            self.progress.commit_tables();
        }
        Ok(())
    }

    /// Creates the tables that record what is loaded.
    pub(crate) async fn begin_ledger(&self, session: &Session) -> Result<(), ConnectError> {
        let ledger = Ledger::begin(session, self.plan).await?;
        self.ledger.set(ledger).expect("a fill has one");
        Ok(())
    }

    /// Branches and tellers, whole, in the transaction that created them.
    pub(crate) async fn copy_small_tables(&self, session: &Session) -> Result<(), ConnectError> {
        for table in self.plan.tables.small.iter().filter(|table| table.rows > 0) {
            let copy = Copy::new(&self.plan.schema, table, self.plan.format, Constants::Defaulted, true);
            let mut rows = Rows::new(0..table.rows, None);
            let load = copy.load(&session.connection, &table.name, &mut rows, u64::MAX, None, &|_| {});
            if let Err(error) = load.await {
                return Err(session.connection.explain(error).await);
            }
        }
        Ok(())
    }

    async fn vacuum(&self, session: &Session) -> Result<(), ConnectError> {
        let options = self.plan.vacuum.unwrap_or("ANALYZE");
        for table in self.plan.tables.all() {
            let name = qualified(&self.plan.schema, &table.name);
            if self.plan.method == Method::Direct && table.name == self.plan.tables.bulk.name {
                self.analyze_direct(session, table).await?;
            } else {
                self.watched(session, &format!("VACUUM ({options}) {name}")).await?;
            }
        }
        Ok(())
    }

    /// Statistics of a table whose pages were written all-visible and frozen: there is nothing to vacuum. The
    /// server need not look at what is known (since 18 it can be told).
    async fn analyze_direct(&self, session: &Session, table: &Table) -> Result<(), ConnectError> {
        let plan = self.plan;
        let name = qualified(&plan.schema, &table.name);
        // A table of the user's may have statistics of expressions too.
        let is_ours = !plan.is_own_table() && plan.partitions.is_none();
        let can_be_told = plan.major >= TAKES_STATISTICS && is_ours && plan.rows_done() == 0;
        let Some(known) = direct::statistics(table).filter(|_| can_be_told) else {
            return self.watched(session, &format!("ANALYZE {name}")).await;
        };
        let rows = i64::try_from(table.rows).unwrap_or(i64::MAX);
        session.rows(include_str!("../sql/restore_relation_statistics.sql"), &[&name, &rows]).await?;
        for ColumnStatistics {
            column,
            null_frac,
            avg_width,
            n_distinct,
            most_common,
            histogram,
            correlation,
        } in known
        {
            let (values, shares) = most_common.unzip();
            let query = include_str!("../sql/restore_column_statistics.sql");
            let of_column = [&plan.schema, &table.name, &column];
            let [schema, table, column] = of_column.map(|name| name as &(dyn ToSql + Sync));
            session
                .row(
                    query,
                    &[
                        schema,
                        table,
                        column,
                        &null_frac,
                        &avg_width,
                        &n_distinct,
                        &values,
                        &shares,
                        &histogram,
                        &correlation,
                    ],
                )
                .await?;
        }
        Ok(())
    }

    async fn indexes(&self, session: &Session) -> Result<(), ConnectError> {
        if let Some(build) = self.plan.index_build {
            let kilobytes = build.maintenance_work_mem / 1024;
            session.run(&format!("SET maintenance_work_mem = '{kilobytes}kB'")).await?;
            if let Some(workers) = build.parallel_workers {
                session.run(&format!("SET max_parallel_maintenance_workers = {workers}")).await?;
            }
        }
        for table in self.plan.tables.all() {
            let Some(statement) = ddl::add_index(self.plan, table) else { continue };
            if !self.has_index(session, &table.name).await? {
                self.watched(session, &statement).await?;
            }
        }
        Ok(())
    }

    /// Whether an earlier run built the index.
    pub(crate) async fn has_index(&self, session: &Session, table: &str) -> Result<bool, ConnectError> {
        let name = qualified(&self.plan.schema, table);
        let brin = ddl::brin_name(&self.plan.tables.bulk);
        let row = session.row(include_str!("../sql/has_index.sql"), &[&name, &brin]).await?;
        Ok(row.get(0))
    }

    async fn foreign_keys(&self, session: &Session) -> Result<(), ConnectError> {
        if self.plan.subject != Subject::Pgbench {
            return Ok(());
        }
        for key in &FOREIGN_KEYS {
            let table = qualified(&self.plan.schema, key.table);
            let query = include_str!("../sql/has_constraint.sql");
            let exists: bool = session.row(query, &[&table, &key.name()]).await?.get(0);
            if !exists {
                session.run(&key.add(self.plan)).await?;
            }
        }
        Ok(())
    }

    /// Runs a long statement while another session asks how far it is. That is a courtesy: if it
    /// fails (no connection left, say), only the display is poorer.
    pub(crate) async fn watched(&self, session: &Session, sql: &str) -> Result<(), ConnectError> {
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
                let Ok(holder) = watcher.lock_holder(pid).await else { break };
                if let Some(holder) = holder {
                    self.observer.waiting_for_lock(&holder);
                }
                every.tick().await;
            }
        }
        std::future::pending().await
    }

    pub(crate) async fn sizes(&self, session: &Session) -> Result<Sizes, ConnectError> {
        let names: Vec<&str> = self.plan.tables.all().map(|table| table.name.as_str()).collect();
        let row = session.row(include_str!("../sql/sizes.sql"), &[&self.plan.schema, &names]).await?;
        let bytes = |column| u64::try_from(row.get::<_, i64>(column)).unwrap_or_default();
        Ok(Sizes { heap: bytes("heap"), index: bytes("index") })
    }

    /// What stands in the database now. A commit may have been on its way when the fill ended, so
    /// the server is asked where it can be.
    pub(crate) async fn remains(&self) -> Remains {
        let plan = self.plan;
        let unlogged = match self.ledger.get() {
            Some(ledger) => ledger.roster.persistences().contains(&Persistence::Unlogged),
            None => plan.persistence == Persistence::Unlogged,
        };
        let told = self.progress.remains(plan, unlogged);
        let in_doubt = matches!(told, Remains::Nothing { .. }) && self.step() == InitStep::Generate;
        let exist = tokio::time::timeout(REMAINS_DEADLINE, self.bulk_exists());
        if in_doubt && exist.await.unwrap_or(false) {
            self.progress.commit_tables();
            self.progress.commit_rows(plan.rows().unwrap_or(0));
            return self.progress.remains(plan, unlogged);
        }
        told
    }

    async fn bulk_exists(&self) -> bool {
        let Ok(session) = self.sessions.open().await else { return false };
        let name = qualified(&self.plan.schema, &self.plan.tables.bulk.name);
        session.row("SELECT to_regclass($1) IS NOT NULL", &[&name]).await.is_ok_and(|row| row.get(0))
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
    let row = session.row(query, &[]).await?;
    Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default())
}

/// User and system time of this process so far.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
}
