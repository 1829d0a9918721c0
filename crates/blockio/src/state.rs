//! Source of the data that a step read, as far as SQL can show it.

use std::fmt;

use serde::Serialize;

/// Source of the data: storage or a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The blocks were in shared_buffers.
    Cached,
    /// The blocks were not in shared_buffers; the operating system may have had them in its cache.
    OsWarm,
    /// The blocks were not in shared_buffers, and are too many for the operating system's cache.
    Cold,
}

/// Data counts as cached if at most one in this many blocks was not in shared_buffers.
const MISSES: u64 = 100;
/// Data of this many times the memory is too large for the operating system's cache (the article's
/// rule).
const TIMES_MEMORY: u64 = 2;

impl CacheState {
    /// The state by the numbers of blocks found in shared_buffers and not found there, the size of
    /// all tables, and the machine's memory (bytes). None if nothing was read.
    pub(super) fn of(hits: u64, reads: u64, data: u64, memory: Option<u64>) -> Option<Self> {
        let touched = hits + reads;
        if touched == 0 {
            return None;
        }
        if reads * MISSES <= touched {
            return Some(Self::Cached);
        }
        let is_larger = memory.is_some_and(|memory| data >= memory.saturating_mul(TIMES_MEMORY));
        Some(if is_larger { Self::Cold } else { Self::OsWarm })
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cached => "cached",
            Self::OsWarm => "OS-warm",
            Self::Cold => "cold",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_is_only_what_no_cache_can_hold() {
        let gb = 1_000_000_000;
        assert_eq!(CacheState::of(0, 0, gb, Some(gb)), None);
        assert_eq!(CacheState::of(990, 10, gb, None), Some(CacheState::Cached));
        assert_eq!(CacheState::of(980, 20, gb, Some(gb)), Some(CacheState::OsWarm));
        assert_eq!(CacheState::of(0, 1000, 2 * gb, Some(gb)), Some(CacheState::Cold));
        assert_eq!(CacheState::of(0, 1000, 1000 * gb, None), Some(CacheState::OsWarm));
    }
}
