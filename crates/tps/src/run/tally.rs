//! Counters, which each job has for itself, and which are collected every second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use measure::Increment;
use script::Scripts;

use crate::document;
use crate::outcome::{Counts, KeptSecond, Measured, MeasuredCommand, MeasuredScript, Phase, Second};
use crate::request::Request;
use crate::run::pace::Timetable;

/// One job's counts since the last collection. Only the job counts here, so the lock is contended
/// only for an instant each second. It has a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Tally(Mutex<Counted>);

#[derive(Debug)]
struct Counted {
    phase: Phase,
    scripts: Vec<MeasuredScript>,
    /// Succeeded transactions on each target.
    targets: Vec<u64>,
}

/// Outcome of a transaction that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionOutcome {
    Succeeded(Duration),
    Serialization,
    Deadlock,
    Other,
}

impl Tally {
    /// Empty counts. `commands` says whether commands are timed too.
    pub(crate) fn new(scripts: &Scripts, commands: bool, phase: Phase, targets: usize) -> Self {
        Self(Mutex::new(Counted { phase, scripts: nothing(scripts, commands), targets: vec![0; targets] }))
    }

    fn part(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a transaction that has ended on a target. Returns the part of the run in which it was counted.
    pub(crate) fn ended(
        &self,
        (script, target): (usize, usize),
        outcome: TransactionOutcome,
        retries: u32,
        limit: Option<Duration>,
    ) -> Phase {
        let mut part = self.part();
        part.targets[target] += u64::from(matches!(outcome, TransactionOutcome::Succeeded(_)));
        let Measured { counts, latency, .. } = &mut part.scripts[script].measured;
        counts.retried += u64::from(retries > 0);
        counts.retries += u64::from(retries);
        match outcome {
            TransactionOutcome::Succeeded(took) => {
                counts.succeeded += 1;
                counts.late += u64::from(limit.is_some_and(|limit| took > limit));
                latency.record(took);
            }
            TransactionOutcome::Serialization => counts.failed.serialization += 1,
            TransactionOutcome::Deadlock => counts.failed.deadlock += 1,
            TransactionOutcome::Other => counts.failed.other += 1,
        }
        part.phase
    }

    /// Counts transactions that were skipped. Returns the part of the run in which they were counted.
    pub(crate) fn skipped(&self, script: usize, number: u64) -> Phase {
        let mut part = self.part();
        part.scripts[script].measured.counts.skipped += number;
        part.phase
    }

    /// Records the delay with which a transaction began.
    pub(crate) fn began(&self, script: usize, lag: Duration) {
        self.part().scripts[script].measured.lag.record(lag);
    }

    /// Changes a command's figures, if commands are timed.
    pub(crate) fn command(
        &self,
        (script, command): (usize, usize),
        change: impl FnOnce(&mut MeasuredCommand),
    ) {
        if let Some(command) = self.part().scripts[script].commands.get_mut(command) {
            change(command);
        }
    }
}

fn nothing(scripts: &Scripts, commands: bool) -> Vec<MeasuredScript> {
    let nothing = scripts.iter().map(|script| {
        let commands = if commands { script.commands().len() } else { 0 };
        MeasuredScript { measured: Measured::default(), commands: vec![MeasuredCommand::default(); commands] }
    });
    nothing.collect()
}

fn clear(scripts: &mut [MeasuredScript]) {
    for script in scripts {
        script.measured.clear();
        for command in &mut script.commands {
            command.latency.clear();
            command.failures = 0;
            command.retries = 0;
        }
    }
}

/// Adds up the jobs' counts, a second at a time. The collector decides to which second and to which
/// part of the run counts belong, when it takes them. So everything is counted exactly once, and
/// all figures agree.
pub(crate) struct Collector {
    timetable: Timetable,
    /// Empty counts to swap in, one for each job.
    spare: Vec<Counted>,
    scripts: Vec<MeasuredScript>,
    targets: Vec<u64>,
    seconds: Vec<KeptSecond>,
    /// The measured seconds of a part, with the counts of one to add up in.
    increments: Option<(Vec<Increment>, Vec<MeasuredScript>)>,
    phase: Phase,
    /// Actual and scheduled start of the current second.
    since: Instant,
    planned: Instant,
    elapsed: Duration,
}

/// Measurements of all jobs.
pub(crate) struct Collected {
    pub(crate) elapsed: Duration,
    pub(crate) all: Measured,
    pub(crate) scripts: Vec<MeasuredScript>,
    /// Succeeded transactions on each target.
    pub(crate) targets: Vec<u64>,
    pub(crate) seconds: Vec<KeptSecond>,
    pub(crate) increments: Vec<Increment>,
}

impl Collector {
    pub(crate) fn new(
        timetable: Timetable,
        scripts: &Scripts,
        request: &Request,
        (jobs, targets): (usize, usize),
    ) -> Self {
        let commands = request.statements;
        let phase = timetable.phase(timetable.start());
        let spare = (0..jobs).map(|_| Counted {
            phase,
            scripts: nothing(scripts, commands),
            targets: vec![0; targets],
        });
        Self {
            spare: spare.collect(),
            scripts: nothing(scripts, commands),
            targets: vec![0; targets],
            seconds: Vec::new(),
            increments: request.part.as_ref().map(|_| (Vec::new(), nothing(scripts, commands))),
            phase,
            since: timetable.start(),
            planned: timetable.start(),
            elapsed: Duration::ZERO,
            timetable,
        }
    }

