//! Forecasts of the costs of statements at a size that was not measured.

use std::collections::BTreeSet;

use super::rowless::Partitions;
use super::unmatched;
use super::zone::Unasked;
use crate::forecast::{Checkpoints, Limits, Memory, SoFar, forecast};
use crate::locale::UnknownLocale;
use crate::outcome::{StatementOutcome, TableAt};
use crate::parts::Parts;
use crate::thinned;

/// The size of the forecasts, and the server's settings on which they depend.
pub(super) struct Sizes<'a> {
    /// The tables at the size of the forecasts.
    pub(super) goal: &'a [TableAt],
    pub(super) memory: Memory,
    pub(super) checkpoints: Checkpoints,
    /// Bytes of a table, without its indexes, from which on the build of an index has parallel workers; none if it never has.
    pub(super) parallel_from: Option<u64>,
}

/// The facts on which forecasts depend.
pub(super) struct Forecasts<'a> {
    pub(super) sizes: Sizes<'a>,
    pub(super) partitions: Partitions<'a>,
    /// Tables whose rows the schema inserts, by their names for people.
    pub(super) inserted: &'a BTreeSet<String>,
    /// The time zone, if it decides on a rewrite and nobody asked for it.
    pub(super) zone: Option<&'a Unasked>,
    /// The locale, if the databases have the order of bytes in its place.
    pub(super) locale: Option<&'a UnknownLocale>,
}

impl Forecasts<'_> {
    /// Adds forecasts, but none for a statement whose time is not measured.
    pub(super) fn add(&self, statements: &mut [StatementOutcome]) {
        self.partitions.note(statements);
        thinned::note(self.partitions.filled(), statements);
        unmatched::mark_rows_of_schema(self.inserted, statements);
        if let Some(zone) = self.zone {
            zone.note(statements);
        }
        if let Some(locale) = self.locale {
            locale.note(statements);
        }
        let Sizes { goal, memory, checkpoints, .. } = self.sizes;
        let mut so_far = SoFar::new(checkpoints);
        for one in statements {
            let size = sized(&one.tables, goal);
            let checkpoint = so_far.add(one, size.0);
            let has_workers = !Parts::of(&one.statement.sql).builds_without_workers();
            let parallel = if has_workers { self.sizes.parallel(&one.tables) } else { None };
            let limits = Limits { memory, checkpoint, parallel };
            if let Some(found) = one.found.as_ref().filter(|_| one.untimed().is_none()) {
                one.forecast = forecast(found.class, &one.measured, &one.spaces, size, limits);
            }
        }
    }
}

impl Sizes<'_> {
    /// Bytes of these tables with their indexes at which the largest of them has parallel workers for its indexes, if all grow alike. A build
    /// has them for each table or partition of its own.
    fn parallel(&self, names: &[String]) -> Option<f64> {
        let main = named(names, self.goal).map(|table| table.main).max().filter(|main| *main > 0)?;
        let (bytes, _) = sized(names, self.goal);
        Some(self.parallel_from? as f64 * bytes as f64 / main as f64)
    }
}

/// Those of these tables that have one of the names; all if there is none.
fn named<'a>(names: &'a [String], tables: &'a [TableAt]) -> impl Iterator<Item = &'a TableAt> {
    tables.iter().filter(move |table| names.is_empty() || names.contains(&table.name))
}

/// Bytes and rows of these tables; of all if none is named.
pub(super) fn sized(names: &[String], tables: &[TableAt]) -> (u64, u64) {
    named(names, tables).fold((0, 0), |(bytes, rows), table| (bytes + table.bytes, rows + table.rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_partition_has_workers_first() {
        let table = |name: &str, main: u64| TableAt {
            oid: 1,
            root: 1,
            name: name.to_owned(),
            rows: main / 100,
            bytes: main * 2,
            main,
        };
        let goal = [table("public.p1", 40_000_000), table("public.p2", 10_000_000), table("public.t", 1)];
        let memory = Memory::default();
        let checkpoints = Checkpoints::of((0, 0), 0.9, 300.0);
        let of = |parallel_from: Option<u64>, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Sizes { goal: &goal, memory, checkpoints, parallel_from }.parallel(&names)
        };
        // The larger one takes 8 MB of 20 MB.
        let at = of(Some(8_000_000), &["public.p1", "public.p2"]).unwrap();
        assert!((at - 20e6).abs() < 1.0, "{at}");
        assert_eq!(of(None, &["public.p1"]), None);
        assert_eq!(of(Some(8_000_000), &["public.other"]), None);
    }
}
