//! The parts of every page: the header and the line pointers (`storage/bufpage.h`, `storage/itemid.h`).

use crate::{Geometry, PAGE_HEADER};

/// `PG_PAGE_LAYOUT_VERSION`: since PostgreSQL 8.3.
const LAYOUT_VERSION: u16 = 4;
/// `LP_NORMAL`: the line pointer's item is in use.
const NORMAL: u32 = 1;

/// A page's header. LSN and checksum are 0, and nothing is to be pruned.
#[derive(Clone, Copy)]
pub(crate) struct PageHeader {
    /// `pd_flags`.
    pub(crate) flags: u16,
    /// End of the line pointers, bytes from the start of the page.
    pub(crate) lower: u32,
    /// Offset of the first item's data.
    pub(crate) upper: u32,
    /// Start of the special space.
    pub(crate) special: u32,
}

impl PageHeader {
    /// The header of a page without line pointers and special space (`PageInit`).
    pub(crate) fn plain(geometry: Geometry) -> Self {
        let end = geometry.block_size();
        Self { flags: 0, lower: PAGE_HEADER, upper: end, special: end }
    }

    /// Writes `PageHeaderData` to the page's begin.
    ///
    /// # Panics
    /// For a page that is no block of PostgreSQL's or an offset outside it.
    pub(crate) fn write(self, page: &mut [u8]) {
        let size = within_page(Geometry::of(page).block_size());
        let [lower, upper, special] = [self.lower, self.upper, self.special].map(within_page);
        let (header, _) = page.split_at_mut(PAGE_HEADER as usize);
        // LSN and checksum before these, `pd_prune_xid` after them.
        header.fill(0);
        let fields = [self.flags, lower, upper, special, size | LAYOUT_VERSION];
        for (place, field) in header[10..].chunks_exact_mut(2).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
    }
}

/// `ItemIdData` of an item of `length` bytes at `offset`: 15 bits of offset, 2 of flags, 15 of length.
pub(crate) fn line_pointer(offset: u32, length: u32) -> [u8; 4] {
    (offset | NORMAL << 15 | length << 17).to_le_bytes()
}

fn within_page(bytes: u32) -> u16 {
    u16::try_from(bytes).expect("a page has at most 32768 bytes")
}
