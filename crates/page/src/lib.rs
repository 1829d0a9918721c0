//! PostgreSQL's on-disk formats: how many blocks so many rows take, and a B-tree's blocks themselves.
//!
//! Exact for tables that are filled in one go and vacuumed once: the heap and its visibility and
//! free space maps, and a B-tree over distinct ascending keys. Pure functions, no I/O.
//! Start reading at [`Geometry`], [`HeapPage`] and [`BtreeBuilder`]. This crate must not know values or files: callers pass
//! the bytes of tuples and write the pages.
//!
//! ```
//! use page::{Attribute, Geometry, tuple_length};
//!
//! // pgbench_accounts: aid, bid, abalance int; filler char(84)
//! let int = Attribute::Fixed { length: 4, align: 4 };
//! let tuple = tuple_length(&[int, int, int, Attribute::Text { length: 84 }]);
//! assert_eq!(tuple, 121);
//! let geometry = Geometry::new(8192);
//! assert_eq!(geometry.rows_per_page(tuple, 100), 61);
//! assert_eq!(geometry.rows_per_page(tuple, 10), 6);
//! ```
//!
//! # Blocks themselves
//!
//! [`Toaster`] compresses large values or moves them out of line;
//! [`HeapPage`] places frozen tuples as COPY (FREEZE) does, by the rule that [`Geometry::rows_per_page`]
//! counts with; [`visibility_map_page`] marks the heap's blocks; [`set_checksum`] completes any page;
//! [`Segments`] says in which file of a fork a block belongs, and where.
//!
//! Pages have layout version 4 (PostgreSQL 8.3 to 18), 8-byte alignment and little-endian integers: whether
//! a server's are so, its `pg_control` tells. Their LSN is 0, which precedes all WAL.

mod brin;
mod btree;
mod checksum;
mod heap;
mod heap_page;
mod layout;
mod maps;
mod segments;
mod toast;

pub use btree::{
    BtreeBuilder, BtreeKey, CompositeBuilder, KeyLength, LEAF_FILLFACTOR, SortedBuilder, TupleId,
};
pub use checksum::{checksum, set_checksum};
pub use heap::{Attribute, TUPLE_HEADER, tuple_length};
pub use heap_page::{HeapPage, TupleFlags};
pub use maps::visibility_map_page;
pub use segments::{BlockLocation, Segments};
pub use toast::{MovedValues, ToastAttribute, ToastCompression, ToastStorage, Toaster};

/// `PageHeaderData` without line pointers, bytes (`storage/bufpage.h`).
const PAGE_HEADER: u32 = 24;
/// `ItemIdData`, bytes: one for each tuple of a page (`storage/itemid.h`).
pub const LINE_POINTER: u32 = 4;

/// The property of a server's build that decides sizes: its block size.
///
/// MAXALIGN is 8 on every platform that PostgreSQL 13 to 18 runs on with 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    block_size: u32,
}

impl Geometry {
    /// For a server whose `block_size` is this many bytes (1024 to 32768, a power of two).
    ///
    /// # Panics
    /// For a block size that PostgreSQL cannot be built with.
    pub fn new(block_size: u32) -> Self {
        assert!(
            block_size.is_power_of_two() && (1024..=32768).contains(&block_size),
            "PostgreSQL has no block size of {block_size} bytes"
        );
        Self { block_size }
    }

    /// The geometry of the server that this page belongs to.
    fn of(page: &[u8]) -> Self {
        // No block size is this large.
        Self::new(u32::try_from(page.len()).unwrap_or(u32::MAX))
    }

    /// Bytes in a block.
    pub fn block_size(self) -> u32 {
        self.block_size
    }

    /// Bytes of a page that a fillfactor (percent) keeps free.
    fn reserved(self, fillfactor: u8) -> u32 {
        self.block_size * u32::from(100 - fillfactor) / 100
    }
}

/// Rounded up to a multiple of 8 (`MAXALIGN`).
pub fn max_align(bytes: u32) -> u32 {
    bytes.next_multiple_of(8)
}
