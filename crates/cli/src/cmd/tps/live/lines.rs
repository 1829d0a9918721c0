//! Progress as plain lines, a line every few seconds.

use measure::human::count;
use measure::{Censored, Percentile};
use tps::{Phase, Request, Second};

use crate::cmd::tps::live::history::Interval;

/// Collects seconds until a line is due.
pub(crate) struct Lines {
    /// Interval of lines, seconds.
    every: f64,
    request: Request,
    interval: Interval,
    phase: Option<Phase>,
}

impl Lines {
    pub(crate) fn new(every: u64, request: &Request) -> Self {
        Self { every: every as f64, request: request.clone(), interval: Interval::default(), phase: None }
    }

    /// Adds a second. Returns a line if one is due. A line does not cover two parts of the run.
    pub(crate) fn add(&mut self, second: &Second) -> Option<String> {
        let is_new = self.phase.is_some_and(|phase| phase != second.phase);
        let before = if is_new { self.take() } else { None };
        self.phase = Some(second.phase);
        self.interval.add(second);
        // Seconds are reported a little early or late.
        let is_due = self.interval.length > self.every - 0.5;
        let now = if is_due { self.take() } else { None };
        match (before, now) {
            (Some(before), Some(now)) => Some(format!("{before}\n{now}")),
            (before, now) => before.or(now),
        }
    }

    fn take(&mut self) -> Option<String> {
        let interval = std::mem::take(&mut self.interval);
        (interval.length > 0.0).then(|| line(&interval, self.phase, &self.request))
    }
}

/// `5.0 s: 1234 tps, p50 0.812 ms, p95 1.20 ms, p99 2.31 ms, max 9.80 ms, 3 failed`.
fn line(interval: &Interval, phase: Option<Phase>, request: &Request) -> String {
    let counts = &interval.counts;
    let skipped = request.skipped(counts.skipped);
    let [latency, lag] = [&interval.latency, &interval.lag].map(|each| Censored::new(each, skipped));
    let mut parts = vec![format!("{} tps", count(counts.succeeded as f64 / interval.length))];
    let percentiles = [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max];
    parts.extend(told(&latency, &percentiles, ""));
    if request.rate.is_some() {
        parts.extend(told(&lag, &[Percentile::P99], "lag "));
    }
    for (number, what) in [
        (counts.all_failed(), "failed"),
        (counts.retries, "retries"),
        (counts.skipped, "skipped"),
        (counts.late, "late"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", count(number as f64)));
        }
    }
    let phase = match phase {
        Some(Phase::Ramp) => ", ramp",
        Some(Phase::Warmup) => ", warm-up",
        Some(Phase::Measured) | None => "",
    };
    format!("{:.1} s{phase}: {}", interval.at, parts.join(", "))
}

fn told(latencies: &Censored<'_>, percentiles: &[Percentile], what: &str) -> Vec<String> {
    let of = |percentile: &Percentile| {
        let value = latencies.percentile(*percentile)?;
        Some(format!("{what}{} {}", percentile.name(), value.shown()))
    };
    percentiles.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use measure::Latencies;
    use tps::{Counts, Length};

    use super::super::history::tests::request;
    use super::*;

    fn lines(every: u64) -> Lines {
        Lines::new(every, &request(Length::Transactions(100), 0))
    }

    fn second(at: f64, phase: Phase, succeeded: u64) -> Second {
        let mut latency = Latencies::default();
        (0..succeeded).for_each(|number| latency.record(Duration::from_micros(100 * (number + 1))));
        let counts = Counts { succeeded, skipped: 2, ..Counts::default() };
        Second { at, length: 1.0, phase, counts, latency, lag: Latencies::default() }
    }

    #[test]
    fn a_line_tells_of_its_seconds_together() {
        let mut told = lines(2);
        assert_eq!(told.add(&second(1.0, Phase::Measured, 10)), None);
        let line = told.add(&second(2.0, Phase::Measured, 20)).unwrap();
        assert_eq!(line, "2.0 s: 15 tps, p50 0.800 ms, p95 1.90 ms, p99 2.00 ms, max 2.00 ms, 4 skipped");
    }

    #[test]
    fn skipped_transactions_are_the_slowest_of_a_line() {
        let mut request = request(Length::Transactions(100), 0);
        (request.rate, request.latency_limit) = (Some(100.0), Some(Duration::from_millis(20)));
        let mut told = Lines::new(1, &request);
        let line = told.add(&second(1.0, Phase::Measured, 20)).unwrap();
        let expected =
            "p50 1.10 ms, p95 > 20.0 ms, p99 > 20.0 ms, max > 20.0 ms, lag p99 > 20.0 ms, 2 skipped";
        assert_eq!(line, format!("1.0 s: 20 tps, {expected}"));
    }

    #[test]
    fn a_line_does_not_mix_what_counts_with_what_does_not() {
        let mut told = lines(2);
        assert_eq!(told.add(&second(1.0, Phase::Warmup, 1)), None);
        let line = told.add(&second(2.0, Phase::Measured, 1)).unwrap();
        assert!(line.starts_with("1.0 s, warm-up: 1 tps"), "{line}");
        let line = told.add(&second(3.0, Phase::Measured, 3)).unwrap();
        assert!(line.starts_with("3.0 s: 2 tps"), "{line}");
        // Where nothing succeeded there is no latency to tell.
        let mut told = lines(1);
        assert_eq!(told.add(&second(1.0, Phase::Measured, 0)).unwrap(), "1.0 s: 0 tps, 2 skipped");
    }
}
