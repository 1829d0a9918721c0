//! Number of parallel streams.

use std::num::NonZeroU16;

use server::Site;

use super::Rules;
use super::method::needs_chunks;
use crate::error::FillError;
use crate::plan::Method;
use crate::plan::bulk::RowSize;
use crate::request::{Request, RowOrder};

/// Bytes of heap below which a further stream does not pay: its COPY would end before it is warm.
const HEAP_PER_STREAM: u64 = 128 << 20;
/// Streams that are chosen at most: past these the server's own locks and the disk decide.
const MOST_STREAMS: u16 = 8;
/// Sessions beside the streams: pgrig's own, and those that the server keeps for superusers.
const OTHER_SESSIONS: u32 = 6;
/// Rows of a table of the user's below which a further stream does not pay.
const FEW_ROWS: u64 = 100_000;

/// The work of a stream that writes pages.
pub(super) const BUILDERS: &str = "in each, one thread builds pages, another writes them";

/// Why one stream loads a table of a model.
pub(super) const IN_ORDER: &str = "the rows keep their order, which the model's correlations need";

/// Threads that build pages. Each hands them to another thread that writes them, so a further one would wait for a
/// processor: 3 million rows of 40 columns take two threads 2.55 s, three 2.84 s, four 2.74 s.
fn builders(site: Site) -> NonZeroU16 {
    NonZeroU16::new(site.cores().min(MOST_STREAMS)).unwrap_or(NonZeroU16::MIN)
}

/// Bytes of heap of a process, if it is one of several parts.
fn shared(heap: u64, request: &Request) -> u64 {
    heap / request.part.map_or(1, |part| u64::from(part.of))
}

/// Refuses more streams than the server has connections for.
pub(super) fn refuse_too_many(request: &Request, max_connections: u32) -> Result<(), FillError> {
    let most = max_connections.saturating_sub(OTHER_SESSIONS).max(1);
    match request.streams.map(NonZeroU16::get) {
        Some(streams) if u32::from(streams) > most => Err(FillError::Streams { streams, most }),
        _ => Ok(()),
    }
}

impl Rules<'_> {
    /// Whether rows reference earlier rows of the same table.
    fn is_tree(&self) -> bool {
        self.bulk.tables.bulk.columns.iter().any(|column| column.values.are_of_earlier_rows())
    }

    /// Refuses parts of a table whose rows have an order.
    fn refuse_parts_of_tree(&self, method: Method) -> Result<(), FillError> {
        // One part loads such a table of a schema.
        if self.request.part.is_none()
            || self.request.place.is_some()
            || !self.is_tree()
            || method == Method::Direct
        {
            return Ok(());
        }
        let text = "--part: rows of this table reference earlier rows of it, which must be loaded first. Leave out --part, or give the \
                    column other values, for example --column NAME=null";
        Err(FillError::Combination(text.to_owned()))
    }

    /// The streams of a method, and why there are so many.
    ///
    /// # Errors
    /// If several processes cannot load the rows.
    pub(super) fn streams(&self, method: Method) -> Result<(NonZeroU16, &'static str), FillError> {
        self.refuse_parts_of_tree(method)?;
        Ok(self.streams_for(method))
    }

    fn streams_for(&self, method: Method) -> (NonZeroU16, &'static str) {
        if self.is_tree() && method != Method::Direct {
            return (NonZeroU16::MIN, "rows reference earlier rows of the table, which must be loaded first");
        }
        if self.request.is_in_cycle() && method != Method::Direct {
            return (NonZeroU16::MIN, "one transaction loads all tables of the cycle");
        }
        if let Some(streams) = self.request.streams {
            return (streams, "--streams is given");
        }
        if method == Method::Direct {
            return (builders(self.site), BUILDERS);
        }
        if self.request.order() == RowOrder::Kept {
            return (NonZeroU16::MIN, IN_ORDER);
        }
        if let RowSize::Estimated { .. } = self.bulk.row_size {
            return (self.streams_into_own_table(), "one for each core, unless the rows are few");
        }
        let leaves = self.request.partitions.map_or(1, |partitions| partitions.count.get());
        let leaves = u16::try_from(leaves).unwrap_or(u16::MAX);
        let cores = self.cores().min(MOST_STREAMS);
        let one_a_leaf = NonZeroU16::new(cores.min(leaves)).unwrap_or(NonZeroU16::MIN);
        match method {
            Method::CreateTableAs => (NonZeroU16::MIN, "one statement"),
            Method::FrozenCopy | Method::Explode | Method::Reinsert if leaves > 1 => {
                (one_a_leaf, "one for each core, each with its own partition")
            }
            Method::Explode => (NonZeroU16::MIN, "one table"),
            Method::Server => (
                NonZeroU16::new(cores).unwrap_or(NonZeroU16::MIN),
                "one for each core; the server makes the rows",
            ),
            Method::FrozenCopy | Method::ChunkedCopy | Method::Reinsert | Method::Direct => {
                self.table_streams()
            }
        }
    }

    /// Streams into one table, by COPY.
    pub(super) fn table_streams(&self) -> (NonZeroU16, &'static str) {
        let possible = self.worthwhile_streams();
        let vacuum = self.makes_maps();
        let frozen_pays = vacuum && self.server.major() >= 14 && (self.is_logged() || self.cores() < 4);
        let unlogged_pays = self.is_logged() && self.server.skips_wal() && (vacuum || !self.stays_cached());
        match self.request.streams {
            Some(streams) => (streams, "--streams is given"),
            None if self.has_keys_early() => (
                NonZeroU16::MIN,
                "one stream inserts keys in ascending order, which fills index pages completely",
            ),
            None if possible.get() > 1 && !frozen_pays && !unlogged_pays => {
                (possible, "parallel: no VACUUM follows, or VACUUM rewrites every page in any case")
            }
            None if possible.get() < 2 => {
                (NonZeroU16::MIN, "with so few rows or cores, a second stream is not faster")
            }
            None if needs_chunks(self.request).is_some() || self.request.part.is_some() => {
                (possible, "parallel, one for each core")
            }
            None if frozen_pays => {
                (NonZeroU16::MIN, "the rows are loaded frozen, so VACUUM rewrites nothing")
            }
            None => (
                NonZeroU16::MIN,
                "a table filled in the transaction that creates it needs no WAL (wal_level = minimal)",
            ),
        }
    }

    /// As many streams as there are cores, if each has enough to do. The cost of a row depends on
    /// its share of the page, not on its length: 1.2 million rows at fillfactor 10 take one stream
    /// 1.5 s, two 0.97 s.
    fn worthwhile_streams(&self) -> NonZeroU16 {
        let worth = u16::try_from(shared(self.heap(), self.request) / HEAP_PER_STREAM).unwrap_or(u16::MAX);
        NonZeroU16::new(self.cores().min(worth).min(MOST_STREAMS)).unwrap_or(NonZeroU16::MIN)
    }

    /// As many as there are cores; one where the rows are few.
    fn streams_into_own_table(&self) -> NonZeroU16 {
        let few = self.bulk.range.rows.is_some_and(|rows| rows < FEW_ROWS);
        NonZeroU16::new(if few { 1 } else { self.cores().min(MOST_STREAMS) }).unwrap_or(NonZeroU16::MIN)
    }
}
