//! Values of a column in which NULL replaces the values of rows that lie together in their order: the rows that are left get all of the
//! column's values.

use super::order::READ_WHOLE;
use super::picking::Picking;
use super::ranked::Ranked;
use super::{Generator, Nulls, Source, bare};
use crate::random::Stream;
use crate::ranking::Ranking;
use crate::{Column, Table, Values};

/// Rows of the sample.
const SAMPLED: u64 = 20_000;
/// Parts of the kept numbers, within which they count as even.
const PARTS: usize = 256;
/// A gap between kept numbers is wider than this many distances between the numbers beside it, and as many of these count.
const GAP: f64 = 16.0;
const NEIGHBOURS: usize = 8;
/// Kolmogorov's distance of a sample, times the square root of its size, that chance exceeds in one of 1,000 samples.
const BY_CHANCE: f64 = 1.95;
/// Most places for each number.
const FINEST: f64 = 16.0;

/// Maps numbers of which only some are kept to places: the places of those are even, and in the same order.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Points in ascending order, each with the share of the kept numbers below it.
    knots: Vec<(f64, f64)>,
    /// Share of the kept numbers between two knots beside which there is no gap.
    part: f64,
    places: u64,
}

impl Kept {
    /// `kept` is a sample of the kept numbers, in ascending order, of all `count` numbers. Two numbers of the whole sample are `apart`.
    fn new(kept: &[u64], count: u64, apart: f64) -> Self {
        let (share, last) = (1.0 / kept.len() as f64, kept.len() - 1);
        let at = |index: usize| kept[index] as f64 + 0.5;
        let mean = |from: usize, to: usize| (at(to) - at(from)) / (to - from).max(1) as f64;
        let before = |index: usize| mean(index.saturating_sub(NEIGHBOURS), index).max(apart);
        let after = |index: usize| mean(index, (index + NEIGHBOURS).min(last)).max(apart);
        // Whether a gap comes after the number.
        let is_gap = |index: usize| at(index + 1) - at(index) > GAP * before(index).max(after(index + 1));
        let every = kept.len().div_ceil(PARTS);
        let mut knots = Vec::new();
        for index in 0..kept.len() {
            let begins = index == 0 || is_gap(index - 1);
            let ends = index == last || is_gap(index);
            if begins {
                knots.push((at(index) - after(index), index as f64 * share));
            }
            if begins || ends || index % every == 0 {
                knots.push((at(index), (index as f64 + 0.5) * share));
            }
            if ends {
                knots.push((at(index) + before(index), (index + 1) as f64 * share));
            }
        }
        Self { knots, part: every as f64 * share, places: count.max(1) }
    }

    /// The same with several places for each number, if otherwise two kept numbers might get the same place.
    fn finer(self) -> Self {
        let widest = self.knots.windows(2).filter_map(|pair| {
            let ((begin, from), (end, until)) = (pair[0], pair[1]);
            let places = (until - from) * self.places as f64;
            (until - from > 0.99 * self.part).then_some((end - begin) / places)
        });
        let times = widest.fold(1.0, f64::max).ceil().min(FINEST);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 16")]
        let times = times as u64;
        Self { places: self.places.saturating_mul(times), ..self }
    }

    /// The place of a number.
    #[inline]
    pub(super) fn place(&self, number: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the places")]
        let place = (self.share(number as f64 + 0.5) * self.places as f64) as u64;
        place.min(self.places - 1)
    }

    /// The share of the kept numbers below a point.
    fn share(&self, point: f64) -> f64 {
        match self.knots.partition_point(|(knot, _)| *knot <= point) {
            0 => 0.0,
            end if end == self.knots.len() => 1.0,
            end => {
                let ((low, from), (high, until)) = (self.knots[end - 1], self.knots[end]);
                from + (until - from) * (point - low) / (high - low)
            }
        }
    }
}

/// Whether a sample of kept numbers, in ascending order, is less even than by chance.
fn is_uneven(kept: &[u64], count: u64) -> bool {
    let size = kept.len() as f64;
    let off = kept.iter().enumerate().map(|(index, number)| {
        ((index as f64 + 0.5) / size - (*number as f64 + 0.5) / count.max(1) as f64).abs()
    });
    off.fold(0.0, f64::max) * size.sqrt() > BY_CHANCE
}

/// Rows from all over the table, in ascending order: the same for all of its columns.
fn sample(table: &Table) -> impl Iterator<Item = u64> {
    let (rows, sampled) = (table.rows, table.rows.min(SAMPLED));
    let stream = Stream::new(table.seed, &[&table.name]).further();
    let first = move |number: u64| {
        u64::try_from(u128::from(number) * u128::from(rows) / u128::from(sampled)).unwrap_or(u64::MAX)
    };
    (0..sampled).map(move |number| {
        let begin = first(number);
        begin + stream.draw(number).below(first(number + 1) - begin)
    })
}

