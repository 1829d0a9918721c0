//! Distances of a column's values in two samples of rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Cells, LEAST, Measure};

/// Parts of equal size into which numbers are cut beside labels.
const PARTS: usize = 10;
/// Labels of a smaller share count as one where labels were replaced.
const RARE: f64 = 0.005;

impl Cells {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers(all) => all.len(),
            Self::Labels(all) => all.len(),
            Self::Texts(all) => all.len(),
        }
    }

    /// The values at these places.
    pub(super) fn at(&self, places: &[usize]) -> Self {
        match self {
            Self::Numbers(all) => Self::Numbers(places.iter().map(|&at| all[at]).collect()),
            Self::Labels(all) => Self::Labels(places.iter().map(|&at| all[at].clone()).collect()),
            Self::Texts(all) => Self::Texts(places.iter().map(|&at| all[at]).collect()),
        }
    }

    /// How its distance from a copy is measured: replaced text has other values, so that only its frequencies compare.
    pub(super) fn measures(&self, copy: &Self) -> Vec<Measure> {
        match (self, copy) {
            (Self::Numbers(_), Self::Numbers(_)) => vec![Measure::Ks],
            (Self::Labels(ours), Self::Labels(theirs)) => {
                vec![if has_common(ours, theirs) { Measure::Variation } else { Measure::Frequencies }]
            }
            (Self::Texts(_), Self::Texts(_)) => vec![Measure::Lengths, Measure::Frequencies],
            _ => Vec::new(),
        }
    }

    pub(super) fn distance(&self, other: &Self, measure: Measure) -> f64 {
        match (self, other) {
            (Self::Numbers(ours), Self::Numbers(theirs)) => {
                ks(ours.iter().flatten().copied().collect(), theirs.iter().flatten().copied().collect())
            }
            (Self::Labels(ours), Self::Labels(theirs)) if measure == Measure::Variation => {
                variation(&shares(ours), &shares(theirs))
            }
            (Self::Labels(ours), Self::Labels(theirs)) => by_frequency(&shares(ours), &shares(theirs)),
            (Self::Texts(ours), Self::Texts(theirs)) if measure == Measure::Lengths => {
                let lengths = |all: &[Option<(i64, u32)>]| {
                    all.iter().flatten().map(|(_, length)| f64::from(*length)).collect()
                };
                ks(lengths(ours), lengths(theirs))
            }
            (Self::Texts(ours), Self::Texts(theirs)) => by_frequency(&shares(ours), &shares(theirs)),
            _ => 1.0,
        }
    }

    /// Code numbers of its values here and in others: equal values have equal codes, and NULL has 0. Numbers are cut into
    /// parts of equal size. A text with many values has one code beside NULL's; without a NULL the result is None.
    /// Replaced labels have the same code if they have the same position in the order of all labels.
    pub(super) fn words(&self, others: [&Self; 2]) -> Option<[Vec<u32>; 3]> {
        match (self, others) {
            (Self::Numbers(ours), [Self::Numbers(own), Self::Numbers(theirs)]) => {
                let mut sorted: Vec<f64> = ours.iter().flatten().copied().collect();
                sorted.sort_by(f64::total_cmp);
                let mut cuts: Vec<f64> =
                    (1..PARTS).filter_map(|part| sorted.get(part * sorted.len() / PARTS).copied()).collect();
                cuts.dedup();
                let word = |value: &Option<f64>| {
                    value.map_or(0, |value| 1 + cuts.iter().map(|cut| u32::from(*cut <= value)).sum::<u32>())
                };
                Some([ours, own, theirs].map(|all| all.iter().map(word).collect()))
            }
            (Self::Labels(ours), [Self::Labels(own), Self::Labels(theirs)]) => {
                let originals = if has_common(ours, theirs) {
                    numbered(all_of([ours, own, theirs]))
                } else {
                    frequent(ours)
                };
                let replaced = if has_common(ours, theirs) {
                    originals.clone()
                } else {
                    frequent_like(theirs, &originals, ours)
                };
                let word = |value: &Option<String>, words: &HashMap<&str, u32>| {
                    value.as_deref().map_or(0, |value| words.get(value).copied().unwrap_or(u32::MAX))
                };
                let of = |all: &[Option<String>], words| all.iter().map(|value| word(value, words)).collect();
                Some([of(ours, &originals), of(own, &originals), of(theirs, &replaced)])
            }
            (Self::Texts(_), _) => self.has_nulls().then(|| [self, others[0], others[1]].map(Self::nulls)),
            _ => None,
        }
    }
}

