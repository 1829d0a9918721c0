//! The first block of a B-tree (`BTMetaPageData`, `_bt_initmetapage`).

use super::SPECIAL;
use crate::layout::PageHeader;
use crate::{Geometry, PAGE_HEADER};

const MAGIC: u32 = 0x0005_3162;
/// Since PostgreSQL 12; 13 added the last field without a new number.
const VERSION: u32 = 4;
/// `sizeof(BTMetaPageData)`.
const LENGTH: u32 = 48;
/// In the special space: `BTP_META`.
const META_FLAG: u16 = 1 << 3;

/// The root of a tree that has pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) block: u32,
    pub(super) level: u32,
}

/// The metapage of a tree; of an empty index without a root. `shares_equal`: whether equal keys may share tuples
/// (`btm_allequalimage`), as `_bt_allequalimage` says.
///
/// The same bytes in PostgreSQL 13 to 18: the field that 14 gave another meaning (now
/// `btm_last_cleanup_num_delpages`) is 0 either way.
pub(super) fn metapage(geometry: Geometry, root: Option<Root>, shares_equal: bool) -> Box<[u8]> {
    let block_size = geometry.block_size();
    let mut page = vec![0; block_size as usize].into_boxed_slice();
    let special = block_size - SPECIAL;
    PageHeader { flags: 0, lower: PAGE_HEADER + LENGTH, upper: special, special }.write(&mut page);

    let Root { block, level } = root.unwrap_or(Root { block: 0, level: 0 });
    let meta = &mut page[PAGE_HEADER as usize..];
    // Magic, version; root and its level; the same again as the "fast" root.
    for (field, value) in meta.chunks_exact_mut(4).zip([MAGIC, VERSION, block, level, block, level]) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    // Heap tuples at the last cleanup: there was none.
    meta[32..40].copy_from_slice(&(-1.0_f64).to_le_bytes());
    meta[40] = shares_equal.into();
    page[special as usize + 12..][..2].copy_from_slice(&META_FLAG.to_le_bytes());
    page
}
