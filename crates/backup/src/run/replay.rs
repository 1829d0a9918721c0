//! Reads from the log of a server how long its recovery replayed WAL.

use std::fs;
use std::path::Path;

/// `log_line_prefix`: seconds since 1970, with milliseconds.
pub(super) const PREFIX: &str = "%n ";

/// Seconds of the replay, from the log of a server whose recovery has ended. The places in WAL that the log names tell no bytes: the rest of
/// a segment that was ended early lies between them.
pub(super) fn seconds(log: &Path) -> Option<f64> {
    seconds_of(&String::from_utf8_lossy(&fs::read(log).ok()?))
}

fn seconds_of(log: &str) -> Option<f64> {
    // In milliseconds.
    Some((time(log, "redo done at ")? - time(log, "redo starts at ")?).max(0.001))
}

/// Time of the line with these words.
fn time(log: &str, words: &str) -> Option<f64> {
    let line = log.lines().find(|line| line.contains(words))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How the server refuses a session that comes while it starts, recovers or ends.
const REFUSALS: &str = "the database system is ";

/// The last error in a server's log, apart from refusals of sessions.
pub(super) fn last_words(log: &Path) -> Option<String> {
    last_words_of(&String::from_utf8_lossy(&fs::read(log).ok()?))
}

fn last_words_of(log: &str) -> Option<String> {
    let errors = |level| {
        let messages = log.lines().rev().filter_map(move |line| line.split_once(level));
        messages.map(|(_, message)| message.trim()).find(|message| !message.starts_with(REFUSALS))
    };
    ["PANIC:", "FATAL:"].into_iter().find_map(errors).or_else(|| log.lines().last()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_the_time_of_the_replay() {
        let log = "1700000000.250 LOG:  starting point-in-time recovery to 2026-01-01 00:00:00+00\n\
                   1700000000.500 LOG:  redo starts at 0/2000028\n\
                   1700000001.900 LOG:  recovery stopping before commit of transaction 800, time 2026-01-01 00:00:01+00\n\
                   1700000002.000 LOG:  redo done at 1/2000128 system usage: CPU: user: 0.10 s\n";
        let found = seconds_of(log).unwrap();
        assert!((found - 1.5).abs() < 1e-6, "{found}");
        assert_eq!(seconds_of("1700000000.500 LOG:  redo starts at 0/2000028\n"), None);
    }

    #[test]
    fn a_refused_session_is_not_the_cause_of_an_end() {
        let log = "1.000 FATAL:  recovery ended before configured recovery target was reached\n\
                   1.010 LOG:  startup process (PID 7) exited with exit code 1\n\
                   1.020 FATAL:  the database system is in recovery mode\n";
        let cause = "recovery ended before configured recovery target was reached";
        assert_eq!(last_words_of(log).as_deref(), Some(cause));
        assert_eq!(last_words_of("1.000 LOG:  done\n").as_deref(), Some("1.000 LOG:  done"));
    }
}
