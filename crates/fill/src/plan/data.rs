//! The plan of a fill, as data: `--explain` prints it, the run document holds it, the steps obey
//! it.

use std::num::NonZeroU16;
use std::ops::Range;

use page::Geometry;
use rowgen::{Column, Payload, pgbench};
use serde::{Serialize, Serializer};

use crate::ledger::Unfinished;
use crate::limits::{ChunkSpace, Owed, WalUse};
use crate::plan::bulk::ForeignKeys;
use crate::plan::chunks::{Chunk, Chunking, Spread};
use crate::plan::method::{IndexBuild, Method, SORT_TAPE_BYTES};
use crate::plan::sizes::Prediction;
use crate::plan::tables::Tables;
use crate::probe::{ProbeError, ProbeKind, ProbeTable, Prober};
use crate::request::Share;
use crate::request::{
    Amount, CopyFormat, IndexKind, InitStep, InitSteps, Part, Partitions, Persistence, Request, Subject,
    Triggers,
};
use crate::run::direct::DataDirectory;
use catalog::SequenceTaken;
use server::quote::qualified;

/// The plan of a fill, with its reasons.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Plan {
    /// The request, only for the ledger: the same request given again completes the fill. All that has been
    /// decided is in the other fields.
    #[serde(skip)]
    pub(crate) request: Request,
    /// The server's blocks.
    #[serde(skip)]
    pub(crate) geometry: Geometry,
    /// The server's major version.
    #[serde(skip)]
    pub(crate) major: u32,
    /// The kind of tables.
    pub subject: Subject,
    /// Whether rows are added to those that are there.
    #[serde(skip)]
    pub append: bool,
    /// Statements that create a table of the user's.
    #[serde(skip)]
    pub(crate) create: Vec<String>,
    /// Schema of the tables.
    pub schema: String,
    /// Whether that schema has to be created.
    pub create_schema: bool,
    /// Existing tables that are dropped first.
    pub dropped: Vec<String>,
    /// Bytes that those take, as of their last vacuum.
    pub dropped_bytes: u64,
    /// Whether a ledger exists of a fill that will not be completed. It is dropped too.
    #[serde(skip)]
    pub(crate) stale_ledger: bool,
    /// The tables with their final numbers of rows. In documents: the columns of a user's table and
    /// their values.
    #[serde(rename = "columns", serialize_with = "columns")]
    pub(crate) tables: Tables,
    /// Whether every column of a table of the user's can be sent in binary.
    #[serde(skip)]
    pub(crate) binary: bool,
    /// Sequences whose values pgrig computes itself. Before the first row they are set beyond these
    /// values.
    #[serde(skip)]
    pub(crate) sequences: Vec<SequenceTaken>,
    /// The column by which probes look rows up, if there is one.
    #[serde(skip)]
    pub(crate) key: Option<RowKey>,
    /// Empty tables that are truncated with the bulk table because they reference it, qualified and quoted.
    #[serde(skip)]
    pub(crate) truncated_with: Vec<String>,
    /// The most rows that the keys of a table of the user's leave room for, and why.
    #[serde(skip)]
    pub most_rows: Option<(u64, String)>,
    /// Warnings for the user.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Whether the predicted sizes are estimates.
    #[serde(skip)]
    pub is_size_estimated: bool,
    /// Bytes that the tables shall take in the end, where that is measured as they grow.
    pub until_size: Option<u64>,
    /// The rows of the bulk table, in chunks.
    pub chunking: Chunking,
    /// Whether the tables that the request creates are there, all unlogged and empty, as a crash leaves them after
    /// the fill: they are filled again.
    #[serde(skip)]
    pub emptied: bool,
    /// The work of an earlier, interrupted run of this request.
    #[serde(skip)]
    pub(crate) unfinished: Option<Unfinished>,
    /// pgbench's scale: rows of pgbench_branches; of a fill without an end the scale so far.
    pub scale: u64,
    /// Branches that are there before.
    pub(crate) scale_before: u64,
    /// Whether ids are bigint, where the tables are there already.
    #[serde(skip)]
    pub(crate) wide_ids: Option<bool>,
    /// Whether the tables are logged.
    pub persistence: Persistence,
    /// Fillfactor of the tables, percent.
    pub fillfactor: u8,
    /// Partitions of the bulk table.
    pub partitions: Option<Partitions>,
    /// The bulk table's index.
    pub index: IndexKind,
    /// Tablespace of tables.
    pub tablespace: Option<String>,
    /// Tablespace of indexes.
    pub index_tablespace: Option<String>,
    /// Whether autovacuum may visit the tables.
    pub autovacuum: bool,
    /// The content of the filler column.
    pub payload: Payload,
    /// The steps, in order.
    pub steps: InitSteps,
    /// Method of making and loading rows.
    pub method: Method,
    /// The data directory that pages are written into, if that is the method.
    #[serde(skip)]
    pub(crate) data_directory: Option<DataDirectory>,
    /// Connections that load at once; of the method direct, threads that write.
    pub streams: NonZeroU16,
    /// Rows that one COPY command loads at most.
    pub(crate) copy_rows: u64,
    /// Whether the checkpointer is kept writing while rows come in, so that two cores are at work.
    pub(crate) write_behind: bool,
    /// Whether loading sessions have the kernel start writing early (`backend_flush_after`), so that
    /// the disk works while rows are made, not after. For unlogged tables, whose commit waits for no
    /// disk, that only makes the load wait: 8 GB come at 470 MB/s so, at 600 otherwise.
    pub(crate) flush_early: bool,
    /// Options of VACUUM; none without that step.
    pub vacuum: Option<&'static str>,
    /// Whether rows are frozen behind the load, if that ends where space does.
    #[serde(skip)]
    pub(crate) freezes: bool,
    /// Check of the foreign keys of a user's table for rows by COPY.
    #[serde(skip)]
    pub(crate) foreign_keys: ForeignKeys,
    /// Triggers of a table of the user's that do not run for the rows, because the request says so.
    #[serde(skip)]
    pub(crate) silenced: Vec<String>,
    /// Format in which COPY gets the rows.
    pub format: CopyFormat,
    /// Method of building indexes; none without that step.
    pub(crate) index_build: Option<IndexBuild>,
    /// Predicted sizes; for a fill without an end, those of a chunk.
    pub predicted: Prediction,
    /// The reasons for method, streams and format: a sentence each.
    pub reasons: Vec<String>,
}

