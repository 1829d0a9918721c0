//! A probe's observations at one size of the table.

use std::time::Duration;

use hdrhistogram::Histogram;
use measure::{Series, Unit};
use serde::Serialize;

use super::ProbeKind;

/// Latencies of a probe at one size of the table, and where its blocks came from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProbePoint {
    /// Size of the table, bytes.
    pub table_bytes: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Number of timed executions.
    pub executions: u64,
    /// Latency as the client sees it, until it has read the answer.
    pub latency: Latency,
    /// Blocks that one execution found in shared_buffers, on average.
    pub hits: f64,
    /// Blocks that it had to have read: from the disk or the operating system's cache, which the
    /// server cannot tell apart.
    pub reads: f64,
    /// Bytes of both.
    pub bytes: f64,
}

/// Percentiles in seconds, as far as there were enough executions: of three executions, the 90th
/// and 99th percentile are the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl ProbePoint {
    /// The share of blocks that was in shared_buffers; none if the query touched none.
    pub fn hit_ratio(&self) -> Option<f64> {
        let blocks = self.hits + self.reads;
        (blocks > 0.0).then(|| self.hits / blocks)
    }

    /// Bytes of blocks that were gone through, per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes / self.latency.mean
    }

    /// The median latency by block that the query touches: a query that reads more blocks takes
    /// longer without being slower.
    pub(super) fn median_by_block(&self) -> f64 {
        self.latency.p50 / (self.hits + self.reads).max(1.0)
    }

    /// The points as series of a run document; x is the table's size in bytes.
    pub fn series(kind: &ProbeKind, points: &[Self]) -> Vec<Series> {
        type Value = fn(&ProbePoint) -> f64;
        let values: [(&str, Unit, Value); 11] = [
            ("rows", Unit::Rows, |point| point.rows as f64),
            ("executions", Unit::Count, |point| point.executions as f64),
            ("mean", Unit::Seconds, |point| point.latency.mean),
            ("p50", Unit::Seconds, |point| point.latency.p50),
            ("p90", Unit::Seconds, |point| point.latency.p90),
            ("p95", Unit::Seconds, |point| point.latency.p95),
            ("p99", Unit::Seconds, |point| point.latency.p99),
            ("max", Unit::Seconds, |point| point.latency.max),
            ("hits", Unit::Blocks, |point| point.hits),
            ("reads", Unit::Blocks, |point| point.reads),
            ("bytes", Unit::Bytes, |point| point.bytes),
        ];
        let series = |(name, unit, value): (&str, Unit, Value)| {
            let mut series = Series::new(&format!("probe-{}-{name}", kind.name()), Unit::Bytes, unit);
            series.points.extend(points.iter().map(|point| (point.table_bytes as f64, value(point))));
            series
        };
        values.map(series).into()
    }
}

/// Latencies as they come in.
pub(super) struct Latencies {
    /// Nanoseconds, to three digits.
    histogram: Histogram<u32>,
    total: Duration,
}

impl Latencies {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new(3).expect("hdrhistogram has three digits");
        Self { histogram, total: Duration::ZERO }
    }

    pub(super) fn record(&mut self, latency: Duration) {
        self.total += latency;
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.record(nanoseconds).expect("it grows to hold any u64");
    }

    pub(super) fn count(&self) -> u64 {
        self.histogram.len()
    }

    pub(super) fn summary(&self) -> Latency {
        let quantile = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1e9;
        Latency {
            mean: self.total.as_secs_f64() / self.count().max(1) as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: quantile(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_latencies() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|microseconds| latencies.record(Duration::from_micros(microseconds)));
        let Latency { mean, p50, p90, p95, p99, max } = latencies.summary();
        for (found, expected) in
            [(mean, 500.5), (p50, 500.0), (p90, 900.0), (p95, 950.0), (p99, 990.0), (max, 1000.0)]
        {
            assert!((found * 1e6 / expected - 1.0).abs() < 0.001, "{found} for {expected} µs");
        }
    }

    #[test]
    fn an_hour_is_held() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_micros(50));
        latencies.record(Duration::from_hours(1));
        assert!((latencies.summary().max / 3600.0 - 1.0).abs() < 0.001);
    }
}
