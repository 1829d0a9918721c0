//! Maps rows to numbers, dates and times with given [`Statistics`].

mod stretches;

pub(super) use self::stretches::gcd;
use self::stretches::{Bounds, FULL, Stretch, is_enough, real, seen, stretches, unit, whole};
use super::order::{Order, READ_WHOLE};
use super::spread::{PARTS, count_of, disturbed, drawn};
use crate::levels::Level;
use crate::random::Stream;
use crate::spread::{Buckets, Described};
use crate::{Statistics, Units};

/// [`Statistics`] over a number of rows.
#[derive(Clone, Debug)]
pub(super) struct Describing {
    order: Order,
    stream: Stream,
    scale: Scale,
    pieces: Vec<Piece>,
}

/// How a position within a piece becomes a value.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// Whole multiples of a step above a piece's least value.
    Units(Units),
    Reals,
}

/// Ranks whose values lie between two values.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// First rank after it.
    until: u64,
    ranks: u64,
    /// Number of different values.
    values: u64,
    /// Whether values are drawn from these: some come more often than others, some not at all.
    is_drawn: bool,
    low: Number,
    /// Distance from the least value to just after the greatest.
    width: f64,
    /// All values are multiples of this distance; 0 for real numbers.
    step: f64,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Units(i64),
    Real(f64),
}

/// A value as it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Made {
    Units(i64),
    Real(f64),
}

impl Describing {
    pub(super) fn new(statistics: &Statistics, stream: Stream, rows: u64, units: Units) -> Self {
        let count = count_of(statistics.distinct, rows);
        match &statistics.values {
            Described::Units(buckets) => {
                let scale = Scale::Units(units);
                Self::of(
                    statistics.correlation,
                    stream,
                    rows,
                    count,
                    buckets,
                    scale,
                    &whole(unit(buckets, count)),
                )
            }
            Described::Reals(buckets) => {
                Self::of(statistics.correlation, stream, rows, count, buckets, Scale::Reals, &real())
            }
        }
    }

    fn of<T: Copy + PartialOrd>(
        correlation: f64,
        stream: Stream,
        rows: u64,
        count: u64,
        buckets: &Buckets<T>,
        scale: Scale,
        bounds: &Bounds<T, impl Fn(T, T) -> f64, impl Fn(T) -> T>,
    ) -> Self {
        let stretches = stretches(buckets, count, rows, bounds);
        let total: f64 = stretches.iter().map(|stretch| stretch.share).sum();
        let level = |stretch: &Stretch<T>| Level { share: stretch.share, values: stretch.values as f64 };
        let levels: Vec<Level> = stretches.iter().map(level).collect();
        let order = Order::new(stream, rows, correlation, &levels);
        let (mut share, mut begin) = (0.0, 0);
        let mut pieces = Vec::with_capacity(stretches.len());
        for stretch in stretches {
            share += stretch.share / total;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of the ranks"
            )]
            let until = ((share * order.count() as f64).round() as u64).clamp(begin, order.count());
            let ranks = until - begin;
            let room = stretch.room();
            // Where nearly all values occur that there is room for, none is missed. Where more occur than rows draw, they come evenly.
            let most = seen(room, ranks as f64).round();
            let is_full = stretch.values as f64 > (FULL * room).min(most + 1.0);
            // Where ANALYZE reads all rows, it counts the different values: chance must not change their number.
            let is_counted = rows <= READ_WHOLE;
            let drawn =
                drawn(stretch.values, ranks).filter(|_| is_enough(ranks as f64) && !is_full && !is_counted);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
            let drawn = drawn.map(|values| values.min(room as u64)).filter(|_| !stretch.is_common);
            pieces.push(Piece {
                until,
                ranks,
                values: drawn.unwrap_or(stretch.values),
                is_drawn: drawn.is_some(),
                low: (bounds.number)(stretch.low),
                width: stretch.width,
                step: stretch.step,
            });
            begin = until;
        }
        Self { order, stream: stream.further(), scale, pieces }
    }

    /// The rank of a row in the order of the values.
    pub(super) fn rank(&self, row: u64) -> u64 {
        self.order.rank(row)
    }

    /// The value of a row.
    #[inline]
    pub(super) fn value(&self, row: u64) -> Made {
        let rank = self.order.rank(row);
        let at = self.pieces.partition_point(|piece| piece.until <= rank).min(self.pieces.len() - 1);
        let Piece { until, ranks, values, is_drawn, low, width, step } = self.pieces[at];
        let offset = if values > 1 {
            let within = rank - (until - ranks).min(rank);
            let within = if is_drawn {
                disturbed(within, ranks, self.stream, rank)
            } else {
                u128::from(within) << PARTS
            };
            let value = within * u128::from(values) / (u128::from(ranks.max(1)) << PARTS);
            let value = u64::try_from(value).unwrap_or(u64::MAX).min(values - 1);
            // Not at even distances, but the same for all rows of the value: anywhere in a cell of its own.
            let beside = self.stream.draw((at as u64) << 40 ^ value).fraction();
            let cell = width / values as f64;
            if step > 0.0 {
                let end = |value: u64| (cell * value as f64 / step).ceil();
                let first = end(value);
                (first + (beside * (end(value + 1) - first)).floor()) * step
            } else {
                cell * (value as f64 + beside)
            }
        } else {
            0.0
        };
        match (low, self.scale) {
            (Number::Real(low), _) => Made::Real(low + offset),
            (Number::Units(low), Scale::Units(units)) => {
                // A frequent value may be infinite, outside of the range.
                if width <= 0.0 {
                    return Made::Units(low);
                }
                #[expect(clippy::cast_possible_truncation, reason = "less than a piece's width")]
                Made::Units(low.saturating_add(offset as i64).clamp(units.low, units.high))
            }
            (Number::Units(low), Scale::Reals) => Made::Units(low),
        }
    }
}

