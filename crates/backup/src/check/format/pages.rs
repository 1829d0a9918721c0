//! Checksums of data pages, as a server with checksums writes them. They prove files for which no manifest has a checksum. Pages of the free
//! space map and of the visibility map are left out: a server zeroes wrong ones and goes on (freespace.c: `fsm_readbuf`, visibilitymap.c:
//! `vm_readbuf`), and changes them without WAL, so that those of a whole backup may be torn.

use super::blocks::Block;

/// Size of a page, and pages of a segment of a relation; a server that is built with others is not understood.
const PAGE: usize = 8192;
const SEGMENT: u32 = 131_072;
/// Most wrong pages that are kept of a file.
pub(in crate::check) const MOST: usize = 1000;
/// Places in the header of a page (`src/include/storage/bufpage.h`).
const CHECKSUM: usize = 8;
const UPPER: usize = 14;
/// Places in `pg_control`, the same in PostgreSQL 13 to 18 (`src/include/catalog/pg_control.h`).
const PAGE_SIZE: usize = 216;
const SEGMENT_PAGES: usize = 220;
const VERSION: usize = 252;
/// The only version of checksums.
const CHECKSUMS: u32 = 1;
/// Directories of relations, and the OIDs of the tablespaces pg_default and pg_global.
const BASE: (&str, u32) = ("base", 1663);
const GLOBAL: (&str, u32) = ("global", 1664);
const TABLESPACES: &str = "pg_tblspc";
/// Numbers of forks.
const MAIN: u8 = 0;
const INIT: u8 = 3;

/// Reads the pages of a file.
pub(in crate::check) struct Pages {
    /// Its first page.
    first: Block,
    /// Pages that were read.
    read: u32,
    /// The beginning of a page that goes on in the next piece.
    part: Vec<u8>,
    /// Pages from this place of the WAL on are replaced by WAL.
    start: Option<u64>,
    wrong: Vec<WrongPage>,
}

/// A page with a wrong checksum, if the server had checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) struct WrongPage {
    pub(in crate::check) block: Block,
    /// Its first byte in the file.
    pub(in crate::check) place: u64,
    /// The end of the WAL record that has changed it last.
    pub(in crate::check) changed: u64,
}

impl WrongPage {
    /// Whether the WAL of a backup that began at `start` does not replace it.
    pub(in crate::check) fn counts(&self, start: Option<u64>) -> bool {
        start.is_none_or(|start| self.changed < start)
    }
}

impl Pages {
    /// For the file of a relation; none for another file. A backup that began at `start` may have later pages that are torn.
    pub(in crate::check) fn of(path: &str, start: Option<u64>) -> Option<Self> {
        let first = first_page(path)?;
        Some(Self { first, read: 0, part: Vec::new(), start, wrong: Vec::new() })
    }

    /// Reads on.
    pub(in crate::check) fn feed(&mut self, mut bytes: &[u8]) {
        if !self.part.is_empty() {
            let (end, rest) = bytes.split_at(bytes.len().min(PAGE - self.part.len()));
            self.part.extend_from_slice(end);
            if self.part.len() < PAGE {
                return;
            }
            let whole = std::mem::take(&mut self.part);
            self.check(&whole);
            bytes = rest;
        }
        let mut whole = bytes.chunks_exact(PAGE);
        for one in &mut whole {
            self.check(one);
        }
        self.part.extend_from_slice(whole.remainder());
    }

    /// The pages with a wrong checksum, once all is read.
    pub(in crate::check) fn wrong(self) -> Vec<WrongPage> {
        self.wrong
    }

    fn check(&mut self, bytes: &[u8]) {
        let number = self.read;
        self.read += 1;
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let block = Block { number: self.first.number.wrapping_add(number), ..self.first };
        let wrong = WrongPage { block, place: u64::from(number) * PAGE as u64, changed: position(bytes) };
        let is_new = word(UPPER) == 0;
        if is_new || !wrong.counts(self.start) || self.wrong.len() == MOST {
            return;
        }
        // No checksum is 0, so a server without checksums costs no sums.
        let stored = word(CHECKSUM);
        if stored == 0 || stored != page::checksum(bytes, block.number) {
            self.wrong.push(wrong);
        }
    }
}

/// The end of the WAL record that has changed the page last.
fn position(bytes: &[u8]) -> u64 {
    let half =
        |at: usize| u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    half(0) << 32 | half(4)
}

