//! What a plan will take of the disk: tables, WAL, temporary files.

use rowgen::pgbench;

use crate::plan::chunks::Chunking;
use crate::plan::data::{IndexBuild, Method, Prediction, SORT_TAPE_BYTES};
use crate::plan::rules::Planner;
use crate::plan::sizes::{Layout, tuple};
use crate::plan::tables::Tables;
use crate::request::Amount;

impl Planner<'_> {
    /// What all rows will take; without an end, what a chunk takes.
    pub(crate) fn predicted(
        &self,
        method: Method,
        chunking: Chunking,
        build: Option<IndexBuild>,
    ) -> Prediction {
        if self.request.amount == Amount::Nothing {
            return Prediction::default();
        }
        let rows = self.target.rows.unwrap_or(chunking.chunk_rows);
        let first = if self.target.rows.is_some() { chunking.first_row } else { 0 };
        let total = self.layout.sizes(first + rows, pgbench::scale_for(first + rows));
        let sizes = match first {
            0 => self.layout.sizes(rows, self.target.scale.min(pgbench::scale_for(rows).max(1))),
            _ => total.less(self.layout.sizes(first, self.target.scale_before)),
        };
        let dense = Layout { fillfactor: 100, ..self.layout.clone() };
        let temporary = match method {
            Method::Explode => dense.sizes(rows, pgbench::scale_for(rows)).heap,
            _ => build.map_or(0, |build| temporary(rows, build)),
        };
        Prediction { sizes, wal: self.wal(method, rows, sizes.index), temporary }
    }

    /// WAL that so many rows and an index of so many bytes write. Per row: COPY's multi-insert record
    /// holds the tuple without its fixed header, and 8 bytes of its own (`xl_multi_insert_tuple`); an
    /// INSERT's record has more of them; per page: record headers, and a vacuum that is left to mark
    /// it; index pages are logged whole without their free tenth, keys that come with the rows one by
    /// one, with the pages that they split.
    fn wal(&self, method: Method, rows: u64, index: u64) -> u64 {
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
        let vacuum = if self.layout.vacuum && !in_one { VACUUM_PER_PAGE } else { 0 };
        let per_record = match method {
            Method::Server | Method::CreateTableAs => PER_TUPLE + PER_INSERT,
            _ => PER_TUPLE,
        };
        let tables = Tables::new(&self.request.subject, rows, pgbench::scale_for(rows), self.request.payload);
        let heap: u64 = tables
            .all()
            .map(|table| {
                let per_row = u64::from(tuple(table)) - TUPLE_HEADER + per_record;
                table.rows * per_row + self.layout.heap_blocks(table) * (PER_PAGE + vacuum)
            })
            .sum();
        // VACUUM FULL logs the pages that it writes.
        let rewritten = if method == Method::Explode { self.layout.sizes(rows, 1).heap / 10 } else { 0 };
        heap + rewritten + index
    }
}

/// Temporary files of the index build, bytes.
fn temporary(rows: u64, build: IndexBuild) -> u64 {
    let tape = rows.saturating_mul(SORT_TAPE_BYTES);
    if tape <= build.tape_in_memory() { 0 } else { tape }
}
