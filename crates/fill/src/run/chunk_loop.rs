//! The loop over chunks.

use std::time::Instant;

use tokio::sync::{Mutex, RwLock};

use crate::cause::Cause;
use crate::ledger::Ledger;
use crate::limits::{Admission, AdmissionControl, OutOfSpace, Shortage, StopReason};
use crate::request::InitStep;
use crate::run::direct::{self, Direct};
use crate::run::filler::Filler;
use crate::run::growth::{self, Growth, Next, Size};
use crate::run::load_chunk::LoadedParts;
use crate::run::queue::Queue;
use crate::run::rate::RateMeter;
use crate::run::sink::Sink;
use connect::ConnectError;
use server::Session;

/// The loop's shared state.
pub(super) struct ChunkLoop<'f, 'a> {
    pub(super) filler: &'f Filler<'a>,
    pub(super) ledger: &'f Ledger,
    pub(super) sink: Sink<'f>,
    /// The writer of pages, if that is the method.
    pub(super) direct: Option<Direct<'f>>,
    pub(super) meter: &'f RateMeter,
    pub(super) started: Instant,
    pub(super) queue: Queue<'f>,
    /// Growth of the table, if it has to reach a size.
    pub(super) growth: Option<Mutex<Growth>>,
    /// Streams hold a read lock while they load a chunk. A probe takes the write lock, so that it
    /// runs alone.
    pub(super) loading: RwLock<()>,
}

impl ChunkLoop<'_, '_> {
    pub(super) fn sent(&self, rows: u64) {
        self.meter.add(rows);
        self.filler.observer.rows_sent(rows);
    }

    /// Loads the only chunk in the transaction that created the tables, and commits it.
    pub(super) async fn all_in_one(&self, session: &Session) -> Result<u64, Cause> {
        let filler = self.filler;
        filler.copy_small_tables(session).await?;
        let chunk = filler.plan.chunking.chunk(0);
        let parts = self.ledger.relations.parts(filler.plan, &chunk);
        for part in &parts {
            self.ledger.claim(session, part.destination, chunk.number).await?;
        }
        let LoadedParts { rows, records, recorded, unproved } = self.parts(session, &chunk, &parts).await?;
        direct::prove(session, &unproved).await?;
        filler.drop_defaults(session).await?;
        session.run(&format!("{}; COMMIT", records.join("; "))).await?;
        direct::close(recorded)?;
        filler.progress.commit_tables();
        filler.progress.commit_rows(rows);
        Ok(rows)
    }

    /// Loads chunks as long as there are any and limits allow it.
    pub(super) async fn stream(&self) -> Result<(), Cause> {
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
            if let Some(control) = &self.filler.control {
                stop = self.load_admitted(control, &session, rows).await?;
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

    /// Number of rows that the next chunk may have; none if the requested size is reached.
    pub(super) async fn wanted(&self, session: &Session) -> Result<Option<u64>, ConnectError> {
        let Some(growth) = &self.growth else { return Ok(Some(u64::MAX)) };
        let mut growth = growth.lock().await;
        let next = match growth.next() {
            Next::Measure => {
                let at_rest = growth.is_at_rest();
                growth.measured(self.size(session, at_rest).await?)
            }
            next => next,
        };
        Ok(match next {
            Next::Load(rows) => Some(rows),
            Next::End | Next::Measure => None,
        })
    }

    /// Size of the bulk table with its indexes, and with the maps that the vacuum will make, bytes.
    async fn size(&self, session: &Session, at_rest: bool) -> Result<Size, ConnectError> {
        /// More bytes than streams leave empty.
        const LAST: i64 = 512;
        let (plan, name) = (self.filler.plan, &self.filler.plan.tables.bulk.name);
        let vacuum = plan.includes(InitStep::Vacuum);
        let row = session.row(include_str!("../sql/growth.sql"), &[&plan.schema, name, &vacuum]).await?;
        let bytes = u64::try_from(row.get::<_, i64>("bytes")).unwrap_or_default();
        let (blocks, block_size): (i64, i64) =
            (row.get::<_, Option<i64>>("blocks").unwrap_or(0), row.get("block_size"));
        if !at_rest || !growth::extends_by_many_pages(plan) || blocks == 0 {
            return Ok(Size { bytes, heap: 0, empty: 0 });
        }
        let first = (blocks - LAST).max(0);
        let used = format!(
            "SELECT count(DISTINCT (ctid::text::point)[0]) FROM ONLY {} WHERE ctid >= '({first},0)' AND ctid < '({blocks},0)'",
            plan.bulk_qualified()
        );
        let used: i64 = session.row(&used, &[]).await?.get(0);
        let empty = (blocks - first - used).max(0) * block_size;
        let [heap, empty] =
            [blocks * block_size, empty].map(|bytes| u64::try_from(bytes).unwrap_or_default());
        Ok(Size { bytes, heap, empty })
    }

    /// Loads a chunk of at most `rows` rows once the control admits one; returns the reason if
    /// none may begin any more. The chunk is taken from the queue only then, so that no chunk is
    /// skipped.
    async fn load_admitted(
        &self,
        control: &AdmissionControl<'_>,
        session: &Session,
        rows: u64,
    ) -> Result<Option<StopReason>, Cause> {
        let group = self.queue.group();
        let space = self.filler.plan.chunk_space();
        let mut admission = self.unless_stopped(control.before_chunk_of(space, group)).await?;
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
                control.chunk_failed(ticket);
                return Ok(None);
            };
            let error = match self.load_with_ballast(session, &chunk).await {
                Ok(()) => {
                    control.chunk_done(ticket);
                    return Ok(None);
                }
                Err(error) => error,
            };
            let shortage = match &error {
                Cause::Server(error) => Shortage::of(error),
                _ => None,
            };
            let Some(shortage) = shortage else {
                control.chunk_failed(ticket);
                return Err(error);
            };
            session.run("ROLLBACK").await?;
            self.filler.generated().rolled_back = true;
            self.filler.give_up_ballast(session).await?;
            taken = Some(chunk);
            admission = self.unless_stopped(control.chunk_short(ticket, shortage)).await?;
        }
    }

    /// The answer of the admission control, unless the user wants to stop while it waits.
    pub(super) async fn unless_stopped(
        &self,
        answer: impl Future<Output = Result<Admission, OutOfSpace>>,
    ) -> Result<Admission, Cause> {
        tokio::select! {
            answer = answer => Ok(answer?),
            () = self.filler.stopped() => Err(Cause::Interrupted),
        }
    }

    /// Spreads out leaves that an interrupted run has loaded but not spread out.
    pub(super) async fn explode_loaded(&self, session: &Session) -> Result<(), ConnectError> {
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

    /// Probes the table if it has grown enough, while no stream loads.
    pub(super) async fn probe(&self, session: &Session, at_end: bool) -> Result<(), Cause> {
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
