//! What a number of rows will take, and how many rows a size takes.

use page::{Attribute, Geometry, LEAF_FILLFACTOR, tuple_length};
use rowgen::{Column, Kind, Payload, Table, Values, pgbench};
use serde::Serialize;

use super::request::Persistence;

/// Blocks that one table can have (`MaxBlockNumber`).
const MAX_BLOCKS: u64 = u32::MAX as u64;

/// Bytes that tables and their indexes take once finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Tables: main fork, free space and visibility maps.
    pub heap: u64,
    /// Indexes.
    pub index: u64,
}

impl Sizes {
    /// Heap and index.
    pub fn total(self) -> u64 {
        self.heap + self.index
    }
}

/// What decides how the rows are laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The server's.
    pub geometry: Geometry,
    /// Percent.
    pub fillfactor: u8,
    /// Unlogged indexes have an init fork.
    pub persistence: Persistence,
    /// A vacuum writes the heap's maps.
    pub vacuum: bool,
    /// Primary keys are built.
    pub primary_keys: bool,
}

/// The four tables, in the order in which pgbench creates them; accounts last, it holds the bulk.
pub(super) fn tables(accounts: u64, scale: u64) -> [Table; 4] {
    [
        pgbench::history(scale),
        pgbench::tellers(scale),
        pgbench::branches(scale),
        pgbench::accounts(accounts, scale, Payload::Blank),
    ]
}

/// The key column of a table that has a primary key: all but history, always the first column.
pub(super) fn key(table: &Table) -> Option<&Column> {
    table.columns.first().filter(|column| column.not_null)
}

impl Layout {
    /// What the tables take with `accounts` accounts over `scale` branches.
    pub(super) fn sizes(self, accounts: u64, scale: u64) -> Sizes {
        let each = tables(accounts, scale).map(|table| self.table(&table));
        Sizes {
            heap: each.iter().map(|sizes| sizes.heap).sum(),
            index: each.iter().map(|sizes| sizes.index).sum(),
        }
    }

    /// Heap blocks of the table's main fork.
    pub(super) fn heap_blocks(self, table: &Table) -> u64 {
        self.geometry.heap_blocks(table.rows, tuple(table), self.fillfactor)
    }

    /// The most accounts that one table can hold.
    pub(super) fn most_accounts(self) -> u64 {
        let tuple = tuple(&pgbench::accounts(1, pgbench::BIGINT_SCALE, Payload::Blank));
        let rows = MAX_BLOCKS * u64::from(self.geometry.rows_per_page(tuple, self.fillfactor));
        rows.min((pgbench::MAX_SCALE + 1) * pgbench::ACCOUNTS_PER_SCALE - 1)
    }

    /// The number of accounts whose tables come closest to `size` bytes.
    ///
    /// # Errors
    /// `Err` holds the smallest and the largest size that can be had, bytes.
    pub(super) fn accounts_for(self, size: u64) -> Result<u64, (u64, u64)> {
        let total = |accounts| self.sizes(accounts, pgbench::scale_for(accounts)).total();
        let most = self.most_accounts();
        let (smallest, largest) = (total(1), total(most));
        if size < smallest || size > largest {
            return Err((smallest, largest));
        }
        // The total never falls as rows are added: find where it first reaches the size.
        let (mut below, mut reaching) = (0, most);
        while reaching - below > 1 {
            let middle = below + (reaching - below) / 2;
            if total(middle) < size { below = middle } else { reaching = middle }
        }
        let nearer_below = below > 0 && size - total(below) < total(reaching) - size;
        Ok(if nearer_below { below } else { reaching })
    }

    fn table(self, table: &Table) -> Sizes {
        let block = u64::from(self.geometry.block_size());
        let heap = self.heap_blocks(table);
        let maps = if self.vacuum {
            self.geometry.free_space_map_blocks(heap) + self.geometry.visibility_map_blocks(heap)
        } else {
            0
        };
        let index = key(table).filter(|_| self.primary_keys).map_or(0, |key| {
            let init_fork = u64::from(self.persistence == Persistence::Unlogged);
            self.geometry.btree_blocks(table.rows, width(&key.kind), LEAF_FILLFACTOR) + init_fork
        });
        Sizes { heap: (heap + maps) * block, index: index * block }
    }
}

/// Length of each of the table's tuples, bytes. Every row of these tables has the same.
pub(super) fn tuple(table: &Table) -> u32 {
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
        _ => unreachable!("pgbench's tables have no other keys and fixed-length columns"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout(fillfactor: u8, vacuum: bool, primary_keys: bool) -> Layout {
        let persistence = if vacuum { Persistence::Logged } else { Persistence::Unlogged };
        Layout { geometry: Geometry::new(8192), fillfactor, persistence, vacuum, primary_keys }
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
        let (smallest, largest) = layout.accounts_for(1).unwrap_err();
        assert_eq!(layout.accounts_for(smallest), Ok(1));
        assert!(layout.accounts_for(largest).is_ok());
        assert_eq!(layout.accounts_for(largest + 1), Err((smallest, largest)));
    }

    proptest! {
        #[test]
        fn a_size_is_met_within_two_blocks_of_rows(
            size in 400_000_u64..30_000_000_000_000,
            fillfactor in 10_u8..=100,
            vacuum: bool,
            primary_keys: bool,
        ) {
            let layout = layout(fillfactor, vacuum, primary_keys);
            let accounts = layout.accounts_for(size).unwrap();
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
