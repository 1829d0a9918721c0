//! Deadlocks between the migration and readers or writers: the server ends one of both with an error. A session that loses one waits no
//! longer than `deadlock_timeout`, so its wait tells little of others.

use std::time::Duration;

use super::met::Span;
use super::probe::{Log, Lost, Probe};
use crate::outcome::Deadlock;

/// Time after the end of a statement's locks in which the answer of a session that lost may come.
const LATE: Duration = Duration::from_millis(100);

/// The deadlocks with the migration, which this process runs, that sessions lost while the statement at this place waited for a lock, one for each
/// session: the one after the longest wait.
pub(super) fn lost(
    (spans, pid): (&[Option<Span>], i32),
    place: usize,
    logs: &[(&Probe, Log)],
) -> Vec<Deadlock> {
    let of = |(probe, log): &(&Probe, Log)| {
        let is_met = |lost: &&Lost| is_named(&lost.detail, pid) && met(spans, lost.answered) == Some(place);
        let met = log.deadlocks.iter().filter(is_met);
        let waited = met.map(|lost| lost.answered.saturating_sub(lost.scheduled)).max()?;
        Some(Deadlock {
            name: probe.asked.name.clone(),
            kind: probe.asked.kind,
            seconds: waited.as_secs_f64(),
        })
    };
    logs.iter().filter_map(of).collect()
}

/// Whether the detail of a deadlock names this process. Scripts of the user's may wait for each other alone.
fn is_named(detail: &str, pid: i32) -> bool {
    let mut numbers = detail.split(|character: char| !character.is_ascii_digit());
    numbers.any(|number| number.parse() == Ok(pid))
}

/// The place of the statement that ran when a session lost a deadlock, as its answer tells: the last one that takes locks. If that was the last
/// of its transaction, COMMIT may have begun before the answer came.
fn met(spans: &[Option<Span>], answered: Duration) -> Option<usize> {
    let is_met = |span: &Span| {
        !span.locks.is_empty() && (span.start..=span.until.max(span.end) + LATE).contains(&answered)
    };
    spans.iter().rposition(|span| span.as_ref().is_some_and(is_met))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::find::LockMode::{self, AccessExclusive, RowExclusive};

    const TABLE: u32 = 1;

    /// A statement from `start` to `end`, in a transaction until 20 s.
    #[expect(clippy::unnecessary_wraps, reason = "a statement that did not run has no span")]
    fn span(start: u64, end: u64, lock: Option<LockMode>) -> Option<Span> {
        let [start, end, until] = [start, end, 20].map(Duration::from_secs);
        let locks: BTreeMap<u32, Vec<LockMode>> = lock.into_iter().map(|mode| (TABLE, vec![mode])).collect();
        Some(Span { start, end, since: Duration::ZERO, until, locks, blocks: false, failed: None })
    }

    #[test]
    fn a_deadlock_of_the_users_scripts_alone_is_none_of_the_migration() {
        let detail = "Process 123 waits for ShareLock on transaction 45; blocked by process 678.\n\
                      Process 678 waits for ShareLock on transaction 46; blocked by process 123.";
        assert!(is_named(detail, 123) && is_named(detail, 678));
        assert!(!is_named(detail, 12) && !is_named(detail, 7) && !is_named("", 123));
    }

    #[test]
    fn a_deadlock_counts_for_the_statement_that_ran_and_takes_locks() {
        let spans = [
            span(9, 10, None),
            span(10, 12, Some(RowExclusive)),
            None,
            span(12, 15, Some(AccessExclusive)),
            span(15, 20, None),
        ];
        let at = |milliseconds: u64| met(&spans, Duration::from_millis(milliseconds));
        assert_eq!([at(11_000), at(13_000), at(15_001), at(20_050)], [Some(1), Some(3), Some(3), Some(3)]);
        // Two sessions of the user's.
        assert_eq!([at(8_000), at(21_000)], [None, None]);
    }
}
