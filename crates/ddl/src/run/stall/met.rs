//! The statement of the migration for which a wait counts.
//!
//! Readings of pg_locks show the object of a longer wait. The wait counts for the first statement that it met and whose own locks conflict with
//! the request. If no reading shows the object, the table and the kind of work of pgrig's own reader or writer stand for it. A lock
//! may outlast its statement: a wait that begins while a later statement of the transaction runs counts for the one that took the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio_postgres::Row;

use super::probe::{Answer, Asked};
use super::watch::WaitsOn;
use crate::find::LockMode;
use crate::outcome::ProbeKind;
use crate::run::rehearse::{Table, Tables};

/// The time in which a statement ran, from the beginning of the probes.
pub(super) struct Span {
    pub(super) start: Duration,
    pub(super) end: Duration,
    /// Probes' statements that were due before this time do not count: earlier statements made them late.
    pub(super) since: Duration,
    /// When its transaction ended, or went back to a savepoint before it: until then, its locks stayed.
    pub(super) until: Duration,
    /// The locks that it takes, by the OIDs of the tables on which or on whose indexes it takes them.
    pub(super) locks: BTreeMap<u32, Vec<LockMode>>,
    /// Whether it takes a lock that readers or writers wait for.
    pub(super) blocks: bool,
    pub(super) failed: Option<String>,
}

/// Until when a probe's statement that is due meets a statement of the migration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The end of that one.
    End,
    /// One interval later, if its locks stay: the next request may wait for them.
    Next,
    /// As long as its locks stay.
    Locks,
}

impl Span {
    /// Whether a probe's statement was due or under way while it ran, or while its locks stayed.
    fn meets(&self, one: &Answer, last: Last) -> bool {
        let last = match last {
            Last::Next if self.until > self.end => self.end + one.interval,
            Last::End | Last::Next => self.end,
            Last::Locks => self.until.max(self.end),
        };
        one.answered >= self.start && (self.since..=last).contains(&one.scheduled)
    }

    /// Whether a probe's statement was due or under way while it ran.
    pub(super) fn meets_itself(&self, one: &Answer) -> bool {
        self.meets(one, Last::End)
    }

    /// Whether it takes such a lock on such a table.
    fn takes(&self, is_meant: impl Fn(u32) -> bool, is: impl Fn(LockMode) -> bool) -> bool {
        self.locks.iter().any(|(oid, modes)| is_meant(*oid) && modes.iter().any(|mode| is(*mode)))
    }
}

/// Whether a statement with this lock on a table may lock rows of it.
fn locks_rows(mode: LockMode) -> bool {
    matches!(mode, LockMode::RowShare | LockMode::RowExclusive)
}

/// The tables of indexes and TOAST tables before the migration, by OID.
pub(super) struct Owners(BTreeMap<u32, u32>);

impl Owners {
    pub(super) fn of(relations: &[Row]) -> Self {
        Self(relations.iter().map(|row| (row.get("oid"), row.get("owner"))).collect())
    }

    fn table_of(&self, oid: u32) -> u32 {
        match self.0.get(&oid) {
            Some(owner) if *owner != 0 && *owner != oid => self.table_of(*owner),
            _ => oid,
        }
    }

    /// The same wait on the table of an index or TOAST table.
    pub(super) fn on_table(&self, waits_on: WaitsOn) -> WaitsOn {
        match waits_on {
            WaitsOn::Lock(oid, mode) => WaitsOn::Lock(self.table_of(oid), mode),
            WaitsOn::Row(oid) => WaitsOn::Row(oid.map(|oid| self.table_of(oid))),
        }
    }
}

/// The work of a probe.
pub(super) struct Uses {
    kind: ProbeKind,
    /// The table, and all its partitions and children, by their OIDs; none if the user gave the work.
    tables: Option<(u32, BTreeSet<u32>)>,
}

