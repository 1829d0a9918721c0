//! How far distributions of a copy's columns are from the original's, counted in rows that were drawn from both.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fastrand::Rng;

/// Rows that were drawn from a database's tables, and how many rows refer to each key.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The tables of which rows were drawn.
    pub tables: Vec<DrawnTable>,
    /// The foreign keys, with the numbers of rows that refer to a key.
    pub keys: Vec<DrawnKey>,
    /// Tables and keys that could not be read, with the reason: a sentence each.
    pub unseen: Vec<String>,
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct DrawnTable {
    /// `schema.name`.
    pub name: String,
    /// Columns with their values, all equally long, in the order of the rows.
    pub columns: Vec<(String, Cells)>,
}

/// Values of a column, none for NULL.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Numbers; dates and times as seconds.
    Numbers(Vec<Option<f64>>),
    /// Text, of few different values.
    Labels(Vec<Option<String>>),
    /// Text, each with its hash and its length in characters.
    Texts(Vec<Option<(i64, u32)>>),
}

/// A foreign key.
#[derive(Clone, Debug)]
pub struct DrawnKey {
    /// `schema.table (columns)`.
    pub name: String,
    /// Of two parts of the keys that can be referred to: numbers of rows, each with the number of keys to which so many refer.
    pub rows: [Vec<(u64, u64)>; 2],
    /// Rows that refer to no key.
    pub orphans: u64,
}

/// Distances of distributions: 0 is the same, 1 has nothing in common.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    /// Distances of single columns.
    pub columns: Vec<Distance>,
    /// Distances of pairs of columns.
    pub pairs: Vec<Distance>,
    /// Distances of the numbers of rows that refer to a key.
    pub keys: Vec<Distance>,
    /// Foreign keys of the copy with rows that refer to no key, and how many.
    pub orphans: Vec<(String, u64)>,
    /// Tables and keys that could not be compared, with the reason: a sentence each.
    pub unseen: Vec<String>,
}

/// How far one distribution of the copy is from the original's.
#[derive(Clone, Debug)]
pub struct Distance {
    /// The column, the two columns, or the foreign key.
    pub name: String,
    /// How it is measured.
    pub measure: Measure,
    /// Distance of the copy from one half of the original's rows.
    pub copy: f64,
    /// Distance of the original's other half from the same.
    pub itself: f64,
}

impl Distance {
    /// Means of the copy's distances, and of the original's from itself.
    pub fn means(distances: &[Self]) -> Option<(f64, f64)> {
        let count = distances.len() as f64;
        let mean = |of: fn(&Self) -> f64| distances.iter().map(of).sum::<f64>() / count;
        (!distances.is_empty()).then(|| (mean(|one| one.copy), mean(|one| one.itself)))
    }
}

/// How a distance is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Kolmogorov and Smirnov's: the greatest difference between the shares of rows up to a value.
    Ks,
    /// The same of lengths of texts.
    Lengths,
    /// Total variation: the share of the rows that would have to have another value.
    Variation,
    /// The same of frequencies, whatever the values: of the most frequent one, the next, and so on.
    Frequencies,
    /// Half the difference of rank correlations.
    Correlation,
    /// Total variation of which of two columns are NULL.
    Nulls,
}

impl Measure {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ks => "KS",
            Self::Lengths => "KS of lengths",
            Self::Variation => "total variation",
            Self::Frequencies => "total variation of frequencies",
            Self::Correlation => "half the difference of rank correlations",
            Self::Nulls => "total variation of NULLs",
        }
    }
}

/// Rows of a table that are compared need at least so many in each half.
const LEAST: usize = 50;
/// Columns of a table that are paired at most.
const PAIRED: usize = 40;
/// Parts of equal size into which numbers are cut beside labels.
const PARTS: usize = 10;
/// Labels of a smaller share count as one where labels were replaced.
const RARE: f64 = 0.005;

