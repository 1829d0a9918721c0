//! Waiting with a deadline.

use std::fmt::Display;
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
    until_ok(what, || condition().ok_or("not yet"))
}

/// Waits until an attempt succeeds; fails the test with the error of the last one if none does.
#[track_caller]
pub fn until_ok<T, E: Display>(what: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begin = Instant::now();
    loop {
        match attempt() {
            Ok(found) => return found,
            Err(error) => assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}: {error}"),
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until a condition that async code asks holds; fails the test if it never does.
pub async fn until_async(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    until_some_async(what, async || condition().await.then_some(())).await;
}

/// Waits until a condition that async code asks gives something; fails the test if it never does.
pub async fn until_some_async<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
