//! Keys that come in another order than the rows: collected while the heap is written, sorted in
//! memory, and written as CREATE INDEX would.

use std::sync::mpsc::Receiver;

use page::{KeyLength, SortedBuilder, TupleId};
use rowgen::{Column, Kind, Table, TupleEncoder, Tuples};

use super::Failure;
use super::index::{Index, next};
use super::pieces::Stop;
use crate::run::rows::{Batch, RowSource};

/// Most memory for the keys of a table's indexes, bytes; for larger indexes, the server sorts on
/// disk.
const MOST_MEMORY: u64 = 1 << 30;

/// The memory for a table's keys while pgrig sorts them, bytes: a quarter of the memory that this machine has available,
/// or of the limit of this process's control group.
pub(super) fn memory() -> u64 {
    available().min(MOST_MEMORY)
}

/// A quarter of the memory that this machine has available, or of the limit of this process's control group, bytes.
pub(crate) fn available() -> u64 {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
    });
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    available.unwrap_or(0).min(limit) / 4
}

/// Values and order of the keys of an index over one column.
#[derive(Debug)]
pub(super) struct SortedKey {
    /// Encoder of a table that has only the index's column.
    encoder: TupleEncoder,
    order: Order,
    is_unique: bool,
}

/// How the server orders stored values.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// As a signed little-endian integer of so many bytes.
    Integer(usize),
    /// Byte by byte.
    Uuid,
    /// Byte by byte, of varying length.
    Text,
}

impl Order {
    /// The order of a kind's values; `has_bytes` says whether the index's collation compares texts
    /// byte by byte.
    fn of(kind: &Kind, has_bytes: bool) -> Option<Self> {
        match kind {
            Kind::Text | Kind::Varchar(_) if has_bytes => Some(Self::Text),
            Kind::Int2 => Some(Self::Integer(2)),
            Kind::Int4 | Kind::Date => Some(Self::Integer(4)),
            Kind::Int8 | Kind::Time | Kind::Timestamp | Kind::TimestampTz => Some(Self::Integer(8)),
            Kind::Uuid => Some(Self::Uuid),
            _ => None,
        }
    }
}

/// A key as a number that sorts as the server sorts the key.
pub(super) trait Sortable: Copy + Ord {
    /// Reads a stored value.
    fn of(stored: &[u8]) -> Self;
    /// The stored value; only as many of these bytes count as the type takes.
    fn stored(self) -> [u8; 16];
}

impl Sortable for i64 {
    fn of(stored: &[u8]) -> Self {
        // The sign is in the last byte.
        let negative = stored.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut bytes = [if negative { 0xFF } else { 0 }; 8];
        bytes[..stored.len()].copy_from_slice(stored);
        Self::from_le_bytes(bytes)
    }

    fn stored(self) -> [u8; 16] {
        i128::from(self).to_le_bytes()
    }
}

impl Sortable for u128 {
    fn of(stored: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(stored);
        Self::from_be_bytes(bytes)
    }

    fn stored(self) -> [u8; 16] {
        self.to_be_bytes()
    }
}

impl SortedKey {
    /// None if the server has to build an index over this column: pgrig does not know its order, or
    /// its values may be so long that the server would compress them in pages of this size
    /// (`TOAST_INDEX_TARGET`).
    pub(super) fn of(
        table: &Table,
        column: &Column,
        (is_unique, has_bytes): (bool, bool),
        page: u32,
    ) -> Option<Self> {
        let order = Order::of(&column.kind, has_bytes)?;
        let alone = Table { columns: vec![column.clone()], ..table.clone() };
        let encoder = TupleEncoder::new(&alone).ok()?;
        (encoder.longest() <= page / 17).then_some(Self { encoder, order, is_unique })
    }

    /// Memory for a row's key, bytes.
    pub(super) fn memory(&self) -> u64 {
        let entry = match self.order {
            Order::Integer(_) => size_of::<(i64, TupleId)>(),
            Order::Uuid => size_of::<(u128, TupleId)>(),
            Order::Text => size_of::<Text>() + self.encoder.longest() as usize,
        };
        entry as u64
    }

    /// Writes the index, and returns its number of blocks; none if the threads are to stop.
    pub(super) fn build(
        &self,
        index: &Index,
        rows: RowSource,
        from: (&Receiver<Vec<u32>>, &Stop),
        sink: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
    ) -> Result<Option<u32>, Failure> {
        match self.order {
            Order::Integer(length) => self.sorted::<i64>(length, index, rows, from, sink),
            Order::Uuid => self.sorted::<u128>(16, index, rows, from, sink),
            Order::Text => self.texts(index, rows, from, sink),
        }
    }

    fn sorted<K: Sortable>(
        &self,
        length: usize,
        index: &Index,
        rows: RowSource,
        (pages, stop): (&Receiver<Vec<u32>>, &Stop),
        mut sink: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
    ) -> Result<Option<u32>, Failure> {
        let mut keys: Vec<(K, TupleId)> = Vec::with_capacity(usize::try_from(rows.left()).unwrap_or(0));
        let gather = |stored: &[u8], place| keys.push((K::of(stored), place));
        let Some(nulls) = self.gather(rows, pages, stop, gather) else { return Ok(None) };
        keys.sort_unstable();
        self.check_unique(index, keys.iter().map(|(key, place)| (key, *place)));
        let mut builder = self.builder(index);
        for (key, place) in keys {
            if stop.is_set() {
                return Ok(None);
            }
            builder.push(Some(&key.stored()[..length]), place, &mut sink)?;
        }
        finish(builder, nulls, sink)
    }

