//! Methods of making and loading rows, and of building indexes.

use serde::Serialize;

/// Method of making and loading rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// CREATE TABLE AS SELECT generate_series.
    CreateTableAs,
    /// COPY (FREEZE), each leaf in the transaction that creates or truncates it: all or nothing.
    FrozenCopy,
    /// COPY, a transaction for each chunk.
    ChunkedCopy,
    /// INSERT … SELECT generate_series, a transaction for each chunk.
    Server,
    /// COPY, a transaction for each chunk; leaves by hash get the same seed rows in each chunk.
    Reinsert,
    /// COPY (FREEZE) at fillfactor 100, then VACUUM FULL at the final one.
    Explode,
    /// Direct pages written into the files of each leaf, in the transaction that creates or truncates it.
    Direct,
}

impl Method {
    /// Its name for people and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateTableAs => "create-table-as",
            Self::FrozenCopy => "frozen-copy",
            Self::ChunkedCopy => "chunked-copy",
            Self::Server => "server",
            Self::Reinsert => "reinsert",
            Self::Explode => "explode",
            Self::Direct => "direct",
        }
    }

    /// Whether rows travel by COPY, at least some.
    pub fn copies(self) -> bool {
        !matches!(self, Self::CreateTableAs | Self::Server | Self::Direct)
    }

    /// Whether a chunk is a whole leaf, emptied and filled in one transaction, so that its rows can be
    /// frozen as they come.
    pub fn is_frozen(self) -> bool {
        matches!(self, Self::FrozenCopy | Self::Explode | Self::Direct)
    }
}

/// Session settings for building indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IndexBuild {
    /// `maintenance_work_mem`, bytes.
    pub maintenance_work_mem: u64,
    /// `max_parallel_maintenance_workers`; none leaves the server's own.
    pub(crate) parallel_workers: Option<u32>,
}

/// Memory per row that an index build needs to sort without temporary files, bytes: a 24-byte
/// SortTuple in an array that doubles as it grows, and the index tuple with its header.
pub(crate) const SORT_MEMORY_BYTES: u64 = 80;
/// Size of a row in an index build's temporary file, bytes.
pub(crate) const SORT_TAPE_BYTES: u64 = 24;

impl IndexBuild {
    /// Size of temporary files for the largest number of rows that are sorted without any, bytes. Parallel workers
    /// hand over the tuples that they sorted in files, however few they are (`tuplesort_performsort`).
    pub(crate) fn tape_in_memory(self) -> u64 {
        match self.parallel_workers {
            Some(0) => self.maintenance_work_mem / SORT_MEMORY_BYTES * SORT_TAPE_BYTES,
            Some(_) | None => 0,
        }
    }
}
