//! Checkpoints that begin during a migration. After one, the first change of each page writes the whole page to WAL again, hint bits
//! that a scan sets and row versions that it removes, too. Smaller tables without this checkpoint tell nothing of that.

use std::collections::BTreeSet;

use measure::forecast::Cause;

use crate::find::{Work, WorkKind};
use crate::outcome::{AtSize, Spread, StatementOutcome};

/// When the next checkpoint begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Checkpoints {
    /// Bytes of WAL since the last one with which it may begin, and with which it has begun.
    wal: (f64, f64),
    /// Seconds since the last one.
    seconds: f64,
}

impl Checkpoints {
    /// From `max_wal_size` and `wal_segment_size`, `checkpoint_completion_target`, and `checkpoint_timeout` in seconds. The server counts
    /// whole segments, from the one in which the last checkpoint began (xlog.c: CalculateCheckpointSegments, XLogCheckpointNeeded).
    pub(crate) fn of((size, segment): (u64, u64), completion: f64, seconds: f64) -> Self {
        let segment = segment.max(1);
        let segments = ((size / segment) as f64 / (1.0 + completion)).floor().max(1.0);
        let segment = segment as f64;
        Self { wal: ((segments - 1.0) * segment, segments * segment), seconds }
    }

    /// The cause of the first one, and the bytes of a statement's tables with which it has begun before the end of the statement. None
    /// if it does not begin at the size of the forecast. `sizes` are the largest measured one and that of the forecast.
    fn first(self, spent: Spent, sizes: (f64, f64)) -> Option<(Cause, f64)> {
        let of_wal = (spent.wal.1 > self.wal.0).then_some((Cause::MaxWalSize, self.wal.1, spent.wal));
        let of_time = (spent.seconds.1 > self.seconds).then_some((
            Cause::CheckpointTimeout,
            self.seconds,
            spent.seconds,
        ));
        let found = of_wal.into_iter().chain(of_time).map(|(cause, limit, spent)| {
            // It may begin a little earlier than it must.
            (cause, reached(spent, limit, sizes).min(sizes.1 - 1.0))
        });
        found.min_by(|one, other| one.1.total_cmp(&other.1))
    }
}

/// Costs since the last checkpoint: at the largest measured size, and at that of the forecast.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    wal: (f64, f64),
    seconds: (f64, f64),
}

/// The statements of a migration so far. Before the first one, pgrig makes a checkpoint.
pub(crate) struct SoFar {
    checkpoints: Checkpoints,
    spent: Spent,
    /// OIDs of the tables whose rows they have changed.
    changed: BTreeSet<u32>,
}

impl SoFar {
    /// Of no statement.
    pub(crate) fn new(checkpoints: Checkpoints) -> Self {
        Self { checkpoints, spent: Spent::default(), changed: BTreeSet::new() }
    }

    /// Adds the next statement, whose tables have so many bytes at the size of the forecast. Returns the first checkpoint and the bytes at
    /// which it begins, if it makes the statement write pages whole.
    pub(crate) fn add(&mut self, one: &StatementOutcome, bytes: u64) -> Option<(Cause, f64)> {
        let measured = one.measured.as_slice();
        let largest = measured.last()?.bytes as f64;
        let (wal, seconds) =
            (extended(measured, AtSize::wal, bytes), extended(measured, AtSize::seconds, bytes));
        self.spent.wal = (self.spent.wal.0 + wal.0, self.spent.wal.1 + wal.1);
        self.spent.seconds = (self.spent.seconds.0 + seconds.0, self.spent.seconds.1 + seconds.1);
        let works = one.found.as_ref().map_or(&[][..], |found| found.works.as_slice());
        let touches = |work: &Work| match work.kind {
            WorkKind::Rows => true,
            WorkKind::Rewrite | WorkKind::IndexBuild | WorkKind::Scan => self.changed.contains(&work.table),
            // Files are copied as they are.
            WorkKind::Copy => false,
        };
        let is_concerned = works.iter().any(touches);
        let is_change = |work: &&Work| matches!(work.kind, WorkKind::Rows | WorkKind::Rewrite);
        self.changed.extend(works.iter().filter(is_change).map(|work| work.table));
        let sizes = (largest, bytes as f64);
        if is_concerned && sizes.1 > sizes.0 { self.checkpoints.first(self.spent, sizes) } else { None }
    }
}

