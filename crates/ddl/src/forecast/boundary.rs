//! Sizes at which a statement begins to behave in another way: there, a forecast from smaller sizes does not hold.

use serde::Serialize;

use crate::find::Class;

/// The server's memory, as far as the work of statements depends on it. Bytes; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// `shared_buffers`.
    pub shared_buffers: u64,
    /// `maintenance_work_mem` of the migration's session.
    pub maintenance_work_mem: u64,
    /// `max_wal_size`: so much WAL begins a checkpoint.
    pub max_wal_size: u64,
    /// Memory of the server's machine, if it is this one.
    pub machine: u64,
}

/// A boundary that lies between the measured sizes and the size of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// Its cause.
    pub cause: Cause,
    /// Bytes of the statement's tables at which it begins to act.
    pub at: u64,
}

/// Causes of boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The tables and their new files no longer fit the machine's memory.
    Cache,
    /// Blocks that rows change no longer fit shared_buffers.
    SharedBuffers,
    /// A sort for an index no longer fits maintenance_work_mem.
    MaintenanceWorkMem,
    /// The WAL is more than max_wal_size, so that checkpoints come meanwhile.
    MaxWalSize,
}

impl Cause {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cache => "the machine's memory",
            Self::SharedBuffers => "shared_buffers",
            Self::MaintenanceWorkMem => "maintenance_work_mem",
            Self::MaxWalSize => "max_wal_size",
        }
    }
}

/// Bytes of a sorted row in memory beside its key: a pointer, an index tuple's header and the allocator's (tuplesort.c:
/// SortTuple, 24 bytes; indextuple.h: 8; a key of 8 bytes; 16 of the allocator's).
const SORTED_ROW: f64 = 56.0;
/// Part of the machine's memory beyond which written blocks are no longer only kept there: Linux makes writers wait once dirty
/// blocks take a fifth of the memory (vm.dirty_ratio).
const DIRTY: f64 = 0.2;
/// Part of the machine's memory that read tables can stay in.
const CACHED: f64 = 0.5;

/// Indexes, a part of the tables, are changed at random places: their blocks are found in shared_buffers until the tables are so
/// many times larger.
const SCATTERED: f64 = 4.0;

/// The quantity that is forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Seconds,
    Wal,
}

/// The boundaries of a statement's class, as bytes of its tables. `bytes_of_row` and `wal_of_byte` are those that were
/// measured.
pub(crate) fn boundaries(
    class: Class,
    quantity: Quantity,
    memory: Memory,
    bytes_of_row: f64,
    wal_of_byte: f64,
) -> Vec<Boundary> {
    #[expect(clippy::cast_precision_loss, reason = "sizes need no more")]
    let (buffers, sort, wal, machine) = (
        memory.shared_buffers as f64,
        memory.maintenance_work_mem as f64,
        memory.max_wal_size as f64,
        memory.machine as f64,
    );
    // Full images of pages are written again after each checkpoint.
    let wal_at = if wal_of_byte > 0.0 { wal / wal_of_byte } else { 0.0 };
    let sort_at = sort / SORTED_ROW * bytes_of_row;
    let found: Vec<(Cause, f64)> = match (quantity, class) {
        (Quantity::Wal, Class::Rows) => vec![(Cause::MaxWalSize, wal_at)],
        (Quantity::Wal, _) | (Quantity::Seconds, Class::CatalogOnly | Class::Wait) => Vec::new(),
        (Quantity::Seconds, Class::Scan | Class::ScanOfAnother) => vec![(Cause::Cache, machine * CACHED)],
        // The check of a foreign key sorts or hashes in maintenance_work_mem.
        (Quantity::Seconds, Class::SeveralTables) => {
            vec![(Cause::Cache, machine * CACHED), (Cause::MaintenanceWorkMem, sort_at)]
        }
        (Quantity::Seconds, Class::Rows) => vec![
            (Cause::SharedBuffers, buffers * SCATTERED),
            (Cause::MaxWalSize, wal_at),
            (Cause::Cache, machine * DIRTY),
        ],
        (Quantity::Seconds, Class::IndexBuild | Class::Rewrite) => {
            vec![(Cause::MaintenanceWorkMem, sort_at), (Cause::Cache, machine * DIRTY)]
        }
        (Quantity::Seconds, Class::Copy) => vec![(Cause::Cache, machine * DIRTY)],
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes, not negative")]
    let known =
        found.into_iter().filter(|(_, at)| *at > 0.0).map(|(cause, at)| Boundary { cause, at: at as u64 });
    known.collect()
}
