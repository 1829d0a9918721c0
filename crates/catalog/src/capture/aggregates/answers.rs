//! Facts of a table from the results of the queries.

use std::collections::HashMap;

use model::{Joint, Pair, TableFacts};
use tokio_postgres::Row;

use super::Aggregates;
use super::questions::{Asks, By, PairedColumn, Question};

/// Most classes of keys with about as many rows, besides the classes that differ by [`APART`].
const CLASSES: u64 = 24;
/// Numbers of rows in one class differ by this factor at most, as far as the class has enough keys.
const APART: f64 = 1.25;

/// A combination of values, none for NULL, with its share.
type Combination = (Option<String>, Option<String>, f64);

/// Adds the answer to the table's facts.
pub(super) fn add(question: &Question, rows: &[Row], asked: Aggregates, facts: &mut TableFacts) {
    match &question.asks {
        Asks::RowsPerKey { column, every } => {
            let count = |row: &Row, name: &str| u64::try_from(row.get::<_, i64>(name)).unwrap_or_default();
            let keys: Vec<(u64, u64)> =
                rows.iter().map(|row| (count(row, "n"), count(row, "keys"))).collect();
            let all = rows.first().map_or(0, |row| count(row, "all_keys"));
            if let Some(facts) = facts.columns.iter_mut().find(|facts| facts.name == *column) {
                let common = facts.statistics.as_ref().map_or(0, |statistics| statistics.common.len());
                let frequent = common as u64 / every;
                facts.rows_per_key = classes(&keys, all, frequent, u64::from(asked.k));
            }
        }
        Asks::Pairs { parts } => {
            let Some(counts) = Counts::of(parts, rows) else { return };
            facts.pairs.extend(counts.pairs());
            counts.list_values(facts);
        }
        Asks::Nulls { columns } => {
            let Some(row) = rows.first() else { return };
            let counts: Vec<Option<i64>> = row.get("both");
            let mut counts = counts.into_iter().map(Option::unwrap_or_default);
            for (at, one) in columns.iter().enumerate() {
                for other in &columns[at + 1..] {
                    let rows = counts.next().filter(|rows| *rows >= i64::from(asked.k)).unwrap_or_default();
                    let share = rows as f64 / count(row).max(1.0);
                    let columns = (one.clone(), other.clone());
                    facts.pairs.push(Pair { columns, joint: Joint::Common(vec![(None, None, share)]) });
                }
            }
        }
        Asks::Ranks { columns } => {
            let correlations: Vec<Option<f64>> = rows.first().map(|row| row.get(0)).unwrap_or_default();
            let mut correlations = correlations.into_iter();
            for (at, one) in columns.iter().enumerate() {
                for other in &columns[at + 1..] {
                    if let Some(correlation) = correlations.next().flatten() {
                        let columns = (one.clone(), other.clone());
                        facts.pairs.push(Pair { columns, joint: Joint::Rank(correlation.clamp(-1.0, 1.0)) });
                    }
                }
            }
        }
        Asks::Lengths { columns } => {
            let Some(row) = rows.first() else { return };
            for (at, column) in columns.iter().enumerate() {
                let lengths: Vec<i32> = row.get::<_, Option<_>>(2 * at).unwrap_or_default();
                if let Some(facts) = facts.columns.iter_mut().find(|facts| facts.name == *column) {
                    facts.lengths =
                        lengths.into_iter().filter_map(|length| usize::try_from(length).ok()).collect();
                    facts.characters = row.get(2 * at + 1);
                }
            }
        }
    }
}

fn sum(keys: &[(u64, u64)]) -> u64 {
    keys.iter().map(|(_, keys)| keys).sum()
}

/// Classes of keys: a number of rows, and the fraction of the keys that have about so many. Each
/// class has at least k keys; the most frequent keys are left out. `keys` has numbers of rows with
/// numbers of keys, in ascending order.
fn classes(keys: &[(u64, u64)], all: u64, frequent: u64, k: u64) -> Vec<(f64, f64)> {
    let mut rest: Vec<(u64, u64)> = keys.to_vec();
    let mut left = frequent;
    while let Some(last) = rest.last_mut() {
        let taken = left.min(last.1);
        last.1 -= taken;
        left -= taken;
        if last.1 > 0 {
            break;
        }
        rest.pop();
    }
    let used = sum(keys);
    rest.insert(0, (0, all.saturating_sub(used)));
    let total = sum(&rest);
    if total < k.max(1) {
        return Vec::new();
    }
    let mut classes: Vec<(f64, u64)> = Vec::new();
    let mut open: Vec<(u64, u64)> = Vec::new();
    let closed = |open: &[(u64, u64)]| {
        let keys = sum(open).max(1);
        let rows: u64 = open.iter().map(|(rows, keys)| rows * keys).sum();
        (rows as f64 / keys as f64, keys)
    };
    for (rows, keys) in rest.into_iter().filter(|(_, keys)| *keys > 0) {
        let begins = open.first().is_some_and(|(first, _)| {
            let is_apart = rows as f64 > *first as f64 * APART || sum(&open) >= total / CLASSES;
            is_apart && sum(&open) >= k
        });
        if begins {
            classes.push(closed(&open));
            open.clear();
        }
        open.push((rows, keys));
    }
    // The last class may have too few keys: it joins the one before.
    match classes.last_mut() {
        Some((mean, keys)) if sum(&open) < k => {
            let (other, more) = closed(&open);
            *mean = (*mean * *keys as f64 + other * more as f64) / (*keys + more) as f64;
            *keys += more;
        }
        _ => classes.push(closed(&open)),
    }
    classes.into_iter().map(|(rows, keys)| (rows, keys as f64 / total as f64)).collect()
}