    /// Scheduled end of the present second.
    pub(crate) fn next(&self) -> Instant {
        self.timetable.next_cut(self.planned)
    }

    /// Ends a second when it is time.
    pub(crate) fn cut(&mut self, tallies: &[Tally]) -> Second {
        self.planned = self.next();
        let next = self.timetable.phase(self.planned);
        self.take(tallies, next, None)
    }

    /// Ends the last second, which ended at `over`; none if it was empty.
    pub(crate) fn finish(mut self, tallies: &[Tally], over: Instant) -> (Collected, Option<Second>) {
        let second = self.take(tallies, self.phase, Some(over));
        let is_empty = second.counts == Counts::default() && second.length == 0.0;
        if is_empty {
            self.seconds.pop();
        }
        let mut all = Measured::default();
        self.scripts.iter().for_each(|script| all += &script.measured);
        let Self { elapsed, scripts, targets, seconds, increments, .. } = self;
        let mut increments = increments.map(|(increments, _)| increments).unwrap_or_default();
        if is_empty && self.phase == Phase::Measured {
            increments.pop();
        }
        (Collected { elapsed, all, scripts, targets, seconds, increments }, (!is_empty).then_some(second))
    }

    /// Takes all jobs' counts. Later counts belong to the phase `next`.
    fn take(&mut self, tallies: &[Tally], next: Phase, until: Option<Instant>) -> Second {
        for (tally, spare) in tallies.iter().zip(&mut self.spare) {
            spare.phase = next;
            std::mem::swap(&mut *tally.part(), spare);
        }
        let until = until.unwrap_or_else(Instant::now);
        let length = until.saturating_duration_since(self.since);
        let mut measured = Measured::default();
        if let Some((increments, sum)) = self.increments.as_mut().filter(|_| self.phase == Phase::Measured) {
            clear(sum);
            for part in &self.spare {
                sum.iter_mut().zip(&part.scripts).for_each(|(total, script)| *total += script);
            }
            let of = |target| self.spare.iter().map(|part| part.targets[target]).sum();
            let targets: Vec<u64> = (0..self.targets.len()).map(of).collect();
            let from = (self.since - self.timetable.start()).as_secs_f64();
            let until = (self.since - self.timetable.start() + length).as_secs_f64();
            increments.push(document::increment(sum, &targets, from, until));
        }
        for part in &mut self.spare {
            part.scripts.iter().for_each(|script| measured += &script.measured);
            if self.phase == Phase::Measured {
                self.scripts.iter_mut().zip(&part.scripts).for_each(|(total, script)| *total += script);
                self.targets.iter_mut().zip(&part.targets).for_each(|(total, number)| *total += number);
            }
            clear(&mut part.scripts);
            part.targets.fill(0);
        }
        if self.phase == Phase::Measured {
            self.elapsed += length;
        }
        let second = Second {
            at: (self.since - self.timetable.start() + length).as_secs_f64(),
            length: length.as_secs_f64(),
            phase: self.phase,
            counts: measured.counts,
            latency: measured.latency,
            lag: measured.lag,
        };
        self.seconds.push(second.keep());
        self.since += length;
        self.phase = next;
        second
    }
}
