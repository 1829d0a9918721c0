//! Forecasts of the costs of statements at a size that was not measured.

use std::collections::BTreeSet;

use super::rowless::Partitions;
use super::unmatched;
use super::zone::Unasked;
use crate::forecast::{Checkpoints, Limits, Memory, SoFar, forecast};
use crate::locale::UnknownLocale;
use crate::outcome::{StatementOutcome, TableAt};
use crate::thinned;

/// The facts on which forecasts depend.
pub(super) struct Forecasts<'a> {
    /// The tables at the size of the forecasts.
    pub(super) goal: &'a [TableAt],
    pub(super) memory: Memory,
    pub(super) checkpoints: Checkpoints,
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
        let mut so_far = SoFar::new(self.checkpoints);
        for one in statements {
            let size = sized(&one.tables, self.goal);
            let limits = Limits { memory: self.memory, checkpoint: so_far.add(one, size.0) };
            if let Some(found) = one.found.as_ref().filter(|_| one.untimed().is_none()) {
                one.forecast = forecast(found.class, &one.measured, &one.spaces, size, limits);
            }
        }
    }
}

/// Bytes and rows of these tables; of all if none is named.
pub(super) fn sized(names: &[String], tables: &[TableAt]) -> (u64, u64) {
    let is_named = |table: &&TableAt| names.is_empty() || names.contains(&table.name);
    tables
        .iter()
        .filter(is_named)
        .fold((0, 0), |(bytes, rows), table| (bytes + table.bytes, rows + table.rows))
}