    fn texts(
        &self,
        index: &Index,
        rows: RowSource,
        (pages, stop): (&Receiver<Vec<u32>>, &Stop),
        mut sink: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
    ) -> Result<Option<u32>, Failure> {
        let mut texts: Vec<Text> = Vec::with_capacity(usize::try_from(rows.left()).unwrap_or(0));
        let mut bytes = Vec::new();
        let gather = |stored: &[u8], place| {
            texts.push(Text {
                prefix: prefix(characters(stored)),
                start: bytes.len(),
                length: stored.len(),
                place,
            });
            bytes.extend_from_slice(stored);
        };
        let Some(nulls) = self.gather(rows, pages, stop, gather) else { return Ok(None) };
        let stored = |text: &Text| &bytes[text.start..text.start + text.length];
        texts.sort_unstable_by(|one, other| {
            let whole = || characters(stored(one)).cmp(characters(stored(other)));
            one.prefix.cmp(&other.prefix).then_with(whole).then(one.place.cmp(&other.place))
        });
        self.check_unique(index, texts.iter().map(|text| (stored(text), text.place)));
        let mut builder = self.builder(index);
        for text in &texts {
            if stop.is_set() {
                return Ok(None);
            }
            builder.push(Some(stored(text)), text.place, &mut sink)?;
        }
        finish(builder, nulls, sink)
    }

    fn builder(&self, index: &Index) -> SortedBuilder {
        let length = match self.order {
            Order::Integer(_) | Order::Uuid => KeyLength::Fixed,
            Order::Text => KeyLength::Varying,
        };
        SortedBuilder::new(index.file.data_directory.geometry, length, index.file.fillfactor, self.is_unique)
    }

    /// Takes note of the first sorted keys that are equal, if the index is unique.
    fn check_unique<K: PartialEq>(&self, index: &Index, keys: impl Iterator<Item = (K, TupleId)> + Clone) {
        if !self.is_unique {
            return;
        }
        let mut pairs = keys.clone().zip(keys.skip(1));
        if let Some((_, (_, place))) = pairs.find(|((one, _), (next, _))| one == next) {
            // Nobody else sets it.
            let _ = index.repeated.set(place);
        }
    }

    /// Passes on the stored key of each row; `pages` tells how many rows are in each block. Returns
    /// the rows whose key is null; none if the threads are to stop.
    fn gather(
        &self,
        mut rows: RowSource,
        pages: &Receiver<Vec<u32>>,
        stop: &Stop,
        mut give: impl FnMut(&[u8], TupleId),
    ) -> Option<Vec<TupleId>> {
        let mut nulls = Vec::new();
        let mut tuples = Tuples::new();
        let mut block = 0;
        while let Some(rows_of_pages) = next(pages, stop) {
            tuples.clear();
            match rows.take(rows_of_pages.iter().copied().map(u64::from).sum()) {
                Some(Batch::Range(range)) => self.encoder.encode(range, &mut tuples),
                Some(Batch::Listed(rows)) => self.encoder.encode_rows(&rows, &mut tuples),
                None => {}
            }
            let mut bodies = tuples.bodies();
            for count in rows_of_pages {
                let offsets = (1..).take(count as usize);
                for (offset, body) in offsets.zip(bodies.by_ref().take(count as usize)) {
                    let place = TupleId { block, offset };
                    // Before the value is a byte of padding, and where there is none, the null bitmap.
                    if body.has_nulls {
                        nulls.push(place);
                    } else {
                        give(&body.bytes[1..], place);
                    }
                }
                block += 1;
            }
        }
        (!stop.is_set()).then_some(nulls)
    }
}

/// Adds rows whose key is null, and returns how many blocks the index has.
fn finish(
    mut builder: SortedBuilder,
    nulls: Vec<TupleId>,
    mut sink: impl FnMut(u32, &[u8]) -> Result<(), Failure>,
) -> Result<Option<u32>, Failure> {
    for place in nulls {
        builder.push(None, place, &mut sink)?;
    }
    builder.finish(&mut sink).map(Some)
}

/// A text that is to be sorted.
struct Text {
    /// Its first eight bytes as a number, which decide most comparisons.
    prefix: u64,
    /// Offset of its characters.
    start: usize,
    length: usize,
    place: TupleId,
}

/// A stored text without its header, which has one byte, with the lowest bit set, or four (`varatt.h`).
pub(super) fn characters(stored: &[u8]) -> &[u8] {
    let header = if stored[0] & 1 == 1 { 1 } else { 4 };
    &stored[header..]
}

/// The first eight bytes as a number; zeros if there are fewer.
fn prefix(characters: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = characters.len().min(bytes.len());
    bytes[..length].copy_from_slice(&characters[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_order_and_the_bytes_of_what_is_stored() {
        for value in [i16::MIN, -1, 0, 1, i16::MAX] {
            let stored = value.to_le_bytes();
            assert_eq!(i64::of(&stored), i64::from(value));
            assert_eq!(i64::of(&stored).stored()[..2], stored);
        }
        for value in [i64::MIN, -1, i64::MAX] {
            assert_eq!(i64::of(&value.to_le_bytes()).stored()[..8], value.to_le_bytes());
        }
        let [low, high] = [[0, 9], [1, 0]].map(|[first, last]| {
            let mut uuid = [0; 16];
            (uuid[0], uuid[15]) = (first, last);
            uuid
        });
        assert!(u128::of(&low) < u128::of(&high));
        assert_eq!(u128::of(&high).stored(), high);
    }
}
