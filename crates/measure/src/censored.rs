//! Latencies of which some are known only to exceed a limit.

use std::time::Duration;

use crate::human;
use crate::latencies::{Latencies, Percentile};

/// Transactions that were skipped, because they would have begun too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Number of skipped transactions.
    pub number: u64,
    /// Each of them would have taken longer than this.
    pub limit: Duration,
}

/// Latencies together with skipped transactions. Skipped transactions rank above all others: it is
/// not known by how much each would have exceeded the limit.
#[derive(Clone, Copy, Debug)]
pub struct Censored<'a> {
    latencies: &'a Latencies,
    skipped: Option<Skipped>,
}

/// A quantile of [`Censored`] latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// This latency.
    Is(Duration),
    /// It falls among the skipped transactions: more than their limit.
    Over(Duration),
}

impl<'a> Censored<'a> {
    /// Latencies, and transactions skipped besides, if any could be.
    pub fn new(latencies: &'a Latencies, skipped: Option<Skipped>) -> Self {
        Self { latencies, skipped: skipped.filter(|skipped| skipped.number > 0) }
    }

    /// Skipped transactions; none if there are none.
    pub fn skipped(&self) -> Option<Skipped> {
        self.skipped
    }

    /// The latency that this share of all transactions (0 to 1) does not exceed; none if there is no transaction.
    pub fn quantile(&self, share: f64) -> Option<Quantile> {
        let Some(Skipped { number, limit }) = self.skipped else {
            return self.latencies.quantile(share).map(Quantile::Is);
        };
        let measured = self.latencies.count();
        let all = (measured + number) as f64;
        // Rounding must not move a rank up: 0.07 × 100 is 7.000000000000001.
        let rank = (share * all * (1.0 - 1e-12)).ceil().max(1.0);
        if rank > measured as f64 {
            return Some(Quantile::Over(limit));
        }
        self.latencies.quantile((rank - 0.5) / measured as f64).map(Quantile::Is)
    }

    /// The quantile for one of the usual percentiles.
    pub fn percentile(&self, percentile: Percentile) -> Option<Quantile> {
        self.quantile(percentile.share())
    }

    /// The arithmetic mean: [`Quantile::Over`] its least possible value if any transaction was skipped. None if
    /// there is no transaction.
    pub fn mean(&self) -> Option<Quantile> {
        let Some(Skipped { number, limit }) = self.skipped else {
            return self.latencies.mean().map(Quantile::Is);
        };
        let measured = self.latencies.count() as f64;
        let sum = self.latencies.mean().unwrap_or_default().as_secs_f64() * measured
            + limit.as_secs_f64() * number as f64;
        Some(Quantile::Over(Duration::from_secs_f64(sum / (measured + number as f64))))
    }
}

impl Quantile {
    /// The latency, or its lower bound.
    pub fn least(self) -> Duration {
        match self {
            Self::Is(latency) | Self::Over(latency) => latency,
        }
    }

    /// The value as text: `49.0 ms`, `> 20.0 ms`.
    pub fn shown(self) -> String {
        match self {
            Self::Is(latency) => human::latency(latency.as_secs_f64()),
            Self::Over(limit) => format!("> {}", human::latency(limit.as_secs_f64())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(500);

    /// One of 1 ms, 2 ms and so on.
    fn latencies(number: u64) -> Latencies {
        let mut latencies = Latencies::default();
        (1..=number).for_each(|each| latencies.record(Duration::from_millis(each)));
        latencies
    }

    fn skipped(number: u64) -> Skipped {
        Skipped { number, limit: LIMIT }
    }

    #[test]
    fn skipped_transactions_rank_above_all_others() {
        // As if the last of 100 transactions had no known latency.
        for number in 0..=100_u32 {
            let measured = latencies(u64::from(100 - number));
            let censored = Censored::new(&measured, Some(skipped(number.into())));
            for percent in 1..=100_u32 {
                let found = censored.quantile(f64::from(percent) / 100.0).unwrap();
                if percent > 100 - number {
                    assert_eq!(found, Quantile::Over(LIMIT), "{number} skipped, {percent} %");
                } else if number > 0 {
                    let exact = Duration::from_millis(percent.into());
                    let Quantile::Is(found) = found else {
                        panic!("{number} skipped, {percent} %: {found:?}")
                    };
                    assert!(found.abs_diff(exact) <= exact / 500, "{number} skipped, {percent} %: {found:?}");
                }
            }
        }
    }

    #[test]
    fn without_skipped_transactions_nothing_changes() {
        let measured = latencies(1000);
        for none in [None, Some(skipped(0))] {
            let censored = Censored::new(&measured, none);
            for percentile in Percentile::ALL {
                let expected = measured.quantile(percentile.share()).map(Quantile::Is);
                assert_eq!(censored.percentile(percentile), expected);
            }
            assert_eq!(censored.mean(), measured.mean().map(Quantile::Is));
            assert_eq!(censored.skipped(), None);
        }
        let nothing = Latencies::default();
        assert_eq!(Censored::new(&nothing, None).quantile(0.5), None);
        assert_eq!(Censored::new(&nothing, None).mean(), None);
    }

    #[test]
    fn a_mean_with_skipped_transactions_is_known_from_below() {
        let measured = latencies(1);
        let Some(Quantile::Over(least)) = Censored::new(&measured, Some(skipped(1))).mean() else { panic!() };
        // Of 1 ms and 500 ms.
        assert!(least.abs_diff(Duration::from_micros(250_500)) < Duration::from_micros(500), "{least:?}");
        let nothing = Latencies::default();
        assert_eq!(Censored::new(&nothing, Some(skipped(3))).mean(), Some(Quantile::Over(LIMIT)));
    }
}
