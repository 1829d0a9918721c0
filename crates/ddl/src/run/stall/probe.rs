//! A session that works on a schedule.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use measure::Sample;
use server::Session;

use super::INTERVAL;
use super::carry::{Fault, Script};
use crate::outcome::ProbeKind;
use crate::probing::Probing;

/// Runs of what the user gives, before its schedule begins.
const TRIED: usize = 10;
/// Time after which no more of these runs begins.
const TRYING: Duration = Duration::from_secs(1);

/// A probe's work.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) kind: ProbeKind,
    /// The table, or the user's script, for people.
    pub(super) name: String,
    pub(super) doing: Doing,
    /// Whether the user gave it.
    pub(super) is_own: bool,
}

/// The work of a probe at each scheduled start.
#[derive(Clone)]
pub(super) enum Doing {
    /// It sends one of these, one after the other, again and again.
    Statements(Vec<String>),
    /// It carries out a script.
    Script(Script),
}

impl Asked {
    /// The user's.
    pub(super) fn own(kind: ProbeKind, probing: &Probing, seed: u64) -> Self {
        let doing = match probing {
            Probing::Statement(sql) => Doing::Statements(vec![sql.clone()]),
            Probing::Script(script) => Doing::Script(Script::begin(script, kind, seed)),
        };
        Self { kind, name: probing.name().to_owned(), doing, is_own: true }
    }
}

impl Doing {
    /// Does what is due at the start of this number.
    pub(super) async fn once(&mut self, session: &Session, number: u32) -> Result<(), Fault> {
        match self {
            Self::Statements(statements) => {
                Ok(session.run(&statements[number as usize % statements.len()]).await?)
            }
            Self::Script(script) => script.once(session).await,
        }
    }
}

/// The time between the scheduled starts: twice the median time that the user's takes, if that is longer than the usual one.
/// The script goes on with the variables and random numbers after these runs.
pub(super) async fn interval(asked: &mut Asked, session: &Session) -> Duration {
    let (mut seconds, began) = (Vec::new(), Instant::now());
    for number in (0..).take(if asked.is_own { TRIED } else { 0 }) {
        let run = Instant::now();
        // A failure is noted when the schedule repeats it.
        if asked.doing.once(session, number).await.is_err() {
            break;
        }
        seconds.push(run.elapsed().as_secs_f64());
        if began.elapsed() > TRYING {
            break;
        }
    }
    let median = Sample::new(seconds).map_or(0.0, |sample| sample.median());
    INTERVAL.max(Duration::from_secs_f64(2.0 * median))
}

/// See the module.
pub(super) struct Probe {
    pub(super) pid: i32,
    pub(super) asked: Asked,
    /// Time between the scheduled starts.
    pub(super) interval: Duration,
    is_over: AtomicBool,
    /// When the statement that was answered last was due, nanoseconds.
    answered: AtomicU64,
    /// The probe no longer sends statements that were due before this time, nanoseconds.
    skipped: AtomicU64,
    /// When the statement of the migration began that runs, or the one before ended, nanoseconds.
    section: AtomicU64,
    log: Mutex<Log>,
}

/// Answers of a probe, with their times. Of those within one section, which count for the same statement, only the longest wait.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) answers: Vec<Answer>,
    /// The section within which the last of them is, if it is within one.
    within: Option<Duration>,
    /// The deadlocks that it lost.
    pub(super) deadlocks: Vec<Lost>,
    /// When and why it could not go on.
    pub(super) stopped: Option<(Duration, String)>,
}

/// A deadlock that a probe lost.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// When its work was due.
    pub(super) scheduled: Duration,
    /// When the answer came.
    pub(super) answered: Duration,
    /// The server's detail.
    pub(super) detail: String,
}

/// Times of one statement, from the beginning of the probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) scheduled: Duration,
    pub(super) answered: Duration,
    /// Time until the next one is due.
    pub(super) interval: Duration,
    /// Whether the answer is an error.
    pub(super) is_error: bool,
}

impl Answer {
    pub(super) fn waited(&self) -> Duration {
        self.answered.saturating_sub(self.scheduled)
    }
}

impl Log {
    /// Adds an answer, with the section within which it is.
    fn add(&mut self, answer: Answer, within: Option<Duration>) {
        match self.answers.last_mut() {
            Some(last) if within.is_some() && self.within == within => {
                if answer.waited() > last.waited() {
                    *last = answer;
                }
            }
            _ => self.answers.push(answer),
        }
        self.within = within;
    }
}

