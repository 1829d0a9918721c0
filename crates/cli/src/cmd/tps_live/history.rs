//! What a run has told so far, as far as it is shown.

use std::time::Duration;

use measure::{Latencies, Percentile};
use workload::tps::{Counts, Length, Phase, Request, Second};

/// A run as it goes on.
pub(super) struct History {
    aim: Aim,
    /// Second by second.
    pub(super) points: Vec<Point>,
    /// Of the measured part so far; before it begins, of what goes before.
    pub(super) counts: Counts,
    /// The last second's part of the run.
    pub(super) phase: Phase,
    /// Seconds since the first transaction.
    pub(super) at: f64,
    /// Whether no more seconds come.
    pub(super) is_over: bool,
}

/// When it will be over.
enum Aim {
    /// After so many seconds, ramp and warm-up included.
    Time(f64),
    /// After so many transactions.
    Transactions(u64),
}

/// One second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Its end.
    pub(super) at: f64,
    /// Transactions that succeeded, per second.
    pub(super) tps: f64,
    /// In milliseconds; none if no transaction succeeded.
    pub(super) p50: Option<f64>,
    /// The same.
    pub(super) p99: Option<f64>,
}

/// How far it has come.
pub(super) struct Progress {
    /// 0 to 1.
    pub(super) share: f64,
    /// Seconds to go, as far as that can be known.
    pub(super) remaining: Option<f64>,
}

impl History {
    pub(super) fn new(request: &Request) -> Self {
        let before = request.ramp + request.warmup;
        let aim = match request.length {
            Length::Time(time) => Aim::Time((before + time).as_secs_f64()),
            Length::Transactions(each) => Aim::Transactions(each.saturating_mul(request.clients as u64)),
        };
        let phase = match () {
            () if !request.ramp.is_zero() => Phase::Ramp,
            () if !request.warmup.is_zero() => Phase::Warmup,
            () => Phase::Measured,
        };
        Self { aim, points: Vec::new(), counts: Counts::default(), phase, at: 0.0, is_over: false }
    }

    /// Adds a second.
    pub(super) fn add(&mut self, second: &Second) {
        if second.phase != self.phase {
            self.phase = second.phase;
            self.counts = Counts::default();
        }
        self.counts += second.counts;
        self.at = second.at;
        let of = |percentile: Percentile| second.latency.quantile(percentile.share()).map(milliseconds);
        self.points.push(Point {
            at: second.at,
            tps: second.counts.succeeded as f64 / second.length.max(1e-3),
            p50: of(Percentile::P50),
            p99: of(Percentile::P99),
        });
    }

    pub(super) fn progress(&self) -> Progress {
        match self.aim {
            Aim::Time(whole) => {
                let remaining = (whole - self.at).max(0.0);
                Progress { share: (self.at / whole).min(1.0), remaining: Some(remaining) }
            }
            Aim::Transactions(whole) => {
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
pub(super) struct Interval {
    pub(super) at: f64,
    pub(super) length: f64,
    pub(super) counts: Counts,
    pub(super) latency: Latencies,
    pub(super) lag: Latencies,
}

impl Interval {
    pub(super) fn add(&mut self, second: &Second) {
        self.at = second.at;
        self.length += second.length;
        self.counts += second.counts;
        self.latency += &second.latency;
        self.lag += &second.lag;
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
