//! Tables whose readers or writers would wait for a statement, and that had none while it ran.

use std::collections::BTreeSet;
use std::time::Duration;

use super::met::Span;
use super::probe::{Log, Probe};
use crate::find::LockMode;
use crate::outcome::{ProbeKind, StatementOutcome};
use crate::run::rehearse::{Table, Tables};

/// Time before the end of a statement's locks in which its commit may have made a probe fail: the server answers both at once.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The tables and views on which a statement works, or which it locks, with a lock that blocks others, but for those that a probe used
/// until its locks ended, or whose commit made the probe fail. Which tables the user's own readers and writers use is not known: they stand for all.
pub(super) fn unprobed(
    one: &StatementOutcome,
    span: &Span,
    tables: &Tables,
    logs: &[(&Probe, Log)],
) -> Vec<String> {
    let Some(found) = &one.found else { return Vec::new() };
    let works = |log: &Log| {
        let lasts = |at: Duration| at >= span.start && at + AT_ONCE >= span.until.max(span.end);
        log.stopped.as_ref().is_none_or(|(at, _)| lasts(*at))
    };
    let is_probed = |name: &str, blocked: LockMode| {
        let waits = |probe: &Probe| {
            let is_blocked = blocked == LockMode::AccessExclusive || probe.asked.kind == ProbeKind::Write;
            probe.asked.is_own || is_blocked && probe.asked.name == name
        };
        logs.iter().any(|(probe, log)| works(log) && waits(probe))
    };
    // Others were locked by earlier statements of its transaction.
    let is_its_own = |oid: &u32| {
        let shown = tables.get(*oid).map(Table::shown);
        found.tables.contains(oid) || found.locks.iter().any(|lock| Some(&lock.relation) == shown.as_ref())
    };
    let unprobed = |(oid, modes): (&u32, &Vec<LockMode>)| {
        let table = tables.get(*oid)?;
        let blocked = modes.iter().copied().filter(|mode| mode.blocks_on(table.kind()).is_some()).max()?;
        let name = tables.get(table.root())?.shown_in_full();
        (is_its_own(oid) && !is_probed(&name, blocked)).then_some(name)
    };
    let names: BTreeSet<String> = found.held.iter().filter_map(unprobed).collect();
    names.into_iter().collect()
}