/// Mean distance of the rows of the sample.
fn apart(table: &Table) -> f64 {
    table.rows as f64 / table.rows.clamp(1, SAMPLED) as f64
}

impl Generator {
    /// The values of a column in which some rows have NULL instead.
    pub(super) fn beside(nulls: &Nulls, table: &Table, column: &Column, values: &Values) -> Self {
        if (1..=READ_WHOLE).contains(&table.rows) && values.has_ranks() {
            return Self::numbered(nulls, table, column, values);
        }
        let has_order = values.has_ranks() || matches!(values, Values::Ranked { .. });
        // Rows all over the table are known only if their number is.
        if !has_order || table.rows == u64::MAX || !matches!(nulls, Nulls::Ranked { .. }) {
            return Self::of(table, column, values);
        }
        let kept: Vec<u64> = sample(table).filter(|row| !nulls.has(*row)).collect();
        if let Values::Ranked { ranking, values: ranks } = values {
            return Self {
                kind: column.kind.clone(),
                stream: Stream::new(table.seed, &[&table.name, &column.name]),
                source: Self::ranked(table, column, ranking, ranks, &kept),
                may_be_null: values.may_be_null(),
            };
        }
        let others = Self::of(table, column, values);
        let mut ranks: Vec<u64> = kept.iter().filter_map(|row| others.source.rank(*row)).collect();
        ranks.sort_unstable();
        if is_uneven(&ranks, table.rows) {
            // Rows instead of ranks: the kept rows then have the correlation that all rows would have.
            Self::placed(Kept::new(&kept, table.rows, apart(table)), table, column, values)
        } else {
            others
        }
    }

    /// Values of the rows that are not NULL, as if the table had no others. As many differ as would if NULL replaced those of the other rows at
    /// random.
    fn numbered(nulls: &Nulls, table: &Table, column: &Column, values: &Values) -> Self {
        let mut next = 0;
        let number = |row| {
            let number = next;
            next += u32::from(!nulls.has(row));
            number
        };
        let numbers = (0..table.rows).map(number).collect();
        let not_null = u64::from(next);
        let nulls = 1.0 - not_null as f64 / table.rows as f64;
        let mut values = values.clone();
        match &mut values {
            Values::Statistics(statistics) => statistics.distinct = left(statistics.distinct, nulls),
            Values::Repeated { spread, .. } => spread.distinct = left(spread.distinct, nulls),
            _ => {}
        }
        let there = Table { rows: not_null, ..bare(table) };
        let values = Self::of(&there, column, &values);
        Self {
            kind: values.kind.clone(),
            stream: values.stream,
            may_be_null: values.may_be_null,
            source: Source::Numbered { numbers, values: Box::new(values) },
        }
    }

    /// Values in the order of a ranking. NULL will replace the values of all rows but those of which `kept` is a sample; an empty
    /// sample stands for all rows.
    pub(super) fn ranked(
        table: &Table,
        column: &Column,
        ranking: &Ranking,
        values: &Values,
        kept: &[u64],
    ) -> Source {
        let ranked = Ranked::new(ranking, table.seed, &table.name, table.rows);
        let (nulls, values) = match values {
            Values::Nulls { fraction, values, .. } => (*fraction, &**values),
            values => (0.0, values),
        };
        let not_null = ranked.not_null(nulls);
        let mut ranks: Vec<u64> =
            kept.iter().map(|row| ranked.rank(*row)).filter(|rank| *rank < not_null).collect();
        ranks.sort_unstable();
        let there = Table { rows: not_null, ..bare(table) };
        let values = if is_uneven(&ranks, not_null) {
            Self::placed(Kept::new(&ranks, not_null, apart(table)), &there, column, values)
        } else {
            Self::of(&there, column, values)
        };
        Source::Ranked { values: Box::new(values), ranked, not_null }
    }

    /// Values of places instead of row numbers.
    fn placed(kept: Kept, table: &Table, column: &Column, values: &Values) -> Self {
        let kept = if has_own(values) { kept.finer() } else { kept };
        let places = Table { rows: kept.places, ..bare(table) };
        let values = Self::of(&places, column, values);
        Self {
            kind: values.kind.clone(),
            stream: values.stream,
            may_be_null: values.may_be_null,
            source: Source::Placed { kept, values: Box::new(values) },
        }
    }
}

