//! Plan and results as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::Table;
use ddl::find::{Lock, LockMode, Work, WorkKind};
use ddl::{Amount, Found, Outcome, Plan, Request, StatementKind, StatementOutcome};
use measure::human::{bytes, grouped, time};

use crate::app::table::{align_right, new_table, trimmed};

/// Tables of a plan that are named.
const NAMED: usize = 8;
/// Columns that the table of results takes.
const WIDTH: usize = 80;
/// Least characters of a statement in that table.
const STATEMENT: usize = 12;
/// Relations that are named for each lock or work.
const RELATIONS: usize = 6;

/// Output of --explain.
pub(crate) fn request(request: &Request) -> String {
    let amount = match &request.amount {
        Amount::Size(size) => format!("{} in all", bytes(*size)),
        Amount::Rows(rows) if request.schema.rows.is_empty() => format!("{} rows in each", grouped(*rows)),
        Amount::Rows(rows) => format!("at most {} rows in each", grouped(*rows)),
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
    text + "\n\nEach measured statement runs twice, on copies of the filled database: once to read what it does, once \
            to time it."
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
    let mut text = format!(
        "plan\n  tables       {} of {}: {}{more}\n  size         about {}, filled once and copied twice\n  statements   {statements}",
        plan.tables.len(),
        request.schema.origin,
        named.join(", "),
        bytes(plan.bytes()),
    );
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
        if let Some(details) = details(one) {
            let _ = write!(text, "\n\n{details}");
        }
    }
    text
}

fn table(outcome: &Outcome, shown: &dyn Fn(&StatementOutcome) -> String) -> Table {
    let mut table = new_table(&["", "class", "time", "WAL", "blocks", "statement"]);
    for one in &outcome.statements {
        let class = match (&one.found, &one.failed) {
            (_, Some(_)) => "not measurable".to_owned(),
            (Some(found), _) => found.class.to_string(),
            (None, None) if one.cost.is_none() => "not run".to_owned(),
            (None, None) => String::new(),
        };
        let blocks = one.found.as_ref().and_then(Found::strongest).and_then(LockMode::blocks);
        table.add_row([
            one.number.to_string(),
            class,
            one.cost.map_or(String::new(), |cost| time(cost.seconds)),
            one.cost.map_or(String::new(), |cost| bytes(cost.wal)),
            blocks.unwrap_or_default().to_owned(),
            shown(one),
        ]);
    }
    align_right(&mut table, 2..4);
    table
}

/// Locks and proof of a statement.
fn details(one: &StatementOutcome) -> Option<String> {
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
    if found.locks.iter().all(|lock| lock.is_new) {
        text.push_str(if found.is_alone {
            "\n   lock    none was seen"
        } else {
            "\n   lock    none on tables that were there, beyond those of its transaction"
        });
    }
    if let (Some(cost), true) = (one.cost, found.strongest().is_some())
        && !found.is_alone
    {
        let _ = write!(text, "\n   held    {}", time(cost.held));
    }
    if found.is_alone {
        text.push_str("\n   runs    outside of a transaction");
        if found.waits > 0 {
            let _ = write!(text, "; waited for open transactions {} times", found.waits);
        }
    }
    Some(text)
}

/// Work of one kind, with the relations and the proof of the first.
fn grouped_works(works: &[Work]) -> Vec<String> {
    let kinds = [WorkKind::Rewrite, WorkKind::Copy, WorkKind::IndexBuild, WorkKind::Rows, WorkKind::Scan];
    let of_kind = |kind: WorkKind| works.iter().filter(move |work| work.kind == kind);
    let groups = kinds.into_iter().filter(|kind| of_kind(*kind).next().is_some());
    groups
        .map(|kind| {
            let names: Vec<&str> = of_kind(kind).map(|work| work.relation.as_str()).collect();
            let first = of_kind(kind).next().map(|work| work.proof);
            let read = first.and_then(|proof| proof.read);
            let count = |number: i64| grouped(u64::try_from(number).unwrap_or_default());
            let proof = match (kind, read) {
                (WorkKind::Rewrite, _) => "new file for".to_owned(),
                (WorkKind::Copy, _) => "new file in another tablespace for".to_owned(),
                (WorkKind::IndexBuild, _) => "new file for index".to_owned(),
                (WorkKind::Rows, Some(read)) => format!(
                    "{} rows inserted, {} updated, {} deleted in",
                    count(read.inserted),
                    count(read.updated),
                    count(read.deleted)
                ),
                (WorkKind::Rows, None) => "rows written in".to_owned(),
                (WorkKind::Scan, Some(read)) if read.scans > 0 => {
                    format!("{} rows read by {} of", count(read.returned), scans(read.scans))
                }
                (WorkKind::Scan, Some(_)) => "all entries read of an index of".to_owned(),
                (WorkKind::Scan, None) => "the server counted a VACUUM or ANALYZE of".to_owned(),
            };
            format!("{proof} {}", listed(&names))
        })
        .collect()
}

fn scans(number: i64) -> String {
    if number == 1 { "a sequential scan".to_owned() } else { format!("{number} sequential scans") }
}

/// Locks of one mode, with the relations.
fn grouped_locks(locks: &[Lock]) -> Vec<String> {
    let mut modes: BTreeMap<LockMode, Vec<&str>> = BTreeMap::new();
    for lock in locks.iter().filter(|lock| !lock.is_new) {
        modes.entry(lock.mode).or_default().push(&lock.relation);
    }
    let line = |(mode, names): (&LockMode, &Vec<&str>)| {
        let blocks = mode.blocks().map_or(String::new(), |blocked| format!(" (blocks {blocked})"));
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
