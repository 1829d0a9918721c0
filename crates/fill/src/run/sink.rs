//! How a chunk's rows get into their relation: by COPY, or made by the server itself.

use std::ops::Range;

use rowgen::{Column, Constants, Table, Values, pgbench};

use crate::ledger::relations::{ChunkPart, PartRows};
use crate::plan::chunks::{Chunk, Spread};
use crate::plan::sizes::tuple;
use crate::plan::tables::{Tables, leaves};
use crate::plan::{Method, Plan};
use crate::run::copy::Copy;
use crate::run::rows::{Partition, RowSource};
use connect::ConnectError;
use server::Session;
use server::quote::{identifier, qualified};

/// Loads chunks of the bulk table, whatever the method.
pub(crate) struct Sink<'a> {
    plan: &'a Plan,
    bulk: &'a Table,
    leaves: Vec<String>,
    copy: Copy,
    /// Length of the tuples; set only for leaves that one stream fills whole, where the heap's
    /// growth follows from it.
    layout: Option<u32>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(plan: &'a Plan, tables: &'a Tables) -> Self {
        let bulk = &tables.bulk;
        let constants = if plan.has_load_defaults() { Constants::Defaulted } else { Constants::Sent };
        let copy = Copy::new(&plan.schema, bulk, plan.format, constants, plan.method.is_frozen());
        let repeats = plan.method == Method::Reinsert && plan.partitions.is_some();
        // Rows of a table of the user's differ in length.
        let fills_whole = plan.method.is_frozen() && plan.method.copies() && !plan.is_own_table();
        let layout = (fills_whole || repeats).then(|| tuple(bulk));
        Self { plan, bulk, leaves: leaves(bulk, plan.partitions), copy, layout }
    }

    /// Unquoted name of the relation that the chunk goes to.
    pub(crate) fn relation(&self, chunk: &Chunk) -> &str {
        &self.leaves[chunk.leaf as usize]
    }

    /// Prepares the destinations of these parts, in the chunk's transaction, before rows of the bulk table come.
    pub(crate) fn prologue(&self, chunk: &Chunk, parts: &[ChunkPart]) -> Vec<String> {
        let branches = self.plan.branches(chunk);
        let statement = |part: &ChunkPart| match part.rows {
            PartRows::Rows { .. } => None,
            PartRows::Branches => Some(self.branches(&branches)),
            PartRows::Tellers => Some(self.tellers(&branches)),
        };
        let has_rows = parts.iter().any(|part| matches!(part.rows, PartRows::Rows { .. }));
        let truncate = if has_rows { self.truncate(chunk) } else { None };
        truncate.into_iter().chain(parts.iter().filter_map(statement)).collect()
    }

    fn truncate(&self, chunk: &Chunk) -> Option<String> {
        let relation = qualified(&self.plan.schema, self.relation(chunk));
        // COPY can freeze the rows of a table that was truncated in the same transaction, and writes no WAL for them
        // with wal_level = minimal.
        let frozen = self.plan.method.is_frozen() && !self.plan.is_single_transaction();
        let tables = [relation].into_iter().chain(self.plan.truncated_with.iter().cloned());
        frozen.then(|| format!("TRUNCATE {}", tables.collect::<Vec<_>>().join(", ")))
    }

    /// The statement that inserts these rows of pgbench_branches, by their numbers.
    fn branches(&self, rows: &Range<u64>) -> String {
        format!(
            "INSERT INTO {} (bid, bbalance) SELECT b, 0 FROM generate_series({}, {}) b",
            qualified(&self.plan.schema, "pgbench_branches"),
            rows.start + 1,
            rows.end
        )
    }

    /// The statement that inserts the tellers of these branches.
    fn tellers(&self, branches: &Range<u64>) -> String {
        let per_branch = pgbench::TELLERS_PER_SCALE;
        format!(
            "INSERT INTO {} (tid, bid, tbalance) SELECT t, (t - 1) / {per_branch} + 1, 0 \
             FROM generate_series({}, {}) t",
            qualified(&self.plan.schema, "pgbench_tellers"),
            branches.start * per_branch + 1,
            branches.end * per_branch
        )
    }

    /// Loads the chunk's rows, with a condition only those that fulfil it, and counts them; `sent` is called
    /// with the number of rows as they go.
    pub(crate) async fn load(
        &self,
        session: &Session,
        chunk: &Chunk,
        condition: Option<&str>,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, ConnectError> {
        if self.plan.method != Method::Server {
            return self.copy(session, chunk, condition, sent).await;
        }
        let rows = session.execute(&self.series(chunk, condition)).await?;
        sent(rows);
        Ok(rows)
    }

    async fn copy(
        &self,
        session: &Session,
        chunk: &Chunk,
        condition: Option<&str>,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, ConnectError> {
        let mut rows = self.rows(chunk);
        let mut loaded = 0;
        while rows.left() > 0 {
            let most = self.copy_rows(rows.left());
            let relation = self.relation(chunk);
            match self.copy.load(&session.connection, relation, &mut rows, most, condition, sent).await {
                Ok(rows) => loaded += rows,
                Err(error) => return Err(session.connection.explain(error).await),
            }
        }
        Ok(loaded)
    }

    /// The chunk's rows. If rows are re-inserted, a leaf by hash gets its seed rows (those of its
    /// first chunk) again; in a table or a leaf by range, ids continue from chunk to chunk.
    pub(crate) fn rows(&self, chunk: &Chunk) -> RowSource {
        let Spread::Hash { leaves } = self.plan.chunking.spread else {
            return RowSource::new(chunk.rows.clone(), None);
        };
        let partition = Partition { modulus: leaves, remainder: chunk.leaf };
        if self.plan.method == Method::Reinsert {
            let share = (chunk.rows.end - chunk.rows.start).div_ceil(u64::from(leaves));
            return RowSource::first(share, self.plan.chunking.first_row, partition);
        }
        RowSource::new(chunk.rows.clone(), Some(partition))
    }

    /// Rows that the next COPY loads, of `left` rows. A COPY leaves up to 64 blocks empty if it has
    /// extended the heap too far. So the last rows of a leaf that only one stream fills are loaded
    /// by COPY commands that end exactly at an extension.
    fn copy_rows(&self, left: u64) -> u64 {
        let plan = self.plan;
        let most = left.min(plan.copy_rows);
        let Some(layout) = self.layout.filter(|_| most == left) else { return most };
        let per_page = u64::from(plan.geometry.rows_per_page(layout, plan.load_fillfactor()));
        let blocks = left.div_ceil(per_page);
        let even = plan.geometry.blocks_without_waste(layout, plan.load_fillfactor(), blocks);
        if even < blocks { even * per_page } else { left }
    }

    /// INSERT … SELECT generate_series. By hash the table itself takes the rows, and routes them.
    fn series(&self, chunk: &Chunk, condition: Option<&str>) -> String {
        let by_hash = matches!(self.plan.chunking.spread, Spread::Hash { .. });
        let relation = if by_hash { &self.bulk.name } else { self.relation(chunk) };
        let series = format!("generate_series({}::bigint, {}) n", chunk.rows.start + 1, chunk.rows.end);
        // Leaves by hash share a range: each chunk takes its part of it.
        let part = match self.plan.chunking.spread {
            Spread::Hash { leaves } => format!(" WHERE n % {leaves} = {}", chunk.leaf),
            Spread::Table | Spread::Range { .. } => String::new(),
        };
        let sent = self.bulk.columns.iter().filter(|column| !column.values.is_constant());
        let (names, values): (Vec<String>, Vec<String>) = sent
            .map(|column| {
                let name = identifier(&column.name);
                (name.clone(), format!("{} AS {name}", expression(column, "n")))
            })
            .unzip();
        let rows = format!("SELECT {} FROM {series}{part}", values.join(", "));
        let rows = match condition {
            Some(condition) => format!("SELECT * FROM ({rows}) rows WHERE {condition}"),
            None => rows,
        };
        format!("INSERT INTO {} ({}) {rows}", qualified(&self.plan.schema, relation), names.join(", "))
    }
}

/// A pgbench column's value as SQL over the id `n`, counted from 1.
fn expression(column: &Column, n: &str) -> String {
    let kind = column.kind.sql();
    match column.values {
        Values::Group { size, groups } => format!("least(({n} - 1) / {size} + 1, {groups})::{kind}"),
        _ => format!("{n}::{kind}"),
    }
}
