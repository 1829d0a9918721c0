//! From request and server to a plan. Why each rule is as it is stands with it; the figures are from
//! two cores and PostgreSQL 18.

pub(super) mod direct;

use std::num::NonZeroU16;

use page::Geometry;

use self::direct::Choice;
use crate::error::FillError;
use crate::ledger::Unfinished;
use crate::plan::chunks::{Chunking, Spread};
use crate::plan::data::{IndexBuild, MOST_NARROW_IDS, Method, Plan, SORT_MEMORY_BYTES};
use crate::plan::present::Present;
use crate::plan::row_range::{Target, needs_chunks, target};
use crate::plan::sizes::{Layout, tuple};
use crate::plan::tables::{Tables, leaf_rows};
use crate::request::{
    CopyFormat, IndexKind, InitStep, MethodChoice, PartitionMethod, Persistence, Request, Subject,
};
use crate::run::direct::{Ground, NotDirect};
use server::{ServerInfo, Site};

/// Bytes of heap below which a further stream does not pay: its COPY would end before it is warm.
const HEAP_PER_STREAM: u64 = 128 << 20;
/// Streams that are chosen at most: past these the server's own locks and the disk decide.
const MOST_STREAMS: u16 = 8;
/// Sessions beside the streams: pgrig's own, and those that the server keeps for superusers.
const OTHER_SESSIONS: u32 = 6;
/// Shared buffers that one COPY keeps to, bytes.
const COPY_RING: u64 = 16 << 20;
/// Blocks of that ring that are left unused, because a heap is extended by so many at once.
const EXTENSION: u64 = 64;
/// Parallel workers that an index build asks for at most; the server allows fewer by default.
const MOST_WORKERS: u32 = 7;
/// Heap that a chunk fills otherwise, bytes, at most: what a transaction that is rolled back leaves in
/// the table is no more than this for each stream.
const LARGE_CHUNK: u64 = 64 << 20;
/// Percent of a page up to which it pays to load densely and spread out afterwards.
const SPARSE: u8 = 50;
/// The first release whose COPY extends a heap by many blocks at once.
const EXTENDS_BY_MANY: u32 = 16;
/// Rows of a chunk by hash at least, where several together are a chunk of the table.
const FEW_ROWS: u64 = 10_000;
/// Rows of a chunk at least, as long as that is no more than [`LARGE_CHUNK`].
const CHUNK_ROWS: u64 = 100_000;

/// What is known of the schema before planning.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The schema's name.
    pub schema: String,
    /// Whether it exists.
    pub schema_exists: bool,
    /// Which of the tables' names are taken in it.
    pub tables: Vec<String>,
    /// Bytes that those take, as of their last vacuum.
    pub bytes: u64,
    /// Whether there is the ledger of a fill that will not be completed.
    pub stale_ledger: bool,
    /// A fill of the same request that was interrupted.
    pub unfinished: Option<Unfinished>,
    /// Rows of the bulk table, where rows are to be added: its largest id.
    pub rows: u64,
    /// Rows of pgbench_branches, where rows are to be added.
    pub scale: u64,
    /// See [`Plan::emptied`].
    pub emptied: bool,
    /// What follows from tables that are there; none if they are to be created.
    pub present: Option<Present>,
}

/// Threads that write pages.
pub(crate) fn writers(site: Site) -> NonZeroU16 {
    NonZeroU16::MIN.saturating_add(site.cores().min(MOST_STREAMS))
}

