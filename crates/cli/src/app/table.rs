//! Tables for people: columns without lines.

use std::ops::Range;

use comfy_table::{CellAlignment, Table, presets};

/// Empty, with these titles.
pub(crate) fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Numbers stand below each other.
pub(crate) fn align_right(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
