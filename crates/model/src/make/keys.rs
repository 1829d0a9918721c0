//! Foreign keys: which keys are used, and how often.

use super::places::{keys_in_order, place_of_key};
use super::{Maker, correlation, round};
use crate::estimate::different;
use crate::facts::{ColumnFacts, Statistics, TableFacts};
use crate::file::Values;
use fastrand::Rng;

impl Maker<'_> {
    /// Values for references: the number of used keys, which keys, and the shares of the most
    /// frequent ones.
    pub(super) fn keys(
        &mut self,
        facts: &ColumnFacts,
        statistics: &Statistics,
        table: &str,
        column: &str,
    ) -> Values {
        let parents = self.keys_of(table, column);
        let line = self.key_line(table, column);
        let rows = self.table.rows as f64;
        // ANALYZE misses keys that its sample lacks. If rows are counted for each key, the count says how many are used.
        let distinct = if facts.rows_per_key.is_empty() {
            let shares: Vec<f64> = statistics.common.iter().map(|(_, share)| *share).collect();
            different(statistics.n_distinct, self.table.counts(), statistics.null_frac, &shares, &[])
        } else {
            statistics.n_distinct
        };
        let used = if distinct < 0.0 { -distinct * rows } else { distinct };
        let fraction = if used > 0.0 { (used / parents.max(1.0)).min(1.0) } else { 1.0 };
        let mut common = keys_in_order(statistics, &line);
        // Where keys have no gaps, the place of a key tells the key.
        let least = self.least(statistics);
        move_rare(self.rng, &mut common, least);
        let mut bounds: Vec<f64> = if line.len() > 1 {
            statistics.bounds.iter().map(|bound| round(place_of_key(bound, statistics, &line))).collect()
        } else {
            Vec::new()
        };
        if used * f64::from(self.privacy.k) > rows * (1.0 - statistics.null_frac) {
            jitter(self.rng, &mut bounds);
        }
        let per_key: Vec<(f64, f64)> =
            facts.rows_per_key.iter().map(|(rows, share)| (round(*rows), round(*share))).collect();
        Values::Keys {
            distinct: -round(fraction).max(1e-6),
            correlation: correlation(statistics),
            common: common.into_iter().map(|(_, place, share)| (place, share)).collect(),
            bounds,
            rows: if has_rows(&per_key) {
                per_key
            } else {
                // All other keys have no rows.
                Vec::new()
            },
        }
    }

    /// The number of different keys that a foreign key's first column can refer to: of a key of several
    /// columns, the first one has fewer values than rows.
    pub(super) fn keys_of(&self, table: &str, column: &str) -> f64 {
        let Some(table) = self.referenced(table) else { return 0.0 };
        let rows = table.rows as f64;
        let column = table.columns.iter().find(|other| other.name == *column);
        match column.and_then(|column| column.statistics.as_ref()).map(|of| of.n_distinct) {
            Some(distinct) if distinct < 0.0 => -distinct * rows,
            Some(distinct) if distinct > 0.0 => distinct.min(rows),
            _ => rows,
        }
    }

    pub(super) fn referenced(&self, table: &str) -> Option<&TableFacts> {
        self.facts.tables.iter().find(|other| other.name == *table)
    }

    /// Bounds of the keys that a foreign key refers to.
    pub(super) fn key_line(&self, table: &str, column: &str) -> Vec<f64> {
        let keys = self
            .referenced(table)
            .and_then(|table| table.columns.iter().find(|other| other.name == *column)?.statistics.as_ref());
        let line = keys.map(|keys| keys.bounds.iter().filter_map(|bound| bound.parse().ok()).collect());
        line.unwrap_or_default()
    }

    /// Values for a foreign key whose rows another column numbers: as many rows have the number n as
    /// referenced rows have n rows or more. None if the numbers do not begin at 0 or 1, have gaps, or
    /// are too many for the list of frequent values, or if hardly one of the referenced rows is used.
    pub(super) fn counted(&self, statistics: &Statistics, table: &str, by: &str) -> Option<Values> {
        let by = self.table.columns.iter().find(|column| column.name == by)?.statistics.as_ref()?;
        let least = f64::from(self.privacy.k) / self.table.rows.max(1) as f64;
        let numbers = by.common.iter().filter(|(_, share)| *share >= least);
        let mut numbers: Vec<(i64, f64)> =
            numbers.map(|(value, share)| Some((value.parse().ok()?, *share))).collect::<Option<_>>()?;
        numbers.sort_unstable_by_key(|(number, _)| *number);
        let &(first, all) = numbers.first()?;
        let follow = numbers.iter().zip(first..).all(|((number, _), place)| *number == place);
        if by.bounds.len() > 1 || !(0..=1).contains(&first) || !follow || all <= 0.0 {
            return None;
        }
        let ends = numbers.iter().skip(1).map(|(_, share)| *share).chain([0.0]);
        let rows = numbers.iter().zip(ends).zip(1_u32..);
        let rows: Vec<(f64, f64)> = rows
            .map(|(((_, share), next), count)| (f64::from(count), ((share - next) / all).max(0.0)))
            .collect();
        let sum: f64 = rows.iter().map(|(_, fraction)| fraction).sum();
        // Each key in use has one row with the first number.
        let parents = self.referenced(table).map_or(0.0, |table| table.rows as f64);
        let used = if parents > 0.0 { all * self.table.rows as f64 / parents } else { 1.0 };
        let used = if used > NEARLY_ALL { 1.0 } else { used };
        let with_rows = rows.into_iter().map(|(count, fraction)| (count, round(fraction / sum * used)));
        let mut rows: Vec<(f64, f64)> = std::iter::once((0.0, round(1.0 - used))).chain(with_rows).collect();
        rows.retain(|(_, fraction)| *fraction > 0.0);
        if !has_rows(&rows) {
            return None;
        }
        Some(Values::Keys {
            distinct: -round(used).max(1e-6),
            correlation: correlation(statistics),
            common: Vec::new(),
            bounds: Vec::new(),
            rows,
        })
    }
}

