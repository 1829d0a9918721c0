//! Number and size of the rows of a user's table.

use catalog::SequenceTaken;
use page::Geometry;
use rowgen::Table;

use super::DescribedTable;
use super::pages::{Pages, StoredTable};
use crate::error::FillError;
use crate::ledger::Unfinished;
use crate::plan::RowKey;
use crate::plan::bulk::{Bulk, ForeignKeys, RowSize};
use crate::plan::row_range::RowRange;
use crate::plan::sizes::Sizes;
use crate::plan::tables::Tables;
use crate::request::{Amount, IndexKind, Request};
use crate::run::direct::NotDirect;

/// Size of an index entry with its share of the page, bytes, roughly: a key of 8 to 16 bytes with header and line
/// pointer, on pages that are two thirds full.
pub(super) const INDEX_ENTRY: u64 = 40;

/// Facts about a table of the user's.
pub(in crate::plan) struct OwnTableFacts {
    /// Its name for people.
    pub(super) name: String,
    pub(super) rows: DescribedRows,
    /// Its files and indexes.
    pub(super) stored: StoredTable,
    /// Bytes that table and indexes shall take in the end, if a size was asked for.
    pub(super) until_size: Option<u64>,
}

/// Rows as the catalog and the user's specifications describe them.
pub(super) struct DescribedRows {
    /// Description of the rows.
    pub(super) table: Table,
    /// Number of the first row, from 0.
    pub(super) first_row: u64,
    /// Whether every column can be sent in binary.
    pub(super) binary: bool,
    /// Sequences in whose place pgrig counts.
    pub(super) sequences: Vec<SequenceTaken>,
    /// Size of a row without its indexes, bytes, on average.
    pub(super) width: u64,
    /// The column by which rows can be looked up, if there is one.
    pub(super) key: Option<RowKey>,
    /// The most rows that keys leave room for, and why.
    pub(super) most: Option<(u64, String)>,
    /// The number of rows that take the requested size, if it was measured, and that size.
    pub(super) measured: Option<(u64, Sizes)>,
    /// Why direct pages are not possible, if the rows are described for COPY.
    pub(super) refused: Option<NotDirect>,
    /// Warnings for the user.
    pub(super) warnings: Vec<String>,
}

impl DescribedRows {
    /// Describes rows of `width` bytes.
    pub(super) fn new(described: DescribedTable, width: u64, key: Option<RowKey>) -> Self {
        let DescribedTable { table, first_row, binary, sequences, warnings } = described;
        let (most, measured, refused) = (None, None, None);
        Self { table, first_row, binary, sequences, width, key, most, measured, refused, warnings }
    }
}

impl OwnTableFacts {
    /// Rows that are loaded at most; none if only the size ends the fill.
    pub(in crate::plan) fn most_rows(
        &self,
        request: &Request,
        begun: Option<&Unfinished>,
    ) -> Result<Option<u64>, FillError> {
        if let Some(begun) = begun {
            return Ok(begun.header.rows);
        }
        let row = self.row_with_indexes();
        match (request.amount, &self.rows.most) {
            (Amount::Rows(wanted), _) => Ok(Some(wanted)),
            // The size of a row is an estimate, so only less than half of the requested size is an error.
            (Amount::Size(size), Some((most, why))) if most.saturating_mul(row) < size / 2 => {
                Err(FillError::KeysTooFew {
                    table: self.name.clone(),
                    size,
                    most: *most,
                    about: most.saturating_mul(row),
                    why: why.clone(),
                })
            }
            (_, most) => Ok(most.as_ref().map(|(most, _)| *most)),
        }
    }

    /// The direct pages of the rows; `rows` is their number if an interrupted fill has decided it.
    ///
    /// # Errors
    /// Why direct pages cannot be written.
    pub(in crate::plan) fn pages(
        &self,
        request: &Request,
        geometry: Geometry,
        rows: Option<u64>,
    ) -> Result<Pages, NotDirect> {
        self.stored.pages(request, geometry, &self.rows, rows)
    }

    /// The rows to load: as direct pages if those are given, else up to `most` by COPY.
    ///
    /// # Errors
    /// If COPY is to load them without triggers, and that is not possible.
    pub(in crate::plan) fn bulk(self, most: Option<u64>, pages: Option<Pages>) -> Result<Bulk, FillError> {
        if let Some(why) = self.stored.refuses_triggers_off().filter(|_| pages.is_none()) {
            return Err(FillError::Triggers { table: self.name, why: why.to_owned() });
        }
        let total = self.row_with_indexes();
        let foreign_keys = if pages.is_some() { ForeignKeys::None } else { self.stored.foreign_keys() };
        let silenced = self.stored.silenced();
        let DescribedRows {
            mut table,
            first_row,
            binary,
            sequences,
            width,
            key,
            most: most_rows,
            warnings,
            ..
        } = self.rows;
        if let Some(pages) = &pages {
            table.rows = first_row.saturating_add(pages.rows);
        }
        let rows = pages.as_ref().map_or(most, |pages| Some(pages.rows));
        Ok(Bulk {
            range: RowRange { first_row, rows, scale: 1, scale_before: 0 },
            until_size: self.until_size.filter(|_| pages.is_none()),
            tables: Tables::own(table),
            row_size: RowSize::Estimated {
                heap: width,
                total,
                pages: pages.as_ref().map(|pages| pages.sizes),
            },
            truncated_with: pages.map_or(Vec::new(), |pages| pages.truncated_with),
            index: IndexKind::None,
            binary,
            sequences,
            key,
            most_rows,
            warnings,
            foreign_keys,
            silenced,
        })
    }

    /// Size of a row with entries in all indexes, bytes.
    fn row_with_indexes(&self) -> u64 {
        self.rows.width + INDEX_ENTRY * self.stored.indexes()
    }
}
