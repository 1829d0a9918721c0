//! Cuts rows into pieces, which threads make in parallel, and keeps the order in which pages need
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::run::rows::{Batch, RowSource};

/// Time between two checks whether the other threads have given up.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// A relation's rows, handed out piece by piece.
pub(super) struct Pieces {
    state: Mutex<(u64, RowSource)>,
    rows: u64,
}

/// Some rows, in order.
pub(super) struct Piece {
    /// Its number, from 0.
    pub(super) number: u64,
    /// Rows of the piece, in order.
    pub(super) rows: Batch,
    /// Whether no more come.
    pub(super) is_last: bool,
}

impl Pieces {
    /// Pieces of so many rows each.
    pub(super) fn new(all: RowSource, rows: u64) -> Self {
        Self { state: Mutex::new((0, all)), rows: rows.max(1) }
    }

    /// The next one; none if all have been taken.
    pub(super) fn next(&self) -> Option<Piece> {
        let (number, rows) = &mut *locked(&self.state);
        let batch = rows.take(self.rows)?;
        let piece = Piece { number: *number, rows: batch, is_last: rows.left() == 0 };
        *number += 1;
        Some(piece)
    }
}

/// Whether threads are to end before their work is done.
#[derive(Default)]
pub(super) struct Stop(AtomicBool);

impl Stop {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A resource that pieces use one after the other, in the order of their numbers.
pub(super) struct InTurn<T> {
    state: Mutex<(u64, T)>,
    passed: Condvar,
}

impl<T> InTurn<T> {
    pub(super) fn new(state: T) -> Self {
        Self { state: Mutex::new((0, state)), passed: Condvar::new() }
    }

    /// Waits until all pieces with lower numbers have used the resource, then uses it; none if the
    /// threads are to stop.
    pub(super) fn come<R>(&self, number: u64, stop: &Stop, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut guard = locked(&self.state);
        while guard.0 != number {
            if stop.is_set() {
                return None;
            }
            guard = self.passed.wait_timeout(guard, LOOK).expect("nobody panics holding this").0;
        }
        let result = work(&mut guard.1);
        guard.0 += 1;
        drop(guard);
        self.passed.notify_all();
        Some(result)
    }

    /// Changes the state of the resource, out of turn.
    pub(super) fn look_mut<R>(&self, at: impl FnOnce(&mut T) -> R) -> R {
        at(&mut locked(&self.state).1)
    }

    /// Reads the state of the resource, out of turn.
    pub(super) fn look<R>(&self, at: impl FnOnce(&T) -> R) -> R {
        at(&locked(&self.state).1)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics holding this")
}