impl Plan {
    /// Plans the fill.
    ///
    /// # Errors
    /// If the request cannot be met.
    pub fn new(
        request: &Request,
        server: &ServerInfo,
        site: Site,
        ground: &Result<Ground, NotDirect>,
        found: Found,
    ) -> Result<Self, FillError> {
        request.check()?;
        let direct = direct::choice(request, server, site, ground, found.unfinished.as_ref(), Ok(()))?;
        let most = server.max_connections.saturating_sub(OTHER_SESSIONS).max(1);
        match request.streams.map(NonZeroU16::get) {
            Some(streams) if u32::from(streams) > most => return Err(FillError::Streams { streams, most }),
            _ => {}
        }
        let mut layout = Layout::of(request, server.geometry);
        if found.present.as_ref().is_some_and(|present| present.indexed) {
            layout.index = IndexKind::Btree;
        }
        let target = match &found.unfinished {
            Some(unfinished) => unfinished.target(),
            None => target(request, &layout, found.rows, found.scale)?,
        };
        // The method does not decide how many rows a size has.
        layout.direct = direct.is_chosen();
        let narrow = found.present.as_ref().is_some_and(|present| !present.wide_ids);
        match target.rows {
            Some(rows) if narrow && target.first_row + rows > MOST_NARROW_IDS => {
                let most = MOST_NARROW_IDS.saturating_sub(target.first_row);
                return Err(FillError::Rows { rows, most });
            }
            _ => {}
        }
        let scale = target.scale;
        let rows = target.rows.unwrap_or(u64::MAX - target.first_row);
        let tables = Tables::new(&request.subject, target.first_row + rows, scale, request.payload);
        Ok(Planner { request, server, site, direct, layout, tables, target }.plan(found))
    }
}

/// Everything that the rules look at.
pub(crate) struct Planner<'a> {
    pub request: &'a Request,
    pub server: &'a ServerInfo,
    pub site: Site,
    pub direct: Choice,
    pub layout: Layout,
    pub tables: Tables,
    pub target: Target,
}

