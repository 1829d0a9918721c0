//! The tree, built from its leaves upwards (`nbtsort.c`).

use super::METAPAGE;
use super::layout::Layout;
use super::metapage::{Root, metapage};
use super::open_page::OpenPage;
use super::tuple::{Tuple, TupleId};
use crate::Geometry;

/// The type of an index's only column: one that is stored as an integer and not null.
///
/// `date` is stored as `int4`, `timestamp` and `timestamptz` as `int8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtreeKey {
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
}

impl BtreeKey {
    /// Bytes of a key: 2, 4 or 8.
    pub fn length(self) -> u32 {
        match self {
            Self::Int2 => 2,
            Self::Int4 => 4,
            Self::Int8 => 8,
        }
    }

    /// Mask of the bytes of a word that the type takes.
    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.length())
    }

    /// Whether the type has this value.
    fn holds(self, value: i64) -> bool {
        match self {
            Self::Int2 => i16::try_from(value).is_ok(),
            Self::Int4 => i32::try_from(value).is_ok(),
            Self::Int8 => true,
        }
    }
}

/// Builds the main fork of a unique B-tree index over one integer column from keys in ascending order.
///
/// The blocks are, apart from LSN and checksum, byte for byte those that CREATE UNIQUE INDEX or ADD
/// PRIMARY KEY of PostgreSQL 13 to 18 builds from the same rows by sorting them; tests compare. They
/// also do for an index that is not unique, as long as its keys are: nothing in the pages says which.
///
/// ```
/// use page::{BtreeBuilder, BtreeKey, Geometry, LEAF_FILLFACTOR, TupleId};
///
/// let geometry = Geometry::new(8192);
/// let mut index = Vec::new();
/// let mut sink = |block: u32, page: &[u8]| {
///     let at = block as usize * page.len();
///     index.resize(index.len().max(at + page.len()), 0);
///     index[at..at + page.len()].copy_from_slice(page);
///     Ok::<_, std::convert::Infallible>(())
/// };
/// let mut builder = BtreeBuilder::new(geometry, BtreeKey::Int4, LEAF_FILLFACTOR);
/// builder.push_run(1, TupleId { block: 0, offset: 1 }, 61, &mut sink)?;
/// builder.push_run(62, TupleId { block: 1, offset: 1 }, 61, &mut sink)?;
/// let blocks = builder.finish(&mut sink)?;
/// assert_eq!(u64::from(blocks), geometry.btree_blocks(122, 4, LEAF_FILLFACTOR));
/// assert_eq!(index.len(), 2 * 8192);
/// # Ok::<_, std::convert::Infallible>(())
/// ```
///
/// # The sink
/// The sink is called once for each block, with the block's number and the finished page, whose LSN
/// and checksum are 0. In the end it has got all blocks from 0 to the last, but not in order,
/// because the builder keeps one page of each level back while it fills it:
///
/// - leaves come in ascending order;
/// - a page of level 1 (one block in 285) comes when the highest number so far is less than block
///   size ÷ 16 (512, which is 4 MiB) above its own;
/// - pages of level 2 and up (one block in 81,000) come any time after;
/// - the metapage, block 0, comes last.
///
/// A sink's error is handed through, and the builder is of no use afterwards.
#[derive(Debug)]
pub struct BtreeBuilder {
    geometry: Geometry,
    key: BtreeKey,
    leaf: Layout,
    inner: Layout,
    /// The open page of each level from the leaves up; the top one is the root.
    levels: Vec<OpenPage>,
    /// The greatest key so far.
    last_key: Option<i64>,
    /// Blocks that have been given to pages, the metapage's included.
    blocks: u32,
}

impl BtreeBuilder {
    /// An empty index. `fillfactor` is the leaves', in percent.
    ///
    /// # Panics
    /// If the fillfactor is not one that PostgreSQL accepts: 10 to 100.
    pub fn new(geometry: Geometry, key: BtreeKey, fillfactor: u8) -> Self {
        assert!((10..=100).contains(&fillfactor), "PostgreSQL has no fillfactor of {fillfactor} %");
        Self {
            geometry,
            key,
            leaf: Layout::leaf(geometry, key.length(), fillfactor),
            inner: Layout::inner(geometry, key.length()),
            levels: Vec::new(),
            last_key: None,
            blocks: METAPAGE + 1,
        }
    }

