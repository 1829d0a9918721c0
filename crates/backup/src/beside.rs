//! Beside a backup: latencies of lookups, the locks of the dump, and the number of transactions.

use std::collections::BTreeMap;

use measure::human::{counted, grouped, latency};
use measure::{Latencies, Percentile};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The effects of a backup on other clients of the database.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Beside {
    /// Lookups in the second before the backup.
    pub baseline: Lookups,
    /// Lookups during the backup.
    pub during: Lookups,
    /// Locks that the dump held on tables: modes, and the most tables at a time.
    pub locks: BTreeMap<String, u64>,
    /// Transactions that got a transaction ID during the backup. Vacuum cannot remove rows that they delete until the dump's snapshot is closed.
    pub transactions: u64,
}

/// Lookups, and their latencies from the time at which each one was scheduled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lookups {
    /// Latencies of all that have ended, and of those that wait: the time that they have waited.
    pub latencies: Latencies,
    /// Those that had no answer 5 s after the backup.
    pub waiting: u64,
    /// Those that failed. They have no latency.
    pub failed: u64,
}

/// The percentiles that the result shows.
const SHOWN: [Percentile; 4] = [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max];

impl Lookups {
    /// A percentile of the latencies, seconds; none if there are none.
    pub fn seconds(&self, percentile: Percentile) -> Option<f64> {
        self.latencies.percentiles().map(|all| all.get(percentile).as_secs_f64())
    }

    /// All of them together.
    fn together<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut together = Self::default();
        for one in all {
            together.latencies += &one.latencies;
            together.waiting += one.waiting;
            together.failed += one.failed;
        }
        together
    }
}

/// Counts, and percentiles in seconds.
impl Serialize for Lookups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("lookups", &self.latencies.count())?;
        map.serialize_entry("waiting", &self.waiting)?;
        map.serialize_entry("failed", &self.failed)?;
        for percentile in SHOWN {
            map.serialize_entry(percentile.name(), &self.seconds(percentile))?;
        }
        map.end()
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
            baseline: Lookups::together(all.iter().map(|one| &one.baseline)),
            during: Lookups::together(all.iter().map(|one| &one.during)),
            locks,
            transactions: all.iter().map(|one| one.transactions).max()?,
        })
    }
}

impl std::fmt::Display for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { baseline, during, transactions, .. } = self;
        let p99 = |of: &Lookups| of.seconds(Percentile::P99).map_or_else(|| "unknown".to_owned(), latency);
        write!(
            f,
            "{}: p99 {} instead of {}; {} began",
            counted(during.latencies.count(), "lookup"),
            p99(during),
            p99(baseline),
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
    use std::time::Duration;

    use super::*;

    fn lookups(milliseconds: &[u64], waiting: u64) -> Lookups {
        let mut latencies = Latencies::default();
        for number in milliseconds {
            latencies.record(Duration::from_millis(*number));
        }
        Lookups { latencies, waiting, failed: 0 }
    }

    #[test]
    fn trials_of_a_way_are_one_distribution() {
        let one = Beside { during: lookups(&[1], 0), transactions: 2, ..Beside::default() };
        let other = Beside { during: lookups(&[3, 2], 1), transactions: 5, ..Beside::default() };
        let both = Beside::together(&[&one, &other]).unwrap();
        assert_eq!((both.during.latencies.count(), both.during.waiting, both.transactions), (3, 1, 5));
        let median = both.during.seconds(Percentile::P50).unwrap();
        assert!((median / 0.002 - 1.0).abs() < 0.001, "{median}");
        assert_eq!(both.baseline.seconds(Percentile::P99), None);
        assert_eq!(
            serde_json::to_value(Lookups::default()).unwrap(),
            serde_json::json!({"lookups": 0, "waiting": 0, "failed": 0, "p50": null, "p95": null, "p99": null, "max": null})
        );
        assert_eq!(Beside::together(&[]), None);
    }
}
