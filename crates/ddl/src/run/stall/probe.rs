//! A session that is sent statements on a schedule.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use connect::{ConnectError, SqlState};
use server::Session;

use super::INTERVAL;
use crate::outcome::ProbeKind;

/// A probe's statements.
pub(super) struct Asked {
    pub(super) kind: ProbeKind,
    /// The table for people.
    pub(super) name: String,
    /// Sent one after the other, again and again.
    pub(super) statements: Vec<String>,
}

/// See the module.
pub(super) struct Probe {
    pub(super) pid: i32,
    pub(super) asked: Asked,
    is_over: AtomicBool,
    /// When the statement that was answered last was due, nanoseconds.
    answered: AtomicU64,
    log: Mutex<Log>,
}

/// Answers of a probe, with their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) answers: Vec<Answer>,
    /// When and why it could not go on.
    pub(super) stopped: Option<(Duration, String)>,
}

/// Times of one statement, from the beginning of the probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) scheduled: Duration,
    pub(super) answered: Duration,
}

impl Answer {
    pub(super) fn waited(&self) -> Duration {
        self.answered.saturating_sub(self.scheduled)
    }
}

impl Probe {
    pub(super) fn new(pid: i32, asked: Asked) -> Self {
        Self {
            pid,
            asked,
            is_over: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            log: Mutex::default(),
        }
    }

    /// Sends statements until it is stopped, or one cannot be run. Those that lose a deadlock are run again.
    pub(super) async fn run(&self, session: Session, began: Instant) {
        let first = began.elapsed();
        let mut number: u32 = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let scheduled = first + INTERVAL * number;
            tokio::time::sleep_until((began + scheduled).into()).await;
            let statement = &self.asked.statements[number as usize % self.asked.statements.len()];
            number += 1;
            match session.run(statement).await {
                Err(error) if !is_again(&error) => {
                    let message = crate::run::failure::of(&error).message;
                    self.log.lock().unwrap_or_else(PoisonError::into_inner).stopped =
                        Some((began.elapsed(), message));
                    self.stop();
                }
                _ => {
                    let answer = Answer { scheduled, answered: began.elapsed() };
                    self.log.lock().unwrap_or_else(PoisonError::into_inner).answers.push(answer);
                    let nanoseconds = u64::try_from(scheduled.as_nanos()).unwrap_or(u64::MAX);
                    self.answered.store(nanoseconds, Ordering::Relaxed);
                }
            }
        }
        session.close().await;
    }

    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether it runs, and nothing was answered that was due after `now`.
    pub(super) fn is_behind(&self, now: Duration) -> bool {
        let answered = Duration::from_nanos(self.answered.load(Ordering::Relaxed));
        !self.is_over.load(Ordering::Relaxed) && answered <= now
    }

    pub(super) fn log(&self) -> Log {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether the statement may succeed when it is sent again.
fn is_again(error: &ConnectError) -> bool {
    let again = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.sqlstate().is_some_and(|state| again.contains(state))
}
