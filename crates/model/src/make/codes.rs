//! Numbers that identify something, such as phone and account numbers: all of them are replaced, like texts.

use std::collections::BTreeSet;

use rowgen::Kind;

use super::{Maker, correlation, round};
use crate::facts::{ColumnFacts, Statistics};
use crate::file::Values;

/// Digits that codes have at least, but for a tenth of them.
const DIGITS: usize = 7;
/// Share of the numbers between the least and the greatest that codes are at most.
const SPARSE: f64 = 0.1;
/// Groups of buckets whose widths tell amounts from codes, and rows of each of them without which chance could.
const GROUPS: usize = 10;
const ROWS_EACH: f64 = 200.0;
/// Factor by which chance may make a group narrower than one that is nearer to the peak.
const CHANCE: f64 = 1.25;
/// Factor by which the second group from each end is wider than the narrowest one at least.
const WIDER: f64 = 1.5;

/// Whether a column's numbers are codes: whole numbers of seven digits or more, with fewer than k rows for
/// each on average (the frequent ones aside), and with large gaps between them; and no amounts by their distribution. A key of its own is none: the
/// fill makes new keys.
pub fn is_code(column: &ColumnFacts, rows: u64, k: u32) -> bool {
    let (Some(kind), Some(statistics)) = (&column.kind, &column.statistics) else { return false };
    let Some(bounds) = numbers(kind, statistics.bounds.iter()) else { return false };
    let Some(common) = numbers(kind, statistics.common.iter().map(|(value, _)| value)) else { return false };
    let (Some(least), Some(greatest)) = (bounds.first(), bounds.last()) else { return false };
    let distinct = statistics.n_distinct;
    let values = if distinct < 0.0 { -distinct * rows as f64 } else { distinct };
    // Frequent numbers, such as one that stands for none, say nothing of the others.
    let of_others =
        1.0 - statistics.null_frac - statistics.common.iter().map(|(_, share)| share).sum::<f64>();
    let (there, others) = (rows as f64 * of_others, values - statistics.common.len() as f64);
    let room = (greatest - least) as f64 + 1.0;
    let is_long = |number: &i64| digits(*number) >= DIGITS;
    least >= &0
        && common.iter().all(|number| *number >= 0)
        && is_long(&bounds[bounds.len() / 10])
        && others * f64::from(k) > there
        && values < SPARSE * room
        && !are_amounts(&bounds, there)
}

/// Whether numbers are amounts, such as sizes in bytes: on a logarithmic scale, their density has one peak, and falls from there to both sides,
/// group by group. The density of codes has several peaks (area codes of phone numbers), or ends at its peak (numbers of equal length). `bounds`
/// divide so many rows into equal buckets.
fn are_amounts(bounds: &[i64], rows: f64) -> bool {
    let buckets = bounds.len() - 1;
    if buckets < 2 * GROUPS || rows < ROWS_EACH * GROUPS as f64 {
        return false;
    }
    let at = |group: usize| (bounds[group * buckets / GROUPS].max(1) as f64).ln();
    let widths: Vec<f64> = (0..GROUPS).map(|group| at(group + 1) - at(group)).collect();
    let narrowest = widths.iter().copied().fold(f64::INFINITY, f64::min);
    let Some(peak) = widths.iter().position(|width| *width <= narrowest) else { return false };
    let is_wide = |group: usize| widths[group] >= WIDER * narrowest;
    narrowest > 0.0
        && (1..GROUPS - 1).contains(&peak)
        && is_wide(1)
        && is_wide(GROUPS - 2)
        && ascend(widths[peak..].iter())
        && ascend(widths[..=peak].iter().rev())
}

/// Whether widths ascend, but for chance.
fn ascend<'a>(widths: impl Iterator<Item = &'a f64>) -> bool {
    let mut widest = 0.0_f64;
    widths.copied().all(|width| {
        let is_wider = width * CHANCE >= widest;
        widest = widest.max(width);
        is_wider
    })
}

/// Whole numbers; none if the kind has others, or a text is none.
fn numbers<'a>(kind: &Kind, texts: impl Iterator<Item = &'a String>) -> Option<Vec<i64>> {
    let is_whole = matches!(kind, Kind::Int4 | Kind::Int8 | Kind::Numeric(_));
    let number = |text: &String| text.parse().ok().filter(|_| kind.read_units(text).is_some());
    if is_whole { texts.map(number).collect() } else { None }
}

