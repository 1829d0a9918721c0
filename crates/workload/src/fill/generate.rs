//! The step `generate`: one loop for all methods. Streams take chunk after chunk, a transaction each;
//! the chunk's number is recorded with its rows.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use measure::Unit;
use tokio::sync::{Mutex, RwLock};

use super::chunks::Chunk;
use super::ddl;
use super::error::Cause;
use super::ledger::Ledger;
use super::limits::{Admission, Governor, Shortage, StopReason, Ticket};
use super::plan::Method;
use super::rate::RateMeter;
use super::request::InitStep;
use super::session::Session;
use super::sink::Sink;
use super::steps::Filler;
use crate::connect::ConnectError;
use crate::quote::qualified;

/// Between forced checkpoints: enough comes in meanwhile to make the next one worth its fsync.
const WRITE_BEHIND_PAUSE: Duration = Duration::from_millis(20);

/// The loop's shared state.
struct Loop<'f, 'a> {
    filler: &'f Filler<'a>,
    ledger: Ledger,
    sink: Sink<'f>,
    meter: &'f RateMeter,
    started: Instant,
    /// Number of the chunk that is looked at next.
    next: AtomicU64,
    /// Which chunks there are to look at.
    end: u64,
    /// How the table grows, where it is to reach a size.
    growth: Mutex<Growth>,
    /// Chunks are read-locked while they are loaded, so that a probe has the server to itself.
    loading: RwLock<()>,
}

/// How a table grows by chunks.
#[derive(Debug, Default)]
struct Growth {
    /// What it took before the first one, bytes.
    before: Option<u64>,
    running: u64,
    done: u64,
}

impl Filler<'_> {
    /// Loads all chunks that are not loaded yet and returns the rows that came in. `session` is in
    /// the transaction that created the tables, if the plan is a single one.
    pub(super) async fn generate(&self, session: &Session) -> Result<u64, Cause> {
        let meter = RateMeter::start("rows-sent", Unit::Rows);
        let watch = async {
            match &self.governor {
                Some(governor) => governor.watch().await,
                None => std::future::pending().await,
            }
        };
        let loaded = tokio::select! {
            loaded = self.load_all(session, &meter) => loaded,
            never = meter.run() => match never {},
            never = watch => match never {},
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
        let work = Loop {
            filler: self,
            ledger: Ledger::of(plan, &self.tables.bulk.name),
            sink: Sink::new(plan, &self.tables),
            meter,
            started: Instant::now(),
            next: AtomicU64::new(0),
            end: plan.chunking.count().unwrap_or(u64::MAX),
            growth: Mutex::new(Growth::default()),
            loading: RwLock::new(()),
        };
        if plan.is_single_transaction() {
            let rows = work.all_in_one(session).await?;
            self.explode(session, work.sink.relation(&plan.chunking.chunk(0))).await?;
            return Ok(rows);
        }
        match (&plan.unfinished, plan.includes(InitStep::Create)) {
            (Some(_), true) => {
                self.set_defaults(session).await?;
                self.reclaim(session).await?;
            }
            (None, false) => session.run_all(&work.ledger.create(plan)).await?,
            (Some(_), false) | (None, true) => {}
        }
        if let Some(prober) = &*self.prober.lock().await {
            prober.check(&session.connection.client).await?;
        }
        try_join_all((0..plan.streams.get()).map(|_| work.stream())).await?;
        if plan.includes(InitStep::Create) {
            self.drop_defaults(session).await?;
        }
        work.probe(session, true).await?;
        Ok(self.progress.rows() - plan.rows_done())
    }

    /// Article 000's level 0: one statement makes table and rows.
    async fn create_table_as(&self, session: &Session, meter: &RateMeter) -> Result<u64, ConnectError> {
        let rows = session.execute(&ddl::create_table_as(self.plan, &self.tables.bulk)).await?;
        self.observer.rows_sent(rows);
        meter.add(rows);
        session.run("COMMIT").await?;
        self.progress.commit_tables();
        self.progress.commit_rows(rows);
        Ok(rows)
    }

    /// Spreads out a dense leaf, if that is the method.
    async fn explode(&self, session: &Session, leaf: &str) -> Result<(), ConnectError> {
        if self.plan.method == Method::Explode {
            for statement in ddl::explode(self.plan, leaf) {
                session.run(&statement).await?;
            }
        }
        Ok(())
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
        let Some(rows) = plan.rows() else { return Ok(()) };
        let wanted = plan.predicted.sizes.heap;
        let there = self.sizes(session).await?.heap;
        let needed = wanted * plan.rows_done() / rows.max(1);
        if there.saturating_sub(needed) > wanted / 200 {
            let table = qualified(&plan.schema, &self.tables.bulk.name);
            self.watched(session, &format!("VACUUM {table}")).await?;
        }
        Ok(())
    }

    async fn set_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        let tables = self.tables.all().filter_map(|table| ddl::set_defaults(self.plan, table));
        session.run_all(&tables.collect::<Vec<_>>()).await
    }

    async fn drop_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        let tables = self.tables.all().filter_map(|table| ddl::drop_defaults(self.plan, table));
        session.run_all(&tables.collect::<Vec<_>>()).await
    }
}

impl Loop<'_, '_> {
    fn sent(&self, rows: u64) {
        self.meter.add(rows);
        self.filler.observer.rows_sent(rows);
    }