/// The first page of a relation's file, by its path: `base/5/16384_init.1`. None for other files and for maps.
fn first_page(path: &str) -> Option<Block> {
    let (directory, name) = path.rsplit_once('/')?;
    let (tablespace, database) = place(directory)?;
    let (name, segment) = match name.split_once('.') {
        Some((name, segment)) => (name, segment.parse().ok()?),
        None => (name, 0),
    };
    let (relation, fork) = match name.split_once('_') {
        Some((number, "init")) => (number, INIT),
        Some(_) => return None,
        None => (name, MAIN),
    };
    let is_number = relation.bytes().all(|byte| byte.is_ascii_digit());
    let relation = relation.parse::<u32>().ok().filter(|_| is_number)?;
    Some(Block { tablespace, database, relation, fork, number: SEGMENT.checked_mul(segment)? })
}

/// The tablespace and the database of a directory.
fn place(directory: &str) -> Option<(u32, u32)> {
    let parts: Vec<&str> = directory.split('/').collect();
    match parts[..] {
        [name] if name == GLOBAL.0 => Some((GLOBAL.1, 0)),
        [name, database] if name == BASE.0 => Some((BASE.1, database.parse().ok()?)),
        [TABLESPACES, tablespace, _, database] => Some((tablespace.parse().ok()?, database.parse().ok()?)),
        _ => None,
    }
}

/// The first page of the main fork, if it is an init fork: the relation is unlogged.
pub(in crate::check) fn unlogged(path: &str) -> Option<Block> {
    first_page(path).filter(|block| block.fork == INIT).map(|block| Block { fork: MAIN, number: 0, ..block })
}

/// Whether the pages of this `pg_control`'s server have checksums, and the usual sizes.
pub(in crate::check) fn have_checksums(control: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes = control.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let usual = u32::try_from(PAGE).ok();
    number(PAGE_SIZE) == usual && number(SEGMENT_PAGES) == Some(SEGMENT) && number(VERSION) == Some(CHECKSUMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_relations_have_pages() {
        for (path, first) in [
            ("base/5/16384", Some((1663, 5, 16_384, MAIN, 0))),
            ("base/5/16384.2", Some((1663, 5, 16_384, MAIN, 2 * SEGMENT))),
            ("base/5/16384_init.1", Some((1663, 5, 16_384, INIT, SEGMENT))),
            ("global/1260", Some((1664, 0, 1260, MAIN, 0))),
            ("pg_tblspc/16400/PG_13_202007201/5/16401", Some((16_400, 5, 16_401, MAIN, 0))),
            ("pg_tblspc/16400/PG_13_202007201/5/16401_vm", None),
            ("base/5/16384_fsm", None),
            ("base/5/t3_16384", None),
            ("base/5/PG_VERSION", None),
            ("base/5/pg_internal.init", None),
            ("base/5/INCREMENTAL.16384", None),
            ("base/pgsql_tmp/pgsql_tmp12.3", None),
            ("global/pg_control", None),
            ("pg_xact/0000", None),
            ("PG_VERSION", None),
        ] {
            let found = first_page(path)
                .map(|page| (page.tablespace, page.database, page.relation, page.fork, page.number));
            assert_eq!(found, first, "{path}");
        }
        let main = first_page("base/5/16384");
        assert!(
            main.is_some() && unlogged("base/5/16384_init") == main && unlogged("base/5/16384").is_none()
        );
    }

    #[test]
    fn a_wrong_page_is_found_in_whatever_pieces_it_comes() {
        let whole = |number: u32, at: u32| {
            let mut bytes = vec![7; PAGE];
            bytes[..4].fill(0);
            bytes[4..8].copy_from_slice(&at.to_le_bytes());
            page::set_checksum(&mut bytes, number);
            bytes
        };
        let mut all =
            [whole(SEGMENT, 100), whole(SEGMENT + 1, 100), vec![0; PAGE], whole(SEGMENT + 3, 500)].concat();
        let wrong = |all: &[u8], start: Option<u64>, piece: usize| {
            let mut pages = Pages::of("base/5/16384.1", start).unwrap();
            all.chunks(piece).for_each(|bytes| pages.feed(bytes));
            pages.wrong().iter().map(|page| page.place).collect::<Vec<_>>()
        };
        assert_eq!(wrong(&all, None, 5000), [0; 0]);
        for number in [1, 3] {
            all[number * PAGE + 4000] ^= 1;
        }
        let places = [PAGE as u64, 3 * PAGE as u64];
        for piece in [1, 511, PAGE, 3 * PAGE + 1] {
            assert_eq!(wrong(&all, None, piece), places, "{piece}");
            assert_eq!(wrong(&all, Some(500), piece), places[..1], "{piece}");
        }
    }
}
