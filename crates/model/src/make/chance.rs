//! Numbers that are frequent in ANALYZE's sample by chance.

use rowgen::Kind;

use crate::estimate::{RowCounts, different};
use crate::facts::Statistics;
use crate::numbers::{Number, step};

/// Rounds in which values that chance explains are looked for: each of them makes its neighbours more frequent.
const ROUNDS: usize = 4;

/// The statistics without frequent values that may be frequent in ANALYZE's sample only. Of equally
/// frequent values a sample has some more often than others, and the list names these: in the copy
/// they would be more frequent indeed, and more of them in its sample. Where values lie closer to each other, each may be more frequent:
/// so a value is compared with those of its bucket.
pub(super) fn without_chance(
    kind: &Kind,
    statistics: &Statistics,
    rows: RowCounts,
    nulls: f64,
) -> Statistics {
    let sampled = rows.sampled as f64 * (1.0 - nulls);
    if rows.all <= rows.sampled || statistics.bounds.len() < 2 {
        return statistics.clone();
    }
    let shares: Vec<f64> = statistics.common.iter().map(|(_, share)| *share).collect();
    let rooms = rooms(kind, &statistics.bounds, statistics.common.iter().map(|(value, _)| value));
    let distinct = different(statistics.n_distinct, rows, nulls, &shares, &rooms);
    let values = if distinct < 0.0 { -distinct * rows.all as f64 * (1.0 - nulls) } else { distinct };
    let others = values - shares.len() as f64;
    if others < shares.len() as f64 {
        return statistics.clone();
    }
    let Some(mut buckets) = Buckets::of(kind, statistics, others) else { return statistics.clone() };
    let mut is_frequent = vec![true; statistics.common.len()];
    for _ in 0..ROUNDS {
        let before = is_frequent.clone();
        for (at, (_, share)) in statistics.common.iter().enumerate().filter(|(at, _)| before[*at]) {
            is_frequent[at] = buckets.expected(sampled, (share * sampled).round()) < 0.5;
        }
        for at in (0..before.len()).filter(|at| before[*at] && !is_frequent[*at]) {
            buckets.add(at, statistics.common[at].1);
        }
        if before == is_frequent {
            break;
        }
    }
    let mut steady = statistics.clone();
    let mut kept = is_frequent.iter();
    steady.common.retain(|_| kept.next().copied().unwrap_or(true));
    if steady.common.len() < statistics.common.len() {
        steady.bounds = buckets.bounds(kind);
    }
    steady
}

/// The histogram, with the values in each bucket that are not frequent.
struct Buckets {
    /// In ascending order, one more than buckets.
    bounds: Vec<Number>,
    /// Share of the rows in each bucket.
    shares: Vec<f64>,
    /// Different values in each bucket.
    values: Vec<f64>,
    /// Frequent values.
    common: Vec<Number>,
    /// The bucket of each of them.
    of_common: Vec<usize>,
    step: f64,
}

impl Buckets {
    /// With so many values that are not frequent. None if a number cannot be read, or lies at no distance from others.
    fn of(kind: &Kind, statistics: &Statistics, others: f64) -> Option<Self> {
        let read = |text: &String| Number::read(kind, text).filter(|number| !number.is_infinite(kind));
        let mut bounds: Vec<Number> = statistics.bounds.iter().map(read).collect::<Option<_>>()?;
        let common: Vec<Number> =
            statistics.common.iter().map(|(value, _)| read(value)).collect::<Option<_>>()?;
        bounds.sort_by(|one, other| one.at.total_cmp(&other.at));
        let step = step(kind, common.iter().chain(&bounds));
        let of_common: Vec<usize> = common.iter().map(|number| bucket(&bounds, number)).collect();
        let rooms = rooms_of(&bounds, &of_common, step);
        let rest = (1.0 - statistics.common.iter().map(|(_, share)| share).sum::<f64>()).max(0.0);
        let shares = vec![rest / rooms.len() as f64; rooms.len()];
        let values = spread(&rooms, others);
        Some(Self { bounds, shares, values, common, of_common, step })
    }