/// An indexed integer column that ascends by one from row to row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    /// Its unquoted name.
    pub column: String,
    /// The value of the first row that is loaded.
    pub first: i64,
}

/// Rows that ids of type integer are enough for.
pub(crate) const MOST_NARROW_IDS: u64 = i32::MAX as u64;

/// Bytes of heap that have a byte in the maps that a vacuum makes: free space map and visibility map.
const HEAP_PER_MAPS: u64 = 3600;

impl Plan {
    /// Whether the plan has this step.
    pub fn includes(&self, step: InitStep) -> bool {
        self.steps.include(step)
    }

    /// Whether the tables that the request creates are there.
    pub(crate) fn is_created(&self) -> bool {
        self.unfinished.is_some() || self.emptied
    }

    /// Whether tables are created, filled and committed in one transaction.
    pub fn is_single_transaction(&self) -> bool {
        let created_here = self.includes(InitStep::Create) && !self.is_created();
        self.method.is_frozen() && self.chunking.spread == Spread::Table && created_here
    }

    /// Makes one transaction empty the table and load all `rows` rows.
    pub(crate) fn load_whole(&mut self, rows: u64) {
        self.method = Method::FrozenCopy;
        self.streams = NonZeroU16::MIN;
        self.chunking.chunk_rows = rows;
        self.copy_rows = rows;
        self.predicted.wal = 0;
        self.vacuum = self.vacuum.map(|_| "ANALYZE");
    }

    /// Sessions that load at once. A leaf that is written directly needs but one.
    pub(crate) fn sessions(&self) -> NonZeroU16 {
        let leaves = u16::try_from(self.chunking.spread.leaves()).unwrap_or(u16::MAX);
        match self.method {
            Method::Direct => self.streams.min(NonZeroU16::new(leaves).unwrap_or(NonZeroU16::MIN)),
            _ => self.streams,
        }
    }

    /// Whether triggers of the user's table run for the rows.
    pub(crate) fn triggers(&self) -> Triggers {
        self.request.triggers()
    }

    /// Whether COPY loads chunks with triggers off.
    pub(crate) fn turns_triggers_off(&self) -> bool {
        self.method.copies() && (self.foreign_keys == ForeignKeys::BySet || !self.silenced.is_empty())
    }

    /// Whether the bulk table's key is written with its rows.
    pub(crate) fn writes_key(&self) -> bool {
        self.method == Method::Direct
            && self.index == IndexKind::Btree
            && self.steps.order(InitStep::Generate, InitStep::PrimaryKeys)
    }

    /// Whether constant columns have their value as a default while rows are loaded. Only in tables
    /// that pgrig creates and may alter.
    pub(crate) fn has_load_defaults(&self) -> bool {
        !self.is_own_table() && self.includes(InitStep::Create)
    }

