//! Indexes as a reader finds them: by descending from the root and by following the siblings.

use std::collections::BTreeMap;
use std::convert::Infallible;

use page::{BtreeBuilder, BtreeKey, Geometry, TupleId};
use proptest::prelude::*;

const LEAF: u16 = 1;
const ROOT: u16 = 2;
const META: u16 = 8;

/// Rows with consecutive keys in one heap block: first key, place, how many.
type Run = (i64, TupleId, u16);

/// A finished index, block by block.
struct Index {
    geometry: Geometry,
    key: BtreeKey,
    blocks: Vec<Vec<u8>>,
    /// In the order in which the sink got them.
    order: Vec<u32>,
}

impl Index {
    fn build(geometry: Geometry, key: BtreeKey, fillfactor: u8, runs: &[Run]) -> Self {
        let mut pages = BTreeMap::new();
        let mut order = Vec::new();
        let mut sink = |block, page: &[u8]| {
            assert!(pages.insert(block, page.to_vec()).is_none(), "block {block} came twice");
            order.push(block);
            Ok::<_, Infallible>(())
        };
        let mut builder = BtreeBuilder::new(geometry, key, fillfactor);
        for (at, &(first_key, first, rows)) in runs.iter().enumerate() {
            // Both ways to say the same.
            let Ok(()) = if at % 2 == 0 {
                builder.push_run(first_key, first, rows, &mut sink)
            } else {
                let keys: Vec<i64> = (0..i64::from(rows)).map(|row| first_key + row).collect();
                builder.push_keys(&keys, first, &mut sink)
            };
        }
        let Ok(blocks) = builder.finish(&mut sink);
        assert!(pages.keys().copied().eq(0..blocks), "not each of {blocks} blocks came");
        Self { geometry, key, blocks: pages.into_values().collect(), order }
    }

    fn page(&self, block: u32) -> Page<'_> {
        Page { bytes: &self.blocks[block as usize], key: self.key }
    }

    fn root(&self) -> Option<u32> {
        let meta = self.page(0);
        assert_eq!(meta.u32(24), 0x53162);
        let root = meta.u32(32);
        assert_eq!([root, meta.u32(36)], [meta.u32(40), meta.u32(44)], "the fast root is the root");
        (root != 0).then_some(root)
    }

    /// Where a key's row is, found as a search does.
    fn find(&self, key: i64) -> Option<TupleId> {
        let mut page = self.page(self.root()?);
        while page.level() > 0 {
            let child = page.items().into_iter().rev().find(|item| item.key.is_none_or(|low| low <= key));
            page = self.page(child.expect("the first item is below all keys").tid.block);
        }
        assert!(page.high_key().is_none_or(|high| key < high), "the search went to the left of {key}");
        page.items().iter().find(|item| item.key == Some(key)).map(|item| item.tid)
    }

    /// The leftmost page of each level, the root first.
    fn leftmost(&self) -> Vec<u32> {
        let down = |block: &u32| {
            let page = self.page(*block);
            (page.level() > 0).then(|| page.items()[0].tid.block)
        };
        std::iter::successors(self.root(), down).collect()
    }

    /// The blocks of a level from its leftmost page to the right.
    fn level(&self, leftmost: u32) -> Vec<u32> {
        let right = |block: &u32| Some(self.page(*block).next()).filter(|&next| next != 0);
        std::iter::successors(Some(leftmost), right).collect()
    }
}

#[derive(Debug)]
struct Item {
    tid: TupleId,
    /// None stands for less than all keys.
    key: Option<i64>,
}

#[derive(Clone, Copy)]
struct Page<'a> {
    bytes: &'a [u8],
    key: BtreeKey,
}

