//! Plan and results as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use comfy_table::Table;
use ddl::find::{Lock, LockMode, Work, WorkKind};
use ddl::{
    Alternative, Amount, AtSize, Boundary, Effects, Effort, Figure, Outcome, Plan, PlannedSize, Probed,
    Request, Space, Spread, Stall, StatementKind, StatementOutcome, Wait,
};
use measure::human::{bytes, counted, grouped, time};

use super::rowless;
use crate::app::table::{align_right, new_table, trimmed};

/// Tables of a plan that are named.
const NAMED: usize = 8;
/// Columns that the table of results takes.
const WIDTH: usize = 80;
/// Least characters of a statement in that table.
const STATEMENT: usize = 12;
/// Least bytes of files that are more than changes of catalogs.
const SPACE: u64 = 1 << 20;
/// Statements of a better way that are shown, beside those that failed.
const STEPS: usize = 12;
/// Relations that are named for each lock or work.
const RELATIONS: usize = 6;

/// Output of --explain.
pub(crate) fn request(request: &Request) -> String {
    let amount = match &request.amount {
        Amount::AsOriginal => "with as many rows as the original".to_owned(),
        Amount::Size(size) => format!("{} in all", bytes(*size)),
        Amount::Sizes(_) => "as --size says".to_owned(),
        Amount::Rows(rows) if request.schema.rows.is_empty() => format!("{} in each", counted(*rows, "row")),
        Amount::Rows(rows) => format!("at most {} in each", counted(*rows, "row")),
        Amount::Rules(_) => "as --rows says".to_owned(),
    };
    let mut text = format!("tables of {}, {amount}\n\nstatements:", request.schema.origin);
    for (statement, number) in request.script.statements.iter().zip(1..) {
        let how = match statement.kind {
            StatementKind::Transaction => "transaction",
            StatementKind::Session => "session",
            StatementKind::Measured | StatementKind::MeasuredAlone => "measured",
        };
        let line = cut(&statement.in_one_line(), 60);
        let _ = write!(text, "\n  {number:>2}  {how:11}  {line}");
    }
    let runs = match request.effort {
        Effort::Quick => "once to time it, at one size",
        Effort::Full => "to time it, five times at each of two smaller sizes, and three times at the largest",
    };
    text + &format!(
        "\n\npgrig runs the migration on empty tables, to see which tables it uses, and fills those up to {}. It runs each \
         measured statement in copies of the database: to read what the statement does, and {runs}.",
        bytes(request.up_to)
    )
}

/// The plan, before the tables are filled.
pub(crate) fn plan(plan: &Plan, request: &Request) -> String {
    let named: Vec<String> = plan
        .tables
        .iter()
        .take(NAMED)
        .map(|table| format!("{} {}", grouped(table.rows), table.name))
        .collect();
    let more = plan.tables.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let statements = request.script.statements.len();
    let tables = match plan.tables.len() {
        0 => format!("none of {}: no statement uses any", request.schema.origin),
        number => format!("{number} of {}: {}{more}", request.schema.origin, named.join(", ")),
    };
    let sizes =
        |of: &dyn Fn(&PlannedSize) -> String| plan.sizes.iter().map(of).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "plan\n  tables       {tables}\n  sizes        about {}\n  runs         {}\n  statements   {statements}",
        sizes(&|size| bytes(size.bytes)),
        sizes(&|size| size.runs.to_string()),
    );
    let time = rough(Duration::from_secs(plan.seconds));
    let _ = write!(text, "\n  time         about {time}, at speeds that pgrig assumes until it has measured");
    if !plan.empty.is_empty() {
        let _ = write!(text, "\n  left empty   {} that no statement uses", plan.empty.len());
    }
    for rule in plan.suited.iter().take(NAMED) {
        let _ = write!(text, "\n  values       {}", cut(rule, 66));
    }
    for default in &plan.defaults {
        let _ = write!(text, "\n  values       {}", rowless::planned(default));
    }
    if !plan.settings.is_empty() {
        let set: Vec<String> = plan.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let _ = write!(text, "\n  settings     {}", set.join(", "));
    }
    text
}

