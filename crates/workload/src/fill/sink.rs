//! How a chunk's rows get into their relation: by COPY, or made by the server itself.

use rowgen::{Column, Constants, Table, Values, pgbench};

use super::chunks::{Chunk, Spread};
use super::copy::{Copy, Partition, Rows};
use super::plan::{Method, Plan};
use super::predict::tuple;
use super::request::Subject;
use super::session::Session;
use super::tables::{Tables, leaves};
use crate::connect::ConnectError;
use crate::quote::{identifier, qualified};

/// Loads chunks of the bulk table, whatever the method.
pub(super) struct Sink<'a> {
    plan: &'a Plan,
    bulk: &'a Table,
    leaves: Vec<String>,
    copy: Copy,
    /// The tuples' length, where the heap's growth follows from it: leaves that one stream fills whole.
    layout: Option<u32>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(plan: &'a Plan, tables: &'a Tables) -> Self {
        let bulk = &tables.bulk;
        let constants = if plan.has_load_defaults() { Constants::Defaulted } else { Constants::Sent };
        let copy = Copy::new(&plan.schema, bulk, plan.format, constants, plan.method.is_frozen());
        let repeats = plan.method == Method::Reinsert && plan.partitions.is_some();
        let fills_whole = plan.method.is_frozen() && plan.method.copies();
        let layout = (fills_whole || repeats).then(|| tuple(bulk));
        Self { plan, bulk, leaves: leaves(bulk, plan.partitions), copy, layout }
    }

    /// Unquoted name of the relation that the chunk goes to.
    pub(super) fn relation(&self, chunk: &Chunk) -> &str {
        &self.leaves[chunk.leaf as usize]
    }

    /// What has to be done in the chunk's transaction before its rows come.
    pub(super) fn prologue(&self, chunk: &Chunk) -> Vec<String> {
        let relation = qualified(&self.plan.schema, self.relation(chunk));
        // What is truncated in the same transaction can be frozen, and needs no WAL where wal_level
        // is minimal.
        let frozen = self.plan.method.is_frozen() && !self.plan.is_single_transaction();
        let truncate = frozen.then(|| format!("TRUNCATE {relation}"));
        truncate.into_iter().chain(self.branches(chunk)).collect()
    }

    /// pgbench's branches and tellers come with the chunk that has their first account, so that at
    /// every commit the accounts that are there have theirs.
    fn branches(&self, chunk: &Chunk) -> Vec<String> {
        let plan = self.plan;
        let by_hash = matches!(plan.chunking.spread, Spread::Hash { .. });
        if plan.subject != Subject::Pgbench || plan.is_single_transaction() || (by_hash && chunk.leaf > 0) {
            return Vec::new();
        }
        let per_branch = pgbench::ACCOUNTS_PER_SCALE;
        let is_first = chunk.rows.start == plan.chunking.first_row;
        let first = if is_first { plan.scale_before } else { chunk.rows.start.div_ceil(per_branch) }
            .max(plan.scale_before);
        let end = chunk.rows.end.div_ceil(per_branch).min(plan.scale);
        if first >= end || chunk.rows.is_empty() {
            return Vec::new();
        }
        let schema = &plan.schema;
        let per_teller = pgbench::TELLERS_PER_SCALE;
        vec![
            format!(
                "INSERT INTO {} (bid, bbalance) SELECT b, 0 FROM generate_series({}, {end}) b",
                qualified(schema, "pgbench_branches"),
                first + 1
            ),
            format!(
                "INSERT INTO {} (tid, bid, tbalance) SELECT t, (t - 1) / {per_teller} + 1, 0 \
                 FROM generate_series({}, {}) t",
                qualified(schema, "pgbench_tellers"),
                first * per_teller + 1,
                end * per_teller
            ),
        ]
    }

    /// Loads the chunk's rows and counts them; `sent` is told of them as they go.
    pub(super) async fn load(
        &self,
        session: &Session,
        chunk: &Chunk,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, ConnectError> {
        if self.plan.method != Method::Server {
            return self.copy(session, chunk, sent).await;
        }
        let rows = session.execute(&self.series(chunk)).await?;
        sent(rows);
        Ok(rows)
    }

    async fn copy(
        &self,
        session: &Session,
        chunk: &Chunk,
        sent: &(dyn Fn(u64) + Sync),
    ) -> Result<u64, ConnectError> {
        let mut rows = self.rows(chunk);
        let mut loaded = 0;
        while rows.left() > 0 {
            let most = self.copy_rows(rows.left());
            let relation = self.relation(chunk);
            match self.copy.load(&session.connection, relation, &mut rows, most, sent).await {
                Ok(rows) => loaded += rows,
                Err(error) => return Err(session.connection.explain(error).await),
            }
        }
        Ok(loaded)
    }

    /// The chunk's rows. Re-inserted into a leaf by hash they are the leaf's seed rows, those of its first
    /// chunk, once more; in a table or range ids go on from chunk to chunk.
    pub(super) fn rows(&self, chunk: &Chunk) -> Rows {
        let Spread::Hash { leaves } = self.plan.chunking.spread else {
            return Rows::new(chunk.rows.clone(), None);
        };
        let partition = Partition { modulus: leaves, remainder: chunk.leaf };
        if self.plan.method == Method::Reinsert {
            let share = (chunk.rows.end - chunk.rows.start).div_ceil(u64::from(leaves));
            return Rows::first(share, self.plan.chunking.first_row, partition);
        }
        Rows::new(chunk.rows.clone(), Some(partition))
    }

    /// Rows that the next COPY loads, of so many that are left. A COPY leaves the blocks empty by which
    /// it extended the heap too far, up to 64: so the last rows of a leaf that nobody else fills go in
    /// COPYs that end where the extension does.
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
    fn series(&self, chunk: &Chunk) -> String {
        let by_hash = matches!(self.plan.chunking.spread, Spread::Hash { .. });
        let relation = if by_hash { &self.bulk.name } else { self.relation(chunk) };
        let series = format!("generate_series({}::bigint, {}) n", chunk.rows.start + 1, chunk.rows.end);
        // Leaves by hash share a range: each chunk takes its part of it.
        let part = match self.plan.chunking.spread {
            Spread::Hash { leaves } => format!(" WHERE n % {leaves} = {}", chunk.leaf),
            Spread::Table | Spread::Range { .. } => String::new(),
        };
        self.insert(relation, "n", &format!("{series}{part}"))
    }

    /// Rows that follow from their ids in the column `n` of `from`.
    fn insert(&self, relation: &str, n: &str, from: &str) -> String {
        let sent = self.bulk.columns.iter().filter(|column| !column.values.is_constant());
        let (names, values): (Vec<String>, Vec<String>) =
            sent.map(|column| (identifier(&column.name), expression(column, n))).unzip();
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM {from}",
            qualified(&self.plan.schema, relation),
            names.join(", "),
            values.join(", ")
        )
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