    /// Number under which the ledger records that the leaf of a chunk has been spread out; none if
    /// leaves are not spread out.
    pub(crate) fn exploded(&self, chunk: u64) -> Option<u64> {
        (self.method == Method::Explode).then(|| self.chunks() + chunk)
    }

    /// Numbers of the rows of `pgbench_branches` that come with a chunk: those whose first account is in it, so
    /// that at every commit the accounts that are there have theirs.
    pub(crate) fn branches(&self, chunk: &Chunk) -> Range<u64> {
        let by_hash = matches!(self.chunking.spread, Spread::Hash { .. });
        if self.subject != Subject::Pgbench || (by_hash && chunk.leaf > 0) || chunk.rows.is_empty() {
            return 0..0;
        }
        let per_branch = pgbench::ACCOUNTS_PER_SCALE;
        let is_first = chunk.rows.start == self.chunking.first_row;
        let first = if is_first { self.scale_before } else { chunk.rows.start.div_ceil(per_branch) };
        let first = first.max(self.scale_before);
        first..chunk.rows.end.div_ceil(per_branch).min(self.scale).max(first)
    }

    /// Percent of each page that is filled while rows come in.
    pub(crate) fn load_fillfactor(&self) -> u8 {
        if self.method == Method::Explode { 100 } else { self.fillfactor }
    }

    /// Space of the first group of chunks.
    pub(crate) fn first_space(&self) -> ChunkSpace {
        let by_hash = matches!(self.chunking.spread, Spread::Hash { .. }) && self.rows().is_none();
        self.chunk_space().times(if by_hash { self.chunking.spread.leaves().into() } else { 1 })
    }

    /// The space of a chunk, including that of later steps for its rows.
    pub(crate) fn chunk_space(&self) -> ChunkSpace {
        let rows = self.rows().unwrap_or(self.chunking.chunk_rows).max(1);
        let chunk = self.chunking.chunk_rows.min(rows);
        let share = |bytes: u64| u64::try_from(u128::from(bytes) * u128::from(chunk) / u128::from(rows));
        let share = |bytes| share(bytes).unwrap_or(u64::MAX);
        let Prediction { sizes, wal, .. } = self.predicted;
        let (heap, keys, wal) = (share(sizes.heap), share(sizes.index), share(wal));
        let maps = if self.freezes { 0 } else { heap / HEAP_PER_MAPS };
        if let Some(build) = self.index_build.filter(|_| !self.has_keys_early()) {
            let (sort, sort_memory) = (chunk * SORT_TAPE_BYTES, build.tape_in_memory());
            let later = Owed { keys, sort, sort_memory, wal: keys.min(wal), maps };
            return ChunkSpace { heap, keys: 0, wal, later };
        }
        // Keys that several streams add split pages in halves.
        let keys = if self.streams.get() > 1 { keys * 2 } else { keys };
        ChunkSpace { heap, keys, wal, later: Owed { maps, ..Owed::default() } }
    }

    /// The bulk table's name in its schema, quoted.
    pub fn bulk_qualified(&self) -> String {
        qualified(&self.schema, &self.tables.bulk.name)
    }

    /// The table of the user's, and those that are truncated with it, qualified and quoted.
    pub(crate) fn truncated(&self) -> Vec<String> {
        [self.bulk_qualified()].into_iter().chain(self.truncated_with.iter().cloned()).collect()
    }

    /// Largest number of chunks: without an end, as many as there are ids for.
    pub(crate) fn chunks(&self) -> u64 {
        match (self.chunking.count(), self.wide_ids) {
            (Some(count), _) => count,
            (None, Some(false)) => {
                MOST_NARROW_IDS.saturating_sub(self.chunking.first_row) / self.chunking.chunk_rows
            }
            (None, _) => u64::MAX,
        }
    }

    /// Bytes of heap that `rows` rows of the bulk table take.
    pub(crate) fn heap_of(&self, rows: u64) -> u64 {
        let known = self.rows().unwrap_or(self.chunking.chunk_rows).max(1);
        let heap = u128::from(self.predicted.sizes.heap) * u128::from(rows) / u128::from(known);
        u64::try_from(heap).unwrap_or(u64::MAX)
    }

    /// Whether a lack of room for rows is acceptable: an earlier run may have loaded all rows, so
    /// that only keys are missing.
    pub(crate) fn may_be_full(&self) -> bool {
        self.chunks_done() > 0
    }

