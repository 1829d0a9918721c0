//! The size of a number of rows, and the number of rows of a size.

use page::{Attribute, Geometry, LEAF_FILLFACTOR, tuple_length};
use rowgen::{Column, Kind, Payload, Table, Values, pgbench};
use serde::Serialize;

use super::row_range::{RowRange, asked_for};
use crate::error::FillError;
use crate::plan::tables::{Tables, key, leaf_rows};
use crate::request::{IndexKind, InitStep, Partitions, Persistence, Request, Subject};

/// Blocks that one table can have (`MaxBlockNumber`).
pub(crate) const MAX_BLOCKS: u64 = u32::MAX as u64;

/// Bytes that tables and their indexes take once finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Tables: main fork, free space and visibility maps.
    pub heap: u64,
    /// Indexes: all their forks.
    pub index: u64,
}

impl Sizes {
    /// Heap and index.
    pub fn total(self) -> u64 {
        self.heap.saturating_add(self.index)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { heap: self.heap.saturating_add(other.heap), index: self.index.saturating_add(other.index) }
    }

    /// The excess of `self` over `other`.
    #[must_use]
    pub(crate) fn less(self, other: Self) -> Self {
        Self { heap: self.heap.saturating_sub(other.heap), index: self.index.saturating_sub(other.index) }
    }

    fn times(self, count: u64) -> Self {
        Self { heap: self.heap.saturating_mul(count), index: self.index.saturating_mul(count) }
    }
}

/// The predicted sizes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Finished tables and indexes.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// WAL that the whole fill writes.
    pub wal: u64,
    /// Temporary space that is taken and given back: sort files, or the dense copy of a table.
    pub temporary: u64,
}

impl Prediction {
    /// The most disk that is taken at any moment, bytes: WAL may pile up to `max_wal_size` or be
    /// held by a slot, so all of it counts.
    pub fn peak(&self) -> u64 {
        self.sizes.total().saturating_add(self.wal).saturating_add(self.temporary)
    }
}

/// Facts that decide the layout of the rows.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The kind of tables.
    pub subject: Subject,
    /// Geometry of the server's blocks.
    pub(crate) geometry: Geometry,
    /// Fillfactor, percent.
    pub fillfactor: u8,
    /// Persistence: unlogged indexes have an init fork.
    pub persistence: Persistence,
    /// Whether a vacuum writes the heap's maps.
    pub vacuum: bool,
    /// Whether pages are written directly, which writes a visibility map even without a vacuum.
    pub direct: bool,
    /// The bulk table's index; `None` also for a fill that builds none.
    pub index: IndexKind,
    /// Partitions of the bulk table.
    pub partitions: Option<Partitions>,
}

/// Rows and bytes of a request that no server was asked about.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Calculation {
    /// Rows of the bulk table.
    pub rows: u64,
    /// pgbench's scale: as many branches.
    pub scale: u64,
    /// Rows in a page of the bulk table.
    pub rows_per_page: u32,
    /// Sizes of tables and indexes.
    #[serde(flatten)]
    pub sizes: Sizes,
}

impl Calculation {
    /// For a server with blocks of this geometry.
    ///
    /// # Errors
    /// If the request cannot be met.
    pub fn new(request: &Request, geometry: Geometry) -> Result<Self, FillError> {
        request.check()?;
        let layout = Layout::of(request, geometry);
        let RowRange { rows, scale, .. } = asked_for(request, &layout, 0, 0)?;
        let rows = rows.unwrap_or(0);
        let bulk = Tables::new(&request.subject, rows, scale, request.payload).bulk;
        let rows_per_page = geometry.rows_per_page(tuple(&bulk), request.fillfactor);
        Ok(Self { rows, scale, rows_per_page, sizes: layout.sizes(rows, scale) })
    }
}

impl Layout {
    /// The layout of the request's tables once all its steps are done.
    pub(crate) fn of(request: &Request, geometry: Geometry) -> Self {
        let indexed = request.steps.include(InitStep::PrimaryKeys);
        Self {
            subject: request.subject.clone(),
            geometry,
            fillfactor: request.fillfactor,
            persistence: request.persistence,
            vacuum: request.steps.include(InitStep::Vacuum) || request.freezes(),
            direct: false,
            index: if indexed { request.index } else { IndexKind::None },
            partitions: request.partitions,
        }
    }