    /// The only chunk, in the transaction that created the tables; commits it.
    async fn all_in_one(&self, session: &Session) -> Result<u64, ConnectError> {
        let filler = self.filler;
        filler.copy_small_tables(session).await?;
        let chunk = filler.plan.chunking.chunk(0);
        self.ledger.claim(session, chunk.number).await?;
        let rows = self.sink.load(session, &chunk, &|rows| self.sent(rows)).await?;
        filler.drop_defaults(session).await?;
        session.run(&format!("{}; COMMIT", self.ledger.record(chunk.number, rows))).await?;
        filler.progress.commit_tables();
        filler.progress.commit_rows(rows);
        Ok(rows)
    }

    /// Takes chunks as long as there are any, and limits let it.
    async fn stream(&self) -> Result<(), Cause> {
        let session = self.filler.open_loader().await?;
        let space = self.filler.plan.chunk_space();
        while self.wants_more(&session).await? {
            // A chunk is taken only once it may begin: so none is left out before the last.
            let admitted = match &self.filler.governor {
                Some(governor) => match governor.before_chunk(space).await? {
                    Admission::Go(ticket) => Some((governor, ticket)),
                    Admission::Stop(reason) => {
                        self.stop(reason);
                        return Ok(());
                    }
                },
                None => None,
            };
            let Some(chunk) = self.next_chunk() else {
                if let Some((governor, ticket)) = admitted {
                    governor.chunk_failed(ticket);
                }
                return Ok(());
            };
            let stop = if let Some((governor, ticket)) = admitted {
                self.govern(governor, ticket, &session, &chunk).await?
            } else {
                self.load(&session, &chunk).await?;
                None
            };
            self.chunk_ended().await;
            if let Some(reason) = stop {
                self.stop(reason);
                return Ok(());
            }
            self.probe(&session, false).await?;
        }
        Ok(())
    }

    /// Notes why no more chunks begin; what was first counts.
    fn stop(&self, reason: StopReason) {
        self.filler.generated().stop.get_or_insert(reason);
    }

    /// The next chunk that is not loaded yet and has rows.
    fn next_chunk(&self) -> Option<Chunk> {
        let plan = self.filler.plan;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                return None;
            }
            let chunk = plan.chunking.chunk(number);
            let done = plan.unfinished.as_ref().is_some_and(|begun| begun.done.contains(&number));
            if !done && !chunk.rows.is_empty() {
                return Some(chunk);
            }
        }
    }

    /// Whether the size that was asked for takes another chunk. The last stream at work decides on the
    /// size as it then is.
    async fn wants_more(&self, session: &Session) -> Result<bool, ConnectError> {
        let Some(goal) = self.filler.plan.until_size else { return Ok(true) };
        let mut growth = self.growth.lock().await;
        let size = self.filler.sizes(session).await?.total();
        let before = *growth.before.get_or_insert(size);
        let chunk = match growth.done {
            0 => self.filler.plan.chunk_space().heap,
            done => size.saturating_sub(before) / done,
        };
        let wanted = size + growth.running * chunk + chunk / 2 < goal;
        growth.running += u64::from(wanted);
        Ok(wanted)
    }

    async fn chunk_ended(&self) {
        if self.filler.plan.until_size.is_some() {
            let mut growth = self.growth.lock().await;
            growth.running -= 1;
            growth.done += 1;
        }
    }

    /// Loads a chunk that the governor lets begin, again if it lets it; gives the reason if none may
    /// begin any more.
    async fn govern(
        &self,
        governor: &Governor<'_>,
        mut ticket: Ticket,
        session: &Session,
        chunk: &Chunk,
    ) -> Result<Option<StopReason>, Cause> {
        loop {
            let error = match self.load(session, chunk).await {
                Ok(()) => {
                    governor.chunk_done(ticket);
                    return Ok(None);
                }
                Err(error) => error,
            };
            let Some(shortage) = Shortage::of(&error) else {
                governor.chunk_failed(ticket);
                return Err(error.into());
            };
            session.run("ROLLBACK").await?;
            ticket = match governor.chunk_short(ticket, shortage).await? {
                Admission::Go(ticket) => ticket,
                Admission::Stop(reason) => return Ok(Some(reason)),
            };
        }
    }

    /// Loads one chunk, unless another session has done so.
    async fn load(&self, session: &Session, chunk: &Chunk) -> Result<(), ConnectError> {
        let _loading = self.loading.read().await;
        session.run("BEGIN").await?;
        if !self.ledger.claim(session, chunk.number).await? {
            return session.run("ROLLBACK").await;
        }
        session.run_all(&self.sink.prologue(chunk)).await?;
        let rows = self.sink.load(session, chunk, &|rows| self.sent(rows)).await?;
        session.run(&format!("{}; COMMIT", self.ledger.record(chunk.number, rows))).await?;
        self.filler.progress.commit_rows(rows);
        self.filler.explode(session, self.sink.relation(chunk)).await
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
        let _alone = self.loading.write().await;
        let rows = filler.progress.rows();
        let bytes = filler.sizes(session).await?.heap;
        let budget = prober.budget(self.started.elapsed());
        match prober.run(&session.connection.client, rows, bytes, budget).await {
            Ok(point) => {
                filler.observer.probed(&point);
                filler.generated().probes.push(point);
                Ok(())
            }
            Err(error) => Err(session.connection.explain(error).await.into()),
        }
    }
}
