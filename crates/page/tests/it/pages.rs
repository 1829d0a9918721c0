//! Invariants of pages of any rows. `pages_of_servers` compares pages with those of live servers.

use std::num::NonZeroU32;

use page::{
    BlockLocation, Geometry, HeapPage, Segments, TUPLE_HEADER, TupleFlags, checksum, visibility_map_page,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
struct Row {
    body: Vec<u8>,
    flags: TupleFlags,
}

prop_compose! {
    /// Up to a length at which every page, even the smallest, has room for it.
    fn row()(
        body in prop::collection::vec(any::<u8>(), 210..900),
        short in any::<prop::sample::Index>(),
        attributes in 0_u16..=1600,
        has_nulls: bool,
        has_varwidth: bool,
    ) -> Row {
        // The body has at least what precedes the attributes.
        let least = if has_nulls { 201 } else { 1 };
        let length = least + short.index(body.len() - least);
        Row { body: body[..length].to_vec(), flags: TupleFlags { attributes, has_nulls, has_varwidth, has_external: false } }
    }
}

/// As the writer does it, in a buffer that was used before.
fn filled(rows: &[Row], first: u32, fillfactor: u8, block_size: usize) -> Vec<Vec<u8>> {
    let mut rows = rows.iter().peekable();
    let mut pages = Vec::new();
    while rows.peek().is_some() {
        let mut page = vec![0xAA; block_size];
        let block = first + u32::try_from(pages.len()).unwrap();
        let mut builder = HeapPage::begin(&mut page, block, fillfactor);
        while let Some(row) = rows.next_if(|row| builder.fits(row.body.len())) {
            builder.push(&row.body, row.flags);
        }
        builder.finish(true);
        pages.push(page);
    }
    pages
}

/// The page's rows; fails if it is not what PostgreSQL demands of a page of frozen tuples.
fn parsed(page: &[u8], block: u32) -> Vec<Row> {
    let word = |at: usize| usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
    let (lower, upper) = (word(12), word(14));
    assert_eq!(&page[..8], &[0; 8], "LSN");
    assert_eq!(word(8), usize::from(checksum(page, block)));
    assert_eq!(word(10), 4, "all-visible");
    assert_eq!((word(16), word(18)), (page.len(), page.len() | 4), "special space, size and version");
    assert_eq!(&page[20..24], &[0; 4], "nothing to prune");
    assert!(page[lower..upper].iter().all(|byte| *byte == 0), "the hole");

    let mut rows = Vec::new();
    let mut end = page.len();
    for (pointer, number) in page[24..lower].chunks_exact(4).zip(1_u16..) {
        let pointer = u32::from_le_bytes(pointer.try_into().unwrap()) as usize;
        let (offset, kind, length) = (pointer & 0x7FFF, pointer >> 15 & 3, pointer >> 17);
        assert_eq!((kind, offset % 8), (1, 0), "in use and aligned");
        // Without overlap and without a gap but for the alignment.
        assert_eq!(offset + length.next_multiple_of(8), end);
        assert!(page[offset + length..end].iter().all(|byte| *byte == 0), "padding");
        rows.push(parsed_tuple(&page[offset..offset + length], block, number));
        end = offset;
    }
    assert_eq!(end, upper);
    rows
}

fn parsed_tuple(tuple: &[u8], block: u32, number: u16) -> Row {
    let word = |at: usize| u16::from_le_bytes([tuple[at], tuple[at + 1]]);
    assert_eq!(&tuple[..12], &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "frozen, not deleted, command 0");
    assert_eq!((u32::from(word(12)) << 16 | u32::from(word(14)), word(16)), (block, number), "ctid");
    let flags = TupleFlags {
        has_nulls: word(20) & 1 != 0,
        has_varwidth: word(20) & 2 != 0,
        ..TupleFlags::of(word(18))
    };
    assert_eq!(word(20) & !3, 0x0B00, "frozen, never deleted");
    let bitmap = if flags.has_nulls { flags.attributes.div_ceil(8) } else { 0 };
    assert_eq!(u16::from(tuple[22]), (23 + bitmap).next_multiple_of(8), "t_hoff");
    Row { body: tuple[23..].to_vec(), flags }
}

proptest! {
    #[test]
    fn what_is_built_is_read_again(
        rows in prop::collection::vec(row(), 1..60),
        first in 0_u32..4_000_000_000,
        fillfactor in 10_u8..=100,
        shift in 10_u32..=15,
    ) {
        let block_size = 1 << shift;
        let pages = filled(&rows, first, fillfactor, block_size);
        let read: Vec<Vec<Row>> = pages.iter().zip(first..).map(|(page, block)| parsed(page, block)).collect();
        prop_assert_eq!(&read.concat(), &rows);

        let geometry = Geometry::new(u32::try_from(block_size).unwrap());
        let lengths = rows.iter().map(|row| u32::try_from(row.body.len()).unwrap());
        let foretold: Vec<u32> = geometry.rows_of_pages(lengths, fillfactor).collect();
        let seen: Vec<u32> = read.iter().map(|rows| u32::try_from(rows.len()).unwrap()).collect();
        prop_assert_eq!(foretold, seen);
    }

    #[test]
    fn full_pages_of_equal_rows_have_rows_per_page(
        row in row(),
        fillfactor in 10_u8..=100,
        shift in 10_u32..=15,
    ) {
        let geometry = Geometry::new(1 << shift);
        let tuple = TUPLE_HEADER + u32::try_from(row.body.len()).unwrap();
        let expected = geometry.rows_per_page(tuple, fillfactor) as usize;
        let rows = vec![row; 2 * expected + 1];
        let pages = filled(&rows, 0, fillfactor, 1 << shift);
        let seen: Vec<usize> = pages.iter().zip(0..).map(|(page, block)| parsed(page, block).len()).collect();
        prop_assert_eq!(seen, [expected, expected, 1]);
    }

    #[test]
    fn every_heap_block_is_marked_and_no_other(heap_blocks in 0_u64..100_000, shift in 10_u32..=15) {
        let geometry = Geometry::new(1 << shift);
        let mut marked = Vec::new();
        // One more than there are: a page may be asked for that marks nothing.
        for block in 0..=u32::try_from(geometry.visibility_map_blocks(heap_blocks)).unwrap() {
            let mut page = vec![0xAA; 1 << shift];
            visibility_map_page(&mut page, block, heap_blocks, true);
            let stored = u16::from_le_bytes([page[8], page[9]]);
            prop_assert_eq!(stored, checksum(&page, block));
            let bits = |byte: &u8| [0, 2, 4, 6].map(|shift| byte >> shift & 3);
            marked.extend(page[24..].iter().flat_map(bits));
        }
        let (yes, no) = marked.split_at(usize::try_from(heap_blocks).unwrap());
        prop_assert!(yes.iter().all(|bits| *bits == 3));
        prop_assert!(no.iter().all(|bits| *bits == 0));
    }

    #[test]
    fn segments_are_full_but_for_the_last(blocks: u32, block: u32, per_segment in 1_u32..1_000_000) {
        let segments = Segments::new(Geometry::new(8192), NonZeroU32::new(per_segment).unwrap());
        let BlockLocation { segment, offset } = segments.place(block);
        let full = u64::from(per_segment) * 8192;
        prop_assert!(offset < full);
        prop_assert_eq!(u64::from(segment) * full + offset, u64::from(block) * 8192);

        let last = segments.count(blocks) - 1;
        prop_assert_eq!(u64::from(last) * full + segments.bytes(last, blocks), u64::from(blocks) * 8192);
        prop_assert!(last == 0 || segments.bytes(0, blocks) == full);
        prop_assert_eq!(segments.bytes(last + 1, blocks), 0);
        prop_assert_eq!(block < blocks, offset < segments.bytes(segment, blocks));
    }
}

#[test]
fn segments_have_the_names_that_postgresql_gives_them() {
    assert_eq!([0, 1, 10].map(Segments::suffix), ["", ".1", ".10"]);
    let gigabyte = Segments::new(Geometry::new(8192), NonZeroU32::new(131_072).unwrap());
    assert_eq!(gigabyte.place(131_071), BlockLocation { segment: 0, offset: (1 << 30) - 8192 });
    assert_eq!(gigabyte.place(131_072), BlockLocation { segment: 1, offset: 0 });
    assert_eq!([0, 1, 131_072, 131_073].map(|blocks| gigabyte.count(blocks)), [1, 1, 1, 2]);
}

#[test]
#[should_panic(expected = "room")]
fn a_tuple_that_the_page_has_no_room_for_is_refused() {
    let mut page = vec![0; 8192];
    let flags = TupleFlags { has_varwidth: true, ..TupleFlags::of(1) };
    HeapPage::begin(&mut page, 0, 100).push(&[0; 8160], flags);
}