impl Probe {
    pub(super) fn new(pid: i32, asked: Asked, interval: Duration) -> Self {
        Self {
            pid,
            asked,
            interval,
            is_over: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            section: AtomicU64::new(0),
            log: Mutex::default(),
        }
    }

    /// Works until it is stopped, or its work fails. What loses a deadlock is run again.
    pub(super) async fn run(&self, session: Session, began: Instant) {
        let first = began.elapsed();
        let mut number: u32 = 0;
        let mut doing = self.asked.doing.clone();
        while !self.is_over.load(Ordering::Relaxed) {
            let scheduled = first + self.interval * number;
            let skipped = Duration::from_nanos(self.skipped.load(Ordering::Relaxed));
            if scheduled < skipped {
                // It has waited until then in vain, and the others of these for a shorter time.
                self.note((scheduled, skipped), false);
                let late = skipped.saturating_sub(scheduled).as_nanos().div_ceil(self.interval.as_nanos());
                number = number.saturating_add(u32::try_from(late).unwrap_or(u32::MAX));
                continue;
            }
            tokio::time::sleep_until((began + scheduled).into()).await;
            let done = doing.once(&session, number).await;
            number += 1;
            match done {
                Err(fault) if !fault.is_again() => {
                    let now = began.elapsed();
                    // It has waited, too.
                    self.note((scheduled, now), true);
                    self.log.lock().unwrap_or_else(PoisonError::into_inner).stopped =
                        Some((now, fault.message()));
                    self.stop();
                }
                done => {
                    let now = began.elapsed();
                    if let Some(detail) = done.as_ref().err().and_then(Fault::deadlock) {
                        let lost = Lost { scheduled, answered: now, detail: detail.to_owned() };
                        self.log.lock().unwrap_or_else(PoisonError::into_inner).deadlocks.push(lost);
                    }
                    self.note((scheduled, now), done.is_err());
                    self.answered.store(nanoseconds(scheduled), Ordering::Relaxed);
                }
            }
        }
        session.close().await;
    }

    fn note(&self, (scheduled, answered): (Duration, Duration), is_error: bool) {
        let section = Duration::from_nanos(self.section.load(Ordering::SeqCst));
        // The first that is due after a statement may count for that one, too.
        let within = (scheduled > section + self.interval).then_some(section);
        let answer = Answer { scheduled, answered, interval: self.interval, is_error };
        self.log.lock().unwrap_or_else(PoisonError::into_inner).add(answer, within);
    }

    /// A statement of the migration begins or ends.
    pub(super) fn begin_section(&self, now: Duration) {
        self.section.store(nanoseconds(now), Ordering::SeqCst);
    }

    /// Leaves out what is due before `now` and was not sent.
    pub(super) fn skip_to(&self, now: Duration) {
        self.skipped.store(nanoseconds(now), Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether it runs, and nothing was answered that was due after `now`.
    pub(super) fn is_behind(&self, now: Duration) -> bool {
        let answered = Duration::from_nanos(self.answered.load(Ordering::Relaxed));
        !self.is_over.load(Ordering::Relaxed) && answered <= now
    }

    /// Takes its log.
    pub(super) fn log(&self) -> Log {
        std::mem::take(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_of_a_section_is_kept() {
        let asked = Asked {
            kind: ProbeKind::Read,
            name: String::new(),
            doing: Doing::Statements(Vec::new()),
            is_own: false,
        };
        let probe = Probe::new(1, asked, INTERVAL);
        let at = Duration::from_millis;
        for section in [0, 1000] {
            probe.begin_section(at(section));
            for due in (section..section + 1000).step_by(2) {
                let waited = if due == section + 500 { 7 } else { 1 };
                probe.note((at(due), at(due + waited)), false);
            }
        }
        // Due in the second section, answered in the third: it may count for both.
        probe.begin_section(at(2000));
        probe.note((at(1998), at(2001)), false);
        let kept: Vec<_> = probe.log().answers.iter().map(|one| (one.scheduled, one.waited())).collect();
        let first = |section: u64| [section, section + 2].map(|due| (at(due), at(1)));
        let longest = |section: u64| [(at(section + 500), at(7))];
        let expected = [&first(0)[..], &longest(0), &first(1000), &longest(1000), &[(at(1998), at(3))]];
        assert_eq!(kept, expected.concat());
    }
}
