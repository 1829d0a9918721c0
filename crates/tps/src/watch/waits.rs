//! Waits of the run's sessions: in total, and over time.

use std::collections::BTreeMap;

use crate::watch::WaitsOverTime;

/// Intervals that are kept: where there are more, two at a time become one. So a run of any length has a series of
/// bounded size, and nothing is lost from its sums.
const MOST_INTERVALS: usize = 600;
/// Events with a series of their own; all others are summed up.
const MOST_EVENTS: usize = 9;
/// The series of all other events.
const OTHERS: &str = "others";

/// Sessions that were seen in each event.
type Sessions = BTreeMap<String, u64>;

/// Waits so far.
#[derive(Debug)]
pub(super) struct Waits {
    intervals: Vec<Interval>,
    /// The interval that has not ended yet.
    open: Interval,
    /// Seconds' looks at the server that an interval spans.
    spans: usize,
    /// How many of these the open interval has had.
    passed: usize,
}

#[derive(Clone, Debug, Default)]
struct Interval {
    /// Its end, seconds.
    end: f64,
    looks: u64,
    sessions: Sessions,
}

impl Default for Waits {
    fn default() -> Self {
        Self { intervals: Vec::new(), open: Interval::default(), spans: 1, passed: 0 }
    }
}

impl Waits {
    /// Adds a look at all sessions.
    pub(super) fn look(&mut self, sessions: impl IntoIterator<Item = (String, u64)>) {
        self.open.looks += 1;
        for (event, count) in sessions {
            *self.open.sessions.entry(event).or_default() += count;
        }
    }

    /// About a second has passed.
    pub(super) fn pass(&mut self, now: f64) {
        self.passed += 1;
        if self.passed >= self.spans {
            self.close(now);
        }
    }

    fn close(&mut self, now: f64) {
        self.passed = 0;
        let ended = std::mem::take(&mut self.open);
        if ended.looks > 0 {
            self.intervals.push(Interval { end: now, ..ended });
        }
        if self.intervals.len() >= MOST_INTERVALS {
            self.spans *= 2;
            self.intervals = self.intervals.chunks(2).map(Interval::together).collect();
        }
    }

    /// Samples of sessions by event, the most first; and the same over time. Times are `began` less.
    pub(super) fn sum_up(mut self, began: f64, ended: f64) -> (Vec<(String, u64)>, WaitsOverTime) {
        self.close(ended);
        let mut totals = Sessions::new();
        for (event, count) in self.intervals.iter().flat_map(|interval| &interval.sessions) {
            *totals.entry(event.clone()).or_default() += count;
        }
        let mut totals: Vec<(String, u64)> = totals.into_iter().collect();
        totals.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let (named, others) = totals.split_at(totals.len().min(MOST_EVENTS));
        let series = |events: &[(String, u64)]| -> Vec<(f64, u64)> {
            let of = |interval: &Interval| {
                let count = events.iter().filter_map(|(event, _)| interval.sessions.get(event)).sum();
                (interval.end - began, count)
            };
            self.intervals.iter().map(of).filter(|(_, count)| *count > 0).collect()
        };
        let mut events: Vec<(String, Vec<(f64, u64)>)> =
            named.iter().map(|one| (one.0.clone(), series(std::slice::from_ref(one)))).collect();
        if !others.is_empty() {
            events.push((OTHERS.to_owned(), series(others)));
        }
        let looks = self.intervals.iter().map(|interval| (interval.end - began, interval.looks)).collect();
        (totals, WaitsOverTime { looks, events })
    }
}

impl Interval {
    fn together(parts: &[Self]) -> Self {
        let mut whole = Self::default();
        for part in parts {
            whole.end = part.end;
            whole.looks += part.looks;
            for (event, count) in &part.sessions {
                *whole.sessions.entry(event.clone()).or_default() += count;
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However long a run is and however many events there are, the series are bounded and their sums are the totals.
        #[test]
        fn series_are_bounded_and_add_up(seconds in 0..3000_usize, events in 1..30_usize, looks in 0..4_u64) {
            let mut waits = Waits::default();
            for second in 0..seconds {
                for look in 0..looks {
                    let event = (second * 7 + usize::try_from(look).unwrap() * 3) % events;
                    waits.look([(format!("event {event}"), 2), ("running on CPU".to_owned(), look)]);
                }
                waits.pass(100.0 + second as f64);
            }
            let (totals, over_time) = waits.sum_up(100.0, 100.0 + seconds as f64);
            let all = |points: &[(f64, u64)]| points.iter().map(|point| point.1).sum::<u64>();
            prop_assert_eq!(all(&over_time.looks), looks * seconds as u64);
            prop_assert!(over_time.looks.len() <= MOST_INTERVALS && over_time.events.len() <= MOST_EVENTS + 1);
            prop_assert!(over_time.looks.is_sorted_by(|one, next| one.0 < next.0));
            let sum: u64 = totals.iter().map(|total| total.1).sum();
            let in_series: u64 = over_time.events.iter().map(|event| all(&event.1)).sum();
            prop_assert_eq!(sum, in_series);
            let ends: Vec<u64> = over_time.looks.iter().map(|look| look.0.to_bits()).collect();
            for (event, points) in &over_time.events {
                prop_assert!(points.iter().all(|point| ends.contains(&point.0.to_bits())), "{}", event);
                if let Some(total) = totals.iter().find(|total| total.0 == *event) {
                    prop_assert_eq!(total.1, all(points));
                }
            }
        }
    }
}
