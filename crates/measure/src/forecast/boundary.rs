//! Sizes at which work begins to behave in another way: there, a forecast from smaller sizes does not hold.

use serde::Serialize;

/// Bytes of a sorted row in memory beside its key: a pointer, an index tuple's header and the allocator's (tuplesort.c:
/// SortTuple, 24 bytes; indextuple.h: 8; a key of 8 bytes; 16 of the allocator's).
const SORTED_ROW: f64 = 56.0;
/// Part of the machine's memory beyond which written blocks are no longer only kept there: Linux makes writers wait once dirty
/// blocks take a fifth of the memory (vm.dirty_ratio).
const DIRTY: f64 = 0.2;
/// Part of the machine's memory that read tables can stay in.
const CACHED: f64 = 0.5;

/// The server's memory, as far as the work depends on it. Bytes; 0 where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// `shared_buffers`, bytes.
    pub shared_buffers: u64,
    /// `maintenance_work_mem` of the session.
    pub maintenance_work_mem: u64,
    /// `max_wal_size`: a part of so much WAL begins a checkpoint.
    pub max_wal_size: u64,
    /// Memory of the server's machine, if it is this one.
    pub machine: u64,
}

impl Memory {
    /// Bytes that can be written and stay in the machine's memory for now.
    pub fn dirty(self) -> f64 {
        self.machine as f64 * DIRTY
    }

    /// Bytes of tables that can be read and stay in the machine's memory.
    pub fn cached(self) -> f64 {
        self.machine as f64 * CACHED
    }

    /// Rows that are sorted for an index within `maintenance_work_mem`.
    pub fn sorted_rows(self) -> f64 {
        self.maintenance_work_mem as f64 / SORTED_ROW
    }
}

/// A boundary that lies between the measured sizes and the size of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// The resource that is exhausted there.
    pub cause: Cause,
    /// Bytes of the data at which it begins to act.
    pub at: u64,
}

impl Boundary {
    /// Those of these causes whose sizes are known.
    pub fn known(found: impl IntoIterator<Item = (Cause, f64)>) -> Vec<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes, not negative")]
        let known = |(cause, at): (Cause, f64)| (at > 0.0).then_some(Self { cause, at: at as u64 });
        found.into_iter().filter_map(known).collect()
    }
}

/// Causes of boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The data and new files may no longer fit in the part of the machine's memory that caches files.
    Cache,
    /// Blocks that rows change no longer fit shared_buffers.
    SharedBuffers,
    /// A sort for an index no longer fits maintenance_work_mem.
    MaintenanceWorkMem,
    /// A sort for an index has parallel workers.
    ParallelWorkers,
    /// A checkpoint begins meanwhile, because of the WAL since the last one.
    MaxWalSize,
    /// A checkpoint begins meanwhile, because of the time since the last one.
    CheckpointTimeout,
}

impl Cause {
    /// Its effect, for people. Of the cache, the boundary is a part of the memory ([`Memory::dirty`], [`Memory::cached`]).
    pub fn effect(self) -> &'static str {
        match self {
            Self::Cache => "the work may no longer fit in the cache, a part of the machine's memory",
            Self::SharedBuffers => "the work exceeds shared_buffers",
            Self::MaintenanceWorkMem => "the work exceeds maintenance_work_mem",
            Self::ParallelWorkers => {
                "builds of indexes have parallel workers, which sort in temporary files (min_parallel_table_scan_size)"
            }
            Self::MaxWalSize => "a checkpoint begins meanwhile (max_wal_size)",
            Self::CheckpointTimeout => "a checkpoint begins meanwhile (checkpoint_timeout)",
        }
    }
}