impl Cells {
    /// For each value 0 if it is NULL, else 1.
    pub(super) fn nulls(&self) -> Vec<u32> {
        match self {
            Self::Numbers(all) => all.iter().map(|value| u32::from(value.is_some())).collect(),
            Self::Labels(all) => all.iter().map(|value| u32::from(value.is_some())).collect(),
            Self::Texts(all) => all.iter().map(|value| u32::from(value.is_some())).collect(),
        }
    }

    pub(super) fn has_nulls(&self) -> bool {
        let nulls = self.nulls();
        nulls.contains(&0) && nulls.contains(&1)
    }
}

fn has_common(ours: &[Option<String>], theirs: &[Option<String>]) -> bool {
    let ours: BTreeSet<&String> = ours.iter().flatten().collect();
    theirs.iter().flatten().any(|value| ours.contains(value))
}

fn all_of(all: [&Vec<Option<String>>; 3]) -> Vec<&str> {
    let values: BTreeSet<&str> = all.into_iter().flatten().flatten().map(String::as_str).collect();
    values.into_iter().collect()
}

fn numbered(values: Vec<&str>) -> HashMap<&str, u32> {
    values.into_iter().zip(1..).collect()
}

/// Labels that are not rare, with their shares, the most frequent one first.
fn by_share(all: &[Option<String>]) -> Vec<(&str, f64)> {
    let mut found: Vec<(&str, f64)> = shares(all)
        .into_iter()
        .filter_map(|(value, share)| Some((value.as_deref()?, share)))
        .filter(|(_, share)| *share >= RARE)
        .collect();
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
    found
}

/// Labels that are not rare, numbered in their order.
fn frequent(all: &[Option<String>]) -> HashMap<&str, u32> {
    let mut values: Vec<&str> = by_share(all).into_iter().map(|(value, _)| value).collect();
    values.sort_unstable();
    numbered(values)
}

/// The same of other labels: in their order if as many are frequent as in the original, else the most frequent one has the
/// number of the original's most frequent one.
fn frequent_like<'a>(
    theirs: &'a [Option<String>],
    ours: &HashMap<&str, u32>,
    original: &[Option<String>],
) -> HashMap<&'a str, u32> {
    let own = frequent(theirs);
    if own.len() == ours.len() {
        return own;
    }
    let words = by_share(original).into_iter().filter_map(|(value, _)| ours.get(value).copied());
    by_share(theirs).into_iter().map(|(value, _)| value).zip(words).collect()
}

/// The share of each value, NULL among them.
pub(super) fn shares<T: Ord>(all: &[T]) -> BTreeMap<&T, f64> {
    let mut counts: BTreeMap<&T, f64> = BTreeMap::new();
    for value in all {
        *counts.entry(value).or_default() += 1.0 / all.len() as f64;
    }
    counts
}

pub(super) fn variation<T: Ord>(one: &BTreeMap<&T, f64>, other: &BTreeMap<&T, f64>) -> f64 {
    let values: BTreeSet<&&T> = one.keys().chain(other.keys()).collect();
    let share = |of: &BTreeMap<&T, f64>, value: &&T| of.get(*value).copied().unwrap_or_default();
    values.into_iter().map(|value| (share(one, value) - share(other, value)).abs()).sum::<f64>() / 2.0
}

/// Total variation of the frequencies in descending order.
fn by_frequency<T: Ord>(one: &BTreeMap<&T, f64>, other: &BTreeMap<&T, f64>) -> f64 {
    let [one, other] = [one, other].map(|shares| {
        let mut shares: Vec<f64> = shares.values().copied().collect();
        shares.sort_by(|one, other| other.total_cmp(one));
        shares
    });
    let at = |shares: &[f64], place: usize| shares.get(place).copied().unwrap_or_default();
    (0..one.len().max(other.len())).map(|place| (at(&one, place) - at(&other, place)).abs()).sum::<f64>()
        / 2.0
}

