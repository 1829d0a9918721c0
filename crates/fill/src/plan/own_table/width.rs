//! Estimates the size of a row before the table has rows.

use page::{Geometry, LINE_POINTER, TUPLE_HEADER, max_align};
use rowgen::{Storage, Stored, Table};

/// Number of rows whose stored size is computed to predict that of the others.
const SAMPLE: u64 = 1_000;

/// Bytes of a row, computed from its values. If these are so long that the server may compress
/// them, the size that the server stored `sample` in.
pub(super) fn of_row(table: &Table, geometry: Geometry, sample: Option<u64>) -> u64 {
    let row = row(table);
    let is_toasted = row > u64::from(geometry.toast_threshold());
    sample.filter(|sample| is_toasted && *sample > 0).unwrap_or(row)
}

/// Heap bytes of a row with its line pointer, on average over a sample.
fn row(table: &Table) -> u64 {
    let storage = Storage::new(table);
    let rows = table.rows.clamp(1, SAMPLE);
    let total: u64 = (0..rows).map(|row| u64::from(tuple(storage.row(row)) + LINE_POINTER)).sum();
    (total / rows).max(1)
}

/// Length of a tuple with these values, rounded up as it is stored.
fn tuple(values: impl Iterator<Item = Stored>) -> u32 {
    let mut columns = 0;
    let mut has_null = false;
    let data = values.fold(0_u32, |offset, value| {
        columns += 1;
        match value {
            Stored::Null => {
                has_null = true;
                offset
            }
            Stored::Fixed { length, align } | Stored::Varying { length, align } => {
                offset.next_multiple_of(align.max(1)) + length
            }
        }
    });
    let bitmap = if has_null { u32::div_ceil(columns, 8) } else { 0 };
    max_align(max_align(TUPLE_HEADER + bitmap) + data)
}
