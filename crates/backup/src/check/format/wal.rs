//! WAL: pages and records of a range, each record with its checksum.
//!
//! As `src/backend/access/transam/xlogreader.c` reads them.

use std::io;

use super::blocks::Replaced;
use super::manifest::{WalRange, lsn};
use super::wrong;

/// Size of a page, unless PostgreSQL was compiled with another.
pub(in crate::check) const PAGE: usize = 8192;
/// Sizes of segments that are possible.
const SEGMENTS: std::ops::RangeInclusive<u64> = (1 << 20)..=(1 << 30);
/// Sizes of headers of pages: the long one begins each segment.
const SHORT: usize = 24;
const LONG: usize = 40;
/// Flags of a page (`XLP_…` of src/include/access/xlog_internal.h).
const CONTINUES: u16 = 1;
const IS_LONG: u16 = 2;
const OVERWRITES: u16 = 8;
/// Size of a record's header, and the part of it that the checksum covers.
const HEADER: usize = 24;
const COVERED: usize = 20;
/// No record can be longer (`XLogRecordMaxSize`, with room for earlier versions).
const LONGEST: usize = 1 << 30;
const ALIGNMENT: usize = 8;
/// Info and resource manager of the record that ends a segment (`XLOG_SWITCH` of `RM_XLOG_ID`).
const SWITCH: (u8, u8) = (0x40, 0);
/// The same of the record that ends a backup (`XLOG_BACKUP_END`). Its data are the place at which the backup began: a byte that tells their kind,
/// one that tells their length, and eight.
const BACKUP_END: (u8, u8) = (0x50, 0);
const BEGAN: usize = 26;
/// The end of a range of which only a record tells.
pub(in crate::check) const UNKNOWN: u64 = u64::MAX;
/// `XLOG_PAGE_MAGIC` of PostgreSQL 15, with which the flags of images changed.
const MODERN: u16 = 0xd110;
/// Resource managers whose records write relation maps when they are replayed: `RM_DBASE_ID` (a database that is created) and
/// `RM_RELMAP_ID` (src/include/access/rmgrlist.h).
const WRITES_MAPS: [u8; 2] = [4, 7];

/// Info and resource manager of the record that creates a tablespace (`XLOG_TBLSPC_CREATE` of `RM_TBLSPC_ID`).
const CREATES_TABLESPACE: (u8, u8) = (0, 5);

/// Reads a range, page by page.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(in crate::check) struct Walk {
    range: WalRange,
    segment: u64,
    /// Identifier of the server; none if it is not known.
    system: Option<u64>,
    magic: Option<u16>,
    /// The record whose rest is on the next page, and its position.
    partial: Vec<u8>,
    partial_at: u64,
    length: usize,
    previous: Option<u64>,
    has_reached_end: bool,
    /// Nothing but zeros follows in the segment.
    is_over: bool,
    /// Bytes behind the end of the range that no record explains.
    pub(in crate::check) has_unknown_rest: bool,
    /// Whether its replay writes relation maps.
    pub(in crate::check) writes_maps: bool,
    /// Whether its replay creates a tablespace.
    pub(in crate::check) creates_tablespaces: bool,
    /// Pages that are looked for in the range.
    pub(in crate::check) pages: Replaced,
}

/// Size of the segments, from the first page of one.
pub(in crate::check) fn segment_size(first: &[u8]) -> Option<u64> {
    let size = u64::from(u32_at(first, 32)?);
    (size.is_power_of_two() && SEGMENTS.contains(&size)).then_some(size)
}

/// Whether it is the name of a segment.
pub(crate) fn is_segment(name: &str) -> bool {
    name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_lowercase())
}

/// The segments that a range needs: position of the first byte, and name.
pub(in crate::check) fn segments(range: &WalRange, size: u64) -> Vec<(u64, String)> {
    let last = range.end.saturating_sub(1).max(range.start) / size;
    (range.start / size..=last).map(|number| segment(range.timeline, number, size)).collect()
}

/// The segment of this number: position of the first byte, and name.
pub(in crate::check) fn segment(timeline: u32, number: u64, size: u64) -> (u64, String) {
    let each_log = (1 << 32) / size;
    (number * size, format!("{timeline:08X}{:08X}{:08X}", number / each_log, number % each_log))
}

impl Walk {
    /// Looks for these pages, too.
    pub(in crate::check) fn new(
        range: &WalRange,
        segment: u64,
        system: Option<u64>,
        pages: Replaced,
    ) -> Self {
        Self {
            range: range.clone(),
            segment,
            system,
            magic: None,
            partial: Vec::new(),
            partial_at: 0,
            length: 0,
            previous: None,
            has_reached_end: false,
            is_over: false,
            has_unknown_rest: false,
            writes_maps: false,
            creates_tablespaces: false,
            pages,
        }
    }

    /// Whether all records of the range were right.
    pub(in crate::check) fn is_complete(&self) -> bool {
        self.has_reached_end
    }

    /// Reads the next page, which begins at this position.
    pub(in crate::check) fn page(&mut self, at: u64, page: &[u8]) -> io::Result<()> {
        if self.has_unknown_rest {
            return Ok(());
        }
        let read = self.read(at, page);
        if read.is_err() && self.has_reached_end {
            self.has_unknown_rest = true;
            return Ok(());
        }
        read.map_err(|error| wrong(format!("WAL at {}: {error}", lsn(self.place(at)))))
    }

    fn has_begun(&self) -> bool {
        self.previous.is_some() || !self.partial.is_empty()
    }