impl Statistics {
    /// For each frequent value, the fraction of the rows with infrequent values that come before
    /// it.
    pub fn gaps(&self) -> Vec<f64> {
        fn of<T>(stretches: &[Stretch<T>]) -> Vec<f64> {
            let rest: f64 = stretches.iter().filter(|stretch| !stretch.is_common).map(|one| one.share).sum();
            let mut before = 0.0;
            let mut gaps = Vec::new();
            for stretch in stretches {
                if stretch.is_common {
                    gaps.push(before / rest.max(f64::MIN_POSITIVE));
                } else {
                    before += stretch.share;
                }
            }
            gaps
        }
        match &self.values {
            Described::Units(buckets) => {
                of(&stretches(buckets, u64::MAX, u64::MAX, &whole(unit(buckets, u64::MAX))))
            }
            Described::Reals(buckets) => of(&stretches(buckets, u64::MAX, u64::MAX, &real())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: Units = Units { low: 0, high: 1_000_000 };

    fn made(statistics: &Statistics, rows: u64) -> Vec<i64> {
        let describing = Describing::new(statistics, Stream::new(3, &["t", "c"]), rows, UNITS);
        let units = |row| match describing.value(row) {
            Made::Units(units) => units,
            Made::Real(real) => panic!("{real}"),
        };
        (0..rows).map(units).collect()
    }

    fn units(common: &[(i64, f64)], bounds: &[i64]) -> Described {
        Described::Units(Buckets { common: common.to_vec(), bounds: bounds.to_vec() })
    }

    fn distinct(values: &[i64]) -> usize {
        values.iter().collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Different values that are at least `least`.
    fn distinct_from(values: &[i64], least: i64) -> usize {
        let values: Vec<i64> = values.iter().copied().filter(|value| *value >= least).collect();
        distinct(&values)
    }

    #[test]
    fn frequent_values_outside_of_the_buckets_widen_none() {
        let values = units(&[(-900_000, 0.1), (900_000, 0.1)], &[0, 100, 200]);
        let statistics = Statistics { distinct: 150.0, correlation: 0.0, values };
        let wide = Units { low: -1_000_000, high: 1_000_000 };
        let describing = Describing::new(&statistics, Stream::new(3, &["t", "c"]), 10_000, wide);
        for row in 0..10_000 {
            let Made::Units(made) = describing.value(row) else { panic!("a real number") };
            assert!((0..=200).contains(&made) || made.abs() == 900_000, "{made}");
        }
    }

    #[test]
    fn frequent_values_have_their_shares_and_buckets_equal_ones() {
        let values = units(&[(50, 0.25), (700, 0.25)], &[0, 101, 1_000, 10_000, 20_000]);
        let statistics = Statistics { distinct: -0.2, correlation: 0.0, values };
        let made = made(&statistics, 10_000);
        let count = |value: i64| made.iter().filter(|&&made| made == value).count();
        assert!((2_500..2_560).contains(&count(50)), "{}", count(50));
        assert!((2_500..2_560).contains(&count(700)), "{}", count(700));
        for (low, high, atoms) in
            [(0, 101, 2_500), (101, 1_000, 2_500), (1_000, 10_000, 0), (10_000, 20_001, 0)]
        {
            let inside = made.iter().filter(|&&value| (low..high).contains(&value)).count() - atoms;
            assert!((1_230..1_270).contains(&inside), "{low}: {inside}");
        }
        // The first bucket has room for 100 values; the others have more instead.
        assert!((1_950..2_010).contains(&distinct(&made)), "{}", distinct(&made));
    }

    #[test]
    fn as_many_values_differ_as_the_statistics_say() {
        for share in [0.15, 0.4, 0.7, 0.9, 0.99] {
            let values = units(&[], &[0, 199_999, 400_001, 600_000, 1_000_000]);
            let made = made(&Statistics { distinct: -share, correlation: 0.0, values }, 5_000);
            let found = distinct(&made) as f64 / 5_000.0;
            assert!((found - share).abs() < 0.02, "{share}: {found}");
        }
    }

    #[test]
    fn rows_draw_fewer_values_from_buckets_with_little_room() {
        // Each bucket has 10,000 rows, which draw from 601, 2,399, 97,000 and 900,001 values. Of fewer rows, none are drawn.
        let rooms = [601.0, 2_399.0, 97_000.0, 900_001.0];
        let wanted: f64 = rooms.iter().map(|room| seen(*room, 10_000.0)).sum();
        let values = || units(&[], &[0, 601, 3_000, 100_000, 1_000_000]);
        let of = |distinct| made(&Statistics { distinct, correlation: 0.0, values: values() }, 40_000);
        for distinct in [wanted, -wanted / 40_000.0] {
            let made = of(distinct);
            let found = distinct_from(&made, 0) as f64;
            assert!((found / wanted - 1.0).abs() < 0.01, "{found}, not {wanted}");
            assert!(distinct_from(&made, 100_000) > 9_800, "{}", distinct_from(&made, 100_000));
        }
    }

    #[test]
    fn values_come_evenly_if_there_are_more_than_rows_draw() {
        let of = |distinct, bounds: &[i64]| {
            let statistics = Statistics { distinct, correlation: 0.0, values: units(&[], bounds) };
            distinct_from(&made(&statistics, 10_000), 0)
        };
        // 5,000 rows draw 3,161 of 5,000 values.
        let found = of(-0.9, &[0, 5_001, 10_001]);
        assert!((8_950..9_050).contains(&found), "{found}");
        // Each row has a value of its own.
        assert_eq!(of(-1.0, &[0, 99_999, 200_000]), 10_000);
    }

    #[test]
    fn values_are_multiples_of_the_greatest_step() {
        let statistics = Statistics { distinct: 11.0, correlation: 1.0, values: units(&[], &[0, 50, 100]) };
        let made = made(&statistics, 1_000);
        assert!(made.iter().all(|value| value % 50 == 0));
        assert!(made.is_sorted());
        assert_eq!((made[0], made[999]), (0, 100));
    }

    #[test]
    fn many_buckets_with_too_little_room_keep_the_step() {
        // Buckets have room for four, two and three whole minutes in turns.
        let bounds: Vec<i64> = (0..=100).map(|at| at * 180 + i64::from(at % 3 == 1) * 60).collect();
        let statistics = Statistics { distinct: 300.0, correlation: 0.0, values: units(&[], &bounds) };
        let made = made(&statistics, 8_000);
        assert!(made.iter().all(|value| value % 60 == 0));
        assert!((290..=301).contains(&distinct(&made)), "{}", distinct(&made));
    }

    #[test]
    fn the_distance_between_two_bounds_is_no_unit() {
        let of = |number: f64| {
            let values = units(&[], &[1_000, 9_000]);
            let statistics = Statistics { distinct: number, correlation: 0.0, values };
            distinct(&made(&statistics, 500))
        };
        assert_eq!((of(2.0), of(300.0)), (2, 300));
    }

    #[test]
    fn equal_bounds_are_one_value() {
        let statistics = Statistics { distinct: 3.0, correlation: 0.0, values: units(&[], &[5, 5, 5, 9]) };
        let made = made(&statistics, 300);
        assert!(made.iter().filter(|&&value| value == 5).count() >= 200);
    }

    #[test]
    fn reals_lie_between_their_bounds() {
        let values = Described::Reals(Buckets { common: vec![(0.5, 0.5)], bounds: vec![0.0, 1.0, 4.0] });
        let statistics = Statistics { distinct: -1.0, correlation: -0.4, values };
        let describing = Describing::new(&statistics, Stream::new(3, &["t", "c"]), 1_000, UNITS);
        let values: Vec<Made> = (0..1_000).map(|row| describing.value(row)).collect();
        assert_eq!(values.iter().filter(|&&value| value == Made::Real(0.5)).count(), 500);
        assert!(values.iter().all(|value| matches!(value, Made::Real(real) if (0.0..=4.0).contains(real))));
    }
}
