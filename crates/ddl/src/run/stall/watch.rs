//! Probes that wait for locks, with the start of each wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use server::Session;
use tokio_postgres::Row;

/// Time between two readings.
const POLL: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Default)]
pub(super) struct Waiting {
    is_over: AtomicBool,
    queue: Mutex<Queue>,
}

/// Times at which server processes were seen waiting, from the beginning of the probes: from when to when.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeMap<i32, Vec<(Duration, Duration)>>);

impl Waiting {
    /// Reads who waits, until it is stopped or the connection is lost: the probes see that, too.
    pub(super) async fn watch(&self, session: &Session, pids: &[i32], began: Instant) {
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok(rows) = session.rows(include_str!("../../sql/waiting.sql"), &[&pids]).await else {
                return;
            };
            let now = began.elapsed();
            self.see(&rows, now);
            tokio::time::sleep(POLL).await;
        }
    }

    fn see(&self, rows: &[Row], now: Duration) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let since = row.get::<_, Option<f64>>("since").unwrap_or_default().max(0.0);
            queue.see(row.get("pid"), now.saturating_sub(Duration::from_secs_f64(since)), now);
        }
    }

    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Takes what was seen.
    pub(super) fn found(&self) -> Queue {
        std::mem::take(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Queue {
    /// Notes that a process waits, from before until now.
    fn see(&mut self, pid: i32, from: Duration, now: Duration) {
        let seen = self.0.entry(pid).or_default();
        match seen.last_mut() {
            // The same wait, seen again.
            Some((_, last)) if from <= *last => *last = now,
            _ => seen.push((from, now)),
        }
    }

    /// Time within these two, those of one statement, from the first to the last moment that the process waited for locks.
    pub(super) fn locked(&self, pid: i32, from: Duration, to: Duration) -> Duration {
        let seen = self.0.get(&pid).map_or(&[][..], Vec::as_slice);
        let within = seen.iter().filter(|(since, until)| *until >= from && *since <= to);
        let span = within.fold(None, |span: Option<(Duration, Duration)>, (since, until)| {
            let (first, last) = span.unwrap_or((*since, *until));
            Some((first.min(*since), last.max(*until)))
        });
        span.map_or(Duration::ZERO, |(first, last)| last.min(to).saturating_sub(first.max(from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_from_its_first_to_its_last_reading() {
        let at = Duration::from_millis;
        let mut queue = Queue::default();
        queue.see(7, at(100), at(105));
        queue.see(7, at(140), at(160));
        queue.see(7, at(400), at(402));
        assert_eq!(queue.locked(7, at(0), at(300)), at(60));
        assert_eq!(queue.locked(7, at(120), at(150)), at(10));
        assert_eq!(queue.locked(7, at(200), at(300)), at(0));
        assert_eq!(queue.locked(8, at(0), at(1000)), at(0));
        // A wait that is seen again is the same.
        for now in 500..600 {
            queue.see(7, at(450), at(now));
        }
        assert_eq!(queue.0[&7].len(), 4);
        assert_eq!(queue.locked(7, at(420), at(1000)), at(149));
    }
}