/// Whether some keys have rows, of classes of keys with their fractions: these have six digits.
fn has_rows(classes: &[(f64, f64)]) -> bool {
    classes.iter().any(|(rows, fraction)| *rows > 0.0 && *fraction > 0.0)
}

/// From this share on, all keys count as used: a sample tells it no better.
const NEARLY_ALL: f64 = 0.98;

/// Most by which the place of a rare key moves.
const ASIDE: f64 = 0.01;
/// Most by which a bound moves, as a share of the distance to the next one.
const JITTER: f64 = 0.1;

/// Moves keys with less than that share of the rows to another place between their neighbours.
fn move_rare(rng: &mut Rng, keys: &mut [(String, f64, f64)], least: f64) {
    for at in 0..keys.len() {
        if keys[at].2 < least {
            let low = at.checked_sub(1).map_or(0.0, |before| keys[before].1).max(keys[at].1 - ASIDE);
            let high = keys.get(at + 1).map_or(1.0, |after| after.1).min(keys[at].1 + ASIDE);
            keys[at].1 = round(low + (high - low) * rng.f64());
        }
    }
}

/// Moves bounds at random, the first and the last one inwards.
fn jitter(rng: &mut Rng, bounds: &mut [f64]) {
    let at = bounds.to_vec();
    for (index, bound) in bounds.iter_mut().enumerate() {
        let before = index.checked_sub(1).map(|before| at[index] - at[before]);
        let after = at.get(index + 1).map(|after| after - at[index]);
        *bound += match (before, after) {
            (Some(before), Some(after)) => JITTER * before.min(after) * (2.0 * rng.f64() - 1.0),
            (None, Some(after)) => JITTER * after * rng.f64(),
            (Some(before), None) => -JITTER * before * rng.f64(),
            (None, None) => 0.0,
        };
        *bound = round(*bound);
    }
}

