//! The lines of each statement: proof, locks, waits, costs, forecast and better way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ddl::find::{Lock, LockMode, Work, WorkKind};
use ddl::{
    Alternative, AtSize, Boundary, Effects, Figure, Outcome, Space, Spread, Stall, StatementOutcome, Wait,
};
use measure::human::{bytes, counted, grouped, time};

use super::rowless;
use super::text::{cut, sentence, shown_bytes};
use super::thinned;

/// Least bytes of files that are more than changes of catalogs.
const SPACE: u64 = 1 << 20;
/// Why no larger size gives a figure.
const WHOLE: &str =
    "the largest measured size has all rows of the original, so no larger --up-to gives a figure";
/// In the place of the size of temporary files.
const MISSED: &str =
    "temporary files not measured: the server counted some, which were there for too short a time";
/// Statements of a better way that are shown, beside those that failed.
const STEPS: usize = 12;
/// Relations that are named for each lock or work.
const RELATIONS: usize = 6;

/// Locks and proof of a statement.
pub(super) fn details(one: &StatementOutcome, of: &Outcome) -> Option<String> {
    let mut text = format!("{}  {}", one.number, cut(&one.statement.in_one_line(), 76));
    if let Some(failed) = &one.failed {
        let _ = write!(text, "\n   failed  {}", failed.message);
        if let Some(remedy) = &failed.remedy {
            let _ = write!(text, "\n   remedy  {}", sentence(remedy));
        }
        return Some(text);
    }
    let found = one.found.as_ref()?;
    for work in grouped_works(&found.works) {
        let _ = write!(text, "\n   proof   {work}");
    }
    if found.works.is_empty() {
        let _ = write!(
            text,
            "\n   proof   {}",
            if found.is_alone {
                "no table or index has a new file"
            } else {
                "no table or index has a new file, and no table was scanned"
            }
        );
    }
    for lock in grouped_locks(&found.locks) {
        let _ = write!(text, "\n   lock    {lock}");
    }
    for lock in grouped_locks(&found.inherited) {
        let _ = write!(text, "\n   kept    {lock}");
    }
    let is_without = found.locks.iter().all(|lock| lock.is_new) && found.inherited.is_empty();
    if let Some(why) = &found.unknown_locks {
        let _ = write!(
            text,
            "\n   lock    {}: {why}",
            if is_without { "not known" } else { "others are not known" }
        );
    } else if is_without {
        text.push_str(if found.is_alone {
            "\n   lock    none was seen"
        } else {
            "\n   lock    no new lock on an existing table (its transaction may hold some already)"
        });
    }
    if let (Some(held), true) = (one.held(), found.strongest_held().is_some())
        && !found.is_alone
    {
        let _ = write!(text, "\n   held    {}", time(held));
    }
    if found.is_alone {
        text.push_str("\n   runs    outside of a transaction");
        if found.waits > 0 {
            let _ = write!(text, "; waited for open transactions {}", counted(found.waits as u64, "time"));
        }
    }
    for (name, stall) in [("stall", &one.stall), ("queue", &one.blocked)] {
        if let Some(stall) = stall {
            let _ = write!(text, "\n   {name}   {}", waits(stall));
        }
    }
    if let Some(space) = space(found) {
        let _ = write!(text, "\n   space   {space}");
    }
    text += &thinned::line(one).unwrap_or_default();
    text += &costs(one);
    text += &forecast(one, of);
    for alternative in of.alternatives.iter().filter(|other| other.number == one.number) {
        text += &better(one, alternative);
    }
    Some(text)
}