    fn place(&self, at: u64) -> u64 {
        if self.partial.is_empty() { at } else { self.partial_at }
    }

    fn read(&mut self, at: u64, page: &[u8]) -> io::Result<()> {
        if at.is_multiple_of(self.segment) {
            self.is_over = false;
        }
        if self.is_over && page.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let (flags, mut offset) = self.header(at, page)?;
        if self.is_over {
            zeros(&page[16..20])?;
            return zeros(&page[offset..]);
        }
        let rest = u32_at(page, 16).unwrap_or_default() as usize;
        if flags & OVERWRITES != 0 {
            // A crash of the server has cut the record before; it begins again here.
            self.partial.clear();
        }
        if !self.partial.is_empty() {
            let missing = self.length - self.partial.len();
            if flags & CONTINUES == 0 || rest != missing {
                return Err(wrong("the page does not continue the record before it"));
            }
            let taken = missing.min(page.len() - offset);
            self.partial.extend_from_slice(&page[offset..offset + taken]);
            if taken < missing {
                return Ok(());
            }
            let record = std::mem::take(&mut self.partial);
            let end = align(offset + taken);
            zeros(&page[offset + taken..end.min(page.len())])?;
            self.record(self.partial_at, &record, at + end as u64)?;
            offset = end;
        } else if flags & CONTINUES != 0 {
            if self.has_begun() {
                return Err(wrong("the page continues a record that did not begin"));
            }
            offset = align(offset.saturating_add(rest)).min(page.len());
        }
        self.records(at, page, offset)
    }

    fn records(&mut self, at: u64, page: &[u8], mut offset: usize) -> io::Result<()> {
        if !self.has_begun() {
            let start = usize::try_from(self.range.start.saturating_sub(at)).unwrap_or(usize::MAX);
            if start >= page.len() {
                return Ok(());
            }
            offset = offset.max(start);
        }
        while offset < page.len() {
            if self.is_over {
                return zeros(&page[offset..]);
            }
            let length = u32_at(page, offset).unwrap_or_default() as usize;
            if length == 0 && self.has_reached_end {
                self.is_over = true;
                continue;
            }
            if !(HEADER..=LONGEST).contains(&length) {
                return Err(wrong(format!("no record at {}", lsn(at + offset as u64))));
            }
            let position = at + offset as u64;
            let end = offset + length;
            if end > page.len() {
                self.partial = page[offset..].to_vec();
                self.partial_at = position;
                self.length = length;
                return Ok(());
            }
            let next = align(end);
            zeros(&page[end..next.min(page.len())])?;
            self.record(position, &page[offset..end], at + next as u64)?;
            offset = next;
        }
        Ok(())
    }

    /// Flags, and the size of the header.
    fn header(&mut self, at: u64, page: &[u8]) -> io::Result<(u16, usize)> {
        let numbers = (u16_at(page, 0), u16_at(page, 2), u32_at(page, 4), u64_at(page, 8));
        let (Some(magic), Some(flags), Some(timeline), Some(address)) = numbers else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let is_long = at.is_multiple_of(self.segment);
        let is_right = magic == *self.magic.get_or_insert(magic)
            && address == at
            && timeline <= self.range.timeline
            && flags <= 15
            && (flags & IS_LONG != 0) == is_long
            && page[20..SHORT].iter().all(|byte| *byte == 0);
        if !is_right {
            return Err(wrong("the header of the page is wrong"));
        }
        if !is_long {
            return Ok((flags, SHORT));
        }
        if u32_at(page, 32).map(u64::from) != Some(self.segment)
            || u32_at(page, 36).map(|size| size as usize) != Some(PAGE)
        {
            return Err(wrong("the header of the segment is wrong"));
        }
        let system = u64_at(page, 24);
        if self.system.is_some_and(|own| Some(own) != system) {
            return Err(wrong("the segment is another server's"));
        }
        self.system = system;
        Ok((flags, LONG))
    }

    fn record(&mut self, position: u64, record: &[u8], end: u64) -> io::Result<()> {
        let recorded = u32_at(record, COVERED).unwrap_or_default();
        let sum = crc32c::crc32c_append(crc32c::crc32c(&record[HEADER..]), &record[..COVERED]);
        if sum != recorded {
            return Err(wrong(format!("the checksum of the record at {} is wrong", lsn(position))));
        }
        let before = u64_at(record, 8);
        if self.previous.is_some_and(|previous| before != Some(previous)) {
            return Err(wrong(format!("the record at {} does not follow the one before it", lsn(position))));
        }
        self.previous = Some(position);
        if !self.has_reached_end {
            self.pages.record(record, self.magic.is_some_and(|magic| magic >= MODERN));
        }
        let kind = (record[16] & 0xf0, record[17]);
        let ends_backup = kind == BACKUP_END && u64_at(record, BEGAN) == Some(self.range.start);
        self.has_reached_end |= end >= self.range.end || self.range.end == UNKNOWN && ends_backup;
        self.writes_maps |= WRITES_MAPS.contains(&record[17]);
        self.creates_tablespaces |= kind == CREATES_TABLESPACE;
        if kind == SWITCH {
            self.is_over = true;
        }
        Ok(())
    }
}

fn align(offset: usize) -> usize {
    offset.next_multiple_of(ALIGNMENT)
}

fn zeros(bytes: &[u8]) -> io::Result<()> {
    if bytes.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(wrong("bytes that must be zero are not")) }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
