//! What the log of a server says of its recovery.

use std::fs;
use std::path::Path;

/// `log_line_prefix`: seconds since 1970, with milliseconds.
pub(super) const PREFIX: &str = "%n ";

/// WAL that was replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Replayed {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl Replayed {
    /// From the log of a server whose recovery has ended.
    pub(super) fn read(log: &Path) -> Option<Self> {
        Self::of(&String::from_utf8_lossy(&fs::read(log).ok()?))
    }

    fn of(log: &str) -> Option<Self> {
        let (began, from) = event(log, "redo starts at ")?;
        let (ended, to) = event(log, "redo done at ")?;
        Some(Self { bytes: to.checked_sub(from)?, seconds: (ended - began).max(0.001) })
    }
}

/// Time and place in WAL of the line with these words.
fn event(log: &str, words: &str) -> Option<(f64, u64)> {
    let (before, after) = log.lines().find_map(|line| line.split_once(words))?;
    let time = before.split_whitespace().next()?.parse().ok()?;
    let (high, low) = after.split_whitespace().next()?.split_once('/')?;
    let half = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((time, (half(high)? << 32) | half(low)?))
}

/// The last error in a server's log.
pub(super) fn last_words(log: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(log).ok()?).into_owned();
    let line = ["PANIC:", "FATAL:"].iter().find_map(|level| {
        text.lines()
            .rev()
            .find_map(|line| line.split_once(level))
            .map(|(_, message)| message.trim().to_owned())
    });
    line.or_else(|| text.lines().last().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_what_was_replayed() {
        let log = "1700000000.250 LOG:  starting point-in-time recovery to 2026-01-01 00:00:00+00\n\
                   1700000000.500 LOG:  redo starts at 0/2000028\n\
                   1700000001.900 LOG:  recovery stopping before commit of transaction 800, time 2026-01-01 00:00:01+00\n\
                   1700000002.000 LOG:  redo done at 1/2000128 system usage: CPU: user: 0.10 s\n";
        let found = Replayed::of(log).unwrap();
        assert_eq!(found.bytes, (1 << 32) + 0x100);
        assert!((found.seconds - 1.5).abs() < 1e-6, "{found:?}");
        assert_eq!(Replayed::of("1700000000.500 LOG:  redo starts at 0/2000028\n"), None);
    }
}
