//! From request and server to a plan. Why each rule is as it is stands with it; the figures are from
//! two cores and PostgreSQL 18.

use std::num::NonZeroU16;

use page::Geometry;
use rowgen::{Payload, Table, pgbench};

use super::error::FillError;
use super::plan::{IndexBuild, Method, Plan, Prediction};
use super::predict::{Layout, tables, tuple};
use super::request::{Amount, CopyFormat, InitStep, Persistence, Request};
use crate::server::ServerInfo;

/// Rows below which a further stream does not pay: its COPY would end before it is warm.
const ROWS_PER_STREAM: u64 = 1_000_000;
/// Streams that are chosen at most: past these the server's own locks and the disk decide.
const MOST_STREAMS: u16 = 8;
/// Memory per row that an index build needs to sort without temporary files, bytes: a 24-byte
/// SortTuple in an array that doubles as it grows, and the index tuple with its header.
const SORT_BYTES_PER_ROW: u64 = 80;
/// Sessions beside the streams: pgrig's own, and those that the server keeps for superusers.
const OTHER_SESSIONS: u32 = 6;
/// Shared buffers that one COPY keeps to, bytes.
const COPY_RING: u64 = 16 << 20;
/// Blocks of that ring that are left unused, because a heap is extended by so many at once.
const EXTENSION: u64 = 64;
/// Parallel workers that an index build asks for at most; the server allows fewer by default.
const MOST_WORKERS: u32 = 7;
/// What a row takes in an index build's temporary file, bytes.
const TAPE_BYTES_PER_ROW: u64 = 24;
/// What is known of the schema before planning.
#[derive(Clone, Debug)]
pub struct Found {
    /// The schema's name.
    pub schema: String,
    /// Whether it exists.
    pub schema_exists: bool,
    /// Which of the four tables' names are taken in it.
    pub tables: Vec<String>,
    /// Bytes that those take, as of their last vacuum.
    pub bytes: u64,
}

/// What is known of where the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Processors of the server's machine, where it is this one.
    pub cores: Option<u32>,
    /// Memory of the server's machine in bytes, where it is this one.
    pub memory: Option<u64>,
    /// Whether COPY data crosses a network.
    pub remote: bool,
    /// Whether it is pgrig's own server, used by nobody else.
    pub own: bool,
}

impl Plan {
    /// Plans the fill.
    ///
    /// # Errors
    /// If the amount or the number of streams cannot be had.
    pub fn new(request: &Request, server: &ServerInfo, site: Site, found: Found) -> Result<Self, FillError> {
        let layout = Layout {
            geometry: server.geometry,
            fillfactor: request.fillfactor,
            persistence: request.persistence,
            vacuum: request.steps.vacuum,
            primary_keys: request.steps.primary_keys,
        };
        let most = server.max_connections.saturating_sub(OTHER_SESSIONS).max(1);
        match request.streams.map(NonZeroU16::get) {
            Some(streams) if u32::from(streams) > most => return Err(FillError::Streams { streams, most }),
            _ => {}
        }
        let (accounts, scale) = rows(request.amount, layout)?;
        let table = pgbench::accounts(accounts, scale, Payload::Blank);
        Ok(Planner { request, server, site, layout, table, scale }.plan(found))
    }
}

/// Everything that the rules look at.
struct Planner<'a> {
    request: &'a Request,
    server: &'a ServerInfo,
    site: Site,
    layout: Layout,
    /// pgbench_accounts: it holds the bulk, and decides.
    table: Table,
    scale: u64,
}

