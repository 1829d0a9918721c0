//! Pauses between the readings beside a statement. Those of a long statement are longer, so that the readings do not slow it down.

use std::time::{Duration, Instant};

/// Part of the time of a statement so far after which the next reading follows.
const PART: u32 = 20;

/// See the module.
pub(crate) struct Pace {
    /// Pause at the beginning of a statement.
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
}

impl Pace {
    /// Waits for the next reading beside a statement that began at `start`.
    pub(crate) async fn pause(&self, start: Instant) {
        tokio::time::sleep((start.elapsed() / PART).clamp(self.shortest, self.longest)).await;
    }
}