/// The table of statements, and what proves each class.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    // First without the statements, which get the columns that are left.
    let others = trimmed(&table(outcome, &|_| String::new()));
    let taken = others.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    // The title of that column is part of what was taken.
    let left = (WIDTH + "statement".len()).saturating_sub(taken).max(STATEMENT);
    let mut text = trimmed(&table(outcome, &|one| cut(&one.statement.in_one_line(), left)));
    for one in &outcome.statements {
        if let Some(details) = details(one, outcome) {
            let _ = write!(text, "\n\n{details}");
        }
    }
    if let Some(found) = &outcome.probed {
        text += &probed(found, "stall");
    }
    if let Some(found) = &outcome.probed_blocked {
        text += &probed(found, "queue, behind an open transaction");
    }
    text
}

fn table(outcome: &Outcome, shown: &dyn Fn(&StatementOutcome) -> String) -> Table {
    let mut table = new_table(&["", "class", "time", "WAL", "stall", "blocks", "statement"]);
    for one in &outcome.statements {
        let class = match (&one.found, &one.failed) {
            (_, Some(_)) => "not measurable".to_owned(),
            (Some(found), _) => found.class.to_string(),
            (None, None) if one.measured.is_empty() => "not run".to_owned(),
            (None, None) => String::new(),
        };
        let blocks = one.found.as_ref().and_then(Effects::blocks);
        let largest = one.largest();
        table.add_row([
            one.number.to_string(),
            class,
            largest.and_then(AtSize::seconds).map_or(String::new(), |seconds| time(seconds.median)),
            largest.and_then(AtSize::wal).map_or(String::new(), |wal| shown_bytes(wal.median)),
            one.stall.as_ref().and_then(Stall::longest).map_or(String::new(), |wait| time(wait.seconds)),
            blocks.unwrap_or_default().to_owned(),
            shown(one),
        ]);
    }
    align_right(&mut table, 2..5);
    table
}

/// Locks and proof of a statement.
fn details(one: &StatementOutcome, of: &Outcome) -> Option<String> {
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
    if let Some(space) = space(found.space) {
        let _ = write!(text, "\n   space   {space}");
    }
    text += &costs(one);
    text += &forecast(one, of);
    for alternative in of.alternatives.iter().filter(|other| other.number == one.number) {
        text += &better(one, alternative);
    }
    Some(text)
}

/// Disk space at its peak, if it is more than changes of catalogs take.
fn space(space: Space) -> Option<String> {
    let files = (space.files >= SPACE).then(|| format!("{} of files", bytes(space.files)));
    let temporary = space.temporary.filter(|temporary| *temporary > 0);
    let temporary = temporary.map(|temporary| format!("{} of temporary files", bytes(temporary)));
    let parts: Vec<String> = files.into_iter().chain(temporary).collect();
    (!parts.is_empty()).then(|| format!("{} more at its peak", parts.join(" and ")))
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
        let _ = write!(text, "\n           {}", in_short(std::slice::from_ref(step)));
    }
    if left_out > 0 {
        let _ = write!(
            text,
            "\n           and {}: --json FILE writes all of them",
            counted(left_out, "more statement")
        );
    }
    if alternative.statements.iter().all(|step| step.failed.is_none()) {
        let _ = write!(text, "\n   in all  {}", in_short(&alternative.statements));
        let _ = write!(text, "\n   before  {}", in_short(std::slice::from_ref(one)));
    }
    text
}

