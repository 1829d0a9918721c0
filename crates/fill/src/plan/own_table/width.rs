//! Estimates the size of a row before the table has rows.

use page::{Geometry, LINE_POINTER, TUPLE_HEADER, max_align};
use rowgen::{Storage, Stored, Table};

/// Number of rows whose stored size is computed to predict that of the others.
const SAMPLE: u64 = 1_000;
/// Bytes of these rows, approximately: fewer rows are enough if they are long.
const BYTES: u64 = 16 << 20;

/// Bytes of a row, computed from its values. If these are so long that the server may compress
/// them, the size that the server stored `sample` in.
pub(super) fn of_row(table: &Table, geometry: Geometry, sample: Option<u64>) -> u64 {
    let row = row(table);
    let is_toasted = row > u64::from(geometry.toast_threshold());
    sample.filter(|sample| is_toasted && *sample > 0).unwrap_or(row)
}

/// The number of rows that take so many bytes, not compressed.
pub(crate) fn rows_within(table: &Table, bytes: u64) -> u64 {
    bytes / row(table)
}

/// Heap bytes of a row with its line pointer, on average over a sample.
fn row(table: &Table) -> u64 {
    let storage = Storage::new(table);
    let rows = table.rows.clamp(1, SAMPLE);
    let (mut total, mut count) = (0, 0);
    while count < rows && total < BYTES {
        total += u64::from(tuple(storage.row(count)) + LINE_POINTER);
        count += 1;
    }
    (total / count).max(1)
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

#[cfg(test)]
mod tests {
    use rowgen::{Column, Kind, Values};

    use super::*;

    #[test]
    fn few_long_rows_take_the_bytes_of_a_sample() {
        let of = |length: usize| {
            let columns = vec![Column::new("t", Kind::Text, Values::Text("x".repeat(length)))];
            rows_within(&Table { name: "t".to_owned(), columns, rows: 50_000, seed: 0 }, 64 << 20)
        };
        assert!(of(10) > 1_000_000);
        assert_eq!((of(1 << 20), of(10 << 20), of(100 << 20)), (63, 6, 0));
    }
}
