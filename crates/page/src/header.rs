//! `PageHeaderData` (`storage/bufpage.h`).

/// `PG_PAGE_LAYOUT_VERSION` since PostgreSQL 8.3.
const LAYOUT_VERSION: u16 = 4;

/// Writes where the line pointers end, where the items begin, and where the special space begins, and
/// the page's own size and layout version. LSN, checksum, flags and prune xid are left as they are.
pub(crate) fn write_header(page: &mut [u8], lower: u32, upper: u32, special: u32) {
    let size = u16::try_from(page.len()).expect("a block has at most 32768 bytes");
    let offsets = [lower, upper, special].map(|at| u16::try_from(at).expect("an offset within the page"));
    for (at, value) in (12..).step_by(2).zip(offsets.into_iter().chain([size | LAYOUT_VERSION])) {
        page[at..at + 2].copy_from_slice(&u16::to_le_bytes(value));
    }
}
