//! The comparison of tables. A dump restores the rows of partitions by hash through their table, if they have other hashes in the restored
//! database: that of an enum's label is the hash of its OID (pg_dump.c: `getPartitioningInfo`). So the rows are in other partitions there.

use std::collections::HashMap;

use measure::human::counted;

use super::source::{Hash, Table};

/// Rows that are compared together: those of a table, or in dumps those of all partitions below a table that is partitioned by hash.
#[derive(Debug)]
pub(super) struct Part<'a> {
    name: &'a str,
    /// Whether both databases have all of its rows, and these were read.
    is_compared: bool,
    /// Those of the original and of the restored one.
    rows: (i64, i64),
    hashes: (Hash, Hash),
}

impl<'a> Part<'a> {
    fn of(name: &'a str) -> Self {
        Self { name, is_compared: true, rows: (0, 0), hashes: (Hash::default(), Hash::default()) }
    }

    fn add(&mut self, original: &Table, restored: &Table) {
        self.rows.0 += original.rows;
        self.rows.1 += restored.rows;
        self.hashes.0 += original.hash;
        self.hashes.1 += restored.hash;
    }

    /// The difference of the restored one from the original.
    pub(super) fn difference(&self) -> Option<String> {
        if !self.is_compared {
            return None;
        }
        let (name, (original, restored)) = (self.name, self.rows);
        if original != restored {
            let restored = counted(u64::try_from(restored).unwrap_or_default(), "row");
            return Some(format!("table {name} has {restored} instead of {original}"));
        }
        (self.hashes.0 != self.hashes.1)
            .then(|| format!("table {name} has as many rows as the original, but other values"))
    }
}

/// The parts of two databases with the same tables. A base backup has each row where the original has it, and no rows of unlogged tables.
pub(super) fn parts<'a>(original: &'a [Table], restored: &[Table], is_base: bool) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut families: HashMap<&str, usize> = HashMap::new();
    for (one, other) in original.iter().zip(restored) {
        let next = parts.len();
        let family = one.family.as_deref().filter(|_| !is_base);
        let place = family.map_or(next, |family| *families.entry(family).or_insert(next));
        if place == next {
            parts.push(Part::of(family.unwrap_or(&one.name)));
        }
        parts[place].is_compared &= one.is_read && other.is_read && (one.is_logged || !is_base);
        parts[place].add(one, other);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, rows: i64, hash: i128) -> Table {
        let family = name.starts_with("h.").then(|| "h".to_owned());
        let (is_logged, is_read, is_hidden) = (true, true, false);
        Table { name: name.to_owned(), is_logged, is_read, is_hidden, rows, hash: Hash(hash, -hash), family }
    }

    fn difference(original: &[Table], restored: &[Table], is_base: bool) -> Option<String> {
        parts(original, restored, is_base).iter().find_map(Part::difference)
    }

    #[test]
    fn rows_of_a_dump_may_be_in_other_partitions_by_hash() {
        let original = [table("a", 5, 7), table("h.0", 50, -3), table("h.1", 10, 9), table("z", 1, 1)];
        let moved = [table("a", 5, 7), table("h.0", 20, 4), table("h.1", 40, 2), table("z", 1, 1)];
        assert_eq!(difference(&original, &moved, false), None);
        let text = "table h.0 has 20 rows instead of 50";
        assert_eq!(difference(&original, &moved, true).unwrap(), text);
        let lost = [table("a", 5, 7), table("h.0", 20, 4), table("h.1", 39, 2), table("z", 1, 1)];
        assert_eq!(difference(&original, &lost, false).unwrap(), "table h has 59 rows instead of 60");
        let changed = [table("a", 5, 7), table("h.0", 20, 4), table("h.1", 40, 3), table("z", 1, 1)];
        let text = "table h has as many rows as the original, but other values";
        assert_eq!(difference(&original, &changed, false).unwrap(), text);
    }

    /// Rows may have come from a partition that was not read.
    #[test]
    fn partitions_by_hash_are_compared_if_all_of_them_were_read() {
        let mut original = [table("h.0", 50, -3), table("h.1", 0, 0), table("z", 1, 1)];
        original[1].is_read = false;
        let restored = [table("h.0", 20, 4), table("h.1", 40, 2), table("z", 2, 1)];
        assert_eq!(difference(&original, &restored, false).unwrap(), "table z has 2 rows instead of 1");
    }
}
