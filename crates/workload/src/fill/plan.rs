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
    /// One COPY (FREEZE) in the transaction that creates the tables: all or nothing.
    FrozenCopy,
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
        let (accounts, scale) = rows(request.amount, layout)?;
        let mut reasons = Vec::new();
        let method = method(request, server, site, accounts, &mut reasons);
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

/// One frozen COPY or several streams. The rules were measured on two cores (records/):
/// one frozen stream loads 3.2 million rows a second and leaves nothing to the vacuum; two
/// unfrozen streams load 5.3 million, but the vacuum then rewrites every page at about the same
/// rate and, for logged tables, every row goes through WAL.
fn method(
    request: &Request,
    server: &ServerInfo,
    site: Site,
    accounts: u64,
    reasons: &mut Vec<String>,
) -> Method {
    let cores = site.cores.and_then(|cores| u16::try_from(cores).ok()).unwrap_or(2);
    let worth = u16::try_from(accounts / ROWS_PER_STREAM).unwrap_or(u16::MAX);
    let possible = cores.min(worth).min(MOST_STREAMS);
    let logged = request.persistence == Persistence::Logged;
    let (streams, reason) = if let Some(streams) = request.streams {
        (streams.get(), "--streams says so")
    } else if possible < 2 {
        (1, "a second stream would not pay for so few rows or cores")
    } else if logged && server.skips_wal() {
        (1, "one stream into a table made in its own transaction needs no WAL (wal_level = minimal)")
    } else if request.steps.vacuum && server.major() >= 14 && (logged || cores < 4) {
        (1, "one frozen stream leaves nothing for the vacuum to rewrite")
    } else {
        (possible, "streams load in parallel, and vacuuming is left out or costs the same either way")
    };
    reasons.push(format!("{streams} stream{}: {reason}", if streams == 1 { "" } else { "s" }));
    match NonZeroU16::new(streams) {
        Some(streams) if streams.get() > 1 => {
            let share = accounts.div_ceil(u64::from(streams.get()) * 4);
            Method::ParallelCopy { streams, chunk_rows: share.clamp(100_000, 4_000_000) }
        }
        _ => Method::FrozenCopy,
    }
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
/// shared_buffers); parallel workers only where cores are left for them: keys arrive in order, so
/// sorting is one pass, and on two cores a worker costs more than it brings (measured).
fn index_build(accounts: u64, server: &ServerInfo, site: Site) -> IndexBuild {
    let allowed = site.memory.map_or(server.shared_buffers / 2, |memory| memory / 8);
    let wanted = (accounts * SORT_BYTES_PER_ROW).min(allowed);
    IndexBuild {
        maintenance_work_mem: wanted.max(server.maintenance_work_mem),
        parallel_workers: site.cores.map(|cores| if cores <= 2 { 0 } else { (cores / 2).min(8) }),
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
    if server.skips_wal() && method == Method::FrozenCopy {
        return index;
    }
    let heap: u64 = tables(accounts, scale)
        .iter()
        .map(|table| {
            let per_row = u64::from(tuple(table)) - TUPLE_HEADER + PER_TUPLE;
            let vacuum = if layout.vacuum && method != Method::FrozenCopy { VACUUM_PER_PAGE } else { 0 };
            table.rows * per_row + layout.heap_blocks(table) * (PER_PAGE + vacuum)
        })
        .sum();
    heap + index
}
