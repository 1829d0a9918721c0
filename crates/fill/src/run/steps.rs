//! Carries out the steps of the plan one after the other.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rowgen::Constants;

use crate::cause::Cause;
use crate::ledger::{self, Ledger};
use crate::limits::{AdmissionControl, StopReason};
use crate::outcome::Outcome;
use crate::plan::Method;
use crate::plan::sizes::Sizes;
use crate::request::{InitStep, Subject};
use crate::run::ballast::Ballast;
use crate::run::compression::Compression;
use crate::run::copy::Copy;
use crate::run::direct::resources;
use crate::run::filler::{Filler, Generated, InCycle, Stage};
use crate::run::rows::RowSource;
use crate::sql::ddl::{self, FOREIGN_KEYS};
use connect::ConnectError;
use server::Session;
use server::quote::qualified;

impl Filler<'_> {
    /// Carries out all steps of the plan, while the volumes are watched.
    pub(crate) async fn execute(&self, session: Session) -> Result<Outcome, Cause> {
        let start = self.begin_steps(&session).await?;
        self.execute_from(session, start).await
    }

    /// Carries out the steps after [`Self::begin_steps`], while the volumes are watched.
    pub(crate) async fn execute_from(&self, session: Session, start: Start) -> Result<Outcome, Cause> {
        tokio::select! {
            outcome = self.execute_steps(session, start) => outcome,
            never = self.watch_volumes() => match never {},
        }
    }

    async fn watch_volumes(&self) -> Infallible {
        let Some(control) = &self.control else { return std::future::pending().await };
        let is_loading = || self.step() == InitStep::Generate;
        control
            .watch(|remaining| {
                if is_loading() {
                    self.observer.remaining_space(remaining);
                }
            })
            .await
    }

    /// Removes the remains of an earlier fill, and looks at the state before the steps.
    pub(crate) async fn begin_steps(&self, session: &Session) -> Result<Start, Cause> {
        if matches!(self.stage, Stage::Rows { .. }) {
            return self.start(session).await;
        }
        if self.plan.stale_ledger {
            session.run(&ledger::remove(&self.plan.schema, &self.plan.tables.bulk.name)).await?;
        }
        if self.plan.unfinished.is_some() || self.plan.stale_ledger {
            // A run that was killed may have left it.
            Ballast::of(self.plan, &self.plan.tables.bulk.name).remove(session).await?;
        }
        self.start(session).await
    }

    /// The state before the steps.
    async fn start(&self, session: &Session) -> Result<Start, Cause> {
        let wal = wal_position(session).await?;
        // Asking for sizes waits for others' locks: not before a drop, which says that it waits.
        let sizes = if self.plan.append { self.sizes(session).await? } else { Sizes::default() };
        Ok(Start { wal, sizes, cpu: cpu_time() })
    }

    /// Carries out the steps. Steps that an interrupted run has done are repeated only if that
    /// costs nothing.
    async fn execute_steps(&self, session: Session, start: Start) -> Result<Outcome, Cause> {
        let again = self.plan.unfinished.is_some();
        let mut clock = Clock { filler: self, steps: Vec::new() };
        let mut loaded = 0;
        let mut client_cpu = Duration::ZERO;
        let mut has_rows = false;
        for step in self.plan.steps.iter() {
            if self.plan.is_created() && matches!(step, InitStep::Drop | InitStep::Create) {
                continue;
            }
            if self.is_stopped() {
                return Err(Cause::Interrupted);
            }
            if has_rows && !self.has_last_steps() {
                break;
            }
            let mut started = clock.start(step);
            match step {
                InitStep::Drop => self.drop(&session).await?,
                InitStep::Create => self.create(&session).await?,
                InitStep::Generate => {
                    if let Some(InCycle { elapsed, .. }) = self.in_cycle.get() {
                        started = started.checked_sub(*elapsed).unwrap_or(started);
                    }
                    loaded = Box::pin(self.generate(&session)).await?;
                    has_rows = true;
                    client_cpu = cpu_time().saturating_sub(start.cpu);
                    if self.must_complete
                        && matches!(self.generated().stop, Some(StopReason::Duration { .. }))
                    {
                        return Err(Cause::Interrupted);
                    }
                }
                InitStep::Vacuum => self.vacuum(&session).await?,
                InitStep::PrimaryKeys => self.indexes(&session).await?,
                InitStep::ForeignKeys => self.foreign_keys(&session).await?,
                // Below, in the transaction that removes the ledger.
                InitStep::KeysAndIndexes => {}
            }
            clock.finish(step, started);
        }
        if let Some(ledger) = self.ledger.get().filter(|_| self.has_last_steps()) {
            self.end(&session, ledger, &mut clock).await?;
        }
        self.look_at_volumes();
        let wal_end = wal_position(&session).await?;
        let sizes = self.sizes(&session).await?;
        let sampled = Instant::now();
        let compression =
            self.compression(&session, clock.steps.iter().map(|(_, elapsed)| *elapsed).sum()).await;
        let Generated { rate, rolled_back, stop, gaps, probes, probing, part_work, fill } =
            std::mem::take(&mut *self.generated());
        Ok(Outcome {
            rate,
            rolled_back: rolled_back || again,
            stop: stop.unwrap_or(StopReason::Complete),
            gaps,
            probes,
            probing,
            events: self.control.as_ref().map_or(Vec::new(), AdmissionControl::events),
            free: self.control.as_ref().and_then(AdmissionControl::free),
            compression,
            sampling: sampled.elapsed(),
            steps: clock.steps,
            rows: loaded,
            sizes,
            before: start.sizes,
            wal: wal_end.saturating_sub(start.wal),
            wal_positions: vec![[start.wal, wal_end]],
            client_cpu,
            part_end: self.part_end.get().cloned(),
            part_work,
            fill,
            own_checkpoints: self.own_checkpoints.load(Ordering::Relaxed),
        })
    }

    /// Creates the indexes and constraints that come after the rows and removes the ledger, in one
    /// transaction.
    async fn end(&self, session: &Session, ledger: &Ledger, clock: &mut Clock<'_, '_>) -> Result<(), Cause> {
        if let Some(parts) = &self.parts {
            parts.before_the_end(session).await?;
        }
        let mut ended = vec![ledger.drop()];
        ended.extend(self.at_end.clone());
        if self.makes.is_empty() {
            return Ok(session.run_all(&ended).await?);
        }
        let started = clock.start(InitStep::KeysAndIndexes);
        session.run("BEGIN").await?;
        session.run(&resources()).await?;
        for statement in &self.makes {
            self.watched(session, statement).await?;
        }
        ended.push("COMMIT".to_owned());
        session.run_all(&ended).await?;
        clock.finish(InitStep::KeysAndIndexes, started);
        Ok(())
    }

    /// Compression of the data; none if the fill has no rows to make, or if it is not known.
    async fn compression(&self, session: &Session, filled: Duration) -> Option<Compression> {
        if self.is_unsampled || !self.has_last_steps() || !self.plan.includes(InitStep::Generate) {
            return None;
        }
        let table = qualified(&self.plan.schema, &self.plan.tables.bulk.name);
        let other = self.sessions.open().await.ok()?;
        let clients = [&session.connection.client, &other.connection.client];
        Compression::sample(clients, &table, filled).await.ok().flatten()
    }

    async fn drop(&self, session: &Session) -> Result<(), ConnectError> {
        if !self.plan.dropped.is_empty() {
            self.watched(session, &ddl::drop_tables(self.plan)).await?;
            self.progress.commit_drop();
        }
        Ok(())
    }

    /// Creates tables and ledger. If the plan has a single transaction it stays open; also for the
    /// one statement that creates and fills a table.
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

    /// Loads branches and tellers completely, in the transaction that created them.
    pub(crate) async fn copy_small_tables(&self, session: &Session) -> Result<(), ConnectError> {
        for table in self.plan.tables.small.iter().filter(|table| table.rows > 0) {
            let copy = Copy::new(&self.plan.schema, table, self.plan.format, Constants::Defaulted, true);
            let mut rows = RowSource::new(0..table.rows, None);
            let load = copy.load(&session.connection, &table.name, &mut rows, u64::MAX, None, &|_| {});
            if let Err(error) = load.await {
                return Err(session.connection.explain(error).await);
            }
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
}

/// The state before the steps of a fill.
pub(crate) struct Start {
    /// The end of the WAL.
    wal: u64,
    /// Sizes, where rows are added.
    sizes: Sizes,
    /// Processor time of this process.
    cpu: Duration,
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
