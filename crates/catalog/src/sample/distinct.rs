//! Tuples that repeat no unique key.

use std::collections::BTreeSet;

use super::super::info::KeyInfo;
use super::judge::Tuple;

/// Unique keys with the values that are already taken.
pub(super) struct Distinct(Vec<Unique>);

/// One unique key.
struct Unique {
    /// Its columns' positions in the tuple.
    at: Vec<usize>,
    nulls_are_equal: bool,
    /// Whether expressions are compared, which may fold letters' case, cut blanks, or replace NULLs.
    is_computed: bool,
    taken: BTreeSet<Tuple>,
}

impl Distinct {
    /// Of the keys, as far as their columns are in the tuples.
    pub(super) fn new<'k>(keys: impl Iterator<Item = &'k KeyInfo>, columns: &[&str]) -> Self {
        let unique = |key: &KeyInfo| {
            let named = key.elements.iter().flat_map(|element| element.columns_in(columns));
            let at = named.filter_map(|name| columns.iter().position(|column| *column == name));
            let nulls_are_equal = key.nulls_are_equal();
            let is_computed = key.elements.iter().any(|element| element.expression.is_some());
            Unique { at: at.collect(), nulls_are_equal, is_computed, taken: BTreeSet::new() }
        };
        Self(keys.map(unique).filter(|key| !key.at.is_empty()).collect())
    }

    /// Whether the tuple repeats no key. If so, its keys are taken from now on.
    pub(super) fn is_new(&mut self, tuple: &Tuple) -> bool {
        if self.0.iter().any(|key| key.of(tuple).is_some_and(|values| key.taken.contains(&values))) {
            return false;
        }
        for key in &mut self.0 {
            let values = key.of(tuple);
            key.taken.extend(values);
        }
        true
    }

    /// Number of values that the key with the fewest has; none if there is no key.
    pub(super) fn least(&self) -> Option<usize> {
        self.0.iter().map(|key| key.taken.len()).min()
    }

    /// At least as many tuples as wanted: some from all over, if there are more, beside those that may repeat; else those again and again. If the
    /// two are more than wanted, the first ones are from all over, too.
    pub(super) fn for_rows(&self, tuples: &[Tuple], wanted: usize) -> Vec<Tuple> {
        let may_repeat = |tuple: &&Tuple| self.0.iter().all(|key| key.of(tuple).is_none());
        let (free, bound): (Vec<&Tuple>, Vec<&Tuple>) = tuples.iter().partition(may_repeat);
        if tuples.len() > wanted {
            let rest = (free.len() * wanted / tuples.len()).max(wanted.saturating_sub(bound.len()));
            let mut some = from_all_over(&free, rest);
            some.extend(from_all_over(&bound, wanted.min(bound.len())));
            some.sort();
            return if some.len() > wanted { from_all_over_first(some, wanted) } else { some };
        }
        let more = wanted - tuples.len();
        tuples.iter().chain(free.into_iter().cycle().take(more)).cloned().collect()
    }
}

/// All tuples: first so many, evenly distributed, then the others.
fn from_all_over_first(tuples: Vec<Tuple>, wanted: usize) -> Vec<Tuple> {
    let all = tuples.len();
    // Where the number of tuples that come first grows.
    let is_first = |at: usize| (at + 1) * wanted / all > at * wanted / all;
    let (first, rest): (Vec<_>, Vec<_>) = tuples.into_iter().enumerate().partition(|(at, _)| is_first(*at));
    first.into_iter().chain(rest).map(|(_, tuple)| tuple).collect()
}

/// Returns `wanted` of these tuples, evenly distributed.
fn from_all_over(tuples: &[&Tuple], wanted: usize) -> Vec<Tuple> {
    (0..wanted).map(|number| tuples[number * tuples.len() / wanted].clone()).collect()
}

impl Unique {
    /// Values of the key that no other tuple may have; none if the tuple is free to repeat.
    fn of(&self, tuple: &Tuple) -> Option<Tuple> {
        let mut values: Tuple = self.at.iter().map(|&at| tuple[at].clone()).collect();
        if self.is_computed {
            for value in &mut values {
                *value = Some(value.as_deref().unwrap_or_default().trim().to_lowercase());
            }
        }
        (self.nulls_are_equal || values.iter().all(Option::is_some)).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(number: usize) -> Tuple {
        vec![Some(number.to_string())]
    }

    #[test]
    fn of_many_tuples_some_from_all_over_are_taken() {
        let key = KeyInfo::unique("t_key", &["a".to_owned()]);
        let distinct = Distinct::new(std::iter::once(&key), &["a"]);
        let tuples: Vec<Tuple> = (0..1_000).map(tuple).collect();
        assert_eq!(distinct.for_rows(&tuples, 4), [0, 250, 500, 750].map(tuple));
        assert_eq!(distinct.for_rows(&tuples, 1_000), tuples);
        // Only NULL may come again.
        assert_eq!(distinct.for_rows(&tuples, 2_000), tuples);
        let with_null: Vec<Tuple> = tuples.into_iter().chain([vec![None]]).collect();
        let repeated = distinct.for_rows(&with_null, 2_000);
        assert_eq!(repeated.iter().filter(|tuple| tuple[0].is_none()).count(), 1_000);
        // NULL takes the place of no value that the rows need.
        let values = distinct.for_rows(&with_null, 1_000);
        assert_eq!(values.iter().filter(|tuple| tuple[0].is_some()).count(), 1_000);
    }

    #[test]
    fn rows_that_take_the_first_tuples_have_some_from_all_over() {
        let key = KeyInfo::unique("t_key", &["a".to_owned()]);
        let distinct = Distinct::new(std::iter::once(&key), &["a", "b"]);
        let text = |number: usize| Some(format!("{number:04}"));
        let free = (0..1_000).map(|number| vec![None, text(number)]);
        let bound = (0..1_000).map(|number| vec![text(number), None]);
        let mut tuples: Vec<Tuple> = free.chain(bound).collect();
        tuples.sort();
        let found = distinct.for_rows(&tuples, 1_000);
        // All values are there, if NULL may not be.
        assert_eq!(found.iter().filter(|tuple| tuple[0].is_some()).count(), 1_000);
        let first = &found[..1_000];
        let is_high = |tuple: &&Tuple| tuple[0] >= text(900);
        assert!((50..=80).contains(&first.iter().filter(is_high).count()), "{found:?}");
        assert!((300..=350).contains(&first.iter().filter(|tuple| tuple[0].is_none()).count()));
        let all: BTreeSet<&Tuple> = found.iter().collect();
        assert_eq!(all.len(), found.len());
    }
}
