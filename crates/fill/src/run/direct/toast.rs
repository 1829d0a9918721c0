//! Rows that are too long for a page: their large values are compressed or moved to the TOAST table ([`page::Toaster`]),
//! whose heap and index are written side by side with the table's own.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use page::{
    BtreeKey, CompositeBuilder, LEAF_FILLFACTOR, MovedValues, TUPLE_HEADER, Toaster, TupleFlags, TupleId,
};
use rowgen::Tuples;
use tokio_postgres::Row;

use super::data_directory::DataDirectory;
use super::fork::Fork;
use super::index::{Gathered, IndexFile, next};
use super::pieces::Stop;
use super::placing::{Bodies, Placed};
use super::relation::{self, Relation};
use super::write_behind::WriteBehind;
use super::{Direct, Failure, NotDirect};
use server::Session;

/// Fillfactor of a TOAST table, percent: it cannot be changed.
pub(super) const FILLFACTOR: u8 = 100;
/// Most values of a table that are moved out: a quarter of all possible numbers.
const MOST_VALUES: u64 = 1 << 30;
/// Lowest number of a value (`FirstNormalObjectId`).
const FIRST_OID: u64 = 16384;

/// The handling of rows that are too long.
pub(super) struct Toast {
    pub(super) toaster: Toaster,
    /// None if the table has no TOAST table: values are only compressed.
    pub(super) table: Option<ToastTable>,
}

/// A TOAST table that is being written.
pub(super) struct ToastTable {
    /// Qualified and quoted.
    pub(super) name: String,
    pub(super) fork: Fork,
    pub(super) index: Arc<IndexFile>,
    /// Whether equal keys could share tuples of the index.
    pub(super) shares_equal: bool,
    /// Number of the first value.
    first: u32,
}

/// A chunk of a value, for the index.
pub(super) struct Chunk {
    /// The value's number, and the chunk's.
    pub(super) key: [i64; 2],
    pub(super) place: TupleId,
}

impl Direct<'_> {
    /// Looks at the TOAST table of the relation of this qualified name, and opens its files; so many rows come.
    pub(super) async fn toast(
        &self,
        session: &Session,
        (name, found): (&str, &Relation),
        rows: u64,
    ) -> Result<Toast, Failure> {
        let geometry = self.data_directory.geometry;
        let row = session.rows(include_str!("../../sql/direct_toast.sql"), &[&name]).await?.pop();
        let Some(row) = row else {
            return Ok(Toast { toaster: found.toaster(geometry, None)?, table: None });
        };
        let toaster = found.toaster(geometry, Some(row.get("oid")))?;
        let table = self.toast_table(session, &row, rows.saturating_mul(found.varying())).await?;
        Ok(Toast { toaster, table: Some(table) })
    }

    /// `values` is the number of values that may be moved out.
    async fn toast_table(&self, session: &Session, row: &Row, values: u64) -> Result<ToastTable, Failure> {
        let name: String = row.get("name");
        let is_empty = row.get::<_, i64>("bytes") == 0;
        let problem = "it is not a new and empty TOAST table";
        relation::refuse(&name, (!row.get::<_, bool>("is_new") || !is_empty).then_some(problem))?;
        let first = first_value(row.get("next_oid"), values)?;
        let index: String = row.get("index");
        let index = self.index_file(session, index, LEAF_FILLFACTOR).await?;
        let fork = relation::open(self.data_directory, row.get("path"), 0)?;
        Ok(ToastTable { name, fork, index: Arc::new(index), shares_equal: row.get("shares_equal"), first })
    }
}

/// Number of the first of `values` values. The server numbers values by its OID counter, and skips
/// numbers that are taken. The values get the numbers just before the counter, which it reaches
/// last.
fn first_value(next_oid: u32, values: u64) -> Result<u32, NotDirect> {
    if values > MOST_VALUES {
        return Err(NotDirect::TooMany("the rows may have more TOAST values than a TOAST table can number"));
    }
    let next = u64::from(next_oid);
    let end = if next >= FIRST_OID + values { next } else { u64::from(u32::MAX) };
    Ok(u32::try_from(end - values.max(1)).expect("below 2^32"))
}

