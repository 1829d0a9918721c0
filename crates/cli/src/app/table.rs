//! Tables for people: columns without lines.

use std::ops::Range;

use comfy_table::{CellAlignment, Table, presets};

/// An empty table with these titles.
pub(crate) fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Aligns numbers to the right in these columns.
pub(crate) fn align_right(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The table without the blank at both ends of each line.
pub(crate) fn trimmed(table: &Table) -> String {
    let line = |line: String| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned();
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}