impl Shapes {
    /// Compares: one half of the original's rows, drawn by chance, with the other half and with as many of the copy's.
    pub fn of(original: &Drawn, copy: &Drawn) -> Self {
        let mut rng = Rng::with_seed(0);
        let mut shapes = Self { unseen: original.unseen.clone(), ..Self::default() };
        shapes.unseen.extend(copy.unseen.iter().map(|text| format!("copy: {text}")));
        for table in &original.tables {
            let Some(other) = copy.tables.iter().find(|other| other.name == table.name) else { continue };
            shapes.table(&mut rng, table, other);
        }
        for key in &original.keys {
            let Some(other) = copy.keys.iter().find(|other| other.name == key.name) else { continue };
            if other.orphans > 0 {
                shapes.orphans.push((key.name.clone(), other.orphans));
            }
            let few = |rows: &[(u64, u64)]| rows.iter().map(|(_, keys)| keys).sum::<u64>() < LEAST as u64;
            if key.rows.iter().chain(&other.rows).any(|rows| few(rows)) {
                continue;
            }
            shapes.keys.push(Distance {
                name: key.name.clone(),
                measure: Measure::Ks,
                copy: ks_of_counts(&key.rows[0], &other.rows[0]),
                itself: ks_of_counts(&key.rows[0], &key.rows[1]),
            });
        }
        shapes
    }

    fn table(&mut self, rng: &mut Rng, original: &DrawnTable, copy: &DrawnTable) {
        let rows = |table: &DrawnTable| table.columns.first().map_or(0, |(_, cells)| cells.len());
        let size = (rows(original) / 2).min(rows(copy));
        if size < LEAST {
            return;
        }
        let [mut ours, mut theirs] = [original, copy].map(|table| (0..rows(table)).collect::<Vec<usize>>());
        rng.shuffle(&mut ours);
        rng.shuffle(&mut theirs);
        let halves = |column: &(String, Cells)| {
            let other = copy.columns.iter().find(|other| other.0 == column.0)?;
            let parts =
                [column.1.at(&ours[..size]), column.1.at(&ours[size..2 * size]), other.1.at(&theirs[..size])];
            Some((column.0.clone(), parts))
        };
        let columns: Vec<(String, [Cells; 3])> = original.columns.iter().filter_map(halves).collect();
        for (name, [ours, own, theirs]) in &columns {
            for measure in ours.measures(theirs) {
                self.columns.push(Distance {
                    name: format!("{}.{name}", original.name),
                    measure,
                    copy: ours.distance(theirs, measure),
                    itself: ours.distance(own, measure),
                });
            }
        }
        let paired = &columns[..columns.len().min(PAIRED)];
        for (at, one) in paired.iter().enumerate() {
            for other in &paired[at + 1..] {
                let name = format!("{}.{} and {}", original.name, one.0, other.0);
                self.pairs.extend(pair(&name, &one.1, &other.1));
            }
        }
    }
}