/// A row's number among those that are not NULL.
pub(super) fn numbered(numbers: &[u32], row: u64) -> u64 {
    usize::try_from(row).ok().and_then(|row| numbers.get(row)).copied().map_or(row, u64::from)
}

/// The number of different values, relative to the rows that are not NULL, that are left of so many, relative to all rows, if NULLs replace a
/// share of the rows at random. Numbers above 0 stay.
fn left(distinct: f64, nulls: f64) -> f64 {
    if distinct >= 0.0 || !(0.0..1.0).contains(&nulls) {
        return distinct;
    }
    // A value of 1/d rows stays unless all of them become NULL.
    (distinct * (1.0 - nulls.powf(-1.0 / distinct)) / (1.0 - nulls)).max(-1.0)
}

/// Whether nearly every row has a value of its own.
fn has_own(values: &Values) -> bool {
    match values {
        Values::Statistics(statistics) => statistics.distinct <= -0.999,
        Values::Repeated { spread, .. } => spread.distinct <= -0.999,
        _ => false,
    }
}

impl Source {
    /// The rank of a row in the order of the values; none if they have no order.
    fn rank(&self, row: u64) -> Option<u64> {
        match self {
            Self::Statistics(describing) => Some(describing.rank(row)),
            Self::Repeated { spreading, .. }
            | Self::Reference { pick: Picking::Spread(spreading), .. }
            | Self::Made { pick: Picking::Spread(spreading), .. } => Some(spreading.rank(row)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 400_000;

    /// A twentieth of all numbers, as a sample.
    fn sampled(is_kept: impl Fn(u64) -> bool) -> Vec<u64> {
        (0..COUNT)
            .step_by(20)
            .map(|number| number + 7 * number / 20 % 20)
            .filter(|one| is_kept(*one))
            .collect()
    }

    fn places(kept: &Kept, is_kept: impl Fn(u64) -> bool) -> Vec<u64> {
        (0..COUNT).filter(|number| is_kept(*number)).map(|number| kept.place(number)).collect()
    }

    /// Kolmogorov's distance from even places, and the share of different ones.
    fn measured(places: &[u64], all: u64) -> (f64, f64) {
        assert!(places.is_sorted());
        let size = places.len() as f64;
        let off = places
            .iter()
            .enumerate()
            .map(|(at, place)| (at as f64 / size - *place as f64 / all as f64).abs());
        let different = 1 + places.windows(2).filter(|pair| pair[0] < pair[1]).count();
        (off.fold(0.0, f64::max), different as f64 / size)
    }

    #[test]
    fn kept_numbers_become_even_and_stay_apart() {
        // The upper half; two islands; three quarters in the first half and a quarter in the second, each without an order.
        let mixed = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62;
        let cases: [&dyn Fn(u64) -> bool; 4] = [
            &|number| number >= COUNT / 2,
            &|number| (50_000..90_000).contains(&number) || (300_000..310_000).contains(&number),
            &|number| mixed(number) > 0 && number < COUNT / 2 || mixed(number) == 3,
            &|number| number < 200_000 && mixed(number) == 3,
        ];
        for (at, is_kept) in cases.into_iter().enumerate() {
            let sample = sampled(is_kept);
            assert!(is_uneven(&sample, COUNT), "{at}");
            let kept = Kept::new(&sample, COUNT, 20.0);
            assert!(kept.knots.is_sorted() && kept.knots.len() < 2 * PARTS, "{at}: {:?}", kept.knots);
            let (off, _) = measured(&places(&kept, is_kept), COUNT);
            assert!(off < 0.01, "{at}: {off}");
            let finer = kept.finer();
            let (off, different) = measured(&places(&finer, is_kept), finer.places);
            assert!(off < 0.01 && different > 0.99, "{at}: {off} {different}");
        }
    }

    #[test]
    fn a_whole_table_is_exact() {
        let is_kept = |number: u64| number >= 700 || number.is_multiple_of(10);
        let numbers: Vec<u64> = (0..1_000).filter(|number| is_kept(*number)).collect();
        let kept = Kept::new(&numbers, 1_000, 1.0).finer();
        let places: Vec<u64> = numbers.iter().map(|number| kept.place(*number)).collect();
        let (off, different) = measured(&places, kept.places);
        assert!(off < 0.01 && different > 0.999, "{off} {different}");
    }

    #[test]
    fn numbers_that_chance_keeps_are_even() {
        let by_chance = |number: u64| Stream::new(1, &["t", "c"]).draw(number).fraction() < 0.3;
        assert!(!is_uneven(&sampled(by_chance), COUNT));
        assert!(!is_uneven(&[], COUNT) && !is_uneven(&[3], COUNT));
    }
}