/// Disk space at its peak, if it is more than changes of catalogs take; and whether temporary files were not measured.
fn space(found: &Effects) -> Option<String> {
    let Space { files, temporary } = found.space;
    let files = (files >= SPACE).then(|| format!("{} of files", bytes(files)));
    let temporary = temporary.filter(|temporary| *temporary > 0);
    let temporary = temporary.map(|temporary| format!("{} of temporary files", bytes(temporary)));
    let parts: Vec<String> = files.into_iter().chain(temporary).collect();
    let at_peak = (!parts.is_empty()).then(|| format!("{} more at its peak", parts.join(" and ")));
    let missed = found.missed_temporary.then(|| MISSED.to_owned());
    let lines: Vec<String> = at_peak.into_iter().chain(missed).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// A better way beside the statement, each with its sums and its longest stall.
fn better(one: &StatementOutcome, alternative: &Alternative) -> String {
    let mut text = String::new();
    if alternative.needs_own_migration {
        text.push_str("\n   needs   a migration of its own, without a transaction, for the better way");
    }
    let mut left_out = 0;
    for (number, step) in alternative.statements.iter().enumerate() {
        if number >= STEPS && step.failed.is_none() {
            left_out += 1;
            continue;
        }
        let line = cut(&step.statement.in_one_line(), 66);
        let _ = write!(text, "\n   {}  {line}", if number == 0 { "better" } else { "      " });
        if let Some(failed) = &step.failed {
            let _ = write!(text, "\n           failed: {}", failed.message);
            continue;
        }
        let _ = write!(text, "\n           {}", in_short(std::slice::from_ref(step), None));
        text += &rowless::of_step(step).unwrap_or_default();
    }
    if left_out > 0 {
        let _ = write!(
            text,
            "\n           and {}: --json FILE writes all of them",
            counted(left_out, "more statement")
        );
    }
    if alternative.statements.iter().all(|step| step.failed.is_none()) {
        let _ = write!(text, "\n   in all  {}", in_short(&alternative.statements, None));
        let kept = one.stall.as_ref().and_then(|stall| stall.counts_for);
        let _ = write!(text, "\n   before  {}", in_short(std::slice::from_ref(one), kept));
    }
    text
}

/// Seconds, WAL, stall and the strongest lock of some statements. `kept` is the number of the statement for which waits for a kept lock count;
/// those of a better way have no numbers.
fn in_short(statements: &[StatementOutcome], kept: Option<usize>) -> String {
    let largest = || statements.iter().filter_map(StatementOutcome::largest);
    let seconds: f64 = largest().filter_map(AtSize::seconds).map(|seconds| seconds.median).sum();
    let wal: f64 = largest().filter_map(AtSize::wal).map(|wal| wal.median).sum();
    let stalls = || statements.iter().filter_map(|one| one.stall.as_ref());
    let longest = stalls().filter_map(Stall::longest);
    let longest = longest.max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let strongest = statements.iter().filter_map(|one| one.found.as_ref()?.strongest_held()).max();
    let stall = longest.map_or(String::new(), |wait| {
        let lock = if wait.lock > 0.0 { time(wait.lock) } else { "none".to_owned() };
        format!(", stall {} ({lock} of it for locks)", time(wait.seconds))
    });
    let kept = stalls().any(|stall| stall.counts_for.is_some()).then(|| {
        let waits = if longest.is_some() { "longer waits" } else { "waits" };
        let of = kept.map_or("an earlier statement".to_owned(), |number| format!("statement {number}"));
        format!(", {waits} for a lock that {of} holds count for that statement")
    });
    let is_failed = stalls().any(|stall| stall.failed.is_some());
    let failed = if is_failed { ", failed beside readers and writers" } else { "" };
    let has_deadlock = stalls().any(|stall| !stall.deadlocks.is_empty());
    let deadlock = if has_deadlock { ", deadlock with readers or writers" } else { "" };
    let lock = strongest.map_or(String::new(), |mode| format!(", {mode}"));
    let stall = stall + &kept.unwrap_or_default() + deadlock + failed;
    format!("{}, WAL {}{stall}{lock}", time(seconds), shown_bytes(wal))
}

/// Cost at each size, if there are several.
fn costs(one: &StatementOutcome) -> String {
    let mut text = String::new();
    let sizes: BTreeSet<u64> = one.measured.iter().map(|at| at.bytes).collect();
    for at in one.measured.iter().filter(|_| sizes.len() > 1) {
        if let (Some(seconds), Some(wal)) = (at.seconds(), at.wal()) {
            let _ = write!(
                text,
                "\n   cost    {} at {}, WAL {}",
                spread(seconds),
                bytes(at.bytes),
                shown_bytes(wal.median)
            );
        }
    }
    text
}

/// The longest waits of a reader and a writer. None may count for a statement behind a kept lock.
fn waits(stall: &Stall) -> String {
    let then = |wait: &Wait| if wait.is_failed { ", then it failed" } else { "" };
    let wait = |name: &str, wait: &Option<Wait>| match wait {
        Some(wait) if wait.lock > 0.0 => {
            let (waited, lock) = (time(wait.seconds), time(wait.lock));
            format!("{name} {waited} ({lock} of it for locks, {}{})", wait.name, then(wait))
        }
        Some(wait) => format!("{name} {}{}", time(wait.seconds), then(wait)),
        None if stall.counts_for.is_some() => String::new(),
        None => format!("no {name}"),
    };
    let mut own = vec![wait("reader", &stall.read), wait("writer", &stall.write)];
    own.retain(|wait| !wait.is_empty());
    let mut parts = vec![own.join(", ")];
    parts.extend(stall.counts_for.map(|number| {
        let longer = if own.is_empty() { "waits" } else { "longer waits" };
        format!("{longer} for a lock that statement {number} holds count for that statement")
    }));
    parts.extend(stall.deadlocks.iter().map(|lost| {
        format!("deadlock: the {} of {} failed after {}", lost.kind.name(), lost.name, time(lost.seconds))
    }));
    parts.extend(stall.failed.as_ref().map(|failed| format!("it failed: {failed}")));
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// The forecast of a statement.
fn forecast(one: &StatementOutcome, of: &Outcome) -> String {
    let Some(forecast) = &one.forecast else { return rowless::forecast(one).unwrap_or_default() };
    let is_quick = one.measured.len() == 1;
    let figure = |figure: &Figure, shown: &dyn Fn(f64) -> String| {
        match figure {
        Figure::Value { value, low, high } => {
            format!("{} ({} to {})", shown(*value), shown(*low), shown(*high))
        }
        Figure::Beyond { boundary, measure } => {
            let up_to = (!of.is_whole).then(|| of.up_to(one, *measure));
            beyond(*boundary, (*measure, up_to), is_quick)
        }
        Figure::TooFewSizes if is_quick => "not known: leave out --quick to measure several sizes".to_owned(),
        Figure::TooFewSizes => {
            "not known: the tables are so small that all measured sizes are alike; give --size, or \
             --rows TABLE=ROWS"
                .to_owned()
        }
        Figure::TooSmall if of.is_whole => {
            format!("not known: it hardly grows between the measured sizes; {WHOLE}")
        }
        Figure::TooSmall => {
            "not known: it hardly grows between the measured sizes, or no more than runs differ; give a larger --up-to".to_owned()
        }
        Figure::NotMeasured => "not known: it was not measured".to_owned(),
    }
    };
    let (seconds, wal) = (figure(&forecast.seconds, &time), figure(&forecast.wal, &shown_bytes));
    let size = bytes(forecast.bytes);
    let width = size.len() + 3;
    let mut text = format!("\n   at {size}  {seconds}\n   {:>width$}  WAL {wal}", "");
    if let Figure::Value { value, .. } = forecast.space
        && value >= SPACE as f64
    {
        let space = figure(&forecast.space, &shown_bytes);
        let _ = write!(text, "\n   {:>width$}  {space} more on disk at its peak", "");
    }
    if let Some(temporary) = &forecast.temporary {
        let shown = figure(temporary, &shown_bytes);
        let _ = write!(text, "\n   {:>width$}  temporary files {shown}", "");
    }
    text
}

/// Why there is no figure beyond a boundary, and the size that gives one: of the tables, and the `--up-to` with which they have it; none if they have
/// all their rows.
fn beyond(boundary: Boundary, (measure, up_to): (u64, Option<u64>), is_quick: bool) -> String {
    let why = format!("not known: from about {} on, {}", bytes(boundary.at), boundary.cause.effect());
    let Some(up_to) = up_to else { return format!("{why}; {WHOLE}") };
    // A single size never gives one.
    let how = if is_quick { "leave out --quick, and give" } else { "give" };
    let (tables, up_to) = (bytes(measure), bytes(up_to).replace(' ', ""));
    format!("{why}; to measure tables of {tables}, {how} --up-to {up_to}")
}

fn spread(seconds: Spread) -> String {
    format!("{} ({} to {})", time(seconds.median), time(seconds.low), time(seconds.high))
}

/// Work of one kind, with the relations and the counts of each relation.
fn grouped_works(works: &[Work]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let is_counted = |work: &&Work| {
        matches!(work.kind, WorkKind::Rows | WorkKind::Scan) && work.proof.read.is_some() && !is_vacuum(work)
    };
    let counted: Vec<&Work> = works.iter().filter(is_counted).collect();
    let others: Vec<Work> = works.iter().filter(|work| !is_counted(work)).cloned().collect();
    lines.extend(works_of_kinds(&others));
    lines.extend(counted.iter().take(RELATIONS).flat_map(|work| works_of_kinds(std::slice::from_ref(*work))));
    if let Some(more) = counted.len().checked_sub(RELATIONS).filter(|more| *more > 0) {
        let rows: i64 =
            counted[RELATIONS..].iter().filter_map(|work| work.proof.read).map(|read| read.returned).sum();
        lines.push(format!("{} rows read of {more} more", grouped(u64::try_from(rows).unwrap_or_default())));
    }
    lines
}

/// Work of one kind, with the relations and the proof of the first.
fn works_of_kinds(works: &[Work]) -> Vec<String> {
    let kinds = [WorkKind::Rewrite, WorkKind::Copy, WorkKind::IndexBuild, WorkKind::Rows, WorkKind::Scan];
    let of_kind = |kind: WorkKind| works.iter().filter(move |work| work.kind == kind);
    let groups = kinds.into_iter().filter(|kind| of_kind(*kind).next().is_some());
    groups
        .map(|kind| {
            let names: Vec<&str> = of_kind(kind).map(|work| work.relation.as_str()).collect();
            let first = of_kind(kind).next().map(|work| work.proof);
            let read = of_kind(kind).next().filter(|work| !is_vacuum(work)).and_then(|work| work.proof.read);
            let count = |number: i64| grouped(u64::try_from(number).unwrap_or_default());
            let rows = |number: i64| counted(u64::try_from(number).unwrap_or_default(), "row");
            let proof = match (kind, read) {
                (WorkKind::Rewrite, _) => "new file for".to_owned(),
                (WorkKind::Copy, _) => "new file in another tablespace for".to_owned(),
                (WorkKind::IndexBuild, _) => "new file for index".to_owned(),
                (WorkKind::Rows, Some(read)) => format!(
                    "{} inserted, {} updated, {} deleted in",
                    rows(read.inserted),
                    count(read.updated),
                    count(read.deleted)
                ),
                (WorkKind::Rows, None) => {
                    "a lock for writes (ROW EXCLUSIVE), and no counters from the server, for".to_owned()
                }
                (WorkKind::Scan, Some(read)) if read.scans > 0 => {
                    format!("{} read by {} of", rows(read.returned), scans(read.scans))
                }
                (WorkKind::Scan, Some(_)) => {
                    "as many index entries read (90 % or more) as rows in".to_owned()
                }
                (WorkKind::Scan, None) => "the server counted a VACUUM or ANALYZE of".to_owned(),
            };
            let event = if first.is_some_and(|proof| proof.is_event) { " (event table_rewrite)" } else { "" };
            format!("{proof} {}{event}", listed(&names))
        })
        .collect()
}

/// Whether the server's counter of VACUUM and ANALYZE proves a scan. An ANALYZE reads rows without a scan.
fn is_vacuum(work: &Work) -> bool {
    work.kind == WorkKind::Scan && work.proof.is_vacuumed
}

fn scans(number: i64) -> String {
    if number == 1 { "a sequential scan".to_owned() } else { format!("{number} sequential scans") }
}

/// Locks of one mode, with the relations.
fn grouped_locks(locks: &[Lock]) -> Vec<String> {
    let mut modes: BTreeMap<(LockMode, String), Vec<&str>> = BTreeMap::new();
    for lock in locks.iter().filter(|lock| !lock.is_new) {
        modes.entry((lock.mode, remark(lock))).or_default().push(&lock.relation);
    }
    let line = |((mode, remark), names): (&(LockMode, String), &Vec<&str>)| {
        format!("{mode} on {}{remark}", listed(names))
    };
    modes.iter().rev().map(line).collect()
}

/// A remark on a lock in parentheses, after a blank; empty if there is none.
fn remark(lock: &Lock) -> String {
    if lock.is_dead {
        return " (at its end, when no session uses it any more)".to_owned();
    }
    lock.blocks().map_or_else(String::new, |blocked| format!(" (blocks {blocked})"))
}

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(RELATIONS);
    let shown = names.iter().take(RELATIONS).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use ddl::Cause;

    use super::*;

    #[test]
    fn the_advice_beyond_a_boundary_measures_several_sizes() {
        let boundary = Boundary { cause: Cause::MaintenanceWorkMem, at: 148_000_000 };
        let of = |is_quick| beyond(boundary, (681_000_000, Some(1_600_000_000)), is_quick);
        let measure = "exceeds maintenance_work_mem; to measure tables of 681 MB, ";
        assert!(of(false).ends_with(&format!("{measure}give --up-to 1.60GB")), "{}", of(false));
        assert!(of(true).ends_with(&format!("{measure}leave out --quick, and give --up-to 1.60GB")));
        assert!(beyond(boundary, (681_000_000, None), false).ends_with(WHOLE));
        // The boundary is only a part of the memory.
        let cache = beyond(Boundary { cause: Cause::Cache, at: 148_000_000 }, (681_000_000, None), false);
        let begins = "not known: from about 148 MB on, the work may no longer fit in the cache, a part of the machine's memory;";
        assert!(cache.starts_with(begins), "{cache}");
    }
}
