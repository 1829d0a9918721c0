//! Beside a backup: latencies of lookups, the locks of the dump, and the age of its snapshot.

use std::collections::BTreeMap;

use measure::human::{counted, grouped, latency};
use serde::Serialize;

/// The effects of a backup on other clients of the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Beside {
    /// Lookups in the second before the backup.
    pub baseline: Latencies,
    /// Lookups during the backup.
    pub during: Latencies,
    /// Locks that the dump held on tables: modes, and the most tables at a time.
    pub locks: BTreeMap<String, u64>,
    /// Transactions that began during the backup. While a dump runs, vacuum cannot remove the rows that they delete.
    pub transactions: u64,
}

/// Latencies of lookups, from the time at which each one was scheduled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latencies {
    /// Lookups.
    pub lookups: u64,
    /// Those that had no answer 5 s after the backup. They count with the time that they had waited.
    pub waiting: u64,
    /// Those that failed.
    pub failed: u64,
    /// Seconds: the median.
    pub p50: f64,
    /// 95 of 100 were not slower.
    pub p95: f64,
    /// 99 of 100 were not slower.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
    #[serde(skip)]
    seconds: Vec<f64>,
}

impl Latencies {
    pub(crate) fn new(mut seconds: Vec<f64>, waiting: u64, failed: u64) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a place in the list"
            )]
            let place = (seconds.len() as f64 * share).ceil() as usize;
            seconds.get(place.saturating_sub(1)).copied().unwrap_or_default()
        };
        let [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(at);
        Self { lookups: seconds.len() as u64, waiting, failed, p50, p95, p99, max, seconds }
    }

    /// All of them together.
    fn together<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let (mut seconds, mut waiting, mut failed) = (Vec::new(), 0, 0);
        for one in all {
            seconds.extend_from_slice(&one.seconds);
            waiting += one.waiting;
            failed += one.failed;
        }
        Self::new(seconds, waiting, failed)
    }
}

impl Beside {
    /// Several trials of a way together; none if there are none.
    pub(crate) fn together(all: &[&Self]) -> Option<Self> {
        let mut locks = BTreeMap::new();
        for (mode, tables) in all.iter().flat_map(|one| &one.locks) {
            let most: &mut u64 = locks.entry(mode.clone()).or_default();
            *most = (*most).max(*tables);
        }
        Some(Self {
            baseline: Latencies::together(all.iter().map(|one| &one.baseline)),
            during: Latencies::together(all.iter().map(|one| &one.during)),
            locks,
            transactions: all.iter().map(|one| one.transactions).max()?,
        })
    }
}

impl std::fmt::Display for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { baseline, during, transactions, .. } = self;
        write!(
            f,
            "{}: p99 {} instead of {}; {} began",
            counted(during.lookups, "lookup"),
            latency(during.p99),
            latency(baseline.p99),
            counted(*transactions, "transaction")
        )?;
        if during.waiting + during.failed > 0 {
            write!(f, "; {} without an answer", grouped(during.waiting + during.failed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_observed_values() {
        let found = Latencies::new((1..=200).map(|number| f64::from(number) / 1000.0).collect(), 0, 0);
        assert_eq!((found.p50, found.p95, found.p99, found.max), (0.1, 0.19, 0.198, 0.2));
        let none = Latencies::new(Vec::new(), 0, 3);
        assert_eq!((none.lookups, none.failed, none.max), (0, 3, 0.0));
        let one = Beside { during: Latencies::new(vec![1.0], 0, 0), transactions: 2, ..Beside::default() };
        let other =
            Beside { during: Latencies::new(vec![3.0, 2.0], 1, 0), transactions: 5, ..Beside::default() };
        let both = Beside::together(&[&one, &other]).unwrap();
        assert_eq!(
            (both.during.lookups, both.during.p50, both.during.waiting, both.transactions),
            (3, 2.0, 1, 5)
        );
        assert_eq!(Beside::together(&[]), None);
    }
}