/// Distances of two columns' joint distribution: none if one of them is text with many values that is never NULL.
fn pair(
    name: &str,
    [one, own_one, copy_one]: &[Cells; 3],
    [two, own_two, copy_two]: &[Cells; 3],
) -> Vec<Distance> {
    let words = |one: [Vec<u32>; 3], two: [Vec<u32>; 3], measure| {
        let joint = [0, 1, 2].map(|at| one[at].iter().zip(&two[at]).collect::<Vec<(&u32, &u32)>>());
        let [ours, own, theirs] = joint.each_ref().map(|all| shares(all));
        Distance {
            name: name.to_owned(),
            measure,
            copy: variation(&ours, &theirs),
            itself: variation(&ours, &own),
        }
    };
    if !matches!((one, two), (Cells::Numbers(_), Cells::Numbers(_))) {
        let both = (one.words([own_one, copy_one]), two.words([own_two, copy_two]));
        let (Some(one), Some(two)) = both else { return Vec::new() };
        return vec![words(one, two, Measure::Variation)];
    }
    let mut found = Vec::new();
    if let Some(ours) = rank_correlation(one, two) {
        let apart = |one, two| (rank_correlation(one, two).unwrap_or_default() - ours).abs() / 2.0;
        let (copy, itself) = (apart(copy_one, copy_two), apart(own_one, own_two));
        found.push(Distance { name: name.to_owned(), measure: Measure::Correlation, copy, itself });
    }
    let nulls = |one: &Cells, others: [&Cells; 2]| {
        one.has_nulls().then(|| [one, others[0], others[1]].map(Cells::nulls))
    };
    if let (Some(one), Some(two)) = (nulls(one, [own_one, copy_one]), nulls(two, [own_two, copy_two])) {
        found.push(words(one, two, Measure::Nulls));
    }
    found
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(all) => all.len(),
            Self::Labels(all) => all.len(),
            Self::Texts(all) => all.len(),
        }
    }

    /// The values at these places.
    fn at(&self, places: &[usize]) -> Self {
        match self {
            Self::Numbers(all) => Self::Numbers(places.iter().map(|&at| all[at]).collect()),
            Self::Labels(all) => Self::Labels(places.iter().map(|&at| all[at].clone()).collect()),
            Self::Texts(all) => Self::Texts(places.iter().map(|&at| all[at]).collect()),
        }
    }

    /// How its distance from a copy is measured: replaced text has other values, so that only its frequencies compare.
    fn measures(&self, copy: &Self) -> Vec<Measure> {
        match (self, copy) {
            (Self::Numbers(_), Self::Numbers(_)) => vec![Measure::Ks],
            (Self::Labels(ours), Self::Labels(theirs)) => {
                vec![if has_common(ours, theirs) { Measure::Variation } else { Measure::Frequencies }]
            }
            (Self::Texts(_), Self::Texts(_)) => vec![Measure::Lengths, Measure::Frequencies],
            _ => Vec::new(),
        }
    }

    fn distance(&self, other: &Self, measure: Measure) -> f64 {
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

    /// Numbers for its values here and in others, the same for the same value: for NULL 0. Numbers are cut into parts of
    /// equal size; of text with many values only NULL is told apart, and there are none if it is never NULL. Where labels
    /// were replaced, they are the same if they are at the same place in the order of all.
    fn words(&self, others: [&Self; 2]) -> Option<[Vec<u32>; 3]> {
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
    fn nulls(&self) -> Vec<u32> {
        match self {
            Self::Numbers(all) => all.iter().map(|value| u32::from(value.is_some())).collect(),
            Self::Labels(all) => all.iter().map(|value| u32::from(value.is_some())).collect(),
            Self::Texts(all) => all.iter().map(|value| u32::from(value.is_some())).collect(),
        }
    }

    fn has_nulls(&self) -> bool {
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
fn shares<T: Ord>(all: &[T]) -> BTreeMap<&T, f64> {
    let mut counts: BTreeMap<&T, f64> = BTreeMap::new();
    for value in all {
        *counts.entry(value).or_default() += 1.0 / all.len() as f64;
    }
    counts
}

fn variation<T: Ord>(one: &BTreeMap<&T, f64>, other: &BTreeMap<&T, f64>) -> f64 {
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
fn ks_of_counts(one: &[(u64, u64)], other: &[(u64, u64)]) -> f64 {
    let total = |all: &[(u64, u64)]| all.iter().map(|(_, keys)| keys).sum::<u64>().max(1) as f64;
    let upto = |all: &[(u64, u64)], most: u64| {
        all.iter().filter(|(rows, _)| *rows <= most).map(|(_, keys)| keys).sum::<u64>() as f64 / total(all)
    };
    let values = one.iter().chain(other).map(|(rows, _)| *rows);
    values.map(|rows| (upto(one, rows) - upto(other, rows)).abs()).fold(0.0, f64::max)
}

/// Spearman's, of the rows where both have a number; none where one of them has one value only.
fn rank_correlation(one: &Cells, other: &Cells) -> Option<f64> {
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

    fn table(columns: Vec<(&str, Cells)>) -> Drawn {
        let columns = columns.into_iter().map(|(name, cells)| (name.to_owned(), cells)).collect();
        Drawn { tables: vec![DrawnTable { name: "s.t".to_owned(), columns }], ..Drawn::default() }
    }

    fn labels(name: impl Fn(u32) -> Option<String>) -> Cells {
        Cells::Labels((0..8_000).map(name).collect())
    }

    fn numbers(number: impl Fn(u32) -> f64) -> Cells {
        Cells::Numbers((0..8_000_u32).map(|row| (!row.is_multiple_of(10)).then(|| number(row))).collect())
    }

    fn found(shapes: &[Distance], name: &str) -> (f64, f64) {
        let one = shapes.iter().find(|one| one.name == name).unwrap();
        (one.copy, one.itself)
    }

    #[test]
    fn replaced_labels_and_numbers_alike_are_near_and_others_far() {
        let city = |row: u32| (!row.is_multiple_of(7)).then(|| format!("City {}", row % 7 / 3));
        let replaced = |row: u32| (!row.is_multiple_of(7)).then(|| format!("Xity {}", row % 7 / 3));
        let level = |row: u32| Some(format!("level {}", row % 7 / 3));
        let original = table(vec![
            ("city", labels(city)),
            ("level", labels(level)),
            ("n", numbers(|row| f64::from(row % 100))),
        ]);
        let copy = table(vec![
            ("city", labels(replaced)),
            ("level", labels(level)),
            ("n", numbers(|row| f64::from(row % 100))),
        ]);
        let shapes = Shapes::of(&original, &copy);
        assert_eq!(shapes.columns.len(), 3);
        for one in shapes.columns.iter().chain(&shapes.pairs) {
            // Pairs are spread over up to 33 cells.
            assert!(one.copy < 0.08 && one.itself < 0.08, "{one:?}");
        }
        // The same shares of each column, but other pairs.
        let apart = table(vec![
            ("city", labels(|row| city(row / 7))),
            ("level", labels(level)),
            ("n", numbers(|row| f64::from(row % 100) + f64::from(row % 2) * 30.0)),
        ]);
        let shapes = Shapes::of(&original, &apart);
        assert!(found(&shapes.pairs, "s.t.city and level").0 > 0.3, "{shapes:?}");
        let (copy, itself) = found(&shapes.columns, "s.t.n");
        assert!((copy - 0.15).abs() < 0.03 && itself < 0.05, "{copy} {itself}");
        assert!(found(&shapes.columns, "s.t.city").0 < 0.05);
    }

    #[test]
    fn correlations_and_nulls_that_come_together_are_compared() {
        let original = table(vec![("a", numbers(f64::from)), ("b", numbers(|row| 7.0 * f64::from(row)))]);
        let other =
            Cells::Numbers((0..8_000).map(|row| (row % 10 != 5).then(|| f64::from(8_000 - row))).collect());
        let copy = table(vec![("a", numbers(f64::from)), ("b", other)]);
        let shapes = Shapes::of(&original, &copy);
        let of = |measure| shapes.pairs.iter().find(|one| one.measure == measure).unwrap();
        assert!((of(Measure::Correlation).copy - 1.0).abs() < 1e-9 && of(Measure::Correlation).itself < 1e-9);
        assert!((of(Measure::Nulls).copy - 0.2).abs() < 0.03, "{shapes:?}");
    }

    #[test]
    fn rows_for_each_key_are_compared() {
        let drawn = |rows: &[(u64, u64)], orphans| Drawn {
            keys: vec![DrawnKey {
                name: "s.t (k)".to_owned(),
                rows: [rows.to_vec(), rows.to_vec()],
                orphans,
            }],
            ..Drawn::default()
        };
        let shapes = Shapes::of(&drawn(&[(0, 50), (2, 50)], 0), &drawn(&[(1, 100)], 3));
        assert!((shapes.keys[0].copy - 0.5).abs() < 1e-9 && shapes.keys[0].itself < 1e-9);
        assert_eq!(shapes.orphans, [("s.t (k)".to_owned(), 3)]);
    }

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
