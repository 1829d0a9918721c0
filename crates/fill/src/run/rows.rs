//! Numbers of rows to load: a range, the rows of a range that hash to one partition, or a list.

use std::ops::Range;
use std::sync::Arc;

use rowgen::hash_partition;

/// Rows that are taken one after the other, from the beginning.
#[derive(Clone, Debug)]
pub(crate) struct RowSource {
    rows: RowNumbers,
    left: u64,
}

#[derive(Clone, Debug)]
enum RowNumbers {
    Range(Range<u64>),
    /// Rows of the range whose id (row number + 1) hashes to the partition.
    Hashed(Range<u64>, Partition),
    Listed(Listed),
}

/// Some rows, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// All of a range.
    Range(Range<u64>),
    /// The rows of this list.
    Listed(Vec<u64>),
}

impl Batch {
    /// The numbers, one after the other.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        let (range, listed) = match self {
            Self::Range(rows) => (rows.clone(), &[][..]),
            Self::Listed(rows) => (0..0, &rows[..]),
        };
        range.chain(listed.iter().copied())
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end - rows.start,
            Self::Listed(rows) => rows.len() as u64,
        }
    }
}

/// A partition by hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// Number of partitions.
    pub modulus: u32,
    /// Number of this one.
    pub remainder: u32,
}

impl Partition {
    fn holds(self, row: u64) -> bool {
        hash_partition(row.cast_signed() + 1, self.modulus) == self.remainder
    }
}

impl RowSource {
    /// The rows of the range, or those of them that belong to the partition.
    pub(crate) fn new(range: Range<u64>, partition: Option<Partition>) -> Self {
        match partition {
            None => Self { left: range.end - range.start, rows: RowNumbers::Range(range) },
            Some(partition) => {
                let left = range.clone().filter(|row| partition.holds(*row)).count() as u64;
                Self { rows: RowNumbers::Hashed(range, partition), left }
            }
        }
    }

    /// The first rows from `start` on that belong to the partition, so many of them.
    pub(crate) fn first(count: u64, start: u64, partition: Partition) -> Self {
        Self { rows: RowNumbers::Hashed(start..u64::MAX, partition), left: count }
    }

    /// The rows of a list.
    pub(crate) fn listed(list: RowList) -> Self {
        Self { left: list.rows, rows: RowNumbers::Listed(Listed { list: Arc::new(list), at: 0, run: 0..0 }) }
    }

    /// Number of rows left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes the next rows, at most so many; none if there are no more.
    pub(crate) fn take(&mut self, most: u64) -> Option<Batch> {
        let taken = most.min(self.left);
        if taken == 0 {
            return None;
        }
        self.left -= taken;
        let wanted = usize::try_from(taken).unwrap_or(usize::MAX);
        Some(match &mut self.rows {
            RowNumbers::Range(range) => {
                let start = range.start;
                range.start += taken;
                Batch::Range(start..range.start)
            }
            RowNumbers::Hashed(range, partition) => {
                let mut rows = Vec::with_capacity(wanted);
                rows.extend(range.filter(|row| partition.holds(*row)).take(wanted));
                Batch::Listed(rows)
            }
            RowNumbers::Listed(listed) => listed.take(taken, wanted),
        })
    }
}

/// Ascending numbers of rows, in about two bytes for each that stands alone, and for each run.
#[derive(Debug, Default)]
pub(crate) struct RowList {
    rows: u64,
    /// Encoded runs before `end`: for each run, the gap before it, and its length if that is above
    /// 1.
    bytes: Vec<u8>,
    /// Where the last complete run ends.
    end: u64,
    /// The last run, to which further rows may come.
    open: Range<u64>,
}

impl RowList {
    /// Adds a row above all others.
    pub(crate) fn push(&mut self, row: u64) {
        self.rows += 1;
        if row == self.open.end && !self.open.is_empty() {
            self.open.end += 1;
        } else {
            self.close();
            self.open = row..row + 1;
        }
    }

    fn close(&mut self) {
        let Range { start, end } = self.open;
        let length = end - start;
        if length == 0 {
            return;
        }
        let gap = start - self.end;
        write(gap << 1 | u64::from(length > 1), &mut self.bytes);
        if length > 1 {
            write(length, &mut self.bytes);
        }
        self.end = end;
    }
}

/// A place in a list.
#[derive(Clone, Debug)]
struct Listed {
    list: Arc<RowList>,
    /// Offset of the next run in the list, bytes.
    at: usize,
    /// Rest of the current run.
    run: Range<u64>,
}

impl Listed {
    /// The next rows; there are so many.
    fn take(&mut self, count: u64, capacity: usize) -> Batch {
        if self.run.is_empty() {
            self.next_run();
        }
        let Range { start, end } = self.run;
        if end - start >= count {
            self.run.start += count;
            return Batch::Range(start..start + count);
        }
        let mut rows = Vec::with_capacity(capacity);
        let mut left = count;
        while left > 0 {
            if self.run.is_empty() {
                self.next_run();
            }
            let taken = left.min(self.run.end - self.run.start);
            rows.extend(self.run.start..self.run.start + taken);
            self.run.start += taken;
            left -= taken;
        }
        Batch::Listed(rows)
    }

    fn next_run(&mut self) {
        let Self { list, at, run } = self;
        if *at == list.bytes.len() {
            *run = list.open.clone();
            return;
        }
        let gap = read(&list.bytes, at);
        let start = run.end + (gap >> 1);
        let length = if gap & 1 == 1 { read(&list.bytes, at) } else { 1 };
        *run = start..start + length;
    }
}

/// Appends a number as a varint: seven bits in each byte, the lowest first; the highest bit says
/// that more bytes follow.
fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7F).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

fn read(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_gives_the_rows_that_it_was_given(
            steps in prop::collection::vec(prop_oneof![Just(1_u64), 1..3_u64, 1..1_000_000_u64], 0..300),
            first in 0_u64..100, most in 1_u64..50,
        ) {
            let mut rows = Vec::new();
            let mut next = first;
            for step in steps {
                rows.push(next);
                next += step;
            }
            let mut list = RowList::default();
            for row in &rows {
                list.push(*row);
            }
            let mut source = RowSource::listed(list);
            prop_assert_eq!(source.left(), rows.len() as u64);
            let mut found = Vec::new();
            while let Some(batch) = source.take(most) {
                prop_assert!(batch.len() == most || source.left() == 0);
                found.extend(batch.numbers());
            }
            prop_assert_eq!(found, rows);
        }
    }

    #[test]
    fn runs_come_as_ranges() {
        let mut list = RowList::default();
        for row in [5, 6, 7, 8, 20] {
            list.push(row);
        }
        let mut source = RowSource::listed(list);
        assert_eq!(source.take(3), Some(Batch::Range(5..8)));
        assert_eq!(source.take(2), Some(Batch::Listed(vec![8, 20])));
        assert_eq!(source.take(2), None);
    }
}