impl Page<'_> {
    fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(*self.bytes[at..].first_chunk().unwrap())
    }

    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(*self.bytes[at..].first_chunk().unwrap())
    }

    fn special(self) -> usize {
        self.u16(16).into()
    }

    fn previous(self) -> u32 {
        self.u32(self.special())
    }

    fn next(self) -> u32 {
        self.u32(self.special() + 4)
    }

    fn level(self) -> u32 {
        self.u32(self.special() + 8)
    }

    fn flags(self) -> u16 {
        self.u16(self.special() + 12)
    }

    /// In the order of the line pointers.
    fn all(self) -> Vec<Item> {
        (24..usize::from(self.u16(12))).step_by(4).map(|at| self.item(self.u32(at))).collect()
    }

    fn item(self, pointer: u32) -> Item {
        let (at, flags, length) = ((pointer & 0x7FFF) as usize, pointer >> 15 & 3, pointer >> 17);
        assert_eq!(flags, 1, "LP_NORMAL");
        assert!(at >= self.u16(14).into() && at + length as usize <= self.special());
        let tid = TupleId {
            block: u32::from(self.u16(at)) << 16 | u32::from(self.u16(at + 2)),
            offset: self.u16(at + 4),
        };
        assert_eq!(u32::from(self.u16(at + 6) & 0x1FFF), length);
        let key = (length > 8).then(|| {
            assert_eq!(length, 16);
            let bytes: [u8; 8] = *self.bytes[at + 8..].first_chunk().unwrap();
            let (value, padding) = bytes.split_at(self.key.length() as usize);
            assert!(padding.iter().all(|&byte| byte == 0));
            match self.key {
                BtreeKey::Int2 => i16::from_le_bytes(value.try_into().unwrap()).into(),
                BtreeKey::Int4 => i32::from_le_bytes(value.try_into().unwrap()).into(),
                BtreeKey::Int8 => i64::from_le_bytes(value.try_into().unwrap()),
            }
        });
        Item { tid, key }
    }

    fn high_key(self) -> Option<i64> {
        (self.next() != 0).then(|| self.all()[0].key.expect("a high key has a key"))
    }

    /// Without the high key.
    fn items(self) -> Vec<Item> {
        self.all().split_off(usize::from(self.next() != 0))
    }
}

/// Asserts the invariants of every index over these runs.
fn check(index: &Index, fillfactor: u8, runs: &[Run]) {
    let rows: u64 = runs.iter().map(|&(.., rows)| u64::from(rows)).sum();
    let predicted = index.geometry.btree_blocks(rows, index.key.length(), fillfactor);
    assert_eq!(index.blocks.len() as u64, predicted, "blocks for {rows} rows");
    assert_eq!(index.page(0).flags(), META);
    assert_eq!(index.root().is_none(), rows == 0);

    let mut seen = 1;
    for (height, &leftmost) in index.leftmost().iter().rev().enumerate() {
        let level = index.level(leftmost);
        seen += level.len();
        let mut previous = 0;
        let mut low = None;
        for &block in &level {
            let page = index.page(block);
            assert_eq!((page.level() as usize, page.previous()), (height, previous));
            let is_root = Some(block) == index.root();
            let expected = if height == 0 { LEAF } else { 0 } | if is_root { ROOT } else { 0 };
            assert_eq!(page.flags(), expected);
            check_keys(page, low);
            if height > 0 {
                check_children(index, page, low);
            }
            (previous, low) = (block, page.high_key());
        }
        if height == 0 {
            check_leaves(index, &level, runs);
        }
    }
    assert_eq!(seen, index.blocks.len(), "every page is in a level");
    check_order(index);
}

/// Keys ascend, from the low key to below the high key.
fn check_keys(page: Page<'_>, low: Option<i64>) {
    let items = page.items();
    assert!(!items.is_empty());
    assert!(items.windows(2).all(|pair| pair[0].key < pair[1].key));
    if page.level() == 0 {
        assert!(low.is_none_or(|low| items[0].key == Some(low)));
    } else {
        assert!(items[0].key.is_none(), "an inner page's first key is left out");
    }
    assert!(page.high_key().is_none_or(|high| items.last().unwrap().key < Some(high)));
}

/// Downlinks go to the pages of the level below, and know where these begin.
fn check_children(index: &Index, page: Page<'_>, low: Option<i64>) {
    let items = page.items();
    for pair in items.windows(2) {
        let child = index.page(pair[0].tid.block);
        assert_eq!(child.level() + 1, page.level());
        assert_eq!(child.next(), pair[1].tid.block);
        assert_eq!(child.high_key(), pair[1].key);
    }
    let last = index.page(items.last().unwrap().tid.block);
    assert_eq!(last.high_key(), page.high_key());
    let before = index.page(items[0].tid.block).previous();
    assert_eq!(if before == 0 { None } else { index.page(before).high_key() }, low);
}

/// The leaves hold all rows in their order, and a search finds some of each run.
fn check_leaves(index: &Index, leaves: &[u32], runs: &[Run]) {
    let found = leaves.iter().flat_map(|&block| index.page(block).items());
    let mut found = found.map(|item| (item.key.unwrap(), item.tid));
    for &(key, first, rows) in runs {
        for row in 0..rows {
            let tid = TupleId { offset: first.offset + row, ..first };
            assert_eq!(found.next(), Some((key + i64::from(row), tid)));
        }
    }
    assert_eq!(found.next(), None);
    for &(key, first, rows) in runs.iter().filter(|(.., rows)| *rows > 0) {
        let last = TupleId { offset: first.offset + rows - 1, ..first };
        assert_eq!(index.find(key), Some(first));
        assert_eq!(index.find(key + i64::from(rows - 1)), Some(last));
    }
}

