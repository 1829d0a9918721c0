//! Databases that real servers wrote, read from their files once the servers are stopped.

mod server;

use std::fmt;
use std::path::PathBuf;

use page::{TupleFlags, set_checksum};

pub(crate) use server::written;

/// The servers' block size, bytes.
pub(crate) const BLOCK: usize = 8192;

/// A database and some of its tables.
pub(crate) struct Database {
    pub(crate) version: u16,
    pub(crate) checksums: bool,
    pub(crate) tables: Vec<Table>,
    /// Where its files are.
    directory: PathBuf,
    /// Stopped; its home has the files.
    _server: testkit::Server,
}

/// A table whose rows everybody sees, and that are frozen.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) fillfactor: u8,
    pub(crate) way: Way,
    /// Up to the last page that has rows.
    pub(crate) heap: Vec<u8>,
    pub(crate) visibility_map: Vec<u8>,
}

/// How a table's rows came into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// INSERT, later VACUUM (FREEZE).
    Inserted,
    /// COPY (FREEZE).
    Copied,
}

/// A tuple in a page.
pub(crate) struct Tuple<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) flags: TupleFlags,
}

impl Database {
    /// All files that consist of blocks, with what is in them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| is_relation(path)).map(|path| (path.clone(), std::fs::read(path).unwrap()))
    }
}

/// Relations' files are named by a number; the others have words.
fn is_relation(path: &std::path::Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with(|first: char| first.is_ascii_digit())
}

impl fmt::Display for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checksums = if self.checksums { "with" } else { "without" };
        write!(formatter, "PostgreSQL {} {checksums} checksums", self.version)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, fillfactor {}, {:?}", self.name, self.fillfactor, self.way)
    }
}

/// Whether the page was never used: a relation was extended by it, no more.
pub(crate) fn is_new(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

/// The checksum in the page's header.
pub(crate) fn stored_checksum(page: &[u8]) -> u16 {
    u16_at(page, 8)
}

/// Sets the LSN to 0, and the checksum too.
pub(crate) fn clear_lsn(page: &mut [u8]) {
    page[..10].fill(0);
}

/// The page with what depends on the time of its making as `page` has it: LSN, checksum, who
/// inserted a tuple and by which command.
pub(crate) fn normalised(page: &[u8], block: u32, checksums: bool) -> Vec<u8> {
    let mut normalised = page.to_vec();
    clear_lsn(&mut normalised);
    for (offset, _) in line_pointers(page) {
        normalised[offset..offset + 4].copy_from_slice(&2_u32.to_le_bytes());
        normalised[offset + 8..offset + 12].fill(0);
    }
    if checksums {
        set_checksum(&mut normalised, block);
    }
    normalised
}

/// A heap page's tuples, in the order of their line pointers.
pub(crate) fn tuples(page: &[u8]) -> impl Iterator<Item = Tuple<'_>> {
    line_pointers(page).map(|(offset, length)| {
        let tuple = &page[offset..offset + length];
        let flags = TupleFlags {
            attributes: u16_at(tuple, 18) & 0x07FF,
            has_nulls: u16_at(tuple, 20) & 1 != 0,
            has_varwidth: u16_at(tuple, 20) & 2 != 0,
            has_external: u16_at(tuple, 20) & 4 != 0,
        };
        Tuple { body: &tuple[23..], flags }
    })
}

/// Offset and length of each tuple.
fn line_pointers(page: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let lower = usize::from(u16_at(page, 12));
    page[24..lower].chunks_exact(4).map(|pointer| {
        let bits = u32::from_le_bytes(pointer.try_into().unwrap()) as usize;
        (bits & 0x7FFF, bits >> 17)
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