    /// How many values occur at least `count` times among so many rows, if all values of a bucket are equally frequent.
    fn expected(&self, sampled: f64, count: f64) -> f64 {
        let of_bucket = |(share, values): (&f64, &f64)| values * as_often(sampled * share / values, count);
        self.shares.iter().zip(&self.values).map(of_bucket).sum()
    }

    /// Counts a frequent value with the others. ANALYZE's first and last bound are the least and the greatest value that is not
    /// frequent: so the value can lie outside of them.
    fn add(&mut self, at: usize, share: f64) {
        let (bucket, number) = (self.of_common[at], &self.common[at]);
        let last = self.bounds.len() - 1;
        if number.at < self.bounds[0].at {
            self.bounds[0] = number.clone();
        } else if number.at > self.bounds[last].at {
            self.bounds[last] = number.clone();
        }
        self.shares[bucket] += share;
        self.values[bucket] += 1.0;
    }

    /// As many bounds, between which the shares are equal.
    fn bounds(&self, kind: &Kind) -> Vec<String> {
        let total: f64 = self.shares.iter().sum();
        let each = total / self.shares.len() as f64;
        let (mut at, mut before) = (0, 0.0);
        let mut bounds = vec![self.bounds[0].text.clone()];
        for number in 1..self.shares.len() {
            let wanted = each * number as f64;
            while at + 1 < self.shares.len() && before + self.shares[at] < wanted {
                before += self.shares[at];
                at += 1;
            }
            let (low, high) = (self.bounds[at].at, self.bounds[at + 1].at);
            let within = ((wanted - before) / self.shares[at].max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            let bound = Number::near(kind, self.bounds[0].at, (high - low).mul_add(within, low), self.step);
            bounds.push(bound.unwrap_or_else(|| self.bounds[number].clone()).text);
        }
        bounds.push(self.bounds[self.shares.len()].text.clone());
        bounds
    }
}

/// The bucket of a number; of one outside of all, the nearest.
fn bucket(bounds: &[Number], number: &Number) -> usize {
    bounds.partition_point(|bound| bound.at <= number.at).saturating_sub(1).min(bounds.len() - 2)
}

/// The number of different values for which each bucket has room, less the frequent ones, whose buckets are given.
fn rooms_of(bounds: &[Number], of_common: &[usize], step: f64) -> Vec<f64> {
    let room = |pair: &[Number]| if step > 0.0 { (pair[1].at - pair[0].at) / step } else { f64::INFINITY };
    let mut rooms: Vec<f64> = bounds.windows(2).map(room).collect();
    if let Some(last) = rooms.last_mut() {
        *last += 1.0;
    }
    for &at in of_common {
        rooms[at] -= 1.0;
    }
    rooms
}

/// The number of different values for which each bucket of a histogram has room, less the frequent ones; none if a number
/// cannot be read.
pub(crate) fn rooms<'a>(
    kind: &Kind,
    bounds: &[String],
    common: impl Iterator<Item = &'a String>,
) -> Vec<f64> {
    let read = |text: &String| Number::read(kind, text).filter(|number| !number.is_infinite(kind));
    let Some(mut bounds) = bounds.iter().map(read).collect::<Option<Vec<Number>>>() else {
        return Vec::new();
    };
    if bounds.len() < 2 {
        return Vec::new();
    }
    bounds.sort_by(|one, other| one.at.total_cmp(&other.at));
    let common: Vec<Number> = common.filter_map(read).collect();
    let step = step(kind, common.iter().chain(&bounds));
    let of_common: Vec<usize> = common.iter().map(|number| bucket(&bounds, number)).collect();
    rooms_of(&bounds, &of_common, step)
}

/// Spreads values over buckets with so much room: equally many in each one that has the room. At least one is in each.
fn spread(rooms: &[f64], values: f64) -> Vec<f64> {
    let within = |room: f64, most: f64| room.clamp(1.0, most.max(1.0));
    let (mut low, mut high) = (1.0, values.max(1.0));
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let all: f64 = rooms.iter().map(|room| within(*room, middle)).sum();
        if all < values { low = middle } else { high = middle }
    }
    rooms.iter().map(|room| within(*room, high)).collect()
}