/// Least share of a column's rows that its counted values have, so that no others count.
const ALL: f64 = 0.999;

/// Greatest share of a value's rows with NULL in another column that counts as none.
const NEVER: f64 = 0.01;

/// Numbers of rows for combinations of values.
struct Counts<'a> {
    parts: &'a [PairedColumn],
    rows: &'a [Row],
    /// Number of all rows together.
    all: f64,
}

impl<'a> Counts<'a> {
    /// None if there are fewer than k rows.
    fn of(parts: &'a [PairedColumn], rows: &'a [Row]) -> Option<Self> {
        let counts = Self { parts, rows, all: 1.0 };
        let all = counts.of_columns(&[]).next().map(count)?;
        Some(Self { all, ..counts })
    }

    /// The rows of the result that count the values of these columns, by their places, and of no others.
    fn of_columns<'b>(&'b self, columns: &'b [usize]) -> impl Iterator<Item = &'b Row> {
        let last = self.parts.len() - 1;
        // The first of grouping()'s arguments is its highest bit; a bit is set where the column is left out.
        let is_in = move |row: &Row, at: usize| row.get::<_, i32>("left_out") >> (last - at) & 1 == 0;
        self.rows
            .iter()
            .filter(move |row| (0..self.parts.len()).all(|at| is_in(row, at) == columns.contains(&at)))
    }

    /// Where the strata of a column end, as fractions of the rows that are not NULL, without the last one; none if all rows are NULL.
    fn cuts(&self, at: usize) -> Option<Vec<f64>> {
        let own = [at];
        let mut widths: Vec<f64> = Vec::new();
        for row in self.of_columns(&own) {
            let values: Vec<Option<String>> = row.get("pair");
            if let Some(Some(stratum)) = stratum(values[at].as_deref()) {
                widths.resize(widths.len().max(stratum + 1), 0.0);
                widths[stratum] += count(row);
            }
        }
        let there: f64 = widths.iter().sum();
        let mut until = 0.0;
        let cut = |width: &f64| {
            until += width / there;
            until
        };
        let mut cuts: Vec<f64> = widths.iter().map(cut).collect();
        cuts.pop();
        (there > 0.0).then_some(cuts)
    }

    /// Values of one column, or its NULLs, with strata of another one; or strata of both. None if these are not paired.
    fn strata(
        &self,
        (at, one): (usize, &PairedColumn),
        (with, other): (usize, &PairedColumn),
    ) -> Option<Pair> {
        if !one.is_paired(other) {
            return None;
        }
        let cuts = self.cuts(with)?;
        let both = [at, with];
        let rows = self
            .of_columns(&both)
            .map(|row| (row.get::<_, Vec<Option<String>>>("pair"), count(row) / self.all));
        let joint = if one.by == By::Stratum {
            let share = |(values, share): (Vec<Option<String>>, f64)| {
                Some((stratum(values[at].as_deref())?, stratum(values[with].as_deref())?, share))
            };
            Joint::Parts { cuts: (self.cuts(at)?, cuts), shares: rows.filter_map(share).collect() }
        } else {
            let share = |(values, share): (Vec<Option<String>>, f64)| {
                Some((value(one, values[at].as_deref())?, stratum(values[with].as_deref())?, share))
            };
            Joint::Strata { cuts, shares: rows.filter_map(share).collect() }
        };
        Some(Pair { columns: (one.column.clone(), other.column.clone()), joint })
    }

    fn pairs(&self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (at, one) in self.parts.iter().enumerate() {
            for (with, other) in self.parts.iter().enumerate().skip(at + 1) {
                if one.by == By::There || other.by == By::There {
                    continue;
                }
                if other.by == By::Stratum {
                    pairs.extend(self.strata((at, one), (with, other)));
                    continue;
                }
                let mut combinations: Vec<Combination> = self
                    .of_columns(&[at, with])
                    .filter_map(|row| {
                        let values: Vec<Option<String>> = row.get("pair");
                        let (one, other) =
                            (value(one, values[at].as_deref())?, value(other, values[with].as_deref())?);
                        Some((one, other, count(row) / self.all))
                    })
                    .collect();
                // The share is given even if no row has NULL in both: otherwise it would count as unknown.
                if one.by == By::Null && other.by == By::Null && combinations.is_empty() {
                    combinations.push((None, None, 0.0));
                }
                if !combinations.is_empty() {
                    combinations.extend(self.absent((at, with), &combinations));
                    let columns = (one.column.clone(), other.column.clone());
                    pairs.push(Pair { columns, joint: Joint::Common(combinations) });
                }
            }
        }
        pairs
    }

