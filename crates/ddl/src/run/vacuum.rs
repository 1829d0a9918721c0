//! VACUUM and ANALYZE: the tables that the server counts, and the locks that follow from that.
//!
//! VACUUM goes from table to table in transactions of its own (vacuum.c: `vacuum_rel`), and readings see the lock on the first one. But the
//! server counts each table and each TOAST table whose pages it has vacuumed, and to do that, it has taken SHARE UPDATE EXCLUSIVE on it
//! and ROW EXCLUSIVE on all of its indexes (vacuumlazy.c: `heap_vacuum_rel`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use connect::ConnectError;

use crate::find::{Held, Kind, LockMode, Relation, Relations, Work, WorkKind};
use crate::run::watch::Watcher;
use crate::script::Statement;

/// Time in which the server has counted a VACUUM: before PostgreSQL 15 a process of its own collects the counters, up
/// to 0.5 s late (pgstat.c: PGSTAT_STAT_INTERVAL).
const COUNTED: Duration = Duration::from_millis(1500);
/// The first release that counts a VACUUM at once.
const IN_TIME: u32 = 150_000;
/// Time between two readings of these counters.
const COUNTED_POLL: Duration = Duration::from_millis(50);

/// Counters of VACUUM and ANALYZE by OID, before a statement of these; none for other statements.
pub(crate) async fn counters(
    watcher: &Watcher,
    statement: &Statement,
) -> Result<Option<BTreeMap<u32, i64>>, ConnectError> {
    if !statement.is_vacuum() {
        return Ok(None);
    }
    Ok(Some(watcher.vacuums().await?.into_iter().collect()))
}

/// The TOAST table of each table that has one, if a statement vacuums both: VACUUM without FULL.
pub(crate) fn toast(statement: &Statement, relations: &Relations) -> BTreeMap<u32, u32> {
    if !statement.is_vacuum() || statement.is_full_vacuum() {
        return BTreeMap::new();
    }
    let toast = relations.0.iter().filter(|(_, relation)| relation.kind == Kind::Toast);
    toast.map(|(oid, relation)| (relation.owner, *oid)).collect()
}

/// Tables and TOAST tables whose counters have gone up since. Waits until the server has counted: several tables of one statement come one by
/// one where it counts late, and a table comes before its TOAST table.
pub(crate) async fn counted(
    watcher: &Watcher,
    before: Option<BTreeMap<u32, i64>>,
    is_single: bool,
    toast: &BTreeMap<u32, u32>,
) -> Result<BTreeSet<u32>, ConnectError> {
    let Some(before) = before else { return Ok(BTreeSet::new()) };
    let is_late = !is_single && watcher.version().await? < IN_TIME;
    let began = Instant::now();
    loop {
        let now = watcher.vacuums().await?;
        let more = |(oid, number): &(u32, i64)| before.get(oid).is_some_and(|earlier| earlier < number);
        let counted: BTreeSet<u32> = now.iter().filter(|one| more(one)).map(|(oid, _)| *oid).collect();
        let has_toast = |oid: &u32| toast.get(oid).is_none_or(|toast| counted.contains(toast));
        let is_whole = !counted.is_empty() && counted.iter().all(has_toast);
        if (is_whole && !is_late) || began.elapsed() > COUNTED {
            return Ok(counted);
        }
        tokio::time::sleep(COUNTED_POLL).await;
    }
}

/// Adds the locks of VACUUM on each table that was counted, and on its indexes. `before` has the relations that it found.
pub(crate) fn add_locks(
    held: &mut Held,
    statement: &Statement,
    counted: &BTreeSet<u32>,
    works: &[Work],
    before: &Relations,
) {
    let is_full = statement.is_full_vacuum();
    let mode = if is_full { LockMode::AccessExclusive } else { LockMode::ShareUpdateExclusive };
    for oid in counted {
        held.add(*oid, mode);
    }
    if is_full {
        // The server does not count VACUUM FULL.
        let rewritten = works.iter().filter(|work| work.kind == WorkKind::Rewrite);
        rewritten.for_each(|work| held.add(work.table, mode));
    } else {
        let is_of_counted = |index: &Relation| index.kind == Kind::Index && counted.contains(&index.owner);
        let indexes = before.0.iter().filter(|(_, relation)| is_of_counted(relation));
        indexes.for_each(|(oid, _)| held.add(*oid, LockMode::RowExclusive));
    }
}

/// Why the locks of VACUUM are not all known, if the server has counted none of its tables.
pub(crate) fn unknown(statement: &Statement, counted: &BTreeSet<u32>, works: &[Work]) -> Option<String> {
    let is_seen = !counted.is_empty() || works.iter().any(|work| work.kind == WorkKind::Rewrite);
    (statement.is_vacuum() && !is_seen)
        .then(|| "the server counted no VACUUM of a table (track_counts must be on)".to_owned())
}