impl Planner<'_> {
    fn plan(&self, found: Found) -> Plan {
        let (method, method_reason) = self.method(&found);
        let (streams, streams_reason) = self.streams(method);
        let chunking = self.chunking(method, streams, found.unfinished.as_ref());
        let (copy_rows, write_behind) = self.copies(method, chunking);
        let (format, format_reason) = self.format();
        let mut reasons = Vec::from_iter(method_reason.map(str::to_owned));
        reasons.extend(self.direct.reason());
        reasons
            .push(format!("{streams} stream{}: {streams_reason}", if streams.get() == 1 { "" } else { "s" }));
        if copy_rows < chunking.chunk_rows {
            reasons
                .push("COPYs of less than 16 MB: the table stays in shared_buffers as far as it fits".into());
        }
        if write_behind {
            reasons.push("the checkpointer writes behind the load (pgrig's own server)".into());
        }
        if method.copies() {
            reasons.push(format!("{} format: {format_reason}", format.name()));
        }
        let sorted = match self.layout.index {
            IndexKind::None => false,
            IndexKind::Btree => method != Method::Direct,
            IndexKind::Brin => true,
        };
        let builds = self.request.steps.include(InitStep::PrimaryKeys) && sorted;
        let index_build = builds.then(|| self.index_build());
        let predicted = self.predicted(method, chunking, index_build);
        let vacuum = self.request.steps.include(InitStep::Vacuum).then(|| self.vacuum(method));
        Plan {
            request: self.request.clone(),
            geometry: self.server.geometry,
            major: self.server.major(),
            subject: self.request.subject.clone(),
            schema: found.schema,
            create_schema: !found.schema_exists,
            dropped: found.tables,
            stale_ledger: found.stale_ledger,
            dropped_bytes: found.bytes,
            described: None,
            until_size: None,
            chunking,
            emptied: found.emptied,
            unfinished: found.unfinished,
            scale: self.target.scale,
            scale_before: self.target.scale_before,
            wide_ids: found.present.as_ref().map(|present| present.wide_ids),
            persistence: self.request.persistence,
            fillfactor: self.request.fillfactor,
            partitions: self.request.partitions,
            index: self.request.index,
            tablespace: self.request.tablespace.clone(),
            index_tablespace: match found.present {
                Some(Present { indexed: true, index_tablespace, .. }) => index_tablespace,
                _ => self.request.index_tablespace.clone(),
            },
            autovacuum: self.request.autovacuum,
            payload: self.request.payload,
            steps: self.request.steps.clone(),
            method,
            ground: self.direct.ground().cloned(),
            streams,
            copy_rows,
            write_behind,
            flush_early: self.is_logged(),
            vacuum,
            freezes: self.request.freezes(),
            format,
            index_build,
            predicted,
            reasons,
        }
    }

    pub(crate) fn is_logged(&self) -> bool {
        self.request.persistence == Persistence::Logged
    }

    fn geometry(&self) -> Geometry {
        self.server.geometry
    }

    /// Rows to load.
    fn rows(&self) -> u64 {
        self.target.rows.unwrap_or(u64::MAX)
    }

    /// One frozen stream or several that are not: one loads 3 million rows a second and leaves
    /// nothing to the vacuum; two load 5 million, but the vacuum then rewrites every page at about
    /// that rate, and rows of logged tables go through WAL. Leaves are frozen by as many streams as
    /// there are.
    fn method(&self, found: &Found) -> (Method, Option<&'static str>) {
        if self.request.subject == Subject::Series {
            return (Method::CreateTableAs, None);
        }
        match self.request.method {
            MethodChoice::Server => return (Method::Server, Some("--method server says so")),
            MethodChoice::Reinsert => return (Method::Reinsert, Some("--method reinsert says so")),
            MethodChoice::Explode => return (Method::Explode, Some("--method explode says so")),
            MethodChoice::Auto | MethodChoice::Copy | MethodChoice::Direct => {}
        }
        if self.direct.is_chosen() {
            return (Method::Direct, None);
        }
        if let Some(why) = needs_chunks(self.request) {
            return (Method::ChunkedCopy, Some(why));
        }
        if self.request.partitions.is_some() && self.explode_pays() {
            return (
                Method::Explode,
                Some(
                    "before 16 COPY extends a heap block by block and writes each twice, VACUUM FULL does not",
                ),
            );
        }
        if self.request.partitions.is_some() {
            return (
                Method::FrozenCopy,
                Some("each leaf emptied, loaded and frozen in a transaction of its own"),
            );
        }
        // What was begun one way is completed that way.
        let begun = found.unfinished.as_ref().map(|begun| begun.charter.chunk_rows < self.rows());
        match (begun, self.table_streams()) {
            (Some(true), _) => (Method::ChunkedCopy, Some("chunk by chunk, as it was begun")),
            (None, (streams, _)) if streams.get() > 1 => (Method::ChunkedCopy, None),
            _ => (Method::FrozenCopy, None),
        }
    }

    /// Whether keys are there while rows come in.
    pub(crate) fn has_keys_early(&self) -> bool {
        let keys_later = self.request.steps.order(InitStep::Generate, InitStep::PrimaryKeys);
        self.layout.index != IndexKind::None && !keys_later
    }

    /// Before 16 two sparse leaves take 1.5 s of the server's time this way, 2.3 s by COPY (1.6 GB at
    /// fillfactor 10), from 16 on 1.7 s either way. One table alone is spread out by one process, and two
    /// streams of COPY finish as early.
    fn explode_pays(&self) -> bool {
        self.request.method == MethodChoice::Auto
            && self.server.major() < EXTENDS_BY_MANY
            && self.request.fillfactor <= SPARSE
            && !self.is_logged()
            && !self.layout.vacuum
    }

    fn cores(&self) -> u16 {
        self.site.cores()
    }

    /// Streams into one table, by COPY.
    fn table_streams(&self) -> (NonZeroU16, &'static str) {
        let possible = self.worthwhile_streams();
        let vacuum = self.layout.vacuum;
        let frozen_pays = vacuum && self.server.major() >= 14 && (self.is_logged() || self.cores() < 4);
        let unlogged_pays = self.is_logged() && self.server.skips_wal() && (vacuum || !self.stays_cached());
        match self.request.streams {
            Some(streams) => (streams, "--streams says so"),
            None if self.has_keys_early() => {
                (NonZeroU16::MIN, "keys that come one after the other fill their pages")
            }
            None if possible.get() > 1 && !frozen_pays && !unlogged_pays => {
                (possible, "parallel, since no vacuum follows or it would rewrite every page anyway")
            }
            None if possible.get() < 2 => {
                (NonZeroU16::MIN, "a second one would not pay for so few rows or cores")
            }
            None if needs_chunks(self.request).is_some() => (possible, "parallel, on as many cores"),
            None if frozen_pays => {
                (NonZeroU16::MIN, "frozen as it is loaded, the table leaves the vacuum nothing to rewrite")
            }
            None => (
                NonZeroU16::MIN,
                "a table filled in the transaction that creates it needs no WAL (wal_level = minimal)",
            ),
        }
    }

    /// As many as there are cores, if there is enough for them to do. What a row costs goes with its
    /// share of the page, not with its length: 1.2 million rows at fillfactor 10 take one stream
    /// 1.5 s, two 0.97 s.
    fn worthwhile_streams(&self) -> NonZeroU16 {
        let worth = u16::try_from(self.heap() / HEAP_PER_STREAM).unwrap_or(u16::MAX);
        NonZeroU16::new(self.cores().min(worth).min(MOST_STREAMS)).unwrap_or(NonZeroU16::MIN)
    }

    fn streams(&self, method: Method) -> (NonZeroU16, &'static str) {
        if let Some(streams) = self.request.streams {
            return (streams, "--streams says so");
        }
        if method == Method::Direct {
            return (
                writers(self.site),
                "threads that make pages and write them, one more than cores, since some wait for the disk",
            );
        }
        let leaves = self.request.partitions.map_or(1, |partitions| partitions.count.get());
        let leaves = u16::try_from(leaves).unwrap_or(u16::MAX);
        let cores = self.cores().min(MOST_STREAMS);
        let one_a_leaf = NonZeroU16::new(cores.min(leaves)).unwrap_or(NonZeroU16::MIN);
        match method {
            Method::CreateTableAs => (NonZeroU16::MIN, "one statement"),
            Method::FrozenCopy | Method::Explode | Method::Reinsert if leaves > 1 => {
                (one_a_leaf, "a leaf for each, on as many cores")
            }
            Method::Explode => (NonZeroU16::MIN, "one table"),
            Method::Server => (
                NonZeroU16::new(cores).unwrap_or(NonZeroU16::MIN),
                "the server makes the rows, on as many cores",
            ),
            Method::FrozenCopy | Method::ChunkedCopy | Method::Reinsert | Method::Direct => {
                self.table_streams()
            }
        }
    }

    fn spread(&self) -> Spread {
        let Some(partitions) = self.request.partitions else { return Spread::Table };
        let leaves = partitions.count.get();
        match (partitions.method, self.target.rows) {
            (PartitionMethod::Hash, _) => Spread::Hash { leaves },
            (PartitionMethod::Range, Some(rows)) => {
                Spread::Range { leaves, leaf_rows: leaf_rows(rows, partitions) }
            }
            (PartitionMethod::Range, None) => unreachable!("refused: ranges need an end"),
        }
    }

    fn chunking(&self, method: Method, streams: NonZeroU16, begun: Option<&Unfinished>) -> Chunking {
        let Target { first_row, rows, .. } = self.target;
        let (spread, of_bytes) = (self.spread(), |bytes: u64| (bytes / self.bytes_per_row()).max(1));
        let chunk_rows = match (begun, method) {
            (Some(begun), _) => begun.charter.chunk_rows,
            (None, Method::CreateTableAs | Method::FrozenCopy | Method::Explode | Method::Direct) => {
                match spread {
                    Spread::Table => self.rows(),
                    Spread::Range { leaf_rows, .. } => leaf_rows,
                    Spread::Hash { leaves } => self.rows().div_ceil(u64::from(leaves)),
                }
            }
            (None, Method::ChunkedCopy | Method::Server | Method::Reinsert) => {
                let share = self.rows().div_ceil(u64::from(streams.get()) * 4).max(CHUNK_ROWS);
                let share = share.min(of_bytes(LARGE_CHUNK));
                match self.request.chunk {
                    Some(bytes) => of_bytes(bytes),
                    // What is lost at the brim is no more than that, and it can stay in shared_buffers.
                    None if rows.is_none() || self.request.in_chunks => match (rows, spread) {
                        // The fill ends only where all leaves have the same ids.
                        (None, Spread::Hash { leaves }) => {
                            (self.ring_rows() / u64::from(leaves)).max(FEW_ROWS)
                        }
                        _ => self.ring_rows(),
                    },
                    None if method.copies() && self.fills_cache() => self.ring_rows(),
                    None => share,
                }
            }
        };
        Chunking { first_row, rows, chunk_rows, spread }
    }

    /// Rows that one COPY loads, and whether the checkpointer writes behind them. Logged rows reach
    /// the disk before the commit: if nobody else writes them, COPY had better.
    fn copies(&self, method: Method, chunking: Chunking) -> (u64, bool) {
        if method != Method::FrozenCopy || !self.fills_cache() {
            return (chunking.chunk_rows, false);
        }
        if self.is_logged() && !self.may_write_behind() {
            return (chunking.chunk_rows, false);
        }
        let rows = self.ring_rows().min(chunking.chunk_rows);
        (rows, self.is_logged() && rows < chunking.chunk_rows)
    }

    /// Heap bytes that a row takes, with its share of the page.
    fn bytes_per_row(&self) -> u64 {
        let rows = self.geometry().rows_per_page(tuple(&self.tables.bulk), self.layout.fillfactor);
        u64::from(self.geometry().block_size() / rows).max(1)
    }

    /// Heap of all rows, bytes.
    fn heap(&self) -> u64 {
        self.rows().saturating_mul(self.bytes_per_row())
    }

    /// Whether the table fits shared_buffers with room for its index, so that it pays to leave it there.
    fn stays_cached(&self) -> bool {
        self.heap() <= self.server.shared_buffers / 2
    }

    /// Whether COPYs are to leave their blocks in shared_buffers, even if some have to go again. On
    /// pgrig's own server that pushes nobody's blocks out: with 6 GB of them, 8 GB of unlogged rows take
    /// 8.4 s of the server's time so, 9 to 21 s through the ring. At 14 GB there is no difference.
    fn fills_cache(&self) -> bool {
        let alone = self.site.own && !self.is_logged() && self.layout.index == IndexKind::None;
        self.stays_cached() || alone && self.heap() <= self.server.shared_buffers.saturating_mul(2)
    }

    /// Rows that fill a bit less than the ring of 16 MB in shared_buffers that a COPY keeps to
    /// (`GetAccessStrategy`, BAS_BULKWRITE): only when the ring comes round does a COPY write out
    /// blocks itself, so a COPY that ends before leaves its blocks cached.
    fn ring_rows(&self) -> u64 {
        let (tuple, fillfactor) = (tuple(&self.tables.bulk), self.layout.fillfactor);
        let limit = COPY_RING / u64::from(self.geometry().block_size()) - EXTENSION;
        let blocks = self.geometry().blocks_without_waste(tuple, fillfactor, limit);
        blocks * u64::from(self.geometry().rows_per_page(tuple, fillfactor))
    }

    /// Whether checkpoints may be forced to write what COPY leaves in shared_buffers: only on pgrig's
    /// own server, where they disturb nobody, and only for a table that is logged but needs no WAL.
    fn may_write_behind(&self) -> bool {
        let two_cores = self.site.cores.is_some_and(|cores| cores >= 2);
        self.site.own && two_cores && self.is_logged() && self.server.skips_wal() && self.stays_cached()
    }

    /// Frozen pages are skipped; after other methods every page is marked and frozen at once, and
    /// stays cached if that is where the load left it (which VACUUM can be told since 16).
    fn vacuum(&self, method: Method) -> &'static str {
        match method {
            Method::FrozenCopy | Method::Direct => "ANALYZE",
            _ if self.server.major() >= 16 && self.stays_cached() => "FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0",
            _ => "FREEZE, ANALYZE",
        }
    }

    fn format(&self) -> (CopyFormat, &'static str) {
        match self.request.format {
            Some(format) => (format, "--format says so"),
            None if self.site.remote => {
                (CopyFormat::Text, "a third fewer bytes cross the network than in binary")
            }
            None => (CopyFormat::Binary, "the server parses it fastest"),
        }
    }

    /// Memory enough to sort in, if an eighth of the machine's has it (where that is unknown: half of
    /// shared_buffers); a worker for every core but the leader's. 5 million rows take 0.94 s so,
    /// 1.12 s without a worker, 1.07 s with the server's defaults.
    fn index_build(&self) -> IndexBuild {
        let allowed = self.site.memory.map_or(self.server.shared_buffers / 2, |memory| memory / 8);
        let wanted = self.rows().saturating_mul(SORT_MEMORY_BYTES).min(allowed);
        IndexBuild {
            maintenance_work_mem: wanted.max(self.server.maintenance_work_mem),
            parallel_workers: match self.target.rows {
                // At the brim their files would take a sixth of what the table takes.
                None => Some(0),
                Some(_) => self.site.cores.map(|cores| (cores - 1).min(MOST_WORKERS)),
            },
        }
    }
}
