//! The request: scripts, clients, time.

use std::time::Duration;

use measure::Skipped;
use script::{Definition, Source};

use crate::error::TpsError;
use crate::outcome::Phase;

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// `-T`: time from the beginning of the measured part.
    Time(Duration),
    /// `-t`: transactions of each client.
    Transactions(u64),
}

/// `-M`: how statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One Query message, variables put into the text.
    Simple,
    /// Parse, Bind, Execute each time.
    Extended,
    /// Parsed once in a session, then Bind and Execute.
    Prepared,
}

/// When clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connecting {
    /// Before the run.
    Once,
    /// `-C`: for each transaction.
    EachTransaction,
}

/// The request, with defaults filled in.
#[derive(Clone, Debug)]
pub struct Request {
    /// The scripts, with their weights.
    pub sources: Vec<Source>,
    /// `-D`: variables that all clients begin with.
    pub definitions: Vec<Definition>,
    /// `-c`: connections, at least 1.
    pub clients: usize,
    /// `-j`: threads, at least 1.
    pub jobs: usize,
    /// `-T` or `-t`: when the measured part ends.
    pub length: Length,
    /// `-R`: number of transactions a second that all clients together begin, at random times of a
    /// schedule.
    pub rate: Option<f64>,
    /// `-L`: transactions that take longer are counted as late; with a rate, transactions that
    /// would begin later are skipped.
    pub latency_limit: Option<Duration>,
    /// `-M`: protocol by which statements are sent.
    pub protocol: Protocol,
    /// `-C`: whether a client connects once, or for each transaction.
    pub connecting: Connecting,
    /// Whether pgbench's tables are vacuumed, and its history emptied, first (not with `-n`).
    pub vacuum: bool,
    /// `--max-tries` of a transaction that fails by serialization or deadlock; 0 is no limit.
    pub max_tries: u32,
    /// `--warm-up`: time of transactions that are not counted.
    pub warmup: Duration,
    /// `--ramp`: time over which clients begin, evenly one after the other; it is not counted
    /// either.
    pub ramp: Duration,
    /// `--random-seed`: seed of all random numbers.
    pub seed: u64,
    /// `-s`: the variable `scale`. By default it is read from pgbench_branches for built-in
    /// scripts, and 1 for others.
    pub scale: Option<i64>,
    /// `-r`: whether each command is timed too.
    pub statements: bool,
    /// The names of the targets over which clients are divided, if there are several.
    pub targets: Vec<String>,
    /// `--part`: the process is one of several that put load on the server at the same time.
    pub part: Option<Part>,
}

/// One of several processes that put load on a server at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: usize,
    /// Number of all parts.
    pub of: usize,
    /// Distinguishes runs that use one server at the same time; the same for all parts of a run.
    pub run: String,
    /// Number of the trial, from 1: the parts synchronise again before each.
    pub trial: usize,
    /// Longest time to wait for the other parts.
    pub patience: Duration,
}

impl Part {
    /// Whether both numbers are possible.
    pub(crate) fn is_possible(&self) -> bool {
        (1..=self.of).contains(&self.number)
    }

    /// The name of the advisory locks of all parts of a trial.
    pub(crate) fn lock_name(&self) -> String {
        format!("pgrig tps {} {} {}", self.of, self.trial, self.run)
    }

    /// The name under which the parts exchange documents.
    pub(crate) fn exchange(&self) -> String {
        format!("pgrig tps documents {} {}", self.of, self.run)
    }
}

/// Without a latency limit: a transaction that had been due for so long when the run was over, and had not begun, counts as
/// skipped. A stall or an overload at the end cannot hide itself then. A transaction that became due just before the end does not count.
const UNSERVED: Duration = Duration::from_millis(100);

impl Request {
    /// First phase of a run.
    pub(super) fn first_phase(&self) -> Phase {
        match (self.ramp, self.warmup) {
            (Duration::ZERO, Duration::ZERO) => Phase::Measured,
            (Duration::ZERO, _) => Phase::Warmup,
            _ => Phase::Ramp,
        }
    }

    /// A number of skipped transactions, with the latency that each would have exceeded; none without a rate.
    pub fn skipped(&self, number: u64) -> Option<Skipped> {
        self.rate.map(|_| Skipped { number, limit: self.latency_limit.unwrap_or(UNSERVED) })
    }

    /// How late a transaction may begin; none if it may begin at any time, as all may without a limit until the run is over.
    pub(crate) fn patience(&self, is_over: bool) -> Option<Duration> {
        self.latency_limit.or(is_over.then_some(UNSERVED))
    }

