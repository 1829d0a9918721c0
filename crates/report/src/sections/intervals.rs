//! Series of intervals: each point is the end of an interval, and the number or the percentile of that interval.
//!
//! The last interval of a run has the remaining length of the run: often some milliseconds. A few transactions in that time are
//! neither a rate nor a percentile, and would be drawn as a spike. So it is joined with the interval before, if it is shorter
//! than half of that.

/// An interval is short if it lasts less than this share of the one before.
const SHORT: f64 = 0.5;

/// The end of each interval, and a value.
type Points = [(f64, f64)];

/// A short last interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShortEnd {
    /// The end of the interval before.
    from: f64,
    until: f64,
}

impl ShortEnd {
    /// The short last interval of a series that has a point for each interval and begins at 0; none if it is not short.
    pub(super) fn of(ends: &Points) -> Option<Self> {
        let [earlier @ .., (from, _), (until, _)] = ends else { return None };
        let start = earlier.last().map_or(0.0, |before| before.0);
        (until - from < SHORT * (from - start)).then_some(Self { from: *from, until: *until })
    }

    /// Its length in seconds.
    pub(super) fn length(self) -> f64 {
        self.until - self.from
    }
}

/// The series with its short last interval joined with the one before. `join` makes one value of two.
pub(super) fn joined(points: &Points, short: Option<ShortEnd>, join: fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    let Some(short) = short else { return points.to_vec() };
    let (kept, end) = points.split_at(points.partition_point(|point| point.0 < short.from));
    let end = end.iter().map(|point| point.1).reduce(join).map(|value| (short.until, value));
    kept.iter().copied().chain(end).collect()
}

/// The series without its short last interval: values such as percentiles, which cannot be joined.
pub(super) fn without(points: &Points, short: Option<ShortEnd>) -> Vec<(f64, f64)> {
    points.iter().copied().filter(|point| short.is_none_or(|short| point.0 <= short.from)).collect()
}

/// A series of counts as rates: each count divided by the time since the point before. Each interval that is much shorter
/// than the one before is joined with it.
pub(super) fn rates(points: &Points) -> Vec<(f64, f64)> {
    let mut intervals: Vec<(f64, f64, f64)> = Vec::new();
    for (end, count) in points {
        let start = intervals.last().map_or(0.0, |before| before.1);
        match intervals.last_mut() {
            Some(before) if end - start < SHORT * (before.1 - before.0) => {
                *before = (before.0, *end, before.2 + count);
            }
            _ => intervals.push((start, *end, *count)),
        }
    }
    let rate = |(start, end, count): (f64, f64, f64)| (end > start).then(|| (end, count / (end - start)));
    intervals.into_iter().filter_map(rate).collect()
}

/// Rates of a series that begins with the measured part. Its first point is left out, because the
/// length of its interval is not known.
pub(super) fn rates_since(points: &Points) -> Vec<(f64, f64)> {
    let short = ShortEnd::of(points);
    let counts = if points.len() > 2 {
        joined(points, short, |one, other| one + other)
    } else {
        without(points, short)
    };
    counts
        .windows(2)
        .filter(|pair| pair[1].0 > pair[0].0)
        .map(|pair| (pair[1].0, pair[1].1 / (pair[1].0 - pair[0].0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(f64, f64); 3] = [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)];

    fn with_end(end: f64) -> Vec<(f64, f64)> {
        WHOLE.into_iter().chain([(end, 4.0)]).collect()
    }

    #[test]
    fn only_an_interval_below_half_is_short() {
        assert_eq!(ShortEnd::of(&WHOLE), None);
        assert_eq!(ShortEnd::of(&with_end(3.5)), None);
        assert_eq!(ShortEnd::of(&with_end(3.25)), Some(ShortEnd { from: 3.0, until: 3.25 }));
        assert_eq!(ShortEnd::of(&[(1.0, 1.0), (1.01, 1.0)]).map(ShortEnd::length), Some(1.01 - 1.0));
        assert_eq!(ShortEnd::of(&[(0.01, 1.0)]), None);
        assert_eq!(ShortEnd::of(&[]), None);
    }

    #[test]
    fn a_short_end_is_joined_at_its_true_length() {
        assert_eq!(rates(&with_end(3.25)), [(1.0, 10.0), (2.0, 20.0), (3.25, 34.0 / 1.25)]);
        assert_eq!(rates_since(&with_end(3.25)), [(2.0, 20.0), (3.25, 34.0 / 1.25)]);
        assert_eq!(rates(&with_end(3.5)), [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0), (3.5, 8.0)]);
        let short = ShortEnd::of(&with_end(3.25));
        assert_eq!(joined(&[(1.0, 9.0), (3.25, 7.0)], short, f64::max), [(1.0, 9.0), (3.25, 7.0)]);
        assert_eq!(joined(&with_end(3.25), short, f64::max)[2..], [(3.25, 30.0)]);
        assert_eq!(without(&with_end(3.25), short), WHOLE);
        assert_eq!(without(&with_end(3.25), None).len(), 4);
    }

    #[test]
    fn a_series_of_less_than_an_interval_has_no_rate() {
        // A second, and the rest of some milliseconds: the first interval's length is not known.
        assert_eq!(rates_since(&[(1.0, 5.0), (1.003, 0.0)]), []);
        assert_eq!(rates_since(&[(1.0, 5.0)]), []);
        assert_eq!(rates_since(&[(1.0, 5.0), (2.0, 3.0)]), [(2.0, 3.0)]);
    }
}
