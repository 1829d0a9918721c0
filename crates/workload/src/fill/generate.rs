//! The step `generate`: one loop for all methods. Streams take chunk after chunk, a transaction each;
//! the chunk's number is recorded with its rows.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;

use super::chunks::Chunk;
use super::ddl;
use super::ledger::Ledger;
use super::plan::Method;
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
    /// Number of the chunk that is looked at next.
    next: AtomicU64,
    /// Which chunks there are to look at.
    end: u64,
}

impl Filler<'_> {
    /// Loads all chunks that are not loaded yet and returns the rows that came in. `session` is in
    /// the transaction that created the tables, if the plan is a single one.
    pub(super) async fn generate(&self, session: &Session) -> Result<u64, ConnectError> {
        let plan = self.plan;
        if plan.method == Method::CreateTableAs {
            return self.create_table_as(session).await;
        }
        let work = Loop {
            filler: self,
            ledger: Ledger::of(plan, &self.tables.bulk.name),
            sink: Sink::new(plan, &self.tables),
            next: AtomicU64::new(0),
            end: plan.chunking.count().unwrap_or(u64::MAX),
        };
        if plan.is_single_transaction() {
            let rows = self.with_write_behind(work.all_in_one(session)).await?;
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
        if plan.method == Method::Reinsert {
            work.seed(session).await?;
        }
        let streams = (0..plan.streams.get()).map(|_| work.stream());
        self.with_write_behind(try_join_all(streams)).await?;
        if plan.includes(InitStep::Create) {
            self.drop_defaults(session).await?;
        }
        Ok(self.progress.rows() - plan.rows_done())
    }

    /// Article 000's level 0: one statement makes table and rows.
    async fn create_table_as(&self, session: &Session) -> Result<u64, ConnectError> {
        let rows = session.execute(&ddl::create_table_as(self.plan, &self.tables.bulk)).await?;
        self.observer.rows_sent(rows);
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

    async fn with_write_behind<T>(
        &self,
        load: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, ConnectError> {
        if !self.plan.write_behind {
            return load.await;
        }
        tokio::select! {
            loaded = load => loaded,
            never = self.write_behind() => match never {},
        }
    }

    /// Keeps the checkpointer writing. A courtesy: without it the commit writes all.
    async fn write_behind(&self) -> Infallible {
        if let Ok(session) = self.sessions.open().await {
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

    pub(super) async fn drop_defaults(&self, session: &Session) -> Result<(), ConnectError> {
        let tables = self.tables.all().filter_map(|table| ddl::drop_defaults(self.plan, table));
        session.run_all(&tables.collect::<Vec<_>>()).await
    }
}

impl Loop<'_, '_> {
    /// The only chunk, in the transaction that created the tables; commits it.
    async fn all_in_one(&self, session: &Session) -> Result<u64, ConnectError> {
        let filler = self.filler;
        filler.copy_small_tables(session).await?;
        let chunk = filler.plan.chunking.chunk(0);
        self.ledger.claim(session, chunk.number).await?;
        let rows = self.sink.load(session, &chunk, &|rows| filler.observer.rows_sent(rows)).await?;
        filler.drop_defaults(session).await?;
        session.run(&format!("{}; COMMIT", self.ledger.record(chunk.number, rows))).await?;
        filler.progress.commit_tables();
        filler.progress.commit_rows(rows);
        Ok(rows)
    }

    /// Each leaf's first chunk, which the others repeat.
    async fn seed(&self, session: &Session) -> Result<(), ConnectError> {
        for leaf in 0..u64::from(self.filler.plan.chunking.spread.leaves()) {
            self.load(session, leaf).await?;
        }
        Ok(())
    }

    /// Takes chunks as long as there are any.
    async fn stream(&self) -> Result<(), ConnectError> {
        let session = self.filler.open_loader().await?;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                return Ok(());
            }
            self.load(&session, number).await?;
        }
    }

    /// Loads one chunk, unless it is there already.
    async fn load(&self, session: &Session, number: u64) -> Result<(), ConnectError> {
        let plan = self.filler.plan;
        let chunk = plan.chunking.chunk(number);
        let done = plan.unfinished.as_ref().is_some_and(|unfinished| unfinished.done.contains(&number));
        if done || chunk.rows.is_empty() {
            return Ok(());
        }
        session.run("BEGIN").await?;
        if !self.ledger.claim(session, number).await? {
            return session.run("ROLLBACK").await;
        }
        let rows = self.fill(session, &chunk).await?;
        session.run(&format!("{}; COMMIT", self.ledger.record(number, rows))).await?;
        self.filler.progress.commit_rows(rows);
        self.filler.explode(session, self.sink.relation(&chunk)).await
    }

    async fn fill(&self, session: &Session, chunk: &Chunk) -> Result<u64, ConnectError> {
        session.run_all(&self.sink.prologue(chunk)).await?;
        self.sink.load(session, chunk, &|rows| self.filler.observer.rows_sent(rows)).await
    }
}
