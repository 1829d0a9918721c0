//! The step `generate`: one loop for all methods. Streams take chunk after chunk, a transaction each;
//! the chunk's number is recorded with its rows.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use measure::Unit;
use rowgen::pgbench::TELLERS_PER_SCALE;
use tokio::sync::{Mutex, RwLock};

use crate::error::Cause;
use crate::ledger::Ledger;
use crate::ledger::relations::{Destination, Part, What};
use crate::limits::{Admission, Governor, OutOfSpace, Shortage, StopReason};
use crate::plan::Method;
use crate::plan::chunks::Chunk;
use crate::probe::ProbeError;
use crate::request::InitStep;
use crate::run::direct::{self, Direct, Recorded};
use crate::run::growth::{Growth, Next};
use crate::run::queue::Queue;
use crate::run::rate::RateMeter;
use crate::run::sink::Sink;
use crate::run::steps::Filler;
use crate::sql::ddl;
use connect::ConnectError;
use server::Session;
use server::quote::qualified;

/// Between forced checkpoints: enough comes in meanwhile to make the next one worth its fsync.
const WRITE_BEHIND_PAUSE: Duration = Duration::from_millis(20);

/// The loop's shared state.
struct Loop<'f, 'a> {
    filler: &'f Filler<'a>,
    ledger: &'f Ledger,
    sink: Sink<'f>,
    /// What writes pages, if that is the method.
    direct: Option<Direct<'f>>,
    meter: &'f RateMeter,
    started: Instant,
    queue: Queue<'f>,
    /// How the table grows, where it is to reach a size.
    growth: Option<Mutex<Growth>>,
    /// Chunks are read-locked while they are loaded, so that a probe has the server to itself.
    loading: RwLock<()>,
}

