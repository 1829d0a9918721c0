//! A clock that is read as rarely as possible.

use std::time::Instant;

/// The time of the last reading. Work that a client does without waiting takes no time worth measuring,
/// so one reading is enough for all of it.
#[derive(Debug, Default)]
pub(crate) struct Clock(Option<Instant>);

impl Clock {
    pub(crate) fn now(&mut self) -> Instant {
        *self.0.get_or_insert_with(Instant::now)
    }

    /// Forgets the reading, because time has passed.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