    /// The tables with `rows` rows in the bulk table and `scale` branches. Only the widths of the
    /// columns are right; the filler's content does not matter.
    pub(super) fn tables(&self, rows: u64, scale: u64) -> Tables {
        Tables::new(&self.subject, rows, scale, Payload::Blank)
    }

    /// Sizes of the tables with so many rows in the bulk table and `scale` branches.
    pub(crate) fn sizes(&self, rows: u64, scale: u64) -> Sizes {
        let tables = self.tables(rows, scale);
        let copied = Self { direct: false, ..self.clone() };
        let small = tables.small.iter().map(|table| copied.table(table, table.rows, self.key_index()));
        small.fold(self.bulk(&tables.bulk), Sizes::plus)
    }

    /// Size of the bulk table.
    fn bulk(&self, table: &Table) -> Sizes {
        let Some(partitions) = self.partitions else { return self.table(table, table.rows, self.index) };
        let each = leaf_rows(table.rows, partitions);
        let leaf = self.table(table, each, self.index);
        let whole_leaves = table.rows / each.max(1);
        let rest = self.table(table, table.rows % each.max(1), self.index);
        let empty_leaves = u64::from(partitions.count.get()).saturating_sub(whole_leaves + 1);
        let empty = self.table(table, 0, self.index);
        leaf.times(whole_leaves).plus(rest).plus(empty.times(empty_leaves))
    }

    /// The index of tables that are not the bulk: a primary key, unless none is built.
    fn key_index(&self) -> IndexKind {
        if self.index == IndexKind::None { IndexKind::None } else { IndexKind::Btree }
    }

    /// Heap blocks of the table's main forks.
    pub(crate) fn heap_blocks(&self, table: &Table) -> u64 {
        self.geometry.heap_blocks(table.rows, tuple(table), self.fillfactor)
    }

    /// The most rows that the bulk table can hold.
    pub(crate) fn most_rows(&self) -> u64 {
        let tables = self.tables(u64::MAX, pgbench::BIGINT_SCALE);
        let leaves = self.partitions.map_or(1, |partitions| u64::from(partitions.count.get()));
        let per_page = u64::from(self.geometry.rows_per_page(tuple(&tables.bulk), self.fillfactor));
        let rows = (MAX_BLOCKS * per_page).saturating_mul(leaves);
        rows.min((pgbench::MAX_SCALE + 1) * pgbench::ACCOUNTS_PER_SCALE - 1)
    }

    /// The number of rows, beside `present` ones, with which the tables come closest to growing by
    /// `size` bytes.
    ///
    /// # Errors
    /// Returns in `Err` the smallest and the largest possible size, bytes.
    pub(crate) fn rows_for(&self, size: u64, present: u64) -> Result<u64, (u64, u64)> {
        let most = self.most_rows().max(present + 1);
        let grown = |rows| self.growth(present, rows);
        let (smallest, largest) = (grown(1), grown(most - present));
        if size < smallest || size > largest {
            return Err((smallest, largest));
        }
        Ok(nearest(size, most - present, grown))
    }

    /// Bytes by which the tables grow if so many rows are added to `present` ones.
    pub(crate) fn growth(&self, present: u64, rows: u64) -> u64 {
        let total = |rows| self.sizes(rows, pgbench::scale_for(rows)).total();
        let before = if present == 0 { 0 } else { total(present) };
        total(present + rows) - before
    }

    fn table(&self, table: &Table, rows: u64, index: IndexKind) -> Sizes {
        let block = u64::from(self.geometry.block_size());
        let heap = self.geometry.heap_blocks(rows, tuple(table), self.fillfactor);
        let visible = if self.vacuum || self.direct { self.geometry.visibility_map_blocks(heap) } else { 0 };
        let free = if self.vacuum { self.geometry.free_space_map_blocks(heap) } else { 0 };
        let maps = visible + free;
        let index = key(table).map_or(0, |key| {
            let init_fork = u64::from(self.persistence == Persistence::Unlogged);
            let key = width(&key.kind);
            match index {
                IndexKind::Btree => self.geometry.btree_blocks(rows, key, LEAF_FILLFACTOR) + init_fork,
                IndexKind::Brin => self.geometry.brin_blocks(heap, key) + init_fork,
                IndexKind::None => 0,
            }
        });
        Sizes { heap: (heap + maps) * block, index: index * block }
    }
}