fn digits(number: i64) -> usize {
    number.to_string().len()
}

impl Maker<'_> {
    /// Values for codes: each known one is replaced by another number with as many digits, in the same order; within the
    /// original's range, in which a CHECK may hold them.
    pub(super) fn codes(&mut self, kind: &Kind, statistics: &Statistics) -> Option<Values> {
        let common = numbers(kind, statistics.common.iter().map(|(value, _)| value))?;
        let bounds = numbers(kind, statistics.bounds.iter())?;
        let originals: BTreeSet<i64> = common.iter().chain(&bounds).copied().collect();
        let all: Vec<i64> = originals.iter().copied().collect();
        let (lowest, highest) = (*all.first()?, *all.last()?);
        let mut replaced = Vec::with_capacity(all.len());
        for group in all.chunk_by(|one, next| digits(*one) == digits(*next)) {
            let power = u32::try_from(digits(group[0])).ok()?;
            let low = if power == 1 { 0 } else { 10_i64.pow(power - 1) }.max(lowest);
            let high = 10_i64.checked_pow(power).map_or(i64::MAX, |next| next - 1).min(highest);
            let width = (high - low) as f64 / group.len() as f64;
            let mut next = low;
            for at in 0..group.len() {
                #[expect(clippy::cast_possible_truncation, reason = "between low and high")]
                let drawn = low + (width * (at as f64 + self.rng.f64().mul_add(0.8, 0.1))) as i64;
                let drawn = drawn.clamp(next, high);
                let is_new = |number: &i64| !originals.contains(number);
                let number = (drawn..=high).find(is_new).or_else(|| (next..drawn).rev().find(is_new));
                let number = number.unwrap_or(high);
                replaced.push(number);
                next = number.saturating_add(1).min(high);
            }
        }
        let new = |number: &i64| {
            let at = all.partition_point(|original| original < number);
            replaced[at].to_string()
        };
        let mut common: Vec<(i64, f64)> =
            common.into_iter().zip(statistics.common.iter().map(|(_, share)| *share)).collect();
        common.sort_by_key(|(number, _)| *number);
        Some(Values::Statistics {
            distinct: if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct },
            correlation: correlation(statistics),
            common: common.iter().map(|(number, share)| (new(number), round(*share))).collect(),
            bounds: bounds.iter().map(new).collect(),
            replaced: true,
            moved_common: Vec::new(),
            moved_bounds: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rowgen::Precision;

    use super::*;
    use crate::facts::ColumnRole;
    use crate::testing::{column, made, modelled};

    fn numeric(scale: i16) -> Kind {
        Kind::Numeric(Some(Precision { precision: 12, scale }))
    }

    fn phones(kind: &Kind) -> Statistics {
        // In two towns, with one number that many rows have, and a few short ones.
        let scale = if *kind == Kind::Int4 { 1 } else { 1_000 };
        let short = [112_i64, 4_711, 5_000_000];
        let bounds = (0..98).map(|at| scale * (if at < 50 { 15_100_000 } else { 89_400_000 } + at * 7_919));
        Statistics {
            n_distinct: -0.9,
            avg_width: 8,
            correlation: Some(0.1),
            common: vec![((scale * 89_000_001).to_string(), 0.05)],
            bounds: short.into_iter().chain(bounds).map(|number| number.to_string()).collect(),
            ..Statistics::default()
        }
    }

    #[test]
    fn codes_keep_digits_order_and_range_and_none_stays() {
        for kind in [Kind::Int4, Kind::Int8, numeric(0), Kind::Numeric(None)] {
            let statistics = phones(&kind);
            let made = made(kind, ColumnRole::Free, statistics.clone(), &[]);
            let Values::Statistics { common, bounds, replaced: true, .. } = made.values else { panic!() };
            let number = |text: &String| text.parse::<i64>().unwrap();
            let before: Vec<i64> = statistics.bounds.iter().map(number).collect();
            let after: Vec<i64> = bounds.iter().map(number).collect();
            assert!(after.windows(2).all(|pair| pair[0] < pair[1]), "{after:?}");
            assert!(
                before.iter().zip(&after).all(|(one, other)| digits(*one) == digits(*other)),
                "{after:?}"
            );
            assert!(!after.iter().any(|number| before.contains(number)));
            assert!(after[0] >= before[0] && after[100] <= before[100]);
            // No town is left.
            assert!(
                after.iter().any(|number| (30_000_000..80_000_000).contains(&(number % 100_000_000))),
                "{after:?}"
            );
            assert_eq!(common.len(), 1);
            assert_ne!(common[0].0, statistics.common[0].0);
            // In the second town, after fifty numbers of the first and three short ones.
            let place = after.partition_point(|bound| *bound < number(&common[0].0));
            assert_eq!(place, 53, "{common:?} {after:?}");
        }
    }

    /// The greatest numbers follow each other, so that after a drawn number all may be taken.
    #[test]
    fn no_code_replaces_itself() {
        let bounds: Vec<i64> = std::iter::once(1_000_000).chain(1_119_800..=1_119_999).collect();
        let statistics = Statistics {
            n_distinct: -1.0,
            bounds: bounds.iter().map(ToString::to_string).collect(),
            ..Statistics::default()
        };
        let one = |at: u32| column(&format!("c{at}"), Kind::Int4, ColumnRole::Free, statistics.clone());
        for made in modelled((0..40).map(one).collect(), &[]) {
            let Values::Statistics { bounds: after, replaced: true, .. } = made.values else { panic!() };
            let after: Vec<i64> = after.iter().map(|number| number.parse().unwrap()).collect();
            assert!(after.is_sorted() && !after.iter().any(|number| bounds.contains(number)), "{after:?}");
        }
    }

    #[test]
    fn amounts_and_dense_numbers_are_no_codes() {
        let is = |kind: Kind, statistics: Statistics, rows| {
            is_code(&column("c", kind, ColumnRole::Free, statistics), rows, 20)
        };
        let with = |bounds: &dyn Fn(i64) -> String| Statistics {
            bounds: (0..=100).map(bounds).collect(),
            ..Statistics { common: Vec::new(), ..phones(&Kind::Int4) }
        };
        assert!(is(Kind::Int4, phones(&Kind::Int4), 10_000));
        // Most rows have one number, the others one each.
        let mostly = Statistics {
            n_distinct: 400.0,
            common: vec![("10000000".to_owned(), 0.97)],
            ..phones(&Kind::Int4)
        };
        assert!(is(Kind::Int4, mostly, 10_000));
        assert!(
            !is(Kind::Int4, Statistics { n_distinct: 400.0, ..phones(&Kind::Int4) }, 10_000),
            "k rows for each"
        );
        assert!(!is(Kind::Int4, with(&|at| (at * 900).to_string()), 10_000), "short");
        assert!(!is(Kind::Int4, with(&|at| (5_000_000 + at * 100).to_string()), 10_000), "dense");
        assert!(!is(Kind::Int8, with(&|at| (at * 9_000_000 - 1).to_string()), 10_000), "below 0");
        assert!(!is(numeric(2), with(&|at| format!("{}.50", at * 1_000_000)), 10_000));
    }

    /// Statistics of numbers in 100 buckets, each longer than the one before it by a share in thousandths.
    fn growing(thousandths: impl Fn(i64) -> i64) -> Statistics {
        let bound = |bound: &mut i64, at| {
            let this = *bound;
            *bound += this * thousandths(at) / 1_000;
            Some(this.to_string())
        };
        Statistics {
            n_distinct: -1.0,
            bounds: (0..=100).scan(1_000_000, bound).collect(),
            ..Statistics::default()
        }
    }

    #[test]
    fn sizes_are_amounts_and_no_codes() {
        let is = |statistics: Statistics, rows| {
            is_code(&column("c", Kind::Int8, ColumnRole::Free, statistics), rows, 20)
        };
        let from_peak = |at: i64| (at - 40).pow(2);
        assert!(!is(growing(|at| 10 + from_peak(at) / 20), 3_500), "one peak");
        // Films among songs: far away, and without a peak of their own that ten groups show.
        assert!(!is(growing(|at| if at == 93 { 9_000 } else { 10 + from_peak(at) / 20 }), 3_500));
        assert!(is(growing(|at| 10 + from_peak(at) / 20), 1_500), "too few rows");
        assert!(is(growing(|_| 50), 100_000), "numbers of all lengths");
        assert!(is(growing(|at| 10 + (100 - at)), 100_000), "most are long");
        assert!(is(growing(|at| if at % 25 == 0 { 900 } else { 10 }), 100_000), "four areas");
        assert!(
            is(growing(|at| if (2..=97).contains(&at) { 10 } else { 3_000 }), 100_000),
            "one area, and a few others"
        );
    }
}