/// Seconds, WAL, stall and the strongest lock of some statements.
fn in_short(statements: &[StatementOutcome]) -> String {
    let largest = || statements.iter().filter_map(StatementOutcome::largest);
    let seconds: f64 = largest().filter_map(AtSize::seconds).map(|seconds| seconds.median).sum();
    let wal: f64 = largest().filter_map(AtSize::wal).map(|wal| wal.median).sum();
    let stalls = statements.iter().filter_map(|one| one.stall.as_ref()?.longest());
    let stall = stalls.map(|wait| wait.seconds).reduce(f64::max);
    let strongest = statements.iter().filter_map(|one| one.found.as_ref()?.strongest_held()).max();
    let stall = stall.map_or(String::new(), |stall| format!(", stall {}", time(stall)));
    let lock = strongest.map_or(String::new(), |mode| format!(", {mode}"));
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

/// The longest waits of a reader and a writer.
fn waits(stall: &Stall) -> String {
    let wait = |name: &str, wait: &Option<Wait>| match wait {
        Some(wait) if wait.lock > 0.0 => {
            format!("{name} {} ({} of it for locks, {})", time(wait.seconds), time(wait.lock), wait.name)
        }
        Some(wait) => format!("{name} {}", time(wait.seconds)),
        None => format!("no {name}"),
    };
    let counts_for = stall.counts_for.map_or(String::new(), |number| {
        format!("; longer waits for a kept lock count for statement {number}")
    });
    let failed = stall.failed.as_ref().map_or(String::new(), |failed| format!("; it failed: {failed}"));
    format!("{}, {}{counts_for}{failed}", wait("reader", &stall.read), wait("writer", &stall.write))
}

/// The probes, after the statements.
fn probed(probed: &Probed, of: &str) -> String {
    let before = |wait: Option<f64>| wait.map_or("none".to_owned(), time);
    let mut text = format!(
        "\n\n{of}: {}; longest waits before the migration: reader {}, writer {}",
        rates(probed),
        before(probed.baseline.read),
        before(probed.baseline.write)
    );
    if probed.names.is_empty() {
        text = format!("\n\n{of}: no reader and no writer");
    }
    for table in &probed.unprobed {
        let _ = write!(text, "\n  not probed  {table}");
    }
    for stopped in &probed.stopped {
        let at = stopped.number.map_or(String::new(), |number| format!(" at statement {number}"));
        let _ = write!(
            text,
            "\n  failed      the {} of {}{at}: {}",
            stopped.kind.name(),
            stopped.name,
            stopped.message
        );
    }
    text
}

/// The names of the readers and writers, with their rates; those of one rate together.
fn rates(probed: &Probed) -> String {
    let each: Vec<(&String, f64)> = probed.names.iter().zip(probed.per_second.iter().copied()).collect();
    let groups = each.chunk_by(|(_, one), (_, other)| one.total_cmp(other).is_eq());
    let shown = |group: &[(&String, f64)]| {
        let names: Vec<&str> = group.iter().map(|(name, _)| name.as_str()).collect();
        let rate = group.first().map_or(0.0, |(_, rate)| *rate);
        let digits = usize::from(rate < 10.0);
        format!("{} at {rate:.digits$}/s{}", names.join(", "), if names.len() > 1 { " each" } else { "" })
    };
    groups.map(shown).collect::<Vec<_>>().join(", ")
}

/// The forecast of a statement.
fn forecast(one: &StatementOutcome, of: &Outcome) -> String {
    let Some(forecast) = &one.forecast else { return rowless::forecast(one).unwrap_or_default() };
    let is_quick = one.measured.len() == 1;
    let figure = |figure: &Figure, shown: &dyn Fn(f64) -> String| match figure {
        Figure::Value { value, low, high } => {
            format!("{} ({} to {})", shown(*value), shown(*low), shown(*high))
        }
        Figure::Beyond { boundary, measure } => beyond(*boundary, of.up_to(one, *measure), is_quick),
        Figure::TooFewSizes if is_quick => "not known: leave out --quick to measure several sizes".to_owned(),
        Figure::TooFewSizes => {
            "not known: the tables are so small that all measured sizes are alike; give --size, or \
             --rows TABLE=ROWS"
                .to_owned()
        }
        Figure::TooSmall => {
            "not known: it hardly grows between the measured sizes; give a larger --up-to".to_owned()
        }
        Figure::NotMeasured => "not known: it was not measured".to_owned(),
    };
    let (seconds, wal) = (figure(&forecast.seconds, &time), figure(&forecast.wal, &shown_bytes));
    let size = bytes(forecast.bytes);
    let width = size.len() + 3;
    let mut text = format!("\n   at {size}  {seconds}\n   {:>width$}  WAL {wal}", "");
    if let Figure::Value { value, .. } = forecast.space
        && value >= SPACE as f64
    {
        let space = figure(&forecast.space, &shown_bytes);
        let _ = write!(text, "\n   {:>width$}  {space} of files more at its peak", "");
    }
    if let Some(temporary) = &forecast.temporary {
        let shown = figure(temporary, &shown_bytes);
        let _ = write!(text, "\n   {:>width$}  temporary files {shown}", "");
    }
    text
}

/// Why there is no figure beyond a boundary, and the size that gives one.
fn beyond(boundary: Boundary, up_to: u64, is_quick: bool) -> String {
    // A single size never gives one.
    let how = if is_quick { "leave out --quick, and give" } else { "give" };
    format!(
        "not known: from about {} on, the work exceeds {}; to measure that, {how} --up-to {}",
        bytes(boundary.at),
        boundary.cause.name(),
        bytes(up_to).replace(' ', ""),
    )
}

fn spread(seconds: Spread) -> String {
    format!("{} ({} to {})", time(seconds.median), time(seconds.low), time(seconds.high))
}

/// Bytes that were computed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes for people")]
fn shown_bytes(number: f64) -> String {
    bytes(number.max(0.0).round() as u64)
}

/// A duration in two digits.
pub(crate) fn rough(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..100 => format!("{} s", seconds.max(1)),
        seconds @ 100..6000 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", f64::from(u32::try_from(seconds).unwrap_or(u32::MAX)) / 3600.0),
    }
}