/// The number of rows, from 1 to `most`, that takes closest to `size` bytes. `bytes` gives the
/// bytes of a number of rows and must not decrease.
pub(crate) fn nearest(size: u64, most: u64, bytes: impl Fn(u64) -> u64) -> u64 {
    // Find where it first reaches the size.
    let (mut below, mut reaching) = (0, most);
    while reaching - below > 1 {
        let middle = below + (reaching - below) / 2;
        if bytes(middle) < size { below = middle } else { reaching = middle }
    }
    let is_nearer = below > 0 && size - bytes(below) < bytes(reaching).saturating_sub(size);
    if is_nearer { below } else { reaching }
}

/// Length of each of the table's tuples, bytes. Every row of these tables has the same.
pub(crate) fn tuple(table: &Table) -> u32 {
    let attributes: Vec<Attribute> = table.columns.iter().map(attribute).collect();
    tuple_length(&attributes)
}

fn attribute(column: &Column) -> Attribute {
    match (&column.values, &column.kind) {
        (Values::Null, _) => Attribute::Null,
        // Blank-padded to its full length, one byte a character: all text here is ASCII.
        (_, Kind::Char(length)) => Attribute::Text { length: *length },
        (_, kind) => Attribute::Fixed { length: width(kind), align: width(kind) },
    }
}

fn width(kind: &Kind) -> u32 {
    match kind {
        Kind::Int4 => 4,
        Kind::Int8 | Kind::Timestamp => 8,
        _ => unreachable!("no key and no fixed-length column of these tables is anything else"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout(fillfactor: u8, vacuum: bool, index: bool) -> Layout {
        let persistence = if vacuum { Persistence::Logged } else { Persistence::Unlogged };
        let index = if index { IndexKind::Btree } else { IndexKind::None };
        Layout {
            subject: Subject::Pgbench,
            geometry: Geometry::new(8192),
            fillfactor,
            persistence,
            vacuum,
            direct: false,
            index,
            partitions: None,
        }
    }

    #[test]
    fn the_article_s_scale_5000_is_about_73_gb() {
        let sizes = layout(100, true, true).sizes(500_000_000, 5000);
        let gb = sizes.total() as f64 / 1e9;
        // 64 GB of heap and 11 GB of index; the article says "around 73GB", in GiB 69.8.
        assert!((72.0..79.0).contains(&gb), "{gb}");
    }

    #[test]
    fn sizes_out_of_reach_are_refused_with_the_range() {
        let layout = layout(100, true, true);
        let (smallest, largest) = layout.rows_for(1, 0).unwrap_err();
        assert_eq!(layout.rows_for(smallest, 0), Ok(1));
        assert!(layout.rows_for(largest, 0).is_ok());
        assert_eq!(layout.rows_for(largest + 1, 0), Err((smallest, largest)));
    }

    proptest! {
        #[test]
        fn a_size_is_met_within_two_blocks_of_rows(
            size in 400_000_u64..30_000_000_000_000,
            fillfactor in 10_u8..=100,
            vacuum: bool,
            index: bool,
        ) {
            let layout = layout(fillfactor, vacuum, index);
            let accounts = layout.rows_for(size, 0).unwrap();
            let total = layout.sizes(accounts, pgbench::scale_for(accounts)).total();
            // One row may open a heap block, a block of each map, index blocks, and a branch.
            prop_assert!(total.abs_diff(size) <= 12 * 8192, "{size} gives {total}");
        }

        #[test]
        fn total_never_falls_as_rows_are_added(rows in 1_u64..30_000_000_000, more in 1_u64..1_000_000) {
            let layout = layout(100, true, true);
            let total = |rows| layout.sizes(rows, pgbench::scale_for(rows)).total();
            prop_assert!(total(rows + more) >= total(rows));
        }
    }
}