/// A thread's work on rows that are too long.
pub(super) struct Toasting<'t> {
    toast: &'t Toast,
    toaster: Toaster,
    /// A piece's rows as they are stored.
    pub(super) rows: Bodies,
    pub(super) moved: MovedValues,
}

impl<'t> Toasting<'t> {
    pub(super) fn of(toast: &'t Toast) -> Self {
        let (rows, moved) = (Bodies::default(), MovedValues::default());
        Self { toast, toaster: toast.toaster.clone(), rows, moved }
    }

    /// Shortens a piece's rows that are too long; whether there are any.
    pub(super) fn toast(&mut self, tuples: &Tuples, attributes: u16) -> Result<bool, Failure> {
        self.rows.clear();
        self.moved.clear();
        if !tuples.bodies().any(|body| self.toaster.is_needed(body.bytes.len())) {
            return Ok(false);
        }
        for body in tuples.bodies() {
            let flags = super::heap::flags(attributes, &body);
            let Self { toaster, rows, moved, .. } = self;
            rows.push(|out| {
                if !toaster.is_needed(body.bytes.len()) {
                    out.extend_from_slice(body.bytes);
                    return flags;
                }
                TupleFlags { has_external: toaster.toast(body.bytes, body.has_nulls, out, moved), ..flags }
            });
        }
        let longest = self.rows.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
        let (longest, most) = (TUPLE_HEADER as usize + longest, self.toaster.longest_tuple());
        if longest > most {
            return Err(Failure::TooLong { longest, most });
        }
        Ok(true)
    }

    /// Numbers the values; `before` is how many values come before them. Returns the number of the
    /// first one.
    pub(super) fn number(&mut self, before: u32) -> u32 {
        let first = self.toast.table.as_ref().map_or(0, |table| table.first).wrapping_add(before);
        self.moved.number(first, &mut self.rows.bytes);
        first
    }

    /// Writes the pages of the chunks; returns false if an earlier write has failed.
    pub(super) fn write_chunks(
        &self,
        placed: &Placed,
        data_directory: &DataDirectory,
        writer: &WriteBehind<'t>,
    ) -> bool {
        let Some(ToastTable { fork, .. }) = &self.toast.table else { return true };
        let &DataDirectory { geometry, checksums, .. } = data_directory;
        let chunks = self.moved.bodies().map(|body| (body, MovedValues::FLAGS));
        writer.write(fork, placed.first_block, (placed.bytes(geometry), 0), |pages| {
            placed.build(chunks, pages, (geometry, FILLFACTOR, checksums));
        })
    }
}

impl IndexFile {
    /// Builds the index of a TOAST table from its chunks, in order.
    pub(super) fn work_chunks(
        &self,
        shares_equal: bool,
        chunks: &Receiver<Vec<Chunk>>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut gathered = Gathered::of(self);
        let mut sink = |block: u32, page: &[u8]| gathered.take(block, page);
        // OIDs are unsigned, and so are these numbers: they are compared with 64 bits.
        let columns = [BtreeKey::Int4, BtreeKey::Int4];
        let mut builder = CompositeBuilder::new(self.data_directory.geometry, &columns, self.fillfactor);
        if !shares_equal {
            builder.keep_equal_apart();
        }
        while let Some(chunks) = next(chunks, stop) {
            for Chunk { key, place } in chunks {
                builder.push(&key, place, &mut sink)?;
            }
        }
        if stop.is_set() {
            return Ok(());
        }
        let blocks = builder.finish(&mut sink)?;
        gathered.end(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_far_from_the_counter() {
        // Right behind it.
        assert_eq!(first_value(2_000_000, 1000), Ok(1_999_000));
        assert_eq!(first_value(17_384, 1000), Ok(16_384));
        // Too near to the lowest number: the highest ones.
        assert_eq!(first_value(17_383, 1000), Ok(u32::MAX - 1000));
        assert_eq!(first_value(16_384, MOST_VALUES), Ok((3 << 30) - 1));
        assert!(first_value(16_384, MOST_VALUES + 1).is_err());
        assert_eq!(first_value(u32::MAX, MOST_VALUES), Ok(u32::MAX - (1 << 30)));
    }
}