/// The greatest difference between the shares of values up to each value.
fn ks(mut one: Vec<f64>, mut other: Vec<f64>) -> f64 {
    if one.is_empty() || other.is_empty() {
        return if one.is_empty() && other.is_empty() { 0.0 } else { 1.0 };
    }
    one.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    let (mut a, mut b, mut most) = (0, 0, 0.0);
    while a < one.len() && b < other.len() {
        let value = if one[a].total_cmp(&other[b]).is_le() { one[a] } else { other[b] };
        while a < one.len() && one[a].total_cmp(&value).is_le() {
            a += 1;
        }
        while b < other.len() && other[b].total_cmp(&value).is_le() {
            b += 1;
        }
        most = f64::max(most, (a as f64 / one.len() as f64 - b as f64 / other.len() as f64).abs());
    }
    most
}

/// The same of numbers of rows, each with the number of keys.
pub(super) fn ks_of_counts(one: &[(u64, u64)], other: &[(u64, u64)]) -> f64 {
    let total = |all: &[(u64, u64)]| all.iter().map(|(_, keys)| keys).sum::<u64>().max(1) as f64;
    let upto = |all: &[(u64, u64)], most: u64| {
        all.iter().filter(|(rows, _)| *rows <= most).map(|(_, keys)| keys).sum::<u64>() as f64 / total(all)
    };
    let values = one.iter().chain(other).map(|(rows, _)| *rows);
    values.map(|rows| (upto(one, rows) - upto(other, rows)).abs()).fold(0.0, f64::max)
}

/// Spearman's, of the rows where both have a number; none where one of them has one value only.
pub(super) fn rank_correlation(one: &Cells, other: &Cells) -> Option<f64> {
    let (Cells::Numbers(one), Cells::Numbers(other)) = (one, other) else { return None };
    let both = one.iter().zip(other).filter_map(|(one, other)| Some(((*one)?, (*other)?)));
    let (one, other): (Vec<f64>, Vec<f64>) = both.unzip();
    let (one, other) = (ranks(&one), ranks(&other));
    let mean = f64::midpoint(one.len() as f64, 1.0);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let spread = (product(&one, &one) * product(&other, &other)).sqrt();
    (one.len() >= LEAST && spread > 0.0).then(|| product(&one, &other) / spread)
}

/// The place of each number in the order of all, from 1; equal ones share theirs.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|one, other| numbers[*one].total_cmp(&numbers[*other]));
    let (mut ranks, mut before) = (vec![0.0; numbers.len()], 0);
    for equal in order.chunk_by(|one, other| numbers[*one].total_cmp(&numbers[*other]).is_eq()) {
        for &at in equal {
            ranks[at] = before as f64 + f64::midpoint(equal.len() as f64, 1.0);
        }
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ks_is_the_greatest_difference(one in prop::collection::vec(0_u8..20, 1..60), other in prop::collection::vec(0_u8..20, 1..60)) {
            let upto = |all: &[u8], most: u8| all.iter().filter(|value| **value <= most).count() as f64 / all.len() as f64;
            let wanted = (0..20).map(|most| (upto(&one, most) - upto(&other, most)).abs()).fold(0.0, f64::max);
            let reals = |all: &[u8]| all.iter().map(|value| f64::from(*value)).collect::<Vec<f64>>();
            prop_assert!((ks(reals(&one), reals(&other)) - wanted).abs() < 1e-9);
        }

        #[test]
        fn ranks_count_what_is_before(all in prop::collection::vec(0_u8..9, 1..50)) {
            let reals: Vec<f64> = all.iter().map(|value| f64::from(*value)).collect();
            for (value, rank) in all.iter().zip(ranks(&reals)) {
                let before = all.iter().filter(|other| *other < value).count() as f64;
                let upto = all.iter().filter(|other| *other <= value).count() as f64;
                prop_assert!((rank - f64::midpoint(before + 1.0, upto)).abs() < 1e-9);
            }
        }
    }
}
