//! A chunk is loaded: a transaction that claims it in the ledger, loads its rows and records them.

use rowgen::pgbench::TELLERS_PER_SCALE;

use super::by_set::BySet;
use super::chunk_loop::ChunkLoop;
use super::filler::Filler;
use crate::cause::Cause;
use crate::ledger::relations::{ChunkPart, Destination, PartRows};
use crate::plan::chunks::Chunk;
use crate::run::direct::{self, Loaded, Recorded, Unproved};
use crate::sql::ddl;
use connect::ConnectError;
use server::Session;
use server::quote::qualified;

/// Parts of a chunk, before the commit.
#[derive(Default)]
pub(super) struct LoadedParts {
    /// Number of the bulk table's rows.
    pub(super) rows: u64,
    /// Statements that record the parts.
    pub(super) records: Vec<String>,
    /// The record of written files.
    pub(super) recorded: Option<Recorded>,
    /// Foreign keys that must be proved before the commit.
    pub(super) unproved: Vec<Unproved>,
}

impl ChunkLoop<'_, '_> {
    /// Loads one chunk after making sure that the ballast exists. If there is no room for the
    /// ballast, there is none for the chunk.
    pub(super) async fn load_with_ballast(&self, session: &Session, chunk: &Chunk) -> Result<(), Cause> {
        self.filler.hold_ballast(session).await?;
        self.load(session, chunk).await
    }

    /// Loads one chunk, unless another session has done so.
    pub(super) async fn load(&self, session: &Session, chunk: &Chunk) -> Result<(), Cause> {
        let _loading = self.loading.read().await;
        let plan = self.filler.plan;
        let parts = self.ledger.relations.parts(plan, chunk);
        let parts = self.ledger.begin_chunk(session, chunk.number, parts).await?;
        if parts.is_empty() {
            return Ok(session.run("ROLLBACK").await?);
        }
        let has_rows = parts.iter().any(|part| matches!(part.rows, PartRows::Rows { .. }));
        if has_rows {
            self.refuse_others_rows(session).await?;
        }
        session.run_all(&self.sink.prologue(chunk, &parts)).await?;
        let table = plan.bulk_qualified();
        let by_set = if plan.turns_triggers_off() && has_rows {
            BySet::begin(self.filler, session, &table).await?
        } else {
            None
        };
        let LoadedParts { rows, records, recorded, unproved } = self.parts(session, chunk, &parts).await?;
        direct::prove(session, &unproved).await?;
        if let Some(by_set) = by_set {
            by_set.prove(session, &table, rows).await?;
        }
        session.run(&format!("{}; COMMIT", records.join("; "))).await?;
        direct::close(recorded)?;
        self.filler.progress.commit_rows(rows);
        if has_rows {
            self.explode(session, chunk).await?;
        }
        Ok(())
    }

    /// Loads the bulk table's rows of these parts, without a proof of their foreign keys.
    pub(super) async fn parts(
        &self,
        session: &Session,
        chunk: &Chunk,
        parts: &[ChunkPart],
    ) -> Result<LoadedParts, Cause> {
        let mut loaded = LoadedParts::default();
        let branches = self.filler.plan.branches(chunk);
        let branches = branches.end - branches.start;
        for ChunkPart { destination, rows: which } in parts {
            let rows = match which {
                PartRows::Rows { condition } => {
                    let Loaded { rows, recorded, unproved } =
                        self.rows(session, chunk, condition.as_deref()).await?;
                    loaded.rows += rows;
                    loaded.recorded = recorded.or(loaded.recorded);
                    loaded.unproved.extend(unproved);
                    rows
                }
                PartRows::Branches => branches,
                PartRows::Tellers => branches * TELLERS_PER_SCALE,
            };
            loaded.records.push(self.ledger.record(*destination, chunk.number, rows));
        }
        Ok(loaded)
    }

    /// Makes sure that user's tables that will be truncated are still empty, and locks them until
    /// they are truncated.
    async fn refuse_others_rows(&self, session: &Session) -> Result<(), Cause> {
        let plan = self.filler.plan;
        if !plan.is_own_table() || !plan.method.is_frozen() {
            return Ok(());
        }
        self.filler.refuse_others_rows(session, &plan.truncated()).await
    }
}

impl Filler<'_> {
    /// Makes sure that tables that will be truncated are still empty, and locks them.
    pub(super) async fn refuse_others_rows(&self, session: &Session, tables: &[String]) -> Result<(), Cause> {
        let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", "));
        self.watched(session, &lock).await?;
        for table in tables {
            let row = session.row(&format!("SELECT EXISTS (SELECT FROM {table}) AS has_rows"), &[]).await?;
            let problem = "it has rows that another session inserted after this fill began";
            direct::refuse(table, row.get::<_, bool>("has_rows").then_some(problem))?;
        }
        Ok(())
    }
}

impl ChunkLoop<'_, '_> {
    /// Makes and loads the chunk's rows in the session's transaction, and counts them.
    /// With a condition only those that fulfil it.
    async fn rows(&self, session: &Session, chunk: &Chunk, condition: Option<&str>) -> Result<Loaded, Cause> {
        let sent = |rows| self.sent(rows);
        let Some(direct) = &self.direct else {
            let rows = self.sink.load(session, chunk, condition, &sent).await?;
            return Ok(Loaded { rows, ..Loaded::default() });
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
    pub(super) async fn explode(&self, session: &Session, chunk: &Chunk) -> Result<(), ConnectError> {
        let plan = self.filler.plan;
        let Some(number) = plan.exploded(chunk.number) else { return Ok(()) };
        let to = self.bulk_destination(chunk);
        for statement in ddl::explode(plan, self.sink.relation(chunk)) {
            session.run(&statement).await?;
        }
        self.ledger.claim(session, to, number).await?;
        Ok(())
    }

    /// Destination of the rows of a chunk that go to one relation.
    pub(super) fn bulk_destination(&self, chunk: &Chunk) -> Destination {
        let parts = self.ledger.relations.parts(self.filler.plan, chunk);
        parts.last().expect("the bulk comes last").destination
    }
}
