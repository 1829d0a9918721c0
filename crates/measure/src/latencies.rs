//! Many latencies in little memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Latencies as an HDR histogram: nanoseconds with three significant digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // It grows with what is recorded; three digits are always possible.
        Self(Histogram::new(3).expect("three significant digits are possible"))
    }
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX / 2);
        self.0.saturating_record(nanoseconds);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What this share of them (0 to 1) does not exceed; none if there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_quantile(share)))
    }
}
