//! The course of a run, for the live view.

use std::time::Duration;

use measure::{Censored, Latencies, Percentile, Quantile, Skipped};
use tps::{Counts, Length, Phase, Request, Second};

/// Shorter intervals are not shown as a rate, seconds: they are only the end of the last
/// transactions.
const SHORTEST: f64 = 0.3;

/// A run that has not ended.
pub(crate) struct History {
    run_limit: RunLimit,
    /// Latency limit for which transactions are skipped; none if none are skipped.
    limit: Option<Duration>,
    /// A point for each second.
    pub(crate) points: Vec<Point>,
    /// Counts of the measured part so far; before it begins, of the parts before it.
    pub(crate) counts: Counts,
    /// Part of the run that the last second belongs to.
    pub(crate) phase: Phase,
    /// Seconds since the first transaction.
    pub(crate) at: f64,
    /// Whether the run is over.
    pub(crate) is_over: bool,
}

/// Limit at which the run ends.
enum RunLimit {
    /// This many seconds, ramp and warm-up included.
    Time(f64),
    /// This many transactions.
    Transactions(u64),
}

/// Figures of one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// End of the second, in seconds since the start.
    pub(crate) at: f64,
    /// Transactions that succeeded, per second.
    pub(crate) tps: f64,
    /// Median latency; none if there was no transaction.
    pub(crate) p50: Option<Quantile>,
    /// 99th percentile of the latency; none if there was no transaction.
    pub(crate) p99: Option<Quantile>,
}

/// Progress of the run towards its end.
pub(crate) struct Progress {
    /// Share of the run that is done, 0 to 1.
    pub(crate) share: f64,
    /// Remaining time, seconds; none if it is not known.
    pub(crate) remaining: Option<f64>,
}

impl History {
    pub(crate) fn new(request: &Request) -> Self {
        let before = request.ramp + request.warmup;
        let run_limit = match request.length {
            Length::Time(time) => RunLimit::Time((before + time).as_secs_f64()),
            Length::Transactions(each) => RunLimit::Transactions(each.saturating_mul(request.clients as u64)),
        };
        let phase = match () {
            () if !request.ramp.is_zero() => Phase::Ramp,
            () if !request.warmup.is_zero() => Phase::Warmup,
            () => Phase::Measured,
        };
        let limit = request.skipped(0).map(|skipped| skipped.limit);
        Self {
            run_limit,
            limit,
            points: Vec::new(),
            counts: Counts::default(),
            phase,
            at: 0.0,
            is_over: false,
        }
    }

    /// Adds a second.
    pub(crate) fn add(&mut self, second: &Second) {
        if second.phase != self.phase {
            self.phase = second.phase;
            self.counts = Counts::default();
        }
        self.counts += second.counts;
        self.at = second.at;
        if second.length < SHORTEST {
            return;
        }
        let skipped = self.limit.map(|limit| Skipped { number: second.counts.skipped, limit });
        let latency = Censored::new(&second.latency, skipped);
        self.points.push(Point {
            at: second.at,
            tps: second.counts.succeeded as f64 / second.length,
            p50: latency.percentile(Percentile::P50),
            p99: latency.percentile(Percentile::P99),
        });
    }

    pub(crate) fn progress(&self) -> Progress {
        match self.run_limit {
            RunLimit::Time(whole) => {
                let remaining = (whole - self.at).max(0.0);
                Progress { share: (self.at / whole).min(1.0), remaining: Some(remaining) }
            }
            RunLimit::Transactions(whole) => {
                let is_measured = self.phase == Phase::Measured;
                let done = if is_measured { self.counts.due() } else { 0 };
                let share = (done as f64 / whole.max(1) as f64).min(1.0);
                let rate = self.points.last().map_or(0.0, |last| last.tps);
                let remaining = whole.saturating_sub(done) as f64 / rate;
                Progress { share, remaining: Some(remaining).filter(|seconds| seconds.is_finite()) }
            }
        }
    }
}

/// Several seconds as one, for a plain line.
#[derive(Default)]
pub(crate) struct Interval {
    pub(crate) at: f64,
    pub(crate) length: f64,
    pub(crate) counts: Counts,
    pub(crate) latency: Latencies,
    pub(crate) lag: Latencies,
}

impl Interval {
    pub(crate) fn add(&mut self, second: &Second) {
        self.at = second.at;
        self.length += second.length;
        self.counts += second.counts;
        self.latency += &second.latency;
        self.lag += &second.lag;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use script::Source;

    use super::*;

    /// Of two clients.
    pub(in crate::cmd::tps::live) fn request(length: Length, warmup: u64) -> Request {
        let source = Source::builtin("select-only").unwrap();
        let warmup = Duration::from_secs(warmup);
        Request { clients: 2, warmup, vacuum: false, ..Request::of(source, length) }
    }

    /// In which transactions took 0.01 to 1 ms, times `at`.
    pub(in crate::cmd::tps::live) fn second(at: u64, phase: Phase, counts: Counts) -> Second {
        let mut latency = Latencies::default();
        (1..=100).for_each(|each| latency.record(Duration::from_micros(10 * each * at)));
        Second { at: at as f64, length: 1.0, phase, counts, latency, lag: Latencies::default() }
    }

    fn progress(history: &History) -> (u64, Option<u64>) {
        let Progress { share, remaining } = history.progress();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "percent and seconds")]
        ((share * 100.0) as u64, remaining.map(|seconds| seconds as u64))
    }

    #[test]
    fn a_time_is_known_beforehand() {
        let mut history = History::new(&request(Length::Time(Duration::from_secs(30)), 10));
        assert_eq!(progress(&history), (0, Some(40)));
        history.add(&second(10, Phase::Warmup, Counts { succeeded: 7, ..Counts::default() }));
        assert_eq!(progress(&history), (25, Some(30)));
        assert_eq!(history.counts.succeeded, 7);
        // Transactions of the warm-up are not counted with the measured ones.
        history.add(&second(11, Phase::Measured, Counts { succeeded: 3, ..Counts::default() }));
        assert_eq!(history.counts.succeeded, 3);
    }

    #[test]
    fn so_many_transactions_take_as_long_as_the_last_second_says() {
        let mut history = History::new(&request(Length::Transactions(500), 1));
        assert_eq!(progress(&history), (0, None));
        let counts = Counts { succeeded: 100, ..Counts::default() };
        history.add(&second(1, Phase::Warmup, counts));
        assert_eq!(progress(&history), (0, Some(10)));
        history.add(&second(2, Phase::Measured, counts));
        assert_eq!(progress(&history), (10, Some(9)));
    }
}
