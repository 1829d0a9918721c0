//! From request and server to a plan: data that can be printed before anything is touched.

use std::num::NonZeroU16;

use rowgen::pgbench;
use serde::Serialize;

use super::error::FillError;
use super::predict::{Layout, Sizes, tables, tuple};
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
/// What will be done, with what, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Schema of the tables.
    pub schema: String,
    /// Whether that schema has to be created.
    pub create_schema: bool,
    /// Existing tables that are dropped first.
    pub dropped: Vec<String>,
    /// Rows of pgbench_accounts.
    pub accounts: u64,
    /// pgbench's scale: rows of pgbench_branches.
    pub scale: u64,
    /// Logged or unlogged.
    pub persistence: Persistence,
    /// Percent.
    pub fillfactor: u8,
    /// The steps, in order.
    pub steps: Vec<InitStep>,
    /// How accounts are loaded.
    pub method: Method,
    /// Whether the checkpointer is kept writing while rows come in, so that two cores are at work.
    pub write_behind: bool,
    /// Whether loading sessions have the kernel start writing early (`backend_flush_after`), so that
    /// the disk works while rows are made, not after.
    pub flush_early: bool,
    /// Options of VACUUM; none without that step.
    pub vacuum: Option<&'static str>,
    /// COPY's format.
    pub format: CopyFormat,
    /// How primary keys are built; none without that step.
    pub index_build: Option<IndexBuild>,
    /// What it will take.
    pub predicted: Prediction,
    /// Why method, streams and format are what they are: a sentence each.
    pub reasons: Vec<String>,
}

/// How accounts are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Method {
    /// COPY (FREEZE) in the transaction that creates the tables: all or nothing.
    FrozenCopy {
        /// Rows that one COPY command loads.
        chunk_rows: u64,
    },
    /// Concurrent COPYs into one table, a transaction per chunk.
    ParallelCopy {
        /// Connections.
        streams: NonZeroU16,
        /// Rows loaded as a unit.
        chunk_rows: u64,
    },
}

/// Session settings for building primary keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IndexBuild {
    /// `maintenance_work_mem`, bytes.
    pub maintenance_work_mem: u64,
    /// `max_parallel_maintenance_workers`; none leaves the server's own.
    pub parallel_workers: Option<u32>,
}

/// What the plan expects to take, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Finished tables and indexes.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// WAL written.
    pub wal: u64,
    /// Temporary files while indexes are built.
    pub temporary: u64,
}

impl Prediction {
    /// The most disk that is taken at any moment, bytes: WAL may pile up to `max_wal_size` or be
    /// held by a slot, so all of it counts.
    pub fn peak(&self) -> u64 {
        self.sizes.total() + self.wal + self.temporary
    }
}

/// What is known of the schema before planning.
#[derive(Clone, Debug)]
pub struct Found {
    /// The schema's name.
    pub schema: String,
    /// Whether it exists.
    pub schema_exists: bool,
    /// Which of the four tables' names are taken in it.
    pub tables: Vec<String>,
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
    /// If the amount cannot be had.
    pub fn new(request: &Request, server: &ServerInfo, site: Site, found: Found) -> Result<Self, FillError> {
        let layout = Layout {
            geometry: server.geometry,
            fillfactor: request.fillfactor,
            persistence: request.persistence,
            vacuum: request.steps.vacuum,
            primary_keys: request.steps.primary_keys,
        };
        let most = server.max_connections.saturating_sub(OTHER_SESSIONS).max(1);
        if let Some(streams) =
            request.streams.map(NonZeroU16::get).filter(|streams| u32::from(*streams) > most)
        {
            return Err(FillError::Streams { streams, most });
        }
        let (accounts, scale) = rows(request.amount, layout)?;
        let mut reasons = Vec::new();
        let method = method(request, layout, server, site, accounts, &mut reasons);
        let write_behind = matches!(method, Method::FrozenCopy { chunk_rows } if chunk_rows < accounts)
            && writes_behind(request, layout, server, site, accounts);
        if write_behind {
            reasons.push("the checkpointer writes behind the load (pgrig's own server)".into());
        }
        let format = format(request, site, &mut reasons);
        let index_build = request.steps.primary_keys.then(|| index_build(accounts, server, site));
        let predicted = Prediction {
            sizes: layout.sizes(accounts, scale),
            wal: wal(layout, server, method, accounts, scale),
            temporary: index_build.map_or(0, |build| build.temporary(accounts)),
        };
        Ok(Self {
            schema: found.schema,
            create_schema: !found.schema_exists,
            dropped: found.tables,
            accounts,
            scale,
            persistence: request.persistence,
            fillfactor: request.fillfactor,
            steps: InitStep::ALL.into_iter().filter(|step| request.steps.includes(*step)).collect(),
            method,
            write_behind,
            flush_early: request.persistence == Persistence::Logged
                || !stays_cached(layout, server, accounts),
            vacuum: request.steps.vacuum.then(|| vacuum(method, layout, server, accounts)),
            format,
            index_build,
            predicted,
            reasons,
        })
    }