impl Uses {
    pub(super) fn of(asked: &Asked, tables: &Tables) -> Self {
        let is_used = |(_, table): &(u32, &Table)| !asked.is_own && table.shown_in_full() == asked.name;
        let used = tables.all().find(is_used).map(|(oid, _)| {
            let below = tables.all().map(|(one, _)| one).filter(|one| tables.is_below(*one, oid));
            (oid, below.chain([oid]).collect())
        });
        Self { kind: asked.kind, tables: used }
    }
}

/// The statement for which a wait counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) place: usize,
    /// Whether the wait may be for a lock of this statement.
    pub(super) is_blocked: bool,
}

/// The first statement that a probe's statement met and for which it could wait; else the first that it met. `waits_on` is the object of its wait, if
/// that was seen.
pub(super) fn met(
    spans: &[Option<Span>],
    uses: &Uses,
    waits_on: Option<WaitsOn>,
    one: &Answer,
) -> Option<Met> {
    let search = Search { spans, one };
    let seen = waits_on.and_then(|waits_on| search.seen(waits_on));
    if let Some(place) = seen.or_else(|| search.guessed(uses)) {
        return Some(Met { place, is_blocked: true });
    }
    let place = search.first(Last::End, |_| true)?;
    Some(Met { place, is_blocked: false })
}

/// A search for the statement that a probe's statement met first.
struct Search<'a> {
    spans: &'a [Option<Span>],
    one: &'a Answer,
}

