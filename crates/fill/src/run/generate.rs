//! The step `generate`: one loop for all methods. Streams take chunk after chunk, a transaction each;
//! the chunk's number is recorded with its rows.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use measure::Unit;
use tokio::sync::{Mutex, RwLock};

use crate::cause::Cause;
use crate::ledger::Ledger;
use crate::part_work::{FillId, PartWork};
use crate::plan::Method;
use crate::probe::ProbeError;
use crate::request::InitStep;
use crate::run::chunk_loop::ChunkLoop;
use crate::run::direct::Direct;
use crate::run::filler::{Filler, InCycle};
use crate::run::growth::{EXTENSION, Growth, extends_by_many_pages};
use crate::run::queue::Queue;
use crate::run::rate::RateMeter;
use crate::run::sink::Sink;
use crate::sql::ddl;
use catalog::SequenceTaken;
use connect::ConnectError;
use rowgen::Values;
use server::Session;
use server::quote::{literal, qualified};

/// Time between two forced checkpoints: long enough that the next one has something to write.
const WRITE_BEHIND_PAUSE: Duration = Duration::from_millis(20);

impl Filler<'_> {
    /// Loads all chunks that are not loaded yet, and returns the number of loaded rows. `session`
    /// is in the transaction that created the tables, if the plan has a single transaction.
    pub(crate) async fn generate(&self, session: &Session) -> Result<u64, Cause> {
        if let Some(InCycle { rows, .. }) = self.in_cycle.get() {
            return Ok(*rows);
        }
        if let Some(control) = &self.control {
            control.begin()?;
            if !self.plan.may_be_full() {
                control.refuse_full(self.plan.first_space(), 0)?;
            }
        }
        let (meter, began) = (RateMeter::start("rows-sent", Unit::Rows), Instant::now());
        if self.share().is_some() {
            self.generated().part_work = Some(PartWork { began, readings: Vec::new() });
        }
        let loaded = tokio::select! {
            loaded = self.load_all(session, &meter) => loaded,
            never = meter.run() => match never {},
            never = self.write_behind() => match never {},
        };
        self.generated().rate = Some(meter.finish());
        if loaded.is_ok() {
            self.read_clock(session).await?;
        }
        loaded
    }

    /// Reads the server's clock, if this process is a part.
    async fn read_clock(&self, session: &Session) -> Result<(), ConnectError> {
        if self.generated().part_work.is_none() {
            return Ok(());
        }
        let reading = PartWork::read_clock(session).await?;
        self.generated().part_work.iter_mut().for_each(|work| work.readings.push(reading));
        Ok(())
    }

    async fn load_all(&self, session: &Session, meter: &RateMeter) -> Result<u64, Cause> {
        let plan = self.plan;
        if plan.method == Method::CreateTableAs {
            return Ok(self.create_table_as(session, meter).await?);
        }
        if self.ledger.get().is_none() {
            self.begin_ledger(session).await?;
        }
        let ledger = self.ledger.get().expect("begun");
        self.read_clock(session).await?;
        if self.parts.is_some() {
            let fill = FillId::of(session, ledger.table_name()).await?;
            self.generated().fill = fill;
        }
        let work = self.chunk_loop(ledger, meter);
        if plan.is_single_transaction() {
            let rows = work.all_in_one(session).await?;
            work.explode(session, &plan.chunking.chunk(0)).await?;
            return Ok(rows);
        }
        if self.is_prepared.get().is_none() {
            self.prepare(session, work.ledger).await?;
        }
        if let Some(parts) = &self.parts {
            parts.prepared(session).await?;
        }
        if let Some(prober) = &*self.prober.lock().await {
            match prober.check(&session.connection.client).await {
                Ok(()) => {}
                Err(ProbeError::Query(error)) => return Err(session.connection.explain(error).await.into()),
                Err(error) => return Err(error.into()),
            }
        }
        if plan.method == Method::Explode {
            work.explode_loaded(session).await?;
        }
        self.hold_ballast(session).await?;
        let loaded = try_join_all((0..plan.sessions().get()).map(|_| work.stream())).await;
        let given_up = self.give_up_ballast(session).await;
        self.generated().gaps = work.queue.gaps();
        // The first error counts.
        loaded?;
        given_up?;
        self.freeze_all(session).await?;
        if let Some(parts) = &self.parts {
            let end = parts.end(session, plan, work.ledger, self.observer).await?;
            self.part_end.get_or_init(|| end);
        }
        if !self.has_last_steps() {
            return Ok(self.progress.rows() - plan.rows_done());
        }
        self.drop_defaults(session).await?;
        work.probe(session, true).await?;
        Ok(self.progress.rows() - plan.rows_done())
    }

    /// Readies tables that are there for further rows.
    pub(super) async fn prepare(&self, session: &Session, ledger: &Ledger) -> Result<(), Cause> {
        let plan = self.plan;
        // Rows from before the fill need no space here.
        if !plan.append {
            self.reclaim(session).await?;
        }
        if plan.is_created() && plan.includes(InitStep::Create) {
            self.set_defaults(session).await?;
            if !Queue::of(plan, ledger, None).is_empty() {
                session.run_all(&ddl::drop_foreign_keys(plan)).await?;
            }
        }
        Ok(())
    }

    /// The loop over the chunks that `ledger` does not have.
    pub(super) fn chunk_loop<'f>(&'f self, ledger: &'f Ledger, meter: &'f RateMeter) -> ChunkLoop<'f, 'f> {
        let plan = self.plan;
        ChunkLoop {
            filler: self,
            ledger,
            sink: Sink::new(plan, &self.plan.tables),
            direct: self.direct(),
            meter,
            started: Instant::now(),
            queue: Queue::of(plan, ledger, self.share()),
            growth: plan.until_size.map(|goal| {
                let row = plan.predicted.sizes.total() as f64 / plan.predicted_rows() as f64;
                let extension = if extends_by_many_pages(plan) { EXTENSION } else { 0 };
                Mutex::new(Growth::new(goal, plan.chunking.chunk_rows, row, extension))
            }),
            loading: RwLock::new(()),
        }
    }

    /// Sets the sequences whose values pgrig computes itself beyond the last value that it will
    /// use. So other sessions that insert rows meanwhile, or after a fill that was killed, get
    /// different values.
    pub(crate) async fn set_sequences(&self, session: &Session) -> Result<(), ConnectError> {
        for SequenceTaken { column, name, .. } in &self.plan.sequences {
            let table = &self.plan.tables.bulk;
            let column = table.columns.iter().find(|of| of.name == *column);
            let Some(Values::Serial { start, step }) = column.map(|column| &column.values) else { continue };
            let last = i128::from(*start) + i128::from(*step) * i128::from(table.rows.saturating_sub(1));
            let last = i64::try_from(last).unwrap_or(if *step > 0 { i64::MAX } else { i64::MIN });
            // Somebody may have taken more values meanwhile.
            let before = if *step > 0 { "<=" } else { ">=" };
            let set = format!(
                "SELECT setval({}, {last}) FROM {name} WHERE last_value {before} {last}",
                literal(name)
            );
            session.run(&set).await?;
        }
        Ok(())
    }

    /// The writer of pages, if that is the method.
    pub(crate) fn direct(&self) -> Option<Direct<'_>> {
        let plan = self.plan;
        plan.data_directory.as_ref().map(|data_directory| Direct {
            data_directory,
            table: &self.plan.tables.bulk,
            persistence: plan.persistence,
            triggers: plan.triggers(),
            fillfactor: plan.fillfactor,
            vacuum: plan.includes(InitStep::Vacuum),
            writers: plan.streams.get().div_ceil(plan.sessions().get()),
            is_truncated: !plan.is_single_transaction(),
            records: self.records.as_deref(),
            sessions: &self.sessions,
        })
    }

    /// Article 000's level 0: one statement makes table and rows.
    async fn create_table_as(&self, session: &Session, meter: &RateMeter) -> Result<u64, ConnectError> {
        let rows = session.execute(&ddl::create_table_as(self.plan, &self.plan.tables.bulk)).await?;
        if let Some(mark) = ddl::mark(self.plan, &self.plan.tables.bulk) {
            session.run(&mark).await?;
        }
        self.observer.rows_sent(rows);
        meter.add(rows);
        session.run("COMMIT").await?;
        self.progress.commit_tables();
        self.progress.commit_rows(rows);
        Ok(rows)
    }

    /// Forces checkpoints again and again, if the plan says so, so that the checkpointer writes
    /// while rows come in. Errors are ignored: the commit then writes everything.
    async fn write_behind(&self) -> Infallible {
        if self.plan.write_behind
            && let Ok(session) = self.sessions.open().await
        {
            while session.run("CHECKPOINT").await.is_ok() {
                self.own_checkpoints.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(WRITE_BEHIND_PAUSE).await;
            }
        }
        std::future::pending().await
    }

    /// Vacuums the space that rolled back transactions left in the table, so that later rows use it
    /// and the table gets the requested size.
    async fn reclaim(&self, session: &Session) -> Result<(), ConnectError> {
        let plan = self.plan;
        let needed = plan.heap_of(plan.rows_done());
        let there = self.sizes(session).await?.heap;
        let wanted = plan.rows().map_or(needed, |rows| plan.heap_of(rows));
        if there.saturating_sub(needed) > wanted / 200 {
            let table = qualified(&plan.schema, &self.plan.tables.bulk.name);
            let vacuum = format!("VACUUM {table}");
            self.watched(session, &vacuum).await?;
            // Pages of a B-tree that VACUUM deletes are free only once all transactions from before have ended: a later VACUUM
            // frees them ("Placing deleted pages in the FSM" in nbtree/README).
            session.run("SELECT pg_current_xact_id()").await?;
            self.watched(session, &vacuum).await?;
        }
        Ok(())
    }

    async fn set_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        if !self.plan.has_load_defaults() {
            return Ok(());
        }
        let tables = self.plan.tables.all().filter_map(|table| ddl::set_defaults(self.plan, table));
        session.run_all(&tables.collect::<Vec<_>>()).await
    }

    pub(super) async fn drop_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        if !self.plan.has_load_defaults() {
            return Ok(());
        }
        let tables = self.plan.tables.all().filter_map(|table| ddl::drop_defaults(self.plan, table));
        session.run_all(&tables.collect::<Vec<_>>()).await
    }
}
