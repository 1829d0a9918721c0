//! Outcome of a run.

use std::ops::AddAssign;
use std::time::Duration;

use measure::{Latencies, Percentiles};

/// Transactions by outcome. Those that were due are `succeeded + failed + skipped`; `retried` and `late` count some
/// of them again, and do not add to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Committed, or come to the script's end.
    pub succeeded: u64,
    /// Given up after an error.
    pub failed: Failed,
    /// Never begun: they would have been later than `-L` allows.
    pub skipped: u64,
    /// Tried more than once, whatever came of it.
    pub retried: u64,
    /// All tries after the first.
    pub retries: u64,
    /// Succeeded, but took longer than `-L`.
    pub late: u64,
}

/// Failed transactions by their last error, as pgbench tells them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// SQLSTATE 40001.
    pub serialization: u64,
    /// SQLSTATE 40P01.
    pub deadlock: u64,
    /// Any other: pgbench ends the client, and so does pgrig.
    pub other: u64,
}

/// Of all transactions, or of one script's.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Numbers of transactions by outcome.
    pub counts: Counts,
    /// Of those that succeeded, from the scheduled start (without a rate: the actual one) to the end.
    pub latency: Latencies,
    /// From the scheduled start to the actual one; nothing without a rate.
    pub lag: Latencies,
}

/// One script.
#[derive(Clone, Debug)]
pub struct MeasuredScript {
    /// Its transactions.
    pub measured: Measured,
    /// With `-r`: its commands, as many and in the order of `script::Script::commands`. Else none.
    pub commands: Vec<MeasuredCommand>,
}

/// One command of a script.
#[derive(Clone, Debug, Default)]
pub struct MeasuredCommand {
    /// From sending it to its result; where it failed, nothing.
    pub latency: Latencies,
    /// Errors that ended a transaction here.
    pub failures: u64,
    /// Errors after which the transaction was tried again.
    pub retries: u64,
}

/// The part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients begin one after the other.
    Ramp,
    /// All are at work, but nothing is counted.
    Warmup,
    /// The part that results are made of.
    Measured,
}

/// One second of the run, all clients together.
#[derive(Clone, Debug)]
pub struct Second {
    /// Seconds since the first transaction, at this one's end; the last one may be shorter.
    pub at: f64,
    /// Length, seconds.
    pub length: f64,
    /// The part that it belongs to.
    pub phase: Phase,
    /// Transactions that ended in it.
    pub counts: Counts,
    /// Of those that succeeded.
    pub latency: Latencies,
    /// Of those that began, with a rate.
    pub lag: Latencies,
}

/// A [`Second`] as it is kept: with percentiles for all latencies, so that long runs take little memory.
#[derive(Clone, Debug)]
pub struct KeptSecond {
    /// Seconds since the first transaction, at this one's end.
    pub at: f64,
    /// Length, seconds.
    pub length: f64,
    /// The part that it belongs to.
    pub phase: Phase,
    /// Transactions that ended in it.
    pub counts: Counts,
    /// Of those that succeeded, if any.
    pub latency: Option<Percentiles>,
    /// Of those that began, with a rate.
    pub lag: Option<Percentiles>,
}

/// A client that ended before its time.
#[derive(Clone, Debug)]
pub struct LostClient {
    /// Its number, from 0.
    pub client: usize,
    /// Script and command (from 0), if it was at one.
    pub at: Option<(usize, usize)>,
    /// The reason.
    pub why: String,
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As asked.
    Complete,
    /// The user wanted it to stop.
    Interrupted,
    /// No client was left, or some were lost: see [`Outcome::lost`].
    Lost,
}

/// The measurements, even of a run that was not completed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// End of the run.
    pub end: End,
    /// The measured part's length, connecting excluded: until the last transaction ended that had begun in
    /// time. A transaction counts in the part in which it ends.
    pub elapsed: Duration,
    /// Time to connect all clients; with `-C`, of all connections made, together.
    pub connecting: Duration,
    /// Connections made.
    pub connections: u64,
    /// Totals of all scripts.
    pub all: Measured,
    /// Each script, in the request's order.
    pub scripts: Vec<MeasuredScript>,
    /// Second by second, ramp and warm-up included. Those that were measured add up to `all`.
    pub seconds: Vec<KeptSecond>,
    /// Clients that did not come to the end.
    pub lost: Vec<LostClient>,
}

impl Counts {
    /// Transactions that were given up.
    pub fn all_failed(&self) -> u64 {
        self.failed.serialization + self.failed.deadlock + self.failed.other
    }

    /// All that were due: each succeeded, failed or was skipped.
    pub fn due(&self) -> u64 {
        self.succeeded + self.all_failed() + self.skipped
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let Self { succeeded, failed, skipped, retried, retries, late } = other;
        self.succeeded += succeeded;
        self.failed.serialization += failed.serialization;
        self.failed.deadlock += failed.deadlock;
        self.failed.other += failed.other;
        self.skipped += skipped;
        self.retried += retried;
        self.retries += retries;
        self.late += late;
    }
}

impl AddAssign<&Self> for Measured {
    fn add_assign(&mut self, other: &Self) {
        self.counts += other.counts;
        self.latency += &other.latency;
        self.lag += &other.lag;
    }
}

impl AddAssign<&Self> for MeasuredScript {
    fn add_assign(&mut self, other: &Self) {
        self.measured += &other.measured;
        for (command, other) in self.commands.iter_mut().zip(&other.commands) {
            command.latency += &other.latency;
            command.failures += other.failures;
            command.retries += other.retries;
        }
    }
}

impl Measured {
    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.counts = Counts::default();
        self.latency.clear();
        self.lag.clear();
    }
}

impl Second {
    /// The part of a second that is kept.
    pub(super) fn keep(&self) -> KeptSecond {
        KeptSecond {
            at: self.at,
            length: self.length,
            phase: self.phase,
            counts: self.counts,
            latency: self.latency.percentiles(),
            lag: self.lag.percentiles(),
        }
    }
}

impl Outcome {
    /// Trials of one plan together: times, counts and latencies. Seconds and the end are the first one's. None
    /// without a trial.
    pub fn pooled<'a>(trials: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut trials = trials.into_iter();
        let mut pooled = trials.next()?.clone();
        for trial in trials {
            pooled.elapsed += trial.elapsed;
            pooled.connecting += trial.connecting;
            pooled.connections += trial.connections;
            pooled.all += &trial.all;
            pooled.scripts.iter_mut().zip(&trial.scripts).for_each(|(script, other)| *script += other);
            pooled.lost.extend_from_slice(&trial.lost);
        }
        Some(pooled)
    }

    /// Transactions that succeeded, per second of the measured part.
    pub fn tps(&self) -> f64 {
        match self.elapsed.as_secs_f64() {
            0.0 => 0.0,
            seconds => self.all.counts.succeeded as f64 / seconds,
        }
    }
}
