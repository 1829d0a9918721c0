//! The rows of the bulk table: which rows, and the space that they take. The rules read only this,
//! for tables of any origin.

use catalog::SequenceTaken;
use rowgen::Column;

use super::data::RowKey;
use super::row_range::RowRange;
use super::sizes::{Layout, Sizes};
use super::tables::Tables;
use crate::request::IndexKind;

/// The rows to load.
pub(super) struct Bulk {
    /// Numbers of the rows.
    pub(super) range: RowRange,
    /// Bytes that the table shall take in the end, where that is measured as it grows.
    pub(super) until_size: Option<u64>,
    /// All tables, with their final numbers of rows.
    pub(super) tables: Tables,
    /// Bytes of a row.
    pub(super) row_size: RowSize,
    /// The index that the step `primary-keys` builds, or that is there.
    pub(super) index: IndexKind,
    /// Whether every column of a table of the user's can be sent in binary.
    pub(super) binary: bool,
    /// Sequences whose values pgrig computes itself.
    pub(super) sequences: Vec<SequenceTaken>,
    /// The column by which rows can be looked up, if there is one.
    pub(super) key: Option<RowKey>,
    /// Tables that are truncated with the bulk table because they reference it.
    pub(super) truncated_with: Vec<String>,
    /// The most rows that keys leave room for, and why.
    pub(super) most_rows: Option<(u64, String)>,
    /// Warnings from the look at the table.
    pub(super) warnings: Vec<String>,
    /// Check of foreign keys of rows by COPY.
    pub(super) foreign_keys: ForeignKeys,
    /// Triggers that do not run for the rows, because the request says so.
    pub(super) silenced: Vec<String>,
}

/// How the table's foreign keys are checked for rows by COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForeignKeys {
    /// There are none, or COPY does not load the rows.
    None,
    /// By the server, row by row, with the reason.
    RowByRow(String),
    /// pgrig checks all rows of a chunk with one query.
    BySet,
}

/// Bytes of a row.
pub(super) enum RowSize {
    /// All rows have the same length, so sizes follow from their number.
    Exact(Layout),
    /// Rows of a table of the user's.
    Estimated {
        /// Bytes without indexes, on average.
        heap: u64,
        /// Bytes with entries in all indexes, on average.
        total: u64,
        /// Size of all pages, if pgrig writes them.
        pages: Option<Sizes>,
    },
}

/// The key of pgrig's own tables: the first column, from 1.
pub(super) fn first_column(columns: &[Column]) -> Option<RowKey> {
    columns.first().map(|key| RowKey { column: key.name.clone(), first: 1 })
}
