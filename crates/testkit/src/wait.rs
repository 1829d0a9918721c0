//! Waiting with a deadline.

use std::time::{Duration, Instant};

/// No condition takes this long unless it never holds.
pub const DEADLINE: Duration = Duration::from_mins(2);

/// Interval between tries of a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until the condition holds; fails the test if it never does.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    until_some(what, || condition().then_some(()));
}

/// Waits until the condition gives something; fails the test if it never does.
#[track_caller]
pub fn until_some<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}