    /// Values of one column that no row has with NULL in the other one, or hardly any: at least k rows have them with other values, and fewer than
    /// k with NULL.
    fn absent(&self, (at, with): (usize, usize), there: &[Combination]) -> Vec<Combination> {
        let mut absent = Vec::new();
        for (of_nulls, of_values) in [(at, with), (with, at)] {
            let name = &self.parts[of_nulls].column;
            let is_there = |part: &PairedColumn| part.by == By::There && part.column == *name;
            let Some(part) = self.parts.iter().position(is_there) else { continue };
            let texts = |row: &Row| row.get::<_, Vec<Option<String>>>("pair");
            let all: HashMap<String, f64> = self
                .of_columns(&[of_values])
                .filter_map(|row| Some((texts(row)[of_values].take()?, count(row))))
                .collect();
            for row in self.of_columns(&[of_values, part]) {
                let mut values = texts(row);
                let is_null = values[part].as_deref() != Some("f");
                if let Some(value) = values[of_values].take()
                    && !is_null
                    && all.get(&value).is_some_and(|all| never_comes(all - count(row), *all))
                {
                    let pair = if of_nulls == at { (None, Some(value)) } else { (Some(value), None) };
                    if !there.iter().any(|(one, other, _)| (one, other) == (&pair.0, &pair.1)) {
                        absent.push((pair.0, pair.1, 0.0));
                    }
                }
            }
        }
        absent
    }

    /// Lists all values of columns that have more than the statistics list, if each has k rows.
    fn list_values(&self, facts: &mut TableFacts) {
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| part.by == By::Counted) {
            let column = facts.columns.iter_mut().find(|column| column.name == part.column);
            let Some(statistics) = column.and_then(|column| column.statistics.as_mut()) else { continue };
            let listed: f64 = self.of_columns(&[at]).map(count).sum();
            let value = |row: &Row| {
                let values: Vec<Option<String>> = row.get("pair");
                Some((values[at].clone()?, count(row) / self.all))
            };
            let mut values: Vec<(String, f64)> = self.of_columns(&[at]).filter_map(value).collect();
            values.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            if listed >= ALL * self.all && !values.is_empty() {
                statistics.n_distinct = values.len() as f64;
                statistics.common = values;
                statistics.bounds.clear();
            }
        }
    }
}

/// Whether NULL counts as absent: so many of the value's rows have it.
fn never_comes(nulls: f64, all: f64) -> bool {
    nulls <= all * NEVER
}

/// A value that the question counts apart; none stands for all values of a column of which it counts only NULL.
#[expect(clippy::option_option, reason = "the value may be NULL")]
fn value(part: &PairedColumn, text: Option<&str>) -> Option<Option<String>> {
    match text {
        Some("f") if part.by == By::Null => None,
        Some("t") if part.by == By::Null => Some(None),
        value => Some(value.map(str::to_owned)),
    }
}

/// The number of a stratum as the question gives it; none within for NULL.
#[expect(clippy::option_option, reason = "the number may be NULL")]
fn stratum(text: Option<&str>) -> Option<Option<usize>> {
    text.map_or(Some(None), |text| text.parse().ok().map(Some))
}

fn count(row: &Row) -> f64 {
    row.get::<_, i64>("rows") as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_enough_keys_and_the_mean_of_all() {
        // 100 keys without rows, 500 with one, 200 with two, and a tail of single keys.
        let mut keys = vec![(1, 500), (2, 200)];
        keys.extend((3..103).map(|rows| (rows * 10, 1)));
        let classes = classes(&keys, 900, 5, 20);
        assert_eq!(classes[0], (0.0, 100.0 / 895.0));
        assert_eq!(classes[1], (1.0, 500.0 / 895.0));
        assert!(classes.iter().all(|(_, share)| share * 895.0 > 19.9), "{classes:?}");
        let mean: f64 = classes.iter().map(|(rows, share)| rows * share).sum();
        let rows: u64 = keys.iter().take(97).map(|(rows, keys)| rows * keys).sum();
        assert!((mean - rows as f64 / 895.0).abs() < 1e-9);
        assert!(classes.len() < 12, "{classes:?}");
        assert!(super::classes(&[(1, 5)], 10, 0, 20).is_empty());
    }

    /// Of 40 rows with a value, 19 have NULL in another column: fewer than k, but not none.
    #[test]
    fn few_rows_with_null_are_not_none() {
        assert!(!never_comes(19.0, 40.0) && !never_comes(1.0, 40.0));
        assert!(never_comes(0.0, 40.0) && never_comes(19.0, 4_000.0));
    }
}
