//! Probes that wait for locks, with the start and the object of each wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use server::Session;
use tokio_postgres::Row;

use crate::find::LockMode;

/// Time between two readings.
const POLL: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Default)]
pub(super) struct Waiting {
    is_over: AtomicBool,
    queue: Mutex<Queue>,
}

/// The waits of server processes.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeMap<i32, Vec<Seen>>);

/// A wait, as far as it was seen: from when to when, from the beginning of the probes.
#[derive(Debug)]
struct Seen {
    from: Duration,
    until: Duration,
    on: Option<WaitsOn>,
}

/// The object of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsOn {
    /// A lock of this mode on a relation, by its OID.
    Lock(u32, LockMode),
    /// A row that another transaction has locked, of this relation if that is known.
    Row(Option<u32>),
}

impl WaitsOn {
    /// By a row of pg_locks; none if it is another object.
    fn of(locktype: &str, relation: Option<u32>, mode: &str) -> Option<Self> {
        match locktype {
            "relation" => Some(Self::Lock(relation?, LockMode::of_pg_locks(mode)?)),
            "transactionid" | "tuple" => Some(Self::Row(relation)),
            _ => None,
        }
    }
}

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
            let on = WaitsOn::of(row.get("locktype"), row.get("relation"), row.get("mode"));
            queue.see(row.get("pid"), on, now.saturating_sub(Duration::from_secs_f64(since)), now);
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
    /// Notes that a process waits for this, from before until now.
    fn see(&mut self, pid: i32, on: Option<WaitsOn>, from: Duration, now: Duration) {
        let seen = self.0.entry(pid).or_default();
        match seen.last_mut() {
            // The same wait, seen again.
            Some(last) if from <= last.until => last.until = now,
            _ => seen.push(Seen { from, until: now, on }),
        }
    }

    fn of(&self, pid: i32) -> &[Seen] {
        self.0.get(&pid).map_or(&[][..], Vec::as_slice)
    }

    /// The object of the first wait within these two times. A wait lasts up to one reading longer than it was seen.
    pub(super) fn first(&self, pid: i32, from: Duration, to: Duration) -> Option<WaitsOn> {
        self.of(pid).iter().find(|seen| seen.until + POLL >= from && seen.from <= to)?.on
    }

    /// Time within these two, those of one statement, from the first to the last moment that the process waited for locks.
    pub(super) fn locked(&self, pid: i32, from: Duration, to: Duration) -> Duration {
        let within = self.of(pid).iter().filter(|seen| seen.until >= from && seen.from <= to);
        let span = within.fold(None, |span: Option<(Duration, Duration)>, seen| {
            let (first, last) = span.unwrap_or((seen.from, seen.until));
            Some((first.min(seen.from), last.max(seen.until)))
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
        let row = Some(WaitsOn::Row(None));
        queue.see(7, row, at(100), at(105));
        queue.see(7, row, at(140), at(160));
        queue.see(7, row, at(400), at(402));
        assert_eq!(queue.locked(7, at(0), at(300)), at(60));
        assert_eq!(queue.locked(7, at(120), at(150)), at(10));
        assert_eq!(queue.locked(7, at(200), at(300)), at(0));
        assert_eq!(queue.locked(8, at(0), at(1000)), at(0));
        // A wait that is seen again is the same.
        for now in 500..600 {
            queue.see(7, row, at(450), at(now));
        }
        assert_eq!(queue.0[&7].len(), 4);
        assert_eq!(queue.locked(7, at(420), at(1000)), at(149));
    }
    #[test]
    fn the_object_of_the_first_wait_is_found() {
        let at = Duration::from_millis;
        let mode = LockMode::AccessShare;
        let lock = WaitsOn::of("relation", Some(3), "AccessShareLock");
        assert_eq!(lock, Some(WaitsOn::Lock(3, mode)));
        assert_eq!(WaitsOn::of("tuple", Some(3), "ExclusiveLock"), Some(WaitsOn::Row(Some(3))));
        assert_eq!(WaitsOn::of("transactionid", None, "ShareLock"), Some(WaitsOn::Row(None)));
        assert_eq!(WaitsOn::of("extend", Some(3), "ExclusiveLock"), None);
        let mut queue = Queue::default();
        queue.see(7, lock, at(100), at(105));
        queue.see(7, Some(WaitsOn::Row(None)), at(140), at(160));
        assert_eq!(queue.first(7, at(90), at(200)), lock);
        assert_eq!(queue.first(7, at(108), at(120)), lock);
        assert_eq!(queue.first(7, at(111), at(120)), None);
        assert_eq!(queue.first(7, at(120), at(200)), Some(WaitsOn::Row(None)));
        assert_eq!(queue.first(8, at(0), at(200)), None);
    }
}