/// A cost at the largest measured size, and at a larger one, along the line through the two largest.
fn extended(measured: &[AtSize], cost: impl Fn(&AtSize) -> Option<Spread>, bytes: u64) -> (f64, f64) {
    let median = |at: &AtSize| cost(at).map_or(0.0, |spread| spread.median);
    let Some((largest, smaller)) = measured.split_last() else { return (0.0, 0.0) };
    let (value, at) = (median(largest), largest.bytes as f64);
    let (below, from) = smaller.last().map_or((0.0, 0.0), |below| (median(below), below.bytes as f64));
    let slope = if at > from { ((value - below) / (at - from)).max(0.0) } else { 0.0 };
    (value, value + slope * (bytes as f64 - at).max(0.0))
}

/// The bytes with which costs reach a limit: along the line between both sizes, in proportion below them.
fn reached((measured, forecast): (f64, f64), limit: f64, (largest, bytes): (f64, f64)) -> f64 {
    if limit <= measured {
        return largest * limit / measured;
    }
    largest + (bytes - largest) * (limit - measured) / (forecast - measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const MBYTES: f64 = MB as f64;

    #[test]
    fn a_checkpoint_begins_after_a_part_of_max_wal_size_in_whole_segments() {
        let of = |size: u64, completion: f64| {
            let (low, high) = Checkpoints::of((size * MB, 16 * MB), completion, 300.0).wal;
            (low / MBYTES, high / MBYTES)
        };
        assert_eq!(of(1024, 0.9), (512.0, 528.0));
        assert_eq!(of(1024, 0.5), (656.0, 672.0));
        assert_eq!(of(64, 0.9), (16.0, 32.0));
        // With one segment, each end of a segment begins one.
        assert_eq!(of(32, 0.9), (0.0, 16.0));
    }

    #[test]
    fn it_begins_at_the_size_with_which_the_migration_has_written_so_much_wal() {
        let checkpoints = Checkpoints::of((1024 * MB, 16 * MB), 0.9, 300.0);
        let first = |wal: (f64, f64), seconds: (f64, f64)| {
            let spent = Spent { wal: (wal.0 * MBYTES, wal.1 * MBYTES), seconds };
            checkpoints.first(spent, (100.0, 1000.0))
        };
        assert_eq!(first((48.0, 480.0), (1.0, 10.0)), None);
        assert_eq!(first((128.0, 1328.0), (1.0, 10.0)), Some((Cause::MaxWalSize, 400.0)));
        // The largest measured size has it, too.
        assert_eq!(first((1056.0, 9000.0), (1.0, 10.0)), Some((Cause::MaxWalSize, 50.0)));
        // It may begin before the segment ends.
        assert_eq!(first((52.0, 520.0), (1.0, 10.0)), Some((Cause::MaxWalSize, 999.0)));
        // The first one decides.
        assert_eq!(first((0.0, 0.0), (60.0, 600.0)), Some((Cause::CheckpointTimeout, 500.0)));
        assert_eq!(first((128.0, 1328.0), (60.0, 600.0)), Some((Cause::MaxWalSize, 400.0)));
    }

    #[test]
    fn costs_continue_along_the_two_largest_sizes() {
        let at = |bytes: u64, wal: u64| AtSize {
            bytes,
            rows: bytes,
            runs: vec![crate::outcome::Cost { seconds: 1.0, wal, held: 0.0 }],
        };
        let of = |measured: &[AtSize]| extended(measured, AtSize::wal, 100);
        assert_eq!(of(&[at(1, 900), at(5, 10), at(10, 20)]), (20.0, 200.0));
        assert_eq!(of(&[at(10, 20)]), (20.0, 200.0));
        // The same at each size, as of catalogs.
        assert_eq!(of(&[at(5, 8192), at(10, 8192)]), (8192.0, 8192.0));
        assert_eq!(of(&[at(10, 7), at(10, 9)]), (9.0, 9.0));
        assert_eq!(of(&[]), (0.0, 0.0));
    }
}
