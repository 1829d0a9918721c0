//! Samples the server and the machine at intervals, and keeps the observations.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::sleep_until;

use crate::watch::host::{Counters, Host};
use crate::watch::notes::{self, Unseen};
use crate::watch::period::{Checkpoints, Maintenances};
use crate::watch::server::{Look, ObserveError, Server};
use crate::watch::waits::Waits;
use crate::watch::{WatchPhase, Watched, WatchedSecond};
use connect::ConnectError;

/// Interval between two observations of server and machine.
const SECOND: Duration = Duration::from_secs(1);
/// Interval between two observations of the run's sessions, milliseconds: 100 on average, and
/// irregular, so that it is not in step with the sessions.
const WAITS: std::ops::Range<u64> = 50..150;

/// Samples server and machine. Times are seconds since the sampler was created.
pub(super) struct Sampler {
    server: Option<Server>,
    host: Host,
    jobs: usize,
    clock: Instant,
    unseen: Unseen,
    /// The last observation, which the next one is compared with.
    last: Option<Seen>,
    /// The first observation of the measured part.
    first: Option<Seen>,
    checkpoints: Checkpoints,
    maintenances: Maintenances,
    waits: Waits,
    seconds: Vec<WatchedSecond>,
}

/// Result of one observation.
#[derive(Clone, Debug)]
struct Seen {
    at: f64,
    counters: Counters,
    look: Option<Look>,
}

impl Sampler {
    pub(super) async fn new(server: Result<Server, ConnectError>, jobs: usize) -> Self {
        let directory = match &server {
            Ok(server) => server.data_directory().await,
            Err(_) => None,
        };
        let unseen = match &server {
            Ok(server) => Unseen { others: server.restricted_role().map(str::to_owned), why: None },
            Err(error) => Unseen { others: None, why: Some(error.to_string()) },
        };
        Self {
            server: server.ok(),
            host: Host::new(directory.as_deref()),
            jobs,
            clock: Instant::now(),
            unseen,
            last: None,
            first: None,
            checkpoints: Checkpoints::default(),
            maintenances: Maintenances::default(),
            waits: Waits::default(),
            seconds: Vec::new(),
        }
    }

    /// Observes until the run is over, or until the receiver of the result is gone.
    pub(super) async fn run(mut self, mut parts: watch::Receiver<WatchPhase>) -> Watched {
        let mut next_look = Instant::now();
        let mut next_waits = next_look;
        loop {
            let part = *parts.borrow_and_update();
            match part {
                WatchPhase::Measured if self.first.is_none() => {
                    self.look().await;
                    self.first.clone_from(&self.last);
                    self.seconds.clear();
                    next_look = Instant::now() + SECOND;
                    next_waits = Instant::now();
                }
                WatchPhase::Over => break,
                WatchPhase::Before | WatchPhase::Measured => {}
            }
            let next = if self.first.is_some() { next_look.min(next_waits) } else { next_look };
            tokio::select! {
                changed = parts.changed() => if changed.is_err() {
                    self.first = None;
                    break;
                },
                () = sleep_until(next.into()) => {
                    if next == next_look {
                        self.look().await;
                        next_look = (next_look + SECOND).max(Instant::now());
                    } else {
                        self.look_at_waits().await;
                        next_waits = Instant::now() + Duration::from_millis(fastrand::u64(WAITS));
                    }
                }
            }
        }
        self.close().await
    }

    /// Looks at server and machine.
    async fn look(&mut self) {
        let look = match &self.server {
            Some(server) => {
                let look = server.look().await;
                self.seen(look)
            }
            None => None,
        };
        let now = Seen { at: self.clock.elapsed().as_secs_f64(), counters: self.host.now(), look };
        if let Some(look) = &now.look {
            self.checkpoints.look(now.at, look);
            self.maintenances.look(now.at, look);
        }
        if self.first.is_some() {
            self.waits.pass(now.at);
        }
        if let Some(last) = self.last.replace(now.clone()) {
            self.seconds.push(now.since(&last));
        }
    }

    async fn look_at_waits(&mut self) {
        let Some(server) = &self.server else { return };
        let waits = server.waits().await;
        if let Some(sessions) = self.seen(waits) {
            self.waits.look(sessions);
        }
    }

    /// The value of an answer. If there is none, the first reason for that is kept.
    fn seen<T>(&mut self, answer: Result<T, ObserveError>) -> Option<T> {
        match answer {
            Ok(answer) => return Some(answer),
            Err(ObserveError::Transient(why)) => self.unseen.why.get_or_insert(why),
            Err(ObserveError::SessionLost(why)) => {
                self.server = None;
                self.unseen.why.get_or_insert(why)
            }
        };
        None
    }

    /// Looks a last time, ends the session, and sums up.
    async fn close(mut self) -> Watched {
        let measured = self.first.take();
        if let Some(first) = &measured {
            self.look().await;
            self.look_back(first).await;
        }
        if let Some(server) = self.server.take() {
            server.close().await;
        }
        match (measured, self.last.take()) {
            (Some(first), Some(ended)) => self.sum_up(&first, &ended),
            _ => Watched::default(),
        }
    }

    /// Asks which tables were vacuumed or analyzed so briefly that no observation found it.
    async fn look_back(&mut self, first: &Seen) {
        let (Some(server), Some(began)) = (&self.server, &first.look) else { return };
        // By the server's clock alone: the query may reach it late.
        let maintained = server.maintained(began.clock).await;
        let ended = self.last.as_ref().map_or(first.at, |last| last.at);
        for (maintenance, at) in self.seen(maintained).unwrap_or_default() {
            self.maintenances.finished(&maintenance, (first.at + at - began.clock).min(ended));
        }
    }

    fn sum_up(self, first: &Seen, ended: &Seen) -> Watched {
        let whole = ended.since(first);
        let (totals, waits_over_time) = self.waits.sum_up(first.at, ended.at);
        let samples: u64 = totals.iter().map(|total| total.1).sum();
        let share = |(event, sessions): (String, u64)| (event, sessions as f64 / samples as f64);
        let waits: Vec<(String, f64)> = totals.into_iter().map(share).collect();
        let seconds =
            self.seconds.into_iter().map(|second| WatchedSecond { at: second.at - first.at, ..second });
        let mut watched = Watched {
            notes: Vec::new(),
            waits,
            wait_samples: samples,
            waits_over_time,
            checkpoints: self.checkpoints.measured(first.at, ended.at),
            maintenance: self.maintenances.measured(first.at, ended.at),
            wal: whole.wal,
            used: Some(whole.used),
            seconds: seconds.collect(),
        };
        watched.notes = notes::of(&watched, whole.length, self.jobs, self.host.disk(), &self.unseen);
        watched
    }
}

impl Seen {
    fn since(&self, earlier: &Self) -> WatchedSecond {
        let length = self.at - earlier.at;
        let wal = |seen: &Self| seen.look.as_ref().and_then(|look| look.wal);
        WatchedSecond {
            at: self.at,
            length,
            wal: wal(self).zip(wal(earlier)).map(|(now, then)| now.saturating_sub(then)),
            others: self.look.as_ref().and_then(|look| look.others),
            used: self.counters.since(&earlier.counters, length),
        }
    }
}
