//! The size of a heap without free space between its rows, from the widths that statistics tell.

/// Bytes of a page's header.
const PAGE_HEADER: f64 = 24.0;
/// Bytes of a tuple's header, without its bitmap of NULLs.
const TUPLE_HEADER: u32 = 23;
/// Bytes of a tuple's line pointer.
const LINE_POINTER: f64 = 4.0;
/// Tuples, and columns that need it most, begin at multiples of this.
const ALIGNMENT: u32 = 8;
/// From this width on, a value of varying length has a header that is aligned.
const LONG: f64 = 127.0;

/// A column, as rows store it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredColumn {
    /// Bytes of each value; none if they vary.
    pub(super) length: Option<u16>,
    /// Values begin at multiples of this.
    pub(super) alignment: u32,
    /// Average bytes of a value.
    pub(super) width: f64,
    /// Fraction of NULLs.
    pub(super) nulls: f64,
}

impl StoredColumn {
    /// Whether it takes as many bytes in each row.
    fn is_fixed(&self) -> bool {
        self.nulls >= 1.0 || (self.length.is_some() && self.nulls <= 0.0)
    }
}

/// The pages of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    /// Bytes of a page.
    pub(super) size: u64,
    /// The table's fillfactor, percent.
    pub(super) fillfactor: u64,
}

impl Pages {
    /// Bytes of a heap with so many rows of these columns, about.
    pub(super) fn heap(self, rows: u64, columns: &[StoredColumn]) -> u64 {
        let size = self.size as f64;
        let reserved = size * self.fillfactor.abs_diff(100) as f64 / 100.0;
        let tuple = Tuple::of(columns);
        let fit = (size - PAGE_HEADER - reserved) / (tuple.bytes + LINE_POINTER);
        // Of rows that differ in length, half a one has no room on average.
        let each = if tuple.is_fixed { fit.floor() } else { fit - 0.5 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of pages")]
        let pages = (rows as f64 / each.max(1.0)).ceil() as u64;
        pages * self.size
    }
}

/// The average tuple.
struct Tuple {
    bytes: f64,
    /// Whether all tuples have this length.
    is_fixed: bool,
}

impl Tuple {
    fn of(columns: &[StoredColumn]) -> Self {
        let whole: f64 = columns.iter().map(|column| 1.0 - column.nulls).product();
        let bitmap = u32::try_from(columns.len().div_ceil(8)).unwrap_or(u32::MAX);
        let header = |bytes: u32| f64::from(bytes.next_multiple_of(ALIGNMENT));
        let with_nulls = header(TUPLE_HEADER.saturating_add(bitmap));
        let mut bytes = whole * header(TUPLE_HEADER) + (1.0 - whole) * with_nulls;
        // The place where the next column begins, beyond a multiple of the alignment; none if it varies.
        let mut place = Some(0);
        for column in columns {
            let alignment = match column.length {
                None if column.width < LONG => 1,
                _ => column.alignment.max(1),
            };
            bytes += (1.0 - column.nulls) * (padding(place, alignment) + column.width);
            place = match column.length {
                _ if column.nulls >= 1.0 => place,
                Some(length) if column.nulls <= 0.0 => {
                    let begin = if alignment == ALIGNMENT { Some(0) } else { place };
                    begin
                        .map(|begin: u32| (begin.next_multiple_of(alignment) + u32::from(length)) % ALIGNMENT)
                }
                _ => None,
            };
        }
        let is_fixed = columns.iter().all(StoredColumn::is_fixed);
        Self { bytes: bytes + padding(place, ALIGNMENT), is_fixed }
    }
}

/// Bytes up to the next multiple of an alignment, on average if the place varies.
fn padding(place: Option<u32>, alignment: u32) -> f64 {
    match place {
        Some(place) => f64::from(place.next_multiple_of(alignment) - place),
        None => f64::from(alignment - 1) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(length: u16, nulls: f64) -> StoredColumn {
        let alignment = u32::from(length).min(8);
        StoredColumn { length: Some(length), alignment, width: f64::from(length), nulls }
    }

    fn text(width: f64) -> StoredColumn {
        StoredColumn { length: None, alignment: 4, width, nulls: 0.0 }
    }

    const PAGES: Pages = Pages { size: 8192, fillfactor: 100 };

    #[test]
    fn rows_of_fixed_length_fill_pages_as_copy_does() {
        // 24 + 4 bytes, padded to 32, and a line pointer: 226 rows, as in a table of one int.
        assert_eq!(PAGES.heap(226, &[fixed(4, 0.0)]), 8192);
        assert_eq!(PAGES.heap(227, &[fixed(4, 0.0)]), 2 * 8192);
        // An int before a bigint: 24 + 4 + 4 + 8 bytes, 185 rows.
        assert_eq!(PAGES.heap(185, &[fixed(4, 0.0), fixed(8, 0.0)]), 8192);
        assert_eq!(PAGES.heap(186, &[fixed(4, 0.0), fixed(8, 0.0)]), 2 * 8192);
        let half = Pages { fillfactor: 50, ..PAGES };
        assert_eq!(half.heap(112, &[fixed(4, 0.0)]), 8192, "8168 - 4096 bytes, 36 for each row: 113");
        assert_eq!(half.heap(114, &[fixed(4, 0.0)]), 2 * 8192);
    }

    #[test]
    fn nulls_and_short_texts_take_no_alignment() {
        let all_null = PAGES.heap(10_000, &[fixed(4, 0.0), fixed(8, 1.0)]);
        assert_eq!(all_null, PAGES.heap(10_000, &[fixed(4, 0.0)]), "the bitmap fits into the header");
        let (short, long) =
            (Tuple::of(&[fixed(4, 0.0), text(9.0)]), Tuple::of(&[text(200.0), fixed(8, 0.0)]));
        assert!((short.bytes - (24.0 + 4.0 + 9.0 + 3.5)).abs() < 1e-9 && !short.is_fixed);
        assert!((long.bytes - (24.0 + 200.0 + 3.5 + 8.0)).abs() < 1e-9 && !long.is_fixed);
    }
}