    /// Refuses requests that cannot work on any server.
    ///
    /// # Errors
    /// If options contradict each other; the error names them and the remedy.
    pub fn check(&self) -> Result<(), TpsError> {
        let limited_by_time = matches!(self.length, Length::Time(_));
        let refusals = [
            (self.sources.is_empty(), "no script is given: give a script with -f FILE or -b NAME"),
            (self.clients == 0, "--clients must be at least 1"),
            (self.jobs == 0, "--jobs must be at least 1"),
            (self.length == Length::Transactions(0), "--transactions must be at least 1"),
            (self.length == Length::Time(Duration::ZERO), "--time must be more than 0"),
            (
                self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0),
                "--rate must be more than 0 transactions a second; without it, clients run at full speed",
            ),
            (self.latency_limit == Some(Duration::ZERO), "--latency-limit must be more than 0"),
            (
                self.max_tries == 0 && self.latency_limit.is_none() && !limited_by_time,
                "--max-tries 0 (no limit) could run forever: give --time or --latency-limit too",
            ),
            (self.scale.is_some_and(|scale| scale < 1), "--scale must be at least 1"),
            (
                self.part.as_ref().is_some_and(|part| !part.is_possible()),
                "--part I/N: give a number I from 1 to N",
            ),
            (
                self.part.is_some() && (self.ramp + self.warmup).subsec_nanos() != 0,
                "with --part, --ramp and --warm-up together must be whole seconds: all parts count in whole seconds of \
                 the server's clock",
            ),
            (
                self.part.is_some() && self.vacuum,
                "a part of a run cannot prepare the tables, because another part may already run: give -n",
            ),
            (
                self.targets.len() > 1 && self.vacuum,
                "pgrig prepares no tables on several targets: give -n (and vacuum them before, if you want to)",
            ),
        ];
        match refusals.into_iter().find(|(refused, _)| *refused) {
            Some((_, why)) => Err(TpsError::Request(why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
impl Part {
    pub(super) fn numbered(number: usize, of: usize) -> Self {
        Self { number, of, run: String::new(), trial: 1, patience: Duration::from_secs(1) }
    }
}

impl Request {
    /// The same request with random numbers of its own for each trial; the first one has those of the seed. With those of an earlier trial, the
    /// scripts would update the same rows, whose versions lie together since, and write fewer pages.
    #[must_use]
    pub(crate) fn of_trial(self, number: usize) -> Self {
        let seed = self.seed.wrapping_add(number.saturating_sub(1) as u64);
        Self { seed, ..self }
    }

    /// Transactions of this script as pgbench runs them by default: one client, one thread, no rate, the simple protocol, vacuum first.
    /// The seed is 0.
    pub fn of(source: Source, length: Length) -> Self {
        Self {
            sources: vec![source],
            definitions: Vec::new(),
            clients: 1,
            jobs: 1,
            length,
            rate: None,
            latency_limit: None,
            protocol: Protocol::Simple,
            connecting: Connecting::Once,
            vacuum: true,
            max_tries: 1,
            warmup: Duration::ZERO,
            ramp: Duration::ZERO,
            seed: 0,
            scale: None,
            statements: false,
            targets: Vec::new(),
            part: None,
        }
    }
}

#[cfg(test)]
impl Request {
    /// Ten transactions of one client, of the built-in script select-only.
    pub(super) fn simple() -> Self {
        let source = Source::builtin("select-only").unwrap();
        Self { vacuum: false, ..Self::of(source, Length::Transactions(10)) }
    }
}

#[cfg(test)]
mod tests {
    use failure::Classified;

    use super::*;

    #[track_caller]
    fn assert_refused(change: impl Fn(&mut Request), option: &str) {
        let mut request = Request::simple();
        request.check().unwrap();
        change(&mut request);
        let error = request.check().unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(option), "{error}");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        assert_refused(|request| request.sources.clear(), "-f FILE");
        assert_refused(|request| request.clients = 0, "--clients");
        assert_refused(|request| request.jobs = 0, "--jobs");
        assert_refused(|request| request.length = Length::Transactions(0), "--transactions");
        assert_refused(|request| request.length = Length::Time(Duration::ZERO), "--time");
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_refused(|request| request.rate = Some(rate), "--rate");
        }
        assert_refused(|request| request.latency_limit = Some(Duration::ZERO), "--latency-limit");
        assert_refused(|request| request.scale = Some(0), "--scale");
        for (number, of) in [(0, 1), (3, 2)] {
            assert_refused(|request| request.part = Some(Part::numbered(number, of)), "--part");
        }
        let part = || Some(Part::numbered(1, 2));
        assert_refused(
            |request| (request.part, request.warmup) = (part(), Duration::from_millis(500)),
            "whole seconds",
        );
        assert_refused(|request| (request.part, request.vacuum) = (part(), true), "-n");
        let targets = || vec!["a".to_owned(), "b".to_owned()];
        assert_refused(|request| (request.targets, request.vacuum) = (targets(), true), "-n");
    }

    #[test]
    fn each_trial_has_a_seed_of_its_own() {
        let request = Request { seed: u64::MAX, ..Request::simple() };
        let seeds = [1, 2, 3].map(|number| request.clone().of_trial(number).seed);
        assert_eq!(seeds, [u64::MAX, 0, 1]);
    }

    #[test]
    fn tries_need_some_limit() {
        assert_refused(|request| request.max_tries = 0, "--max-tries 0");
        let time = Length::Time(Duration::from_secs(1));
        Request { max_tries: 0, length: time, ..Request::simple() }.check().unwrap();
        let limit = Some(Duration::from_secs(1));
        Request { max_tries: 0, latency_limit: limit, ..Request::simple() }.check().unwrap();
    }
}