    /// Whether the plan has this step.
    pub fn includes(&self, step: InitStep) -> bool {
        self.steps.contains(&step)
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

/// One frozen stream or several that are not. The rules were measured on two cores (records/):
/// one frozen stream loads 3.2 million rows a second and leaves nothing to the vacuum; two
/// unfrozen streams load 5.3 million, but the vacuum then rewrites every page at about that rate,
/// and rows of logged tables go through WAL.
fn method(
    request: &Request,
    layout: Layout,
    server: &ServerInfo,
    site: Site,
    accounts: u64,
    reasons: &mut Vec<String>,
) -> Method {
    let cores = site.cores.and_then(|cores| u16::try_from(cores).ok()).unwrap_or(2);
    let worth = u16::try_from(accounts / ROWS_PER_STREAM).unwrap_or(u16::MAX);
    let possible = cores.min(worth).min(MOST_STREAMS);
    let logged = request.persistence == Persistence::Logged;
    let vacuum = request.steps.vacuum;
    let cached = stays_cached(layout, server, accounts);
    let ring = ring_rows(layout, accounts);
    let (streams, reason) = if let Some(streams) = request.streams {
        (streams.get(), "--streams says so")
    } else if possible < 2 {
        (1, "a second one would not pay for so few rows or cores")
    } else if vacuum && server.major() >= 14 && (logged || cores < 4) {
        (1, "frozen as it is loaded, the table leaves the vacuum nothing to rewrite")
    } else if logged && server.skips_wal() && (vacuum || !cached) {
        (1, "a table filled in the transaction that creates it needs no WAL (wal_level = minimal)")
    } else {
        (possible, "parallel, since no vacuum follows or it would rewrite every page anyway")
    };
    reasons.push(format!("{streams} stream{}: {reason}", if streams == 1 { "" } else { "s" }));
    match NonZeroU16::new(streams) {
        Some(streams) if streams.get() > 1 => {
            let share = accounts.div_ceil(u64::from(streams.get()) * 4).clamp(100_000, 4_000_000);
            Method::ParallelCopy { streams, chunk_rows: if cached { ring } else { share } }
        }
        // Logged rows reach the disk before the commit: if nobody else writes them, COPY had better.
        _ if cached && (!logged || writes_behind(request, layout, server, site, accounts)) => {
            reasons.push("chunks of less than 16 MB: the table fits shared_buffers and stays there".into());
            Method::FrozenCopy { chunk_rows: ring }
        }
        _ => Method::FrozenCopy { chunk_rows: accounts },
    }
}

/// Whether checkpoints can be forced to write what COPY leaves in shared_buffers: only on pgrig's
/// own server, where they disturb nobody, and only for a table that is logged but needs no WAL.
fn writes_behind(request: &Request, layout: Layout, server: &ServerInfo, site: Site, accounts: u64) -> bool {
    let one_stream = request.streams.is_none_or(|streams| streams.get() == 1);
    site.own
        && one_stream
        && request.persistence == Persistence::Logged
        && server.skips_wal()
        && site.cores.is_some_and(|cores| cores >= 2)
        && stays_cached(layout, server, accounts)
}

/// Frozen pages are skipped; after parallel streams every page is marked and frozen at once, and
/// stays cached if that is where the load left it (which VACUUM can be told since 16).
fn vacuum(method: Method, layout: Layout, server: &ServerInfo, accounts: u64) -> &'static str {
    match method {
        Method::FrozenCopy { .. } => "ANALYZE",
        Method::ParallelCopy { .. } if server.major() >= 16 && stays_cached(layout, server, accounts) => {
            "FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0"
        }
        Method::ParallelCopy { .. } => "FREEZE, ANALYZE",
    }
}

/// Whether the table fits shared_buffers with room for its index, so that it pays to leave it there.
fn stays_cached(layout: Layout, server: &ServerInfo, accounts: u64) -> bool {
    let table = pgbench::accounts(accounts, pgbench::scale_for(accounts));
    layout.heap_blocks(&table) * u64::from(server.geometry.block_size()) <= server.shared_buffers / 2
}

/// Rows that fill a bit less than the ring of 16 MB in shared_buffers that a COPY keeps to
/// (`GetAccessStrategy`, BAS_BULKWRITE): only when the ring comes round does a COPY write out
/// blocks itself, so a COPY that ends before leaves its blocks cached.
fn ring_rows(layout: Layout, accounts: u64) -> u64 {
    let table = pgbench::accounts(accounts, pgbench::scale_for(accounts));
    let limit = COPY_RING / u64::from(layout.geometry.block_size()) - EXTENSION;
    let blocks = layout.geometry.blocks_without_waste(tuple(&table), layout.fillfactor, limit);
    blocks * u64::from(layout.geometry.rows_per_page(tuple(&table), layout.fillfactor))
}

fn format(request: &Request, site: Site, reasons: &mut Vec<String>) -> CopyFormat {
    let (format, reason) = match request.format {
        Some(format) => (format, "--format says so"),
        None if site.remote => (CopyFormat::Text, "a third fewer bytes cross the network than in binary"),
        None => (CopyFormat::Binary, "the server parses it fastest"),
    };
    let name = match format {
        CopyFormat::Text => "text",
        CopyFormat::Binary => "binary",
    };
    reasons.push(format!("{name} format: {reason}"));
    format
}

/// Memory enough to sort in, if an eighth of the machine's has it (where that is unknown: half of
/// shared_buffers); a worker for every core but the leader's. On two cores, 5 million rows: 0.94 s
/// so, 1.12 s without a worker, 1.07 s with the server's defaults.
fn index_build(accounts: u64, server: &ServerInfo, site: Site) -> IndexBuild {
    let allowed = site.memory.map_or(server.shared_buffers / 2, |memory| memory / 8);
    let wanted = (accounts * SORT_BYTES_PER_ROW).min(allowed);
    IndexBuild {
        maintenance_work_mem: wanted.max(server.maintenance_work_mem),
        parallel_workers: site.cores.map(|cores| (cores - 1).min(MOST_WORKERS)),
    }
}

impl IndexBuild {
    fn temporary(&self, accounts: u64) -> u64 {
        let fits = accounts * SORT_BYTES_PER_ROW <= self.maintenance_work_mem;
        if fits { 0 } else { accounts * TAPE_BYTES_PER_ROW }
    }
}

/// WAL that the plan writes, bytes. Per row: COPY's multi-insert record holds the tuple without
/// its fixed header, and 8 bytes of its own (`xl_multi_insert_tuple`); per page: record headers,
/// and a vacuum that is left to mark it; index pages are logged whole without their free tenth.
fn wal(layout: Layout, server: &ServerInfo, method: Method, accounts: u64, scale: u64) -> u64 {
    const TUPLE_HEADER: u64 = 23;
    const PER_TUPLE: u64 = 8;
    const PER_PAGE: u64 = 64;
    const VACUUM_PER_PAGE: u64 = 130;
    if layout.persistence == Persistence::Unlogged {
        return 0;
    }
    let index = if server.skips_wal() { 0 } else { layout.sizes(accounts, scale).index * 9 / 10 };
    let frozen = matches!(method, Method::FrozenCopy { .. });
    if server.skips_wal() && frozen {
        return index;
    }
    let heap: u64 = tables(accounts, scale)
        .iter()
        .map(|table| {
            let per_row = u64::from(tuple(table)) - TUPLE_HEADER + PER_TUPLE;
            let vacuum = if layout.vacuum && !frozen { VACUUM_PER_PAGE } else { 0 };
            table.rows * per_row + layout.heap_blocks(table) * (PER_PAGE + vacuum)
        })
        .sum();
    heap + index
}