/// Leaves come ascending, pages of level 1 not later than promised, the metapage last.
fn check_order(index: &Index) {
    let (last, tree) = index.order.split_last().unwrap();
    assert_eq!(*last, 0);
    let of_level = |level| tree.iter().copied().filter(move |&block| index.page(block).level() == level);
    assert!(of_level(0).is_sorted());
    let mut begun = 0;
    for &block in tree {
        begun = begun.max(block);
        if index.page(block).level() == 1 {
            assert!(begun - block < index.geometry.block_size() / 16, "block {block} came after {begun}");
        }
    }
}

/// Runs that begin at `first`, with these gaps in the keys and lengths, a heap block each.
fn runs(first: i64, gaps_and_rows: &[(u16, u16)]) -> Vec<Run> {
    let mut key = first;
    let run = |(block, &(gap, rows)): (u32, &(u16, u16))| {
        let begin = key + i64::from(gap);
        key = begin + i64::from(rows);
        (begin, TupleId { block: block * 65_521, offset: 1 + gap % 7 }, rows)
    };
    (0..).zip(gaps_and_rows).map(run).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_key_is_found(
        shift in 10_u32..=15,
        fillfactor in 10_u8..=100,
        wide in any::<bool>(),
        first in -40_000_i64..1000,
        gaps_and_rows in prop::collection::vec((0_u16..3, 0_u16..300), 0..80),
    ) {
        let key = if wide { BtreeKey::Int8 } else { BtreeKey::Int4 };
        let runs = runs(first, &gaps_and_rows);
        let index = Index::build(Geometry::new(1 << shift), key, fillfactor, &runs);
        check(&index, fillfactor, &runs);
    }
}

#[test]
fn trees_of_many_levels_are_whole() {
    let runs = runs(-100_000, &[(0, 2000); 100]);
    let index = Index::build(Geometry::new(1024), BtreeKey::Int4, 10, &runs);
    assert!(index.leftmost().len() >= 4, "{} levels", index.leftmost().len());
    check(&index, 10, &runs);
}

#[test]
fn types_hold_their_first_and_last_value() {
    for (key, first, last) in [
        (BtreeKey::Int2, i16::MIN.into(), i16::MAX.into()),
        (BtreeKey::Int4, i32::MIN.into(), i32::MAX.into()),
        (BtreeKey::Int8, i64::MIN, i64::MAX),
    ] {
        let tid = TupleId { block: u32::MAX - 1, offset: 1 };
        let ends = [(first, tid, 1), (-1, tid, 2), (last, tid, 1)];
        let index = Index::build(Geometry::new(8192), key, 90, &ends);
        check(&index, 90, &ends);
    }
}

/// The builder's panic for rows with these keys in one heap block, after a row with the key 1.
fn refusal(keys: &[i64]) -> String {
    let refused = std::panic::catch_unwind(|| {
        let mut sink = |_: u32, _: &[u8]| Ok::<_, Infallible>(());
        let mut builder = BtreeBuilder::new(Geometry::new(8192), BtreeKey::Int4, 90);
        let Ok(()) = builder.push_run(1, TupleId { block: 0, offset: 1 }, 1, &mut sink);
        builder.push_keys(keys, TupleId { block: 1, offset: 65_530 }, &mut sink)
    });
    *refused.expect_err("the keys are refused").downcast().expect("a message")
}

#[test]
fn what_would_be_no_index_is_refused() {
    assert!(refusal(&[1, 2]).contains("do not ascend at 1"));
    assert!(refusal(&[2, 5, 5]).contains("do not ascend after 2"));
    assert!(refusal(&[2, 5, 4]).contains("do not ascend after 2"));
    assert!(refusal(&[2, 1 << 31]).contains("beyond Int4"));
    assert!(refusal(&[2, 3, 4, 5, 6, 7, 8]).contains("7 rows from offset 65530"));
}

#[test]
fn a_sink_s_error_comes_through() {
    let mut builder = BtreeBuilder::new(Geometry::new(8192), BtreeKey::Int8, 90);
    let mut full = |_: u32, _: &[u8]| Err("disk full");
    let tid = TupleId { block: 0, offset: 1 };
    assert_eq!(builder.push_run(1, tid, 200, &mut full), Ok(()));
    assert_eq!(builder.push_run(201, tid, 200, &mut full), Err("disk full"));
}
