//! The space that a plan needs on disk: tables, WAL, temporary files.

use rowgen::pgbench;

use super::bulk::RowSize;
use super::chunks::Chunking;
use super::method::{IndexBuild, Method, SORT_TAPE_BYTES};
use super::rules::Rules;
use super::sizes::{Layout, Prediction, Sizes, tuple};
use crate::request::Amount;

impl Rules<'_> {
    /// The space of all rows; of one chunk if the fill has no end.
    pub(crate) fn predicted(
        &self,
        method: Method,
        chunking: Chunking,
        build: Option<IndexBuild>,
    ) -> Prediction {
        match &self.bulk.row_size {
            RowSize::Exact(layout) => self.exact(layout, method, chunking, build),
            // Rows of permanent tables come so only where they need no WAL.
            RowSize::Estimated { pages: Some(sizes), .. } => {
                Prediction { sizes: *sizes, wal: 0, temporary: 0 }
            }
            RowSize::Estimated { heap, total, pages: None } => self.estimated(*heap, *total, chunking),
        }
    }

    fn exact(
        &self,
        layout: &Layout,
        method: Method,
        chunking: Chunking,
        build: Option<IndexBuild>,
    ) -> Prediction {
        if self.request.amount == Amount::Nothing {
            return Prediction::default();
        }
        let range = &self.bulk.range;
        let rows = range.rows.unwrap_or(chunking.chunk_rows);
        let first = if range.rows.is_some() { chunking.first_row } else { 0 };
        let total = layout.sizes(first + rows, pgbench::scale_for(first + rows));
        let sizes = match first {
            0 => layout.sizes(rows, range.scale.min(pgbench::scale_for(rows).max(1))),
            _ => total.less(layout.sizes(first, range.scale_before)),
        };
        let dense = Layout { fillfactor: 100, ..layout.clone() };
        let temporary = match method {
            Method::Explode => dense.sizes(rows, pgbench::scale_for(rows)).heap,
            _ => build.map_or(0, |build| temporary(rows, build)),
        };
        Prediction { sizes, wal: self.wal(layout, method, rows, sizes.index), temporary }
    }

    /// The space of rows that take `heap` bytes each, `total` with their indexes.
    fn estimated(&self, heap: u64, total: u64, chunking: Chunking) -> Prediction {
        let rows = match self.request.amount {
            Amount::Rows(rows) => rows,
            _ => chunking.chunk_rows,
        };
        let heap = rows.saturating_mul(heap);
        let sizes = Sizes { heap, index: rows.saturating_mul(total).saturating_sub(heap) };
        Prediction { sizes, wal: if self.is_logged() { sizes.total() } else { 0 }, temporary: 0 }
    }

    /// WAL of so many rows and an index of `index` bytes. For each row, COPY's multi-insert record
    /// holds the tuple without its fixed header, and 8 bytes of its own (`xl_multi_insert_tuple`);
    /// an INSERT's record has more. For each page, there are record headers, and the marks of a
    /// vacuum if one follows. An index that is built logs whole pages without their free tenth;
    /// keys that grow with the rows are logged one by one, with the pages that they split.
    fn wal(&self, layout: &Layout, method: Method, rows: u64, index: u64) -> u64 {
        const TUPLE_HEADER: u64 = 23;
        const PER_TUPLE: u64 = 8;
        const PER_INSERT: u64 = 35;
        const PER_PAGE: u64 = 64;
        const VACUUM_PER_PAGE: u64 = 130;
        const PER_KEY: u64 = 88;
        if !self.is_logged() {
            return 0;
        }
        let index = match (self.has_keys_early(), self.server.skips_wal()) {
            (true, _) => rows * PER_KEY,
            (false, true) => 0,
            (false, false) => index * 9 / 10,
        };
        let in_one =
            matches!(method, Method::FrozenCopy | Method::Explode | Method::CreateTableAs | Method::Direct);
        if self.server.skips_wal() && in_one {
            return index;
        }
        let vacuum = if layout.vacuum && !in_one { VACUUM_PER_PAGE } else { 0 };
        let per_record = match method {
            Method::Server | Method::CreateTableAs => PER_TUPLE + PER_INSERT,
            _ => PER_TUPLE,
        };
        let tables = layout.tables(rows, pgbench::scale_for(rows));
        let heap: u64 = tables
            .all()
            .map(|table| {
                let per_row = u64::from(tuple(table)) - TUPLE_HEADER + per_record;
                table.rows * per_row + layout.heap_blocks(table) * (PER_PAGE + vacuum)
            })
            .sum();
        // VACUUM FULL logs the pages that it writes.
        let rewritten = if method == Method::Explode { layout.sizes(rows, 1).heap / 10 } else { 0 };
        heap + rewritten + index
    }
}

/// Temporary files of the index build, bytes.
fn temporary(rows: u64, build: IndexBuild) -> u64 {
    let tape = rows.saturating_mul(SORT_TAPE_BYTES);
    if tape <= build.tape_in_memory() { 0 } else { tape }
}