#[cfg(test)]
mod tests {
    use rowgen::Kind;

    use super::*;
    use crate::facts::ColumnRole;
    use crate::file::Model;
    use crate::make::{Privacy, fill};
    use crate::testing::{column, facts, modelled};

    #[test]
    fn places_of_rare_keys_move_and_stay_in_order() {
        let key = |place: f64, share| (place.to_string(), place, share);
        for seed in 0..100 {
            let mut rng = Rng::with_seed(seed);
            let mut keys = [key(0.001, 0.1), key(0.5, 0.0001), key(0.501, 0.2), key(1.0, 0.0001)];
            move_rare(&mut rng, &mut keys, 0.01);
            assert!(keys.is_sorted_by(|one, other| one.1 <= other.1), "{keys:?}");
            let is = |place: f64, wanted: f64| (place - wanted).abs() < 1e-9;
            assert!(is(keys[0].1, 0.001) && is(keys[2].1, 0.501) && !is(keys[1].1, 0.5) && keys[1].1 > 0.48);
            let mut bounds = [0.0, 0.1, 0.2, 0.2, 1.0];
            jitter(&mut rng, &mut bounds);
            assert!(
                bounds.is_sorted() && bounds[0] >= 0.0 && bounds[4] <= 1.0 && !is(bounds[1], 0.1),
                "{bounds:?}"
            );
        }
    }

    #[test]
    fn numbers_of_lines_tell_how_many_rows_a_key_has() {
        let shares = [(0.4, "1"), (0.3, "2"), (0.2, "3"), (0.1, "4")];
        let of = |first: &str| {
            let numbers = shares
                .iter()
                .map(|(share, number)| ((if *number == "1" { first } else { number }).to_owned(), *share));
            let numbers = Statistics { n_distinct: 4.0, common: numbers.collect(), ..Statistics::default() };
            let role = ColumnRole::Counted { table: "public.orders".to_owned(), by: "line".to_owned() };
            let keys = Statistics { n_distinct: -0.25, correlation: Some(1.0), ..Statistics::default() };
            let columns = vec![
                column("order", Kind::Int4, role, keys),
                column("line", Kind::Int4, ColumnRole::Key, numbers),
            ];
            modelled(columns, &[]).remove(0).values
        };
        let Values::Keys { rows, .. } = of("1") else { panic!() };
        assert_eq!(rows, [(1.0, 0.25), (2.0, 0.25), (3.0, 0.25), (4.0, 0.25)]);
        assert_eq!(of("-5"), fill("a key"));
    }

    #[test]
    fn keys_without_lines_have_no_rows() {
        let numbers = [("1", 0.5), ("2", 0.5)].map(|(number, share)| (number.to_owned(), share)).to_vec();
        let numbers = Statistics { n_distinct: 2.0, common: numbers, ..Statistics::default() };
        let role = ColumnRole::Counted { table: "public.orders".to_owned(), by: "line".to_owned() };
        let columns = vec![
            column("order", Kind::Int4, role, Statistics { n_distinct: -0.5, ..Statistics::default() }),
            column("line", Kind::Int4, ColumnRole::Key, numbers),
        ];
        // 5,000 of 20,000 orders have two lines each.
        let mut facts = facts(10_000, columns);
        let orders = TableFacts { name: "public.orders".to_owned(), ..facts.tables[0].clone() };
        facts.tables.push(TableFacts { rows: 20_000, analyzed_rows: 20_000, columns: Vec::new(), ..orders });
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        let Values::Keys { distinct, rows, .. } = &model.tables[0].columns[0].values else { panic!() };
        assert_eq!((*distinct, rows.as_slice()), (-0.25, [(0.0, 0.75), (2.0, 0.25)].as_slice()));
        // Six digits do not tell so few.
        facts.tables[1].rows = 20_000_000_000;
        let model = Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 });
        assert_eq!(model.tables[0].columns[0].values, fill("a key"));
    }
}