/// The probability that a number with a Poisson distribution is at least `count`.
fn as_often(mean: f64, count: f64) -> f64 {
    if count > 10.0f64.mul_add(mean.sqrt(), mean) + 20.0 {
        return 0.0;
    }
    let (mut term, mut below, mut at) = ((-mean).exp(), 0.0, 0.0);
    while at < count {
        below += term;
        at += 1.0;
        term *= mean / at;
    }
    (1.0 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::strings;

    const ROWS: RowCounts = RowCounts { all: 1_000_000, sampled: 30_000 };

    #[test]
    fn frequent_values_that_chance_explains_are_not_made_frequent() {
        // 2,500 dates: 12 rows each in a sample, and a few of them 25; one has 60.
        let common = vec![("60".to_owned(), 0.002), ("1".to_owned(), 25.0 / 30_000.0)];
        let statistics = Statistics {
            n_distinct: 2_500.0,
            common,
            bounds: strings(&["0", "1250", "2500"]),
            ..Statistics::default()
        };
        let kept = |rows| without_chance(&Kind::Int4, &statistics, rows, 0.0).common.len();
        assert_eq!(kept(ROWS), 1);
        let whole =
            [(30_000, 30_000), (1_000_000, 3_000_000)].map(|(all, sampled)| RowCounts { all, sampled });
        assert_eq!(whole.map(kept), [2, 2], "ANALYZE reads the table whole");
        // Of a mean of 3, P(X >= 8) is 0.0119.
        assert!((as_often(3.0, 8.0) - 0.0119).abs() < 1e-4 && as_often(3.0, 0.0) > 0.999_999);
    }

    #[test]
    fn values_are_compared_with_those_beside_them() {
        // Half of all rows have a value below 500, 30 of a sample each; 20,000 other values have hardly one.
        let near = |share: f64| {
            let statistics = Statistics {
                n_distinct: 20_500.0,
                common: vec![("77".to_owned(), share)],
                bounds: strings(&["0", "250", "500", "500000", "1000001"]),
                ..Statistics::default()
            };
            without_chance(&Kind::Int4, &statistics, ROWS, 0.0)
        };
        assert_eq!(near(45.0 / 30_000.0).common, [], "chance explains 45 instead of 30");
        let kept = near(90.0 / 30_000.0);
        assert_eq!((kept.common.len(), kept.bounds[1].as_str()), (1, "250"), "but not 90");
    }

    #[test]
    fn rows_of_values_that_are_not_frequent_stay_where_they_are() {
        // 10 of 104 values of the first bucket have half of its rows.
        let common: Vec<(String, f64)> = (0..10).map(|value| (value.to_string(), 0.02)).collect();
        let statistics = Statistics {
            n_distinct: 400.0,
            common,
            bounds: strings(&["0", "104", "200", "300", "400"]),
            ..Statistics::default()
        };
        let mut buckets = Buckets::of(&Kind::Int4, &statistics, 390.0).unwrap();
        for at in 0..10 {
            buckets.add(at, 0.02);
        }
        // Shares of 0.4, 0.2, 0.2 and 0.2.
        assert_eq!(buckets.bounds(&Kind::Int4), ["0", "65", "152", "275", "400"]);
    }

    #[test]
    fn values_below_and_above_the_histogram_that_are_not_frequent_widen_it() {
        // In most samples, the least and the greatest of equally frequent values are among the frequent ones by chance.
        let common = [1_i32, 2, 4, 399, 400].map(|value| (value.to_string(), 90.0 / 30_000.0));
        let statistics = Statistics {
            n_distinct: 400.0,
            common: common.to_vec(),
            bounds: strings(&["5", "100", "200", "300", "398"]),
            ..Statistics::default()
        };
        let steady = without_chance(&Kind::Int4, &statistics, ROWS, 0.0);
        assert_eq!(steady.common, []);
        assert_eq!((steady.bounds[0].as_str(), steady.bounds[4].as_str()), ("1", "400"));
        assert_eq!(steady.bounds.len(), 5);
    }
}