impl Planner<'_> {
    fn plan(&self, found: Found) -> Plan {
        let (streams, streams_reason) = self.streams();
        let method = self.method(streams);
        let write_behind = self.writes_behind(method);
        let (format, format_reason) = self.format();
        let mut reasons =
            vec![format!("{streams} stream{}: {streams_reason}", if streams.get() == 1 { "" } else { "s" })];
        if method.chunk_rows() < self.table.rows && self.stays_cached() {
            reasons.push("chunks of less than 16 MB: the table fits shared_buffers and stays there".into());
        }
        if write_behind {
            reasons.push("the checkpointer writes behind the load (pgrig's own server)".into());
        }
        reasons.push(format!("{} format: {format_reason}", format.name()));
        let index_build = self.request.steps.primary_keys.then(|| self.index_build());
        Plan {
            schema: found.schema,
            create_schema: !found.schema_exists,
            dropped: found.tables,
            dropped_bytes: found.bytes,
            accounts: self.table.rows,
            scale: self.scale,
            persistence: self.request.persistence,
            fillfactor: self.request.fillfactor,
            steps: InitStep::ALL.into_iter().filter(|step| self.request.steps.includes(*step)).collect(),
            method,
            write_behind,
            flush_early: self.is_logged() || !self.stays_cached(),
            vacuum: self.request.steps.vacuum.then(|| self.vacuum(method)),
            format,
            index_build,
            predicted: Prediction {
                sizes: self.layout.sizes(self.table.rows, self.scale),
                wal: self.wal(method),
                temporary: index_build.map_or(0, |build| self.temporary(build)),
            },
            reasons,
        }
    }

    fn is_logged(&self) -> bool {
        self.request.persistence == Persistence::Logged
    }

    fn geometry(&self) -> Geometry {
        self.server.geometry
    }

    /// One frozen stream or several that are not: one loads 3 million rows a second and leaves
    /// nothing to the vacuum; two load 5 million, but the vacuum then rewrites every page at about
    /// that rate, and rows of logged tables go through WAL.
    fn streams(&self) -> (NonZeroU16, &'static str) {
        let cores = self.site.cores.and_then(|cores| u16::try_from(cores).ok()).unwrap_or(2);
        let worth = u16::try_from(self.table.rows / ROWS_PER_STREAM).unwrap_or(u16::MAX);
        let possible = cores.min(worth).min(MOST_STREAMS);
        let vacuum = self.request.steps.vacuum;
        let frozen_pays = vacuum && self.server.major() >= 14 && (self.is_logged() || cores < 4);
        let unlogged_pays = self.is_logged() && self.server.skips_wal() && (vacuum || !self.stays_cached());
        match (self.request.streams, NonZeroU16::new(possible)) {
            (Some(streams), _) => (streams, "--streams says so"),
            (None, Some(possible)) if possible.get() > 1 && !frozen_pays && !unlogged_pays => {
                (possible, "parallel, since no vacuum follows or it would rewrite every page anyway")
            }
            _ if possible < 2 => (NonZeroU16::MIN, "a second one would not pay for so few rows or cores"),
            _ if frozen_pays => {
                (NonZeroU16::MIN, "frozen as it is loaded, the table leaves the vacuum nothing to rewrite")
            }
            _ => (
                NonZeroU16::MIN,
                "a table filled in the transaction that creates it needs no WAL (wal_level = minimal)",
            ),
        }
    }

    fn method(&self, streams: NonZeroU16) -> Method {
        let cached = self.stays_cached();
        if streams.get() > 1 {
            let share = self.table.rows.div_ceil(u64::from(streams.get()) * 4).clamp(100_000, 4_000_000);
            return Method::ParallelCopy {
                streams,
                chunk_rows: if cached { self.ring_rows() } else { share },
            };
        }
        // Logged rows reach the disk before the commit: if nobody else writes them, COPY had better.
        let leave_cached = cached && (!self.is_logged() || self.may_write_behind());
        Method::FrozenCopy { chunk_rows: if leave_cached { self.ring_rows() } else { self.table.rows } }
    }

    /// Whether the table fits shared_buffers with room for its index, so that it pays to leave it there.
    fn stays_cached(&self) -> bool {
        let heap = self.layout.heap_blocks(&self.table) * u64::from(self.geometry().block_size());
        heap <= self.server.shared_buffers / 2
    }

    /// Rows that fill a bit less than the ring of 16 MB in shared_buffers that a COPY keeps to
    /// (`GetAccessStrategy`, BAS_BULKWRITE): only when the ring comes round does a COPY write out
    /// blocks itself, so a COPY that ends before leaves its blocks cached.
    fn ring_rows(&self) -> u64 {
        let (tuple, fillfactor) = (tuple(&self.table), self.layout.fillfactor);
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

    fn writes_behind(&self, method: Method) -> bool {
        let in_chunks = method.chunk_rows() < self.table.rows;
        matches!(method, Method::FrozenCopy { .. }) && in_chunks && self.may_write_behind()
    }

    /// Frozen pages are skipped; after parallel streams every page is marked and frozen at once, and
    /// stays cached if that is where the load left it (which VACUUM can be told since 16).
    fn vacuum(&self, method: Method) -> &'static str {
        match method {
            Method::FrozenCopy { .. } => "ANALYZE",
            Method::ParallelCopy { .. } if self.server.major() >= 16 && self.stays_cached() => {
                "FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0"
            }
            Method::ParallelCopy { .. } => "FREEZE, ANALYZE",
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
        let wanted = (self.table.rows * SORT_BYTES_PER_ROW).min(allowed);
        IndexBuild {
            maintenance_work_mem: wanted.max(self.server.maintenance_work_mem),
            parallel_workers: self.site.cores.map(|cores| (cores - 1).min(MOST_WORKERS)),
        }
    }

    /// Temporary files of the index build, bytes.
    fn temporary(&self, build: IndexBuild) -> u64 {
        let fits = self.table.rows * SORT_BYTES_PER_ROW <= build.maintenance_work_mem;
        if fits { 0 } else { self.table.rows * TAPE_BYTES_PER_ROW }
    }

    /// WAL that the plan writes, bytes. Per row: COPY's multi-insert record holds the tuple without
    /// its fixed header, and 8 bytes of its own (`xl_multi_insert_tuple`); per page: record headers,
    /// and a vacuum that is left to mark it; index pages are logged whole without their free tenth.
    fn wal(&self, method: Method) -> u64 {
        const TUPLE_HEADER: u64 = 23;
        const PER_TUPLE: u64 = 8;
        const PER_PAGE: u64 = 64;
        const VACUUM_PER_PAGE: u64 = 130;
        if !self.is_logged() {
            return 0;
        }
        let frozen = matches!(method, Method::FrozenCopy { .. });
        let sizes = self.layout.sizes(self.table.rows, self.scale);
        let index = if self.server.skips_wal() { 0 } else { sizes.index * 9 / 10 };
        if self.server.skips_wal() && frozen {
            return index;
        }
        let vacuum = if self.layout.vacuum && !frozen { VACUUM_PER_PAGE } else { 0 };
        let heap: u64 = tables(self.table.rows, self.scale)
            .iter()
            .map(|table| {
                let per_row = u64::from(tuple(table)) - TUPLE_HEADER + PER_TUPLE;
                table.rows * per_row + self.layout.heap_blocks(table) * (PER_PAGE + vacuum)
            })
            .sum();
        heap + index
    }
}

/// Accounts and scale for what was asked.
fn rows(amount: Amount, layout: Layout) -> Result<(u64, u64), FillError> {
    let most = layout.most_accounts();
    match amount {
        Amount::Size(size) => {
            let accounts = layout.accounts_for(size).map_err(|(smallest, largest)| FillError::Size {
                size,
                smallest,
                largest,
            })?;
            Ok((accounts, pgbench::scale_for(accounts)))
        }
        Amount::Scale(scale) => {
            let accounts = scale.saturating_mul(pgbench::ACCOUNTS_PER_SCALE);
            if scale == 0 || accounts > most {
                return Err(FillError::Scale { scale, most: most / pgbench::ACCOUNTS_PER_SCALE });
            }
            Ok((accounts, scale))
        }
        Amount::Rows(rows) if rows == 0 || rows > most => Err(FillError::Rows { rows, most }),
        Amount::Rows(rows) => Ok((rows, pgbench::scale_for(rows))),
    }
}