impl Search<'_> {
    /// The place of the first for which `is` holds.
    fn first(&self, last: Last, is: impl Fn(&Span) -> bool) -> Option<usize> {
        let is_met = |span: &Span| is(span) && span.meets(self.one, last);
        self.spans.iter().position(|span| span.as_ref().is_some_and(is_met))
    }

    /// The place of the statement for which a wait counts whose object was seen. A request also waits behind those before it in the queue, which
    /// wait for a lock that conflicts only with theirs.
    fn seen(&self, waits_on: WaitsOn) -> Option<usize> {
        match waits_on {
            WaitsOn::Lock(table, mode) => {
                let is_meant = |oid: u32| oid == table;
                let conflicts = |taken: LockMode| taken.conflicts_with(mode);
                let blocks = |taken: LockMode| taken.blocks().is_some();
                let holder = self.first(Last::Locks, |span| span.takes(is_meant, conflicts));
                holder.or_else(|| self.first(Last::Locks, |span| span.takes(is_meant, blocks)))
            }
            WaitsOn::Row(table) => {
                let is_meant = |oid: u32| table.is_none_or(|table| table == oid);
                self.first(Last::Locks, |span| span.takes(is_meant, locks_rows))
            }
        }
    }

    /// The same if the object was not seen. The work of the user may use any table.
    fn guessed(&self, uses: &Uses) -> Option<usize> {
        let Some((root, all)) = &uses.tables else {
            return self.first(Last::Next, |span| span.blocks);
        };
        let (mode, is_writer) = match uses.kind {
            ProbeKind::Read => (LockMode::AccessShare, false),
            ProbeKind::Write => (LockMode::RowExclusive, true),
        };
        let conflicts = |taken: LockMode| taken.conflicts_with(mode);
        let is_used = |oid: u32| all.contains(&oid);
        // Each request needs the lock on the root, and only some of the partitions.
        self.first(Last::Locks, |span| span.takes(|oid| oid == *root, conflicts))
            .or_else(|| self.first(Last::Next, |span| span.takes(is_used, conflicts)))
            .or_else(|| self.first(Last::Next, |span| is_writer && span.takes(is_used, locks_rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::INTERVAL;
    use super::*;
    use crate::find::LockMode::{AccessExclusive, AccessShare, RowExclusive, Share};

    /// A partitioned table with a partition, and another table.
    const ROOT: u32 = 1;
    const PART: u32 = 2;
    const OTHER: u32 = 3;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn answer(scheduled: u64, answered: u64) -> Answer {
        Answer { scheduled: at(scheduled), answered: at(answered), interval: INTERVAL, is_error: false }
    }

    /// A statement from `start` to `end`, whose locks stay until then.
    #[expect(clippy::unnecessary_wraps, reason = "a statement that did not run has no span")]
    fn span(start: u64, end: u64, until: u64, locks: &[(u32, LockMode)]) -> Option<Span> {
        Some(Span {
            start: at(start),
            end: at(end),
            since: at(0),
            until: at(until),
            locks: locks.iter().map(|(oid, mode)| (*oid, vec![*mode])).collect(),
            blocks: locks.iter().any(|(_, mode)| mode.blocks().is_some()),
            failed: None,
        })
    }

    fn uses(kind: ProbeKind) -> Uses {
        Uses { kind, tables: Some((ROOT, BTreeSet::from([ROOT, PART]))) }
    }

    const USERS: Uses = Uses { kind: ProbeKind::Read, tables: None };

    fn place(
        spans: &[Option<Span>],
        uses: &Uses,
        waits_on: Option<WaitsOn>,
        (scheduled, answered): (u64, u64),
    ) -> Option<(usize, bool)> {
        met(spans, uses, waits_on, &answer(scheduled, answered)).map(|met| (met.place, met.is_blocked))
    }

    #[test]
    fn the_backlog_of_a_statement_is_not_met_by_the_next() {
        let span = |start: u64, end: u64, since: u64| {
            span(start, end, end, &[(OTHER, Share)]).map(|span| Span { since: at(since), ..span })
        };
        let spans = [span(10, 70, 9), span(81, 82, 80)];
        let place = |scheduled: u64, answered: u64| {
            place(&spans, &USERS, None, (scheduled, answered)).map(|(place, _)| place)
        };
        // A probe's statement that the first one delays counts for it, however late the answer is. One that is due after it
        // counts for none.
        assert_eq!([place(10, 70), place(60, 90), place(71, 90)], [Some(0), Some(0), None]);
        // A probe's statement that is due or under way when the second one begins counts for the second one.
        assert_eq!([place(81, 82), place(80, 81), place(83, 84)], [Some(1), Some(1), None]);
    }

    /// CREATE INDEX on another table, ALTER TABLE, pg_sleep, COMMIT.
    #[test]
    fn a_wait_counts_for_the_statement_whose_lock_blocks_this_table_and_this_work() {
        let spans = [
            span(10, 20, 40, &[(OTHER, Share)]),
            span(20, 21, 40, &[(ROOT, AccessExclusive), (PART, AccessExclusive)]),
            span(21, 39, 40, &[]),
            span(39, 40, 40, &[]),
        ];
        for kind in [ProbeKind::Read, ProbeKind::Write] {
            let uses = uses(kind);
            let place = |scheduled, answered| place(&spans, &uses, None, (scheduled, answered));
            // Due before the first one's end.
            assert_eq!(place(19, 40), Some((1, true)), "{kind:?}");
            // Due while the lock stayed.
            assert_eq!([place(20, 40), place(30, 45)], [Some((1, true)); 2], "{kind:?}");
            // It had its answer before the lock.
            assert_eq!(place(12, 13), Some((0, false)), "{kind:?}");
            assert_eq!(place(41, 45), None, "{kind:?}");
        }
        // Only writers wait for SHARE.
        let share = [span(10, 20, 20, &[(ROOT, Share)])];
        assert_eq!(place(&share, &uses(ProbeKind::Read), None, (12, 13)), Some((0, false)));
        assert_eq!(place(&share, &uses(ProbeKind::Write), None, (12, 20)), Some((0, true)));
    }

    /// The second table of a foreign key, or the table of a trigger.
    #[test]
    fn the_object_of_a_wait_precedes_the_table_of_the_probe() {
        let spans = [
            span(10, 20, 40, &[(ROOT, Share)]),
            span(20, 21, 40, &[(OTHER, AccessExclusive)]),
            span(21, 40, 40, &[(9, AccessExclusive)]),
        ];
        let on = |oid: u32, mode: LockMode| Some(WaitsOn::Lock(oid, mode));
        let reader = uses(ProbeKind::Read);
        assert_eq!(place(&spans, &reader, on(OTHER, AccessShare), (19, 40)), Some((1, true)));
        assert_eq!(place(&spans, &USERS, on(OTHER, AccessShare), (19, 40)), Some((1, true)));
        assert_eq!(place(&spans, &USERS, on(OTHER, AccessShare), (25, 40)), Some((1, true)));
        // Nothing was seen of the user's: the first that blocks anybody.
        assert_eq!(place(&spans, &USERS, None, (19, 40)), Some((0, true)));
        // The reader waits behind the request of another session, which waits for SHARE.
        assert_eq!(place(&spans, &USERS, on(ROOT, AccessShare), (19, 40)), Some((0, true)));
        assert_eq!(place(&spans, &USERS, on(ROOT, AccessExclusive), (19, 40)), Some((0, true)));
    }

    #[test]
    fn a_wait_for_a_row_counts_for_the_statement_that_locked_rows() {
        let spans = [
            span(10, 11, 40, &[(OTHER, RowExclusive)]),
            span(11, 12, 40, &[(ROOT, RowExclusive)]),
            span(12, 30, 40, &[(ROOT, AccessExclusive)]),
        ];
        let writer = uses(ProbeKind::Write);
        let row = |oid: Option<u32>| Some(WaitsOn::Row(oid));
        assert_eq!(place(&spans, &writer, row(Some(ROOT)), (10, 40)), Some((1, true)));
        assert_eq!(place(&spans, &writer, row(None), (10, 40)), Some((0, true)));
        assert_eq!(place(&spans, &writer, None, (10, 40)), Some((2, true)));
        assert_eq!(place(&spans[..2], &writer, None, (10, 40)), Some((1, true)));
        assert_eq!(place(&spans[..2], &uses(ProbeKind::Read), None, (10, 40)), Some((0, false)));
    }

    /// Each reader needs only the partition of its row.
    #[test]
    fn a_kept_lock_on_a_partition_takes_no_wait_that_begins_later() {
        let spans = [span(10, 11, 40, &[(PART, AccessExclusive)]), span(11, 39, 40, &[])];
        let reader = uses(ProbeKind::Read);
        let on_part = Some(WaitsOn::Lock(PART, AccessShare));
        assert_eq!(place(&spans, &reader, None, (10, 12)), Some((0, true)));
        assert_eq!(place(&spans, &reader, None, (20, 21)), Some((1, false)));
        assert_eq!(place(&spans, &reader, on_part, (20, 40)), Some((0, true)));
    }

    /// After ROLLBACK TO, the next statement takes the lock again.
    #[test]
    fn a_lock_that_ends_early_takes_no_later_wait() {
        let lock = [(ROOT, AccessExclusive)];
        let spans = [span(10, 11, 13, &lock), None, span(20, 21, 30, &lock)];
        let reader = uses(ProbeKind::Read);
        let on = Some(WaitsOn::Lock(ROOT, AccessShare));
        assert_eq!(place(&spans, &reader, on, (11, 13)), Some((0, true)));
        assert_eq!(place(&spans, &reader, on, (19, 30)), Some((2, true)));
        assert_eq!(place(&spans, &reader, on, (25, 30)), Some((2, true)));
    }

    #[test]
    fn the_table_of_an_index_is_found() {
        let owners = Owners(BTreeMap::from([(1, 0), (10, 1), (11, 10)]));
        assert_eq!(owners.on_table(WaitsOn::Lock(11, AccessShare)), WaitsOn::Lock(1, AccessShare));
        assert_eq!(owners.on_table(WaitsOn::Row(Some(12))), WaitsOn::Row(Some(12)));
    }
}