/// Work of one kind, with the relations; what was counted is told of each relation.
fn grouped_works(works: &[Work]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let is_counted =
        |work: &&Work| matches!(work.kind, WorkKind::Rows | WorkKind::Scan) && work.proof.read.is_some();
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
            let read = first.and_then(|proof| proof.read);
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

fn scans(number: i64) -> String {
    if number == 1 { "a sequential scan".to_owned() } else { format!("{number} sequential scans") }
}

/// Locks of one mode, with the relations.
fn grouped_locks(locks: &[Lock]) -> Vec<String> {
    let mut modes: BTreeMap<(LockMode, Option<&str>), Vec<&str>> = BTreeMap::new();
    for lock in locks.iter().filter(|lock| !lock.is_new) {
        modes.entry((lock.mode, lock.blocks())).or_default().push(&lock.relation);
    }
    let line = |((mode, blocked), names): (&(LockMode, Option<&str>), &Vec<&str>)| {
        let blocks = blocked.map_or(String::new(), |blocked| format!(" (blocks {blocked})"));
        format!("{mode} on {}{blocks}", listed(names))
    };
    modes.iter().rev().map(line).collect()
}

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(RELATIONS);
    let shown = names.iter().take(RELATIONS).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The text with a capital letter at its beginning.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The text, cut to so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    kept.trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use ddl::Cause;

    use super::*;

    #[test]
    fn the_advice_beyond_a_boundary_measures_several_sizes() {
        let boundary = Boundary { cause: Cause::MaintenanceWorkMem, at: 148_000_000 };
        let of = |is_quick| beyond(boundary, 1_600_000_000, is_quick);
        assert!(of(false).ends_with("exceeds maintenance_work_mem; to measure that, give --up-to 1.60GB"));
        assert!(of(true).ends_with("to measure that, leave out --quick, and give --up-to 1.60GB"));
    }
}