    /// Adds `rows` rows of one heap block. The key and the place of the first row are given; both
    /// increase by one from row to row.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If a key is not greater than the one before or is beyond the key's type, if offsets are beyond
    /// 65,535, or if the index gets more than 2^32 - 1 blocks.
    pub fn push_run<E>(
        &mut self,
        first_key: i64,
        first: TupleId,
        rows: u16,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(others) = rows.checked_sub(1) else { return Ok(()) };
        let last_key = first_key.checked_add(others.into()).expect("keys do not go beyond int8");
        self.advance(first_key, last_key);
        self.fill(first, rows.into(), |row| first_key + i64::from(row), sink)
    }

    /// Adds the rows with these keys, which have consecutive places in one heap block from `first` on.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// As [`Self::push_run`].
    pub fn push_keys<E>(
        &mut self,
        keys: &[i64],
        first: TupleId,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (Some(&first_key), Some(&last_key)) = (keys.first(), keys.last()) else { return Ok(()) };
        assert!(keys.is_sorted_by(|one, next| one < next), "keys do not ascend after {first_key}");
        self.advance(first_key, last_key);
        let rows = u32::try_from(keys.len()).expect("a heap block has a few hundred rows");
        self.fill(first, rows, |row| keys[row as usize], sink)
    }

    /// Finishes the index; returns how many blocks it has.
    ///
    /// # Errors
    /// The sink's.
    ///
    /// # Panics
    /// If the index gets more than 2^32 - 1 blocks.
    pub fn finish<E>(mut self, sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<u32, E> {
        let mut root = None;
        // Linking the last page of a level may add a level yet.
        for level in 0.. {
            let is_root = level + 1 == self.levels.len();
            let Some(page) = self.levels.get_mut(level) else { break };
            let downlink = page.downlink();
            page.finish_last(is_root);
            sink(page.block(), page.bytes())?;
            if is_root {
                root = Some(Root { block: page.block(), level: level_number(level) });
            } else {
                self.page_with_room(level + 1, sink)?.put(downlink);
            }
        }
        sink(METAPAGE, &metapage(self.geometry, root, true))?;
        Ok(self.blocks)
    }

    /// Takes note of keys, which must come after those before and be of the key's type.
    fn advance(&mut self, first: i64, last: i64) {
        assert!(self.last_key.is_none_or(|before| before < first), "keys do not ascend at {first}");
        assert!(self.key.holds(first) && self.key.holds(last), "{first} or {last} is beyond {:?}", self.key);
        self.last_key = Some(last);
    }

    /// Adds rows to the leaves.
    fn fill<E>(
        &mut self,
        first: TupleId,
        rows: u32,
        key_of: impl Fn(u32) -> i64,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(u32::from(first.offset) + rows <= 1 << 16, "{rows} rows from offset {}", first.offset);
        let mask = self.key.mask();
        let tuple_of = |row| Tuple::leaf(first, row, key_of(row).cast_unsigned() & mask);
        let mut done = 0;
        while done < rows {
            let page = self.page_with_room(0, sink)?;
            let fitting = page.room().min(rows - done);
            page.put_all((done..done + fitting).map(tuple_of));
            done += fitting;
        }
        Ok(())
    }

    /// The open page of a level, begun if there is none, turned if it is full.
    fn page_with_room<E>(
        &mut self,
        level: usize,
        sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>,
    ) -> Result<&mut OpenPage, E> {
        if level == self.levels.len() {
            let layout = if level == 0 { self.leaf } else { self.inner };
            let page = OpenPage::new(layout, level_number(level), self.allocate());
            self.levels.push(page);
        } else if self.levels[level].room() == 0 {
            self.turn(level, sink)?;
        }
        Ok(&mut self.levels[level])
    }

    /// Finishes a level's full page and begins the next one. Block numbers are assigned as in
    /// `_bt_buildadd`: first to the new page, then to its parent.
    fn turn<E>(&mut self, level: usize, sink: &mut impl FnMut(u32, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let next = self.allocate();
        let page = &mut self.levels[level];
        let downlink = page.downlink();
        let successor = page.finish_before(next);
        sink(page.block(), page.bytes())?;
        page.turn(successor);
        self.page_with_room(level + 1, sink)?.put(downlink);
        Ok(())
    }

    fn allocate(&mut self) -> u32 {
        let block = self.blocks;
        self.blocks = block.checked_add(1).expect("an index has at most 2^32 - 1 blocks");
        block
    }
}

fn level_number(level: usize) -> u32 {
    u32::try_from(level).expect("a tree has a handful of levels")
}
