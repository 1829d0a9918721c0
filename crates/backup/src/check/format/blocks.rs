//! Pages that WAL replaces as a whole: nothing of such a page in a backup matters to a restore. A page that the server wrote while the backup
//! read it may be half old and half new, with the position of the old one in its header, but its first record in the WAL of the backup has
//! all of it (`full_page_writes` is on during a backup).

use std::collections::BTreeSet;

/// Size of a record's header.
const HEADER: usize = 24;
/// Kinds of the headers that follow (`XLR_BLOCK_ID_…` of src/include/access/xlogrecord.h); smaller numbers are pages.
const SHORT_DATA: u8 = 255;
const LONG_DATA: u8 = 254;
const ORIGIN: u8 = 253;
const TOP_TRANSACTION: u8 = 252;
const LAST_PAGE: u8 = 32;
/// Flags of a page (`BKPBLOCK_…`).
const FORK: u8 = 0x0f;
const HAS_IMAGE: u8 = 0x10;
const WILL_INIT: u8 = 0x40;
const SAME_RELATION: u8 = 0x80;
/// Flags of an image (`BKPIMAGE_…`): it has a hole; it is compressed; it is restored. The latter ones until PostgreSQL 14, and from 15 on.
const HAS_HOLE: u8 = 0x01;
const IS_COMPRESSED: [u8; 2] = [0x02, 0x1c];
const APPLIES: [u8; 2] = [0x04, 0x02];

/// A page of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) struct Block {
    pub(in crate::check) tablespace: u32,
    pub(in crate::check) database: u32,
    /// The number of its file.
    pub(in crate::check) relation: u32,
    /// 0 is the main one.
    pub(in crate::check) fork: u8,
    pub(in crate::check) number: u32,
}

/// Looks in WAL for pages: the first record of each tells whether its replay needs the page of the backup.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct Replaced {
    sought: BTreeSet<Block>,
    whole: BTreeSet<Block>,
    needed: BTreeSet<Block>,
}

impl Replaced {
    pub(in crate::check) fn new(sought: BTreeSet<Block>) -> Self {
        Self { sought, ..Self::default() }
    }

    /// Looks at the next record. `is_modern`: of PostgreSQL 15 or later.
    pub(in crate::check) fn record(&mut self, record: &[u8], is_modern: bool) {
        if self.sought.is_empty() {
            return;
        }
        // A record whose headers are not understood names no page.
        let _ = pages(record, is_modern, |block, is_whole| {
            if self.sought.remove(&block) {
                let found = if is_whole { &mut self.whole } else { &mut self.needed };
                found.insert(block);
            }
        });
    }

    /// Whether the replay replaces the page; none if no record names it.
    pub(in crate::check) fn replaces(&self, block: &Block) -> Option<bool> {
        if self.whole.contains(block) { Some(true) } else { self.needed.contains(block).then_some(false) }
    }
}

/// The pages that a record names, each with whether its replay needs nothing of the page before (`DecodeXLogRecord` of xlogreader.c).
fn pages(record: &[u8], is_modern: bool, mut each: impl FnMut(Block, bool)) -> Option<()> {
    let version = usize::from(is_modern);
    let mut rest = record.get(HEADER..)?;
    let (mut relation, mut data) = (None, 0_usize);
    while rest.len() > data {
        let [kind] = take::<1>(&mut rest)?;
        match kind {
            SHORT_DATA | LONG_DATA => break,
            ORIGIN => {
                take::<2>(&mut rest)?;
            }
            TOP_TRANSACTION => {
                take::<4>(&mut rest)?;
            }
            0..=LAST_PAGE => {
                let [flags] = take::<1>(&mut rest)?;
                data += usize::from(u16::from_le_bytes(take(&mut rest)?));
                let mut is_whole = flags & WILL_INIT != 0;
                if flags & HAS_IMAGE != 0 {
                    data += usize::from(u16::from_le_bytes(take(&mut rest)?));
                    let [_, _, info] = take::<3>(&mut rest)?;
                    if info & HAS_HOLE != 0 && info & IS_COMPRESSED[version] != 0 {
                        take::<2>(&mut rest)?;
                    }
                    is_whole |= info & APPLIES[version] != 0;
                }
                if flags & SAME_RELATION == 0 {
                    relation = Some((word(&mut rest)?, word(&mut rest)?, word(&mut rest)?));
                }
                let (tablespace, database, relation) = relation?;
                let number = word(&mut rest)?;
                each(Block { tablespace, database, relation, fork: flags & FORK, number }, is_whole);
            }
            _ => return None,
        }
    }
    Some(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (found, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*found)
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u32) -> Block {
        Block { tablespace: 1663, database: 5, relation: 16_384, fork: 0, number }
    }

    /// A record with an image of the first page, and data for the second one, which it does or does not initialise.
    fn record(image_info: u8, second: u8) -> Vec<u8> {
        let mut record = vec![0; HEADER];
        record.extend([ORIGIN, 7, 0]);
        record.extend([0, HAS_IMAGE, 0, 0, 3, 0, 40, 0, image_info]);
        if image_info & HAS_HOLE != 0 && image_info & IS_COMPRESSED[1] != 0 {
            record.extend([1, 0]);
        }
        for number in [1663_u32, 5, 16_384, 0] {
            record.extend(number.to_le_bytes());
        }
        record.extend([1, second | SAME_RELATION, 2, 0]);
        record.extend(1_u32.to_le_bytes());
        record.extend([SHORT_DATA, 8]);
        // The image, the data of the second page, and those of the record.
        record.extend([9; 3 + 2 + 8]);
        record
    }

    #[test]
    fn the_first_record_of_a_page_tells_whether_it_is_replaced() {
        let sought = || Replaced::new([0, 1, 2].map(block).into());
        let after = |records: &[Vec<u8>], is_modern| {
            let mut replaced = sought();
            for record in records {
                replaced.record(record, is_modern);
            }
            [0, 1, 2].map(|number| replaced.replaces(&block(number)))
        };
        assert_eq!(after(&[record(0x02, 0)], true), [Some(true), Some(false), None]);
        assert_eq!(after(&[record(0x04, WILL_INIT)], false), [Some(true), Some(true), None]);
        // An image only for a comparison; a compressed one with a hole.
        assert_eq!(after(&[record(0, 0)], true)[0], Some(false));
        assert_eq!(after(&[record(0x02 | 0x08 | HAS_HOLE, WILL_INIT)], true), [Some(true), Some(true), None]);
        // A later image does not help: the replay of the first record needs the page.
        assert_eq!(after(&[record(0, 0), record(0x02, WILL_INIT)], true), [Some(false), Some(false), None]);
        let cut = record(0x02, 0)[..40].to_vec();
        assert_eq!(after(&[cut, vec![0; 3]], true), [None; 3]);
    }
}