    /// The space that later steps need for the rows of an interrupted run.
    pub(crate) fn owed(&self) -> Owed {
        self.chunk_space().later.times(self.chunks_done())
    }

    /// Whether keys exist while rows are loaded.
    fn has_keys_early(&self) -> bool {
        !self.steps.order(InitStep::Generate, InitStep::PrimaryKeys)
    }

    /// Probes of this kind into the bulk table.
    pub(crate) fn prober(&self, kind: ProbeKind) -> Result<Prober, ProbeError> {
        let name = self.bulk_qualified();
        let key = self.key.clone();
        if key.is_none() && kind.needs_index() {
            return Err(ProbeError::NoKey { probe: kind.name(), table: name });
        }
        let is_made_here = !self.is_own_table() && self.includes(InitStep::Create);
        let keys_early = self.steps.order(InitStep::PrimaryKeys, InitStep::Generate);
        if kind.needs_index() && is_made_here && (!keys_early || self.index == IndexKind::None) {
            let key = key.map_or(String::new(), |key| key.column);
            return Err(ProbeError::NoIndex { probe: kind.name(), table: name, key });
        }
        let RowKey { column, first } = key.unwrap_or(RowKey { column: String::new(), first: 1 });
        let table = ProbeTable { name, key: column, first_key: first };
        Ok(Prober::new(kind, table, self.geometry, self.major, self.tables.bulk.seed))
    }

    /// Share of the loaded rows that goes through WAL.
    pub(crate) fn wal_use(&self) -> WalUse {
        match (self.predicted.wal, self.rows()) {
            (0, _) => WalUse::Little,
            (_, None) => WalUse::Full,
            (wal, Some(_)) => WalUse::Total(wal),
        }
    }

    /// The rows that the predicted sizes are of.
    pub fn predicted_rows(&self) -> u64 {
        // A table that grows to its size is predicted chunk by chunk; not one of several, whose rows are known.
        let is_open = self.until_size.is_some() && !matches!(self.request.amount, Amount::Rows(_));
        let rows = self.chunking.rows.filter(|_| !is_open);
        rows.unwrap_or(self.chunking.chunk_rows).max(1)
    }

    /// Rows that are loaded in all, those of an interrupted run included; none if only a limit ends it.
    pub fn rows(&self) -> Option<u64> {
        if self.until_size.is_some() { None } else { self.chunking.rows }
    }

    /// Whether chunks are recorded: whenever rows are generated in more than one statement.
    pub(crate) fn has_ledger(&self) -> bool {
        self.includes(InitStep::Generate) && self.method != Method::CreateTableAs
    }

    /// Whether the table is the user's.
    pub fn is_own_table(&self) -> bool {
        self.tables.is_own
    }

    /// Columns of the bulk table.
    pub fn columns(&self) -> &[Column] {
        &self.tables.bulk.columns
    }

    /// Whether an interrupted run of the same request is completed.
    pub fn is_resumed(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Unquoted name of the table that holds the bulk.
    pub fn bulk_name(&self) -> &str {
        &self.tables.bulk.name
    }

    /// Rows that are there already.
    pub fn rows_done(&self) -> u64 {
        self.unfinished.as_ref().map_or(0, Unfinished::rows)
    }

    /// The part of the fill that this process loads; none if it loads all.
    pub fn part(&self) -> Option<Part> {
        self.request.part
    }

    /// The chunks that this process loads; none if it loads all.
    pub(crate) fn share(&self) -> Option<Share> {
        Some(Share::of(self.part()?, self.request.place.unwrap_or(0).into(), self.is_ordered()))
    }

    /// Whether rows reference earlier rows of the same table.
    pub(crate) fn is_ordered(&self) -> bool {
        self.tables.bulk.columns.iter().any(|column| column.values.are_of_earlier_rows())
    }

    /// Numbers of this process's chunks, and of all chunks, if it is one of several parts.
    pub fn shares(&self) -> Option<(u64, u64)> {
        let all = self.chunks();
        Some((self.share()?.count(all), all))
    }

    /// Chunks that are loaded already.
    pub fn chunks_done(&self) -> u64 {
        self.unfinished.as_ref().map_or(0, Unfinished::chunks)
    }
}

fn columns<S: Serializer>(tables: &Tables, serializer: S) -> Result<S::Ok, S::Error> {
    let column = |column: &Column| serde_json::json!({ "name": column.name, "type": column.kind.sql(), "values": column.phrase() });
    let columns = tables.is_own.then(|| tables.bulk.columns.iter().map(column).collect::<Vec<_>>());
    columns.serialize(serializer)
}