impl Filler<'_> {
    /// Loads all chunks that are not loaded yet and returns the rows that came in. `session` is in
    /// the transaction that created the tables, if the plan is a single one.
    pub(crate) async fn generate(&self, session: &Session) -> Result<u64, Cause> {
        if let Some(governor) = &self.governor {
            governor.begin()?;
            if !self.plan.may_be_full() {
                governor.refuse_full(self.plan.first_space(), 0)?;
            }
        }
        let meter = RateMeter::start("rows-sent", Unit::Rows);
        let loaded = tokio::select! {
            loaded = self.load_all(session, &meter) => loaded,
            never = meter.run() => match never {},
            never = self.write_behind() => match never {},
        };
        self.generated().rate = Some(meter.finish());
        loaded
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
        let work = Loop {
            filler: self,
            ledger,
            sink: Sink::new(plan, &self.plan.tables),
            direct: self.direct(),
            meter,
            started: Instant::now(),
            queue: Queue::of(plan, ledger),
            growth: plan.until_size.map(|goal| {
                let row = plan.predicted.sizes.total() as f64 / plan.chunking.chunk_rows as f64;
                Mutex::new(Growth::new(goal, plan.chunking.chunk_rows, row))
            }),
            loading: RwLock::new(()),
        };
        if plan.is_single_transaction() {
            let rows = work.all_in_one(session).await?;
            work.explode(session, &plan.chunking.chunk(0)).await?;
            return Ok(rows);
        }
        if plan.is_created() && plan.includes(InitStep::Create) {
            self.set_defaults(session).await?;
            self.reclaim(session).await?;
            if !work.queue.is_empty() {
                session.run_all(&ddl::drop_foreign_keys(plan)).await?;
            }
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
        // What went wrong first counts.
        loaded?;
        given_up?;
        self.freeze_all(session).await?;
        self.drop_defaults(session).await?;
        work.probe(session, true).await?;
        Ok(self.progress.rows() - plan.rows_done())
    }

    /// What writes pages, if that is the method.
    pub(crate) fn direct(&self) -> Option<Direct<'_>> {
        let plan = self.plan;
        plan.ground.as_ref().map(|ground| Direct {
            ground,
            table: &self.plan.tables.bulk,
            persistence: plan.persistence,
            fillfactor: plan.fillfactor,
            vacuum: plan.includes(InitStep::Vacuum),
            writers: plan.streams.get().div_ceil(plan.sessions().get()),
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

    /// Keeps the checkpointer writing, if the plan says so. A courtesy: without it the commit writes all.
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

    /// Makes room of what rolled back transactions left in the table, so that the size that was asked for
    /// is met: the rows to come go there.
    async fn reclaim(&self, session: &Session) -> Result<(), ConnectError> {
        let plan = self.plan;
        let needed = plan.heap_of(plan.rows_done());
        let there = self.sizes(session).await?.heap;
        let wanted = plan.rows().map_or(needed, |rows| plan.heap_of(rows));
        if there.saturating_sub(needed) > wanted / 200 {
            let table = qualified(&plan.schema, &self.plan.tables.bulk.name);
            self.watched(session, &format!("VACUUM {table}")).await?;
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

    async fn drop_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        if !self.plan.has_load_defaults() {
            return Ok(());
        }
        let tables = self.plan.tables.all().filter_map(|table| ddl::drop_defaults(self.plan, table));
        session.run_all(&tables.collect::<Vec<_>>()).await
    }
}

impl Loop<'_, '_> {
    fn sent(&self, rows: u64) {
        self.meter.add(rows);
        self.filler.observer.rows_sent(rows);
    }

    /// The only chunk, in the transaction that created the tables; commits it.
    async fn all_in_one(&self, session: &Session) -> Result<u64, Cause> {
        let filler = self.filler;
        filler.copy_small_tables(session).await?;
        let chunk = filler.plan.chunking.chunk(0);
        let parts = self.ledger.roster.parts(filler.plan, &chunk);
        for part in &parts {
            self.ledger.claim(session, part.destination, chunk.number).await?;
        }
        let (rows, records, recorded) = self.parts(session, &chunk, &parts).await?;
        filler.drop_defaults(session).await?;
        session.run(&format!("{}; COMMIT", records.join("; "))).await?;
        direct::close(recorded)?;
        filler.progress.commit_tables();
        filler.progress.commit_rows(rows);
        Ok(rows)
    }

    /// Takes chunks as long as there are any, and limits let it.
    async fn stream(&self) -> Result<(), Cause> {
        let session = self.filler.open_loader().await?;
        while let Some(rows) = self.wanted(&session).await? {
            if self.filler.is_stopped() {
                return Err(Cause::Interrupted);
            }
            if self.queue.is_empty() {
                if self.filler.plan.rows().is_none() {
                    self.filler.generated().stop.get_or_insert(StopReason::IdsUsedUp);
                }
                return Ok(());
            }
            let mut stop = None;
            if let Some(governor) = &self.filler.governor {
                stop = self.govern(governor, &session, rows).await?;
            } else if let Some(chunk) = self.queue.take(rows) {
                self.load(&session, &chunk).await?;
            }
            if let Some(growth) = &self.growth {
                let mut growth = growth.lock().await;
                growth.ended(rows);
                self.filler.observer.fraction_done(growth.fraction());
            }
            if let Some(reason) = stop {
                self.filler.generated().stop.get_or_insert(reason);
                return Ok(());
            }
            self.filler.freeze_behind(&session).await?;
            self.probe(&session, false).await?;
        }
        Ok(())
    }

    /// How many rows another chunk may have; none if the size that was asked for takes no more.
    async fn wanted(&self, session: &Session) -> Result<Option<u64>, ConnectError> {
        let Some(growth) = &self.growth else { return Ok(Some(u64::MAX)) };
        let mut growth = growth.lock().await;
        let next = match growth.next() {
            Next::Measure => growth.measured(self.size(session).await?),
            next => next,
        };
        Ok(match next {
            Next::Load(rows) => Some(rows),
            Next::End | Next::Measure => None,
        })
    }

    /// What the bulk table takes with its indexes, and with the maps that the vacuum will make, bytes.
    async fn size(&self, session: &Session) -> Result<u64, ConnectError> {
        let (plan, name) = (self.filler.plan, &self.filler.plan.tables.bulk.name);
        let vacuum = plan.includes(InitStep::Vacuum);
        let row = session.row(include_str!("../sql/growth.sql"), &[&plan.schema, name, &vacuum]).await?;
        Ok(u64::try_from(row.get::<_, i64>("bytes")).unwrap_or_default())
    }

    /// Loads a chunk once the governor lets one begin; gives the reason if none may any more. The chunk is
    /// taken only then, so that none is left out between others, with so many rows at most.
    async fn govern(
        &self,
        governor: &Governor<'_>,
        session: &Session,
        rows: u64,
    ) -> Result<Option<StopReason>, Cause> {
        let group = self.queue.group();
        let space = self.filler.plan.chunk_space();
        let mut admission = self.unless_stopped(governor.before_chunk_of(space, group)).await?;
        let mut taken = None;
        loop {
            let ticket = match admission {
                Admission::Go(ticket) => ticket,
                Admission::Stop(reason) => {
                    if let Some(chunk) = &taken {
                        self.queue.give_back(chunk);
                    }
                    return Ok(Some(reason));
                }
            };
            let Some(chunk) = taken.take().or_else(|| self.queue.take_of(group, rows)) else {
                governor.chunk_failed(ticket);
                return Ok(None);
            };
            let error = match self.load_with_ballast(session, &chunk).await {
                Ok(()) => {
                    governor.chunk_done(ticket);
                    return Ok(None);
                }
                Err(error) => error,
            };
            let shortage = match &error {
                Cause::Server(error) => Shortage::of(error),
                _ => None,
            };
            let Some(shortage) = shortage else {
                governor.chunk_failed(ticket);
                return Err(error);
            };
            session.run("ROLLBACK").await?;
            self.filler.generated().rolled_back = true;
            self.filler.give_up_ballast(session).await?;
            taken = Some(chunk);
            admission = self.unless_stopped(governor.chunk_short(ticket, shortage)).await?;
        }
    }

    /// The governor's answer, unless the user wants to stop while it waits.
    async fn unless_stopped(
        &self,
        answer: impl Future<Output = Result<Admission, OutOfSpace>>,
    ) -> Result<Admission, Cause> {
        tokio::select! {
            answer = answer => Ok(answer?),
            () = self.filler.stopped() => Err(Cause::Interrupted),
        }
    }

    /// Loads one chunk. If there is no room even for the ballast, there is none for the chunk.
    async fn load_with_ballast(&self, session: &Session, chunk: &Chunk) -> Result<(), Cause> {
        self.filler.hold_ballast(session).await?;
        self.load(session, chunk).await
    }

    /// Loads one chunk, unless another session has done so.
    async fn load(&self, session: &Session, chunk: &Chunk) -> Result<(), Cause> {
        let _loading = self.loading.read().await;
        let plan = self.filler.plan;
        let parts = self.ledger.roster.parts(plan, chunk);
        let parts = self.ledger.begin_chunk(session, chunk.number, parts).await?;
        if parts.is_empty() {
            return Ok(session.run("ROLLBACK").await?);
        }
        let has_rows = parts.iter().any(|part| matches!(part.what, What::Rows { .. }));
        if has_rows {
            self.refuse_others_rows(session).await?;
        }
        session.run_all(&self.sink.prologue(chunk, &parts)).await?;
        let (rows, records, recorded) = self.parts(session, chunk, &parts).await?;
        session.run(&format!("{}; COMMIT", records.join("; "))).await?;
        direct::close(recorded)?;
        self.filler.progress.commit_rows(rows);
        if has_rows {
            self.explode(session, chunk).await?;
        }
        Ok(())
    }

    /// Loads the bulk table's rows of these parts, and gives their number, the statements that record
    /// all parts, and what is recorded of files.
    async fn parts(
        &self,
        session: &Session,
        chunk: &Chunk,
        parts: &[Part],
    ) -> Result<(u64, Vec<String>, Option<Recorded>), Cause> {
        let mut all = 0;
        let mut records = Vec::new();
        let mut files = None;
        let branches = self.filler.plan.branches(chunk);
        let branches = branches.end - branches.start;
        for Part { destination, what } in parts {
            let rows = match what {
                What::Rows { condition } => {
                    let (rows, recorded) = self.rows(session, chunk, condition.as_deref()).await?;
                    all += rows;
                    files = recorded.or(files);
                    rows
                }
                What::Branches => branches,
                What::Tellers => branches * TELLERS_PER_SCALE,
            };
            records.push(self.ledger.record(*destination, chunk.number, rows));
        }
        Ok((all, records, files))
    }

    /// Makes sure that a table of the user's that will be truncated is still empty, and stays so until it is.
    async fn refuse_others_rows(&self, session: &Session) -> Result<(), Cause> {
        let plan = self.filler.plan;
        if !plan.is_own_table() || !plan.method.is_frozen() {
            return Ok(());
        }
        let table = plan.bulk_qualified();
        self.filler.watched(session, &format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await?;
        let row = session.row(&format!("SELECT EXISTS (SELECT FROM {table}) AS has_rows"), &[]).await?;
        let problem = "it has rows, which somebody else has put there since this fill began";
        direct::refuse(&table, row.get::<_, bool>("has_rows").then_some(problem))?;
        Ok(())
    }

    /// Makes and loads the chunk's rows in the session's transaction, and counts them.
    /// With a condition only those that fulfil it.
    async fn rows(
        &self,
        session: &Session,
        chunk: &Chunk,
        condition: Option<&str>,
    ) -> Result<(u64, Option<Recorded>), Cause> {
        let sent = |rows| self.sent(rows);
        let Some(direct) = &self.direct else {
            return Ok((self.sink.load(session, chunk, condition, &sent).await?, None));
        };
        let plan = self.filler.plan;
        let relation = qualified(&plan.schema, self.sink.relation(chunk));
        if plan.writes_key() && !self.filler.has_index(session, self.sink.relation(chunk)).await? {
            session.run_all(&ddl::add_key(plan, self.sink.relation(chunk))).await?;
        }
        // The server has no statement of ours to cancel meanwhile.
        tokio::select! {
            rows = direct.load(session, &relation, self.sink.rows(chunk), &sent) => Ok(rows?),
            () = self.filler.stopped() => Err(Cause::Interrupted),
        }
    }

    /// Spreads out the chunk's dense leaf, if that is the method, and records it in the ledger too, beyond
    /// the chunks' own numbers.
    async fn explode(&self, session: &Session, chunk: &Chunk) -> Result<(), ConnectError> {
        let plan = self.filler.plan;
        let Some(number) = plan.exploded(chunk.number) else { return Ok(()) };
        let to = self.bulk_destination(chunk);
        for statement in ddl::explode(plan, self.sink.relation(chunk)) {
            session.run(&statement).await?;
        }
        self.ledger.claim(session, to, number).await?;
        Ok(())
    }

    /// Where a chunk's rows go that go to one relation.
    fn bulk_destination(&self, chunk: &Chunk) -> Destination {
        let parts = self.ledger.roster.parts(self.filler.plan, chunk);
        parts.last().expect("the bulk comes last").destination
    }

    /// Spreads out leaves that an interrupted run loaded and no more.
    async fn explode_loaded(&self, session: &Session) -> Result<(), ConnectError> {
        let plan = self.filler.plan;
        for number in 0..plan.chunks() {
            let chunk = plan.chunking.chunk(number);
            let to = self.bulk_destination(&chunk);
            let is_exploded = plan.exploded(number).is_none_or(|exploded| self.ledger.has(to, exploded));
            if self.ledger.has(to, number) && !is_exploded {
                self.explode(session, &chunk).await?;
            }
        }
        Ok(())
    }

    /// Probes the table, if it has grown enough, while nobody loads.
    async fn probe(&self, session: &Session, at_end: bool) -> Result<(), Cause> {
        let filler = self.filler;
        let mut prober = filler.prober.lock().await;
        let Some(prober) = prober.as_mut() else { return Ok(()) };
        let rows = filler.progress.rows();
        let space = filler.plan.chunk_space();
        let bytes = space.heap * rows / filler.plan.chunking.chunk_rows.max(1);
        let due = if at_end { prober.due_at_end(bytes) } else { prober.due(bytes) };
        if !due || rows == 0 {
            return Ok(());
        }
        let asked = Instant::now();
        let _alone = self.loading.write().await;
        let rows = filler.progress.rows();
        let bytes = filler.sizes(session).await?.heap;
        let budget = prober.budget(self.started.elapsed());
        match prober.run(&session.connection.client, rows, bytes, budget).await {
            Ok(point) => {
                filler.observer.probed(&point);
                let mut generated = filler.generated();
                generated.probes.push(point);
                generated.probing += asked.elapsed();
                Ok(())
            }
            Err(error) => Err(session.connection.explain(error).await.into()),
        }
    }
}
