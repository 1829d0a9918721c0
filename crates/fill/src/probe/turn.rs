//! Finds the size of the table at which a probe became permanently slower.

use std::fmt::{self, Display, Formatter};

use measure::human;

use super::{ProbeKind, ProbePoint};

/// Least ratio of the latency of each point from the turning point on to that of each point before.
const SLOWER: f64 = 2.0;
/// The same ratio if only the last point is slow, which a short disturbance could cause.
const SLOWER_ONCE: f64 = 5.0;
/// If at least this share of the blocks was in shared_buffers, the cache is not the cause of the
/// slowness.
const CACHED: f64 = 0.99;

/// The size of a table from which on a probe is slower.
#[derive(Clone, Debug, PartialEq)]
pub struct TurningPoint {
    kind: ProbeKind,
    /// The largest size at which the probe was still quick, bytes.
    pub(crate) quick_up_to: u64,
    /// The next size, from which on it was slow, bytes.
    pub(crate) slow_from: u64,
    /// The median latency of the last quick point, seconds.
    pub quick: f64,
    /// The median latency of the first slow point, seconds.
    pub slow: f64,
    /// Whether blocks had to be read in the slow ones, more than in the quick ones: the table has
    /// fallen out of the cache.
    pub(crate) out_of_cache: bool,
}

/// Finds the size from which on the probe took at least twice as long as ever before.
///
/// Median latencies are compared by block that the query touches, so a query that reads the whole
/// table does not count as slower because the table has grown. Every point from the turning point
/// on must be that slow; if it is the last point alone, five times as slow. If several sizes
/// qualify, the one with the greatest ratio is returned. None if there is no such size, or fewer
/// than three points.
pub fn turning_point(kind: &ProbeKind, points: &[ProbePoint]) -> Option<TurningPoint> {
    if points.len() < 3 {
        return None;
    }
    let gap = |turn: usize| {
        let (quick, slow) = points.split_at(turn);
        let slowest_before = quick.iter().map(ProbePoint::median_by_block).fold(0.0, f64::max);
        let quickest_after = slow.iter().map(ProbePoint::median_by_block).fold(f64::INFINITY, f64::min);
        let times = quickest_after / slowest_before;
        let needed = if slow.len() == 1 { SLOWER_ONCE } else { SLOWER };
        (times >= needed).then_some((turn, times))
    };
    let (turn, _) = (1..points.len()).filter_map(gap).max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let (quick, slow) = (&points[turn - 1], &points[turn]);
    let cached = |point: &ProbePoint| point.hit_ratio().unwrap_or(1.0);
    Some(TurningPoint {
        kind: kind.clone(),
        quick_up_to: quick.table_bytes,
        slow_from: slow.table_bytes,
        quick: quick.latency.p50,
        slow: slow.latency.p50,
        out_of_cache: cached(slow) < CACHED && cached(slow) <= cached(quick),
    })
}

impl Display for TurningPoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} took {} while the table had at most {}; from {} on, they took {}",
            self.kind.plural(),
            human::latency(self.quick),
            human::bytes(self.quick_up_to),
            human::bytes(self.slow_from),
            human::latency(self.slow),
        )?;
        if self.out_of_cache { f.write_str(", because the table is larger than the cache") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Latency;
    use super::*;

    /// Points at doubling sizes: median in milliseconds, blocks hit and read.
    fn points(values: &[(f64, f64, f64)]) -> Vec<ProbePoint> {
        let point = |(doublings, &(p50, hits, reads)): (usize, &(f64, f64, f64))| {
            let p50 = p50 / 1e3;
            ProbePoint {
                table_bytes: 100_000_000 << doublings,
                rows: 1,
                executions: 100,
                latency: Latency { mean: p50, p50, p90: p50, p95: p50, p99: p50, max: p50 },
                hits,
                reads,
                bytes: (hits + reads) * 8192.0,
            }
        };
        values.iter().enumerate().map(point).collect()
    }

    fn told(values: &[(f64, f64, f64)]) -> Option<String> {
        turning_point(&ProbeKind::Lookup, &points(values)).map(|turn| turn.to_string())
    }

    #[test]
    fn falling_out_of_the_cache_is_told() {
        let values = [(0.05, 4.0, 0.0), (0.06, 4.0, 0.0), (0.05, 3.9, 0.1), (1.9, 2.0, 2.0), (2.4, 2.0, 2.0)];
        let expected = "lookups took 0.050 ms while the table had at most 400 MB; from 800 MB on, they took 1.90 ms, because \
                        the table is larger than the cache";
        assert_eq!(told(&values).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_slow_for_another_reason_is_told_without_one() {
        let values = [(0.05, 4.0, 0.0), (0.05, 4.0, 0.0), (0.2, 4.0, 0.0), (0.2, 4.0, 0.0)];
        assert_eq!(
            told(&values).as_deref(),
            Some(
                "lookups took 0.050 ms while the table had at most 200 MB; from 400 MB on, they took 0.200 ms"
            )
        );
    }

    #[test]
    fn what_does_not_last_or_is_not_much_is_not_told() {
        let quick = (0.05, 4.0, 0.0);
        assert_eq!(told(&[quick, quick, (0.5, 2.0, 2.0), quick]), None);
        assert_eq!(told(&[quick, quick, quick, (0.2, 2.0, 2.0)]), None);
        assert!(told(&[quick, quick, quick, (0.3, 2.0, 2.0)]).is_some());
        assert_eq!(told(&[(0.05, 3.0, 0.0), (0.07, 4.0, 0.0), (0.09, 4.0, 0.0), (0.09, 3.0, 1.0)]), None);
        assert_eq!(told(&[quick, (0.5, 2.0, 2.0)]), None);
    }

    #[test]
    fn a_query_over_the_whole_table_may_take_longer_as_it_grows() {
        let whole: Vec<(f64, f64, f64)> = (0..6)
            .map(|doublings| f64::from(1 << doublings))
            .map(|size| (size, 1000.0 * size, 0.0))
            .collect();
        assert_eq!(told(&whole), None);
    }
}
