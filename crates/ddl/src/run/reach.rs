//! The tables that a statement reaches, by its work and its locks.

use std::collections::BTreeSet;

use crate::find::{Kind, Lock, Relations, Work, WorkKind};
use crate::outcome::Attached;

/// The tables with rows that were there before and decide on the cost of a statement: those that it works on, else those
/// that it locks.
pub(super) fn concerned(works: &[Work], locks: &[Lock], before: &Relations) -> BTreeSet<u32> {
    let with_rows = |oid: &u32| before.get(*oid).is_some_and(|relation| relation.kind.has_rows());
    let worked: BTreeSet<u32> = works.iter().map(|work| work.table).filter(with_rows).collect();
    if !worked.is_empty() {
        return worked;
    }
    let is_locked = |name: &str| locks.iter().any(|lock| lock.relation == name);
    let locked = before.0.iter().filter(|(_, relation)| is_locked(&relation.name));
    locked.map(|(oid, _)| before.table_of(*oid)).filter(with_rows).collect()
}

/// A table that becomes a partition of another.
pub(super) fn attachment((part, whole): (u32, u32), before: &Relations) -> Option<Attached> {
    let within = |oid: u32| before.0.keys().copied().filter(|table| before.is_within(*table, oid)).collect();
    Some(Attached { name: before.get(part)?.name.clone(), tables: within(part), others: within(whole) })
}

/// Whether a statement names a partitioned table, or builds indexes that are parts of one.
pub(super) fn is_partitioned(works: &[Work], target: Option<u32>, after: &Relations) -> bool {
    let kind = |oid: u32| after.get(oid).map(|relation| relation.kind);
    let is_part = |work: &Work| after.get(work.oid).is_some_and(|built| built.parent != 0);
    target.and_then(kind) == Some(Kind::Partitioned)
        || works.iter().any(|work| work.kind == WorkKind::IndexBuild && is_part(work))
}

/// Whether all work is on the table that a statement names, its partitions and children.
pub(super) fn is_within(works: &[Work], target: Option<u32>, before: &Relations) -> bool {
    target.is_some_and(|target| works.iter().all(|work| before.is_within(work.table, target)))
}
