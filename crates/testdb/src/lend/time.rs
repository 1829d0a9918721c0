//! Points in time that outlive a process.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970, as the machine's clock has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Time(u64);

impl Time {
    /// The time by the system's clock.
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::default().after(since)
    }

    /// The time after this length.
    #[must_use]
    pub(super) fn after(self, length: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Time since `earlier`; zero if that is in the future.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since 1970.
    pub(super) fn unix_seconds(self) -> u64 {
        self.0 / 1000
    }
}
