//! Outcome of a run.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use failure::Class;
use measure::{Increment, Latencies, Percentiles};
use server::ClockReading;

use crate::error::parts;

/// Numbers of transactions by outcome. `succeeded + failed + skipped` is the number of all due
/// transactions; `retried` and `late` count some of these again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Committed, or reached the end of the script.
    pub succeeded: u64,
    /// Given up after an error.
    pub failed: Failed,
    /// Never begun: they would have been later than `-L` allows.
    pub skipped: u64,
    /// Tried more than once, with any outcome.
    pub retried: u64,
    /// All tries after the first.
    pub retries: u64,
    /// Succeeded, but slower than `-L`.
    pub late: u64,
}

/// Failed transactions by the kind of their last error, as in pgbench.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// Failures of serialization (SQLSTATE 40001).
    pub serialization: u64,
    /// Deadlocks (SQLSTATE 40P01).
    pub deadlock: u64,
    /// Any other error: pgbench ends the client then, and so does pgrig.
    pub other: u64,
}

/// Figures of all transactions, or of the transactions of one script.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Numbers of transactions by outcome.
    pub counts: Counts,
    /// Latency of succeeded transactions, from the scheduled start (without a rate: the actual one)
    /// to the end.
    pub latency: Latencies,
    /// Delay from the scheduled start to the actual one; empty without a rate.
    pub lag: Latencies,
}

/// Figures of one script's transactions.
#[derive(Clone, Debug)]
pub struct MeasuredScript {
    /// Counts and latencies of its transactions.
    pub measured: Measured,
    /// With `-r`, the figures of its commands, in the order of `script::Script::commands`. Empty
    /// otherwise.
    pub commands: Vec<MeasuredCommand>,
}

/// One command of a script.
#[derive(Clone, Debug, Default)]
pub struct MeasuredCommand {
    /// Time from sending it to its result; failed executions are not counted.
    pub latency: Latencies,
    /// Errors that ended a transaction here.
    pub failures: u64,
    /// Errors after which the transaction was tried again.
    pub retries: u64,
}

/// The stage of a run; only `Measured` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients begin one after the other; nothing is counted.
    Ramp,
    /// All clients work; nothing is counted.
    Warmup,
    /// The measured part, which results are made of.
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
    /// Latency of succeeded transactions.
    pub latency: Latencies,
    /// Delay of the transactions that began in it, with a rate.
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
    /// Latency of succeeded transactions; none if there are none.
    pub latency: Option<Percentiles>,
    /// Delay of the transactions that began in it; none without a rate.
    pub lag: Option<Percentiles>,
}

/// A client that ended early because of an error.
#[derive(Clone, Debug)]
pub struct LostClient {
    /// Its number, from 0.
    pub client: usize,
    /// Script and command (from 0) at which it ended, if it was carrying one out.
    pub at: Option<(usize, usize)>,
    /// The error that ended it.
    pub why: String,
    /// Whether its script or the server is the cause.
    pub class: Class,
}

/// Clients that lost their sessions and went on, in one second, on another target.
#[derive(Clone, Debug)]
pub struct Moves {
    /// Seconds since the first transaction.
    pub at: f64,
    /// Number of the target that they left, from 0.
    pub from: usize,
    /// Number of their new target, from 0; the same if only that one took them again.
    pub to: usize,
    /// Number of clients.
    pub clients: u64,
    /// Why the first of them lost its session.
    pub why: String,
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The run came to its end.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// All or some clients were lost: see [`Outcome::lost`].
    Lost,
    /// Another part of the run left before its end, or could not be seen any more: see [`Outcome::parted`].
    Parted,
}

/// Why a part of a run stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parted {
    /// These parts left.
    Left(Vec<usize>),
    /// The session by which it sees the others was lost: the reason.
    Unseen(String),
}

impl std::fmt::Display for Parted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Left(numbers) => {
                let those = parts(numbers);
                write!(
                    formatter,
                    "{those} ended before the end of the run, so this part stopped: read the output of {those}, then start \
                     all parts again"
                )
            }
            Self::Unseen(why) => {
                write!(
                    formatter,
                    "this part stopped, because it lost the session by which it sees the other parts: {why}. Start all \
                     parts again"
                )
            }
        }
    }
}

/// The measurements, even of a run that was not completed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// End of the run.
    pub end: End,
    /// Length of the measured part, without connecting: until the end of the last transaction that
    /// had begun in time. A transaction counts in the part in which it ends.
    pub elapsed: Duration,
    /// Time to connect all clients; with `-C`, the sum over all connections.
    pub connecting: Duration,
    /// Number of connections made.
    pub connections: u64,
    /// Totals of all scripts.
    pub all: Measured,
    /// Each script, in the request's order.
    pub scripts: Vec<MeasuredScript>,
    /// Succeeded transactions on each target.
    pub targets: Vec<u64>,
    /// Clients that went on on another target.
    pub moves: Vec<Moves>,
    /// Second by second, ramp and warm-up included. Those that were measured add up to `all`.
    pub seconds: Vec<KeptSecond>,
    /// Clients that were lost.
    pub lost: Vec<LostClient>,
    /// For a part: counts and latencies of each second that was measured.
    pub(crate) increments: Vec<Increment>,
    /// For a part: readings of the server's clock.
    pub clock: Vec<ClockReading>,
    /// For a part: the second of the server's clock, since 1970, at which all parts agreed to begin.
    pub(crate) agreed: Option<i64>,
    /// For a part: why it stopped early.
    pub parted: Option<Parted>,
    /// Time of the first transaction.
    pub begun: Instant,
}

impl Counts {
    /// Transactions that were given up.
    pub fn all_failed(&self) -> u64 {
        self.failed.serialization + self.failed.deadlock + self.failed.other
    }

    /// Number of all due transactions: each succeeded, failed or was skipped.
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
    /// Clears all figures, and keeps the memory.
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
    /// Cause of the loss of clients: their scripts, if all were lost by these.
    pub fn class_of_loss(&self) -> Class {
        let by_script = self.lost.iter().all(|lost| lost.class == Class::Request);
        if by_script && !self.lost.is_empty() { Class::Request } else { Class::Machine }
    }

    /// Several trials of one plan as one: times, counts and latencies are added. Seconds and end
    /// are those of the first trial. None without a trial.
    pub fn pooled<'a>(trials: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut trials = trials.into_iter();
        let mut pooled = trials.next()?.clone();
        for trial in trials {
            pooled.elapsed += trial.elapsed;
            pooled.connecting += trial.connecting;
            pooled.connections += trial.connections;
            pooled.all += &trial.all;
            pooled.scripts.iter_mut().zip(&trial.scripts).for_each(|(script, other)| *script += other);
            pooled.targets.iter_mut().zip(&trial.targets).for_each(|(all, number)| *all += number);
            pooled.moves.extend_from_slice(&trial.moves);
            pooled.lost.extend_from_slice(&trial.lost);
        }
        Some(pooled)
    }

    /// Number of times that a client went on on another target.
    pub fn moved(&self) -> u64 {
        self.moves.iter().map(|moves| moves.clients).sum()
    }

    /// Transactions that succeeded, per second of the measured part.
    pub fn tps(&self) -> f64 {
        match self.elapsed.as_secs_f64() {
            0.0 => 0.0,
            seconds => self.all.counts.succeeded as f64 / seconds,
        }
    }
}
