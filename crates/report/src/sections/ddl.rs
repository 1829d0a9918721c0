//! Statements of a migration: class, locks, cost, waits of readers and writers, and forecasts.

mod better;
mod forecast;
mod probes;
mod rowless;
mod thinned;
mod waits;

use measure::{Run, Trial, Unit};
use serde_json::Value;

use super::tps::text;
use super::{Section, Shown, log_dots};
use crate::document::median;
use crate::escape::shortened;
use crate::plot::scale::Spread;
use crate::plot::{Axis, Bars, Chart, Dot, Grouped, Plot, Table};
use crate::quantity::Quantity;

/// Statements that are drawn in a plot.
const MOST: usize = 30;
/// Relations that are named for a lock.
const RELATIONS: usize = 2;
/// A statement that concerns only the session or the transaction is drawn if it takes this share of the whole time: a COMMIT
/// may check constraints.
const NOTABLE: f64 = 0.01;
/// Observations that have a column of their own.
const KNOWN: [&str; 5] = ["time", "locks-held", "wal", "stall", "stall-blocked"];

/// The observation of temporary files.
const TEMPORARY: &str = "space-temporary";

pub(super) fn shown(run: &Run) -> Shown {
    let statements: Vec<Statement> = run.trials.iter().map(Statement::of).collect();
    if statements.is_empty() {
        return Shown { result: "No statement was measured".to_owned(), sections: Vec::new() };
    }
    let mut overview = Section::new("Statements", costs(&statements));
    overview.first = Some(("All statements".to_owned(), overview_table(&statements)));
    overview.text = rowless::sentences(&statements);
    overview.text.extend(thinned::sentences(&statements));
    overview.text.extend(probes::sentences(run, &statements));
    overview.tables = proofs(&statements).into_iter().collect();
    let mut sections = vec![overview, locks(&statements)];
    sections.extend(waits::sections(&statements, run.request["probes"]["blocker"]["secs"].as_f64()));
    sections.extend(forecast::section(&statements));
    sections.extend(better::section(&statements));
    Shown { result: result(run, &statements), sections }
}

/// A statement, and the parts of its events.
struct Statement<'a> {
    trial: &'a Trial,
    found: Option<&'a Value>,
    failed: Option<&'a Value>,
    /// Its sizes, in ascending order.
    sizes: Vec<Size<'a>>,
    stall: Option<&'a Value>,
    blocked: Option<&'a Value>,
    forecast: Option<&'a Value>,
    /// The `--up-to` that gives figures which its forecast lacks, bytes.
    up_to: Option<f64>,
    /// The partitions without generated rows on which it works.
    rowless: Option<&'a [Value]>,
    /// The columns that it changes between timestamp and timestamptz in an unknown time zone.
    zone: Option<&'a Value>,
    /// The tables on which it works, and of which earlier statements have removed most rows.
    thinned: &'a [Value],
    /// The statements of each better way in its place.
    alternatives: Vec<&'a [Value]>,
}

/// The runs of a statement at one size.
struct Size<'a> {
    bytes: f64,
    rows: f64,
    runs: &'a [Value],
}

impl<'a> Statement<'a> {
    fn of(trial: &'a Trial) -> Self {
        let part = |event: &str, part: &str| {
            let found = trial.events.iter().find(|one| one.what["event"] == event)?;
            Some(&found.what[part])
        };
        let size = |size: &'a Value| {
            let runs = size["runs"].as_array()?.as_slice();
            Some(Size { bytes: size["bytes"].as_f64()?, rows: size["rows"].as_f64()?, runs })
        };
        let alternatives = trial.events.iter().filter(|one| one.what["event"] == "alternative");
        let sizes = part("measured", "sizes").and_then(Value::as_array);
        Self {
            trial,
            found: part("found", "found"),
            failed: part("failed", "failed"),
            sizes: sizes.into_iter().flatten().filter_map(size).collect(),
            stall: part("stall", "stall"),
            blocked: part("stall-blocked", "stall"),
            forecast: part("forecast", "forecast"),
            up_to: part("forecast", "up_to").and_then(Value::as_f64),
            rowless: part("rowless", "partitions").and_then(Value::as_array).map(Vec::as_slice),
            zone: part("zone", "zone"),
            thinned: part("thinned", "tables").and_then(Value::as_array).map_or(&[][..], Vec::as_slice),
            alternatives: alternatives
                .filter_map(|one| Some(one.what["statements"].as_array()?.as_slice()))
                .collect(),
        }
    }

    fn name(&self) -> String {
        self.trial.config.clone()
    }

    /// A name for sentences.
    fn short(&self) -> String {
        let (number, sql) = self.trial.config.split_once(": ").unwrap_or(("", &self.trial.config));
        format!("statement {number}, {}", shortened(sql, 60))
    }

    fn class(&self) -> String {
        match (self.failed, self.found) {
            (Some(_), _) => "not measurable".to_owned(),
            (None, Some(found)) => class_name(&text(&found["class"])),
            (None, None) => String::new(),
        }
    }

    /// The values of the runs at the largest size.
    fn observed(&self, of: &str) -> Vec<f64> {
        self.sizes.last().map_or_else(Vec::new, |size| size.values(of))
    }

    fn locks(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let all = self.found.and_then(|found| found["locks"].as_array());
        all.into_iter().flatten().filter(|lock| lock["is_new"] != true)
    }

    /// The work of others that is blocked while it runs, as text for people: by its locks, and by those of earlier statements of its
    /// transaction on its tables.
    fn blocks(&self) -> &'static str {
        let inherited = self.found.and_then(|found| found["inherited"].as_array());
        let locks = self.locks().chain(inherited.into_iter().flatten());
        let all: Vec<&str> = locks.filter_map(blocks).collect();
        all.iter()
            .copied()
            .find(|blocked| blocked.starts_with("reads"))
            .or(all.first().copied())
            .unwrap_or("")
    }

    /// Whether it may have written temporary files whose size is not known.
    fn misses_temporary(&self) -> bool {
        self.found.is_some_and(|found| found["missed_temporary"] == true)
    }

    /// Whether it runs outside of transactions.
    fn is_alone(&self) -> bool {
        self.found.is_some_and(|found| found["is_alone"] == true)
    }
}

impl Size<'_> {
    fn values(&self, of: &str) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run[of].as_f64()).collect()
    }
}

/// The name of a class for people.
fn class_name(class: &str) -> String {
    match class {
        "scan-of-another" => "scan of another table".to_owned(),
        "several-tables" => "scan of several tables".to_owned(),
        other => other.replace('-', " "),
    }
}

/// The work of others that a lock blocks (documentation, "Table-Level Locks"); none if it blocks neither reads nor writes of rows. No session
/// writes the rows of a materialized view, and none uses an index that is dropped concurrently.
fn blocks(lock: &Value) -> Option<&'static str> {
    match text(&lock["mode"]).as_str() {
        _ if lock["is_dead"] == true => None,
        "ACCESS-EXCLUSIVE" => Some("reads and writes"),
        _ if lock["kind"] == "materialized-view" => None,
        "EXCLUSIVE" | "SHARE-ROW-EXCLUSIVE" | "SHARE" => Some("writes"),
        _ => None,
    }
}

fn result(run: &Run, statements: &[Statement]) -> String {
    let mut classes: Vec<(String, usize)> = Vec::new();
    for class in statements.iter().map(Statement::class).filter(|class| !class.is_empty()) {
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, count)) => *count += 1,
            None => classes.push((class, 1)),
        }
    }
    let classes: Vec<String> = classes.into_iter().map(|(class, count)| format!("{count} {class}")).collect();
    let sum = |name: &str| statements.iter().filter_map(|one| one.trial.value(name)).sum::<f64>();
    let tables = run.plan["sizes"].as_array().and_then(|sizes| sizes.last()?["bytes"].as_f64());
    let tables =
        tables.map_or_else(String::new, |bytes| format!(" on tables of {}", Quantity::Bytes.text(bytes)));
    let longest = |name: &str| statements.iter().filter_map(|one| one.trial.value(name)).reduce(f64::max);
    let queue = longest("stall-blocked");
    let queue = queue.map_or_else(String::new, |queue| {
        format!(" ({} behind an open transaction)", Quantity::Seconds.text(queue))
    });
    let waited = longest("stall").map_or_else(String::new, |stall| {
        format!("; readers or writers waited for up to {}{queue}", Quantity::Seconds.text(stall))
    });
    let number = statements.len();
    let named = if number == 1 { "1 statement".to_owned() } else { format!("{number} statements") };
    let classes = if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) };
    format!(
        "{named}{classes} took {} and wrote {} of WAL{tables}{waited}",
        Quantity::Seconds.text(sum("time")),
        Quantity::Bytes.text(sum("wal"))
    )
}

/// A row for each statement, with all that was observed.
fn overview_table(statements: &[Statement]) -> Table {
    let mut header: Vec<String> =
        ["statement", "class", "blocks", "time", "locks held", "WAL", "longest wait of others"]
            .map(str::to_owned)
            .to_vec();
    let mut columns: Vec<&str> = vec!["time", "locks-held", "wal", "stall"];
    let mut add = |name, title: String| {
        columns.push(name);
        header.push(title);
    };
    let all = || statements.iter().flat_map(|one| &one.trial.observations);
    if all().any(|one| one.name == "stall-blocked") {
        add("stall-blocked", "the same with --blocker".to_owned());
    }
    let mut others: Vec<&str> = Vec::new();
    for one in all().filter(|one| one.value > 0.0 && !KNOWN.contains(&one.name.as_str())) {
        if !others.contains(&one.name.as_str()) {
            others.push(&one.name);
        }
    }
    if statements.iter().any(Statement::misses_temporary) && !others.contains(&TEMPORARY) {
        others.push(TEMPORARY);
    }
    for name in others {
        let title = match name {
            "space-files" => "more disk space".to_owned(),
            TEMPORARY => "temporary files".to_owned(),
            other => other.replace('-', " "),
        };
        add(name, title);
    }
    let row = |one: &Statement| {
        let value = |name: &&str| {
            let found = one.trial.observations.iter().find(|observation| observation.name == **name);
            let is_held = *name == "locks-held" && (one.blocks().is_empty() || one.is_alone());
            let shown = found
                .filter(|_| !is_held)
                .map_or_else(String::new, |found| quantity(found.unit).text(found.value));
            let remark = match *name {
                TEMPORARY if one.misses_temporary() => "not measured".to_owned(),
                "stall" => probes::remark(one.stall),
                "stall-blocked" => probes::remark(one.blocked),
                _ => String::new(),
            };
            format!("{shown} {remark}").trim().to_owned()
        };
        let start = [one.name(), one.class(), one.blocks().to_owned()];
        start.into_iter().chain(columns.iter().map(value)).collect()
    };
    Table { header, rows: statements.iter().map(row).collect() }
}

fn quantity(unit: Unit) -> Quantity {
    match unit {
        Unit::Seconds => Quantity::Seconds,
        Unit::Bytes => Quantity::Bytes,
        Unit::Rows | Unit::Blocks | Unit::Count => Quantity::Count,
    }
}

/// Why each statement has its class, and why others could not be measured.
fn proofs(statements: &[Statement]) -> Option<(String, Table)> {
    let mut table = Table::new(&["statement", "work", "relation", "proof"]);
    for one in statements {
        for work in one.found.and_then(|found| found["works"].as_array()).into_iter().flatten() {
            let kind = class_name(&text(&work["kind"]));
            table.add([one.name(), kind, text(&work["relation"]), proof(&work["proof"])]);
        }
        if let Some(failed) = one.failed {
            let why = format!("{} {}", text(&failed["message"]), text(&failed["remedy"]));
            table.add([one.name(), "not measurable".to_owned(), String::new(), why.trim_end().to_owned()]);
        }
    }
    (!table.rows.is_empty()).then(|| ("Proof of each class".to_owned(), table))
}

fn proof(proof: &Value) -> String {
    let read = &proof["read"];
    let count = |name: &str| read[name].as_f64().filter(|count| *count > 0.0);
    let said =
        |name: &str, what: &str| count(name).map(|count| format!("{} {what}", Quantity::Count.text(count)));
    let file = proof["file"].is_array().then(|| "new file".to_owned());
    let vacuumed =
        (proof["is_vacuumed"] == true).then(|| "the server counted a VACUUM or ANALYZE".to_owned());
    let is_by_lock = file.is_none() && vacuumed.is_none() && read.is_null();
    let locked = is_by_lock.then(|| "ROW EXCLUSIVE, and no counters from the server".to_owned());
    let all = [
        file,
        locked,
        said("inserted", "rows inserted"),
        said("updated", "rows updated"),
        said("deleted", "rows deleted"),
        said("returned", "rows or entries read by scans"),
        vacuumed,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Time and WAL of each statement at the largest measured size.
fn costs(statements: &[Statement]) -> Vec<Plot> {
    let whole: f64 = statements.iter().filter_map(|one| one.trial.value("time")).sum();
    let is_drawn = |one: &&Statement| {
        one.found.is_some() || one.trial.value("time").is_some_and(|time| time > NOTABLE * whole)
    };
    let drawn: Vec<&Statement> = statements.iter().filter(is_drawn).take(MOST).collect();
    let rows = |field: &str| -> Vec<Dot> {
        let row = |one: &&Statement| {
            let mut observed = one.observed(field);
            let value = median(&observed).filter(|value| *value > 0.0)?;
            // On a logarithmic axis there is no zero.
            observed.retain(|value| *value > 0.0);
            Some(Dot { name: one.name(), value, interval: None, observed, remark: one.class() })
        };
        drawn.iter().filter_map(row).collect()
    };
    let plot = |field, name, title, label, quantity: Quantity, most| {
        let rows = rows(field);
        let greatest = rows.iter().max_by(|one, other| one.value.total_cmp(&other.value))?;
        let caption = format!(
            "At the largest measured size. Each circle is a run, each short line the median. {most}: {}, {}.",
            greatest.name,
            quantity.text(greatest.value)
        );
        Some(Plot::new(name, title, caption, log_dots(label, quantity, rows)))
    };
    let time = plot("seconds", "times", "Time of each statement", "time", Quantity::Seconds, "The longest");
    let wal = plot("wal", "wal", "WAL of each statement", "bytes of WAL", Quantity::Bytes, "The most WAL");
    [time, wal].into_iter().flatten().collect()
}

/// A lock that blocks readers or writers.
struct Lock {
    name: String,
    blocked: &'static str,
    /// Seconds of its statement, and those until the end of its transaction.
    own: f64,
    held: f64,
}

/// The locks that block readers or writers, with the time for which they are held; and all locks as a table.
fn locks(statements: &[Statement]) -> Section {
    let mut rows: Vec<Lock> = Vec::new();
    let mut table = Table::new(&["statement", "lock", "relation", "blocks", "held"]);
    for one in statements {
        let held = median(&one.observed("held"));
        let own = median(&one.observed("seconds"));
        let at_most = if one.is_alone() { "at most " } else { "" };
        let shown =
            held.map_or_else(String::new, |held| format!("{at_most}{}", Quantity::Seconds.text(held)));
        let mut modes: Vec<(String, Option<&str>, Vec<String>)> = Vec::new();
        for lock in one.locks() {
            let (mode, relation) = (text(&lock["mode"]), text(&lock["relation"]));
            let blocked = blocks(lock);
            let shown_blocked = blocked.unwrap_or_default().to_owned();
            table.add([one.name(), mode.replace('-', " "), relation.clone(), shown_blocked, shown.clone()]);
            match modes.iter_mut().find(|(known, of_known, _)| *known == mode && *of_known == blocked) {
                Some((_, _, relations)) => relations.push(relation),
                None => modes.push((mode, blocked, vec![relation])),
            }
        }
        if let Some(why) = one.found.and_then(|found| found["unknown_locks"].as_str()) {
            let (name, none) = (one.name(), String::new());
            table.add([name, "not known".to_owned(), why.to_owned(), none.clone(), none]);
        }
        let number = one.trial.config.split(": ").next().unwrap_or_default();
        for (mode, blocked, relations) in modes {
            let (Some(blocked), Some(held), Some(own)) = (blocked, held, own) else { continue };
            let at_most = at_most.trim_end();
            let name = [&format!("{number}: blocks {blocked}"), at_most].join(" ");
            let name = format!("{}: {} on {}", name.trim_end(), mode.replace('-', " "), listed(&relations));
            rows.push(Lock { name, blocked, own: own.min(held), held });
        }
    }
    rows.truncate(MOST);
    let mut section = Section::new("Locks", Vec::new());
    let longest = rows
        .iter()
        .filter(|row| row.blocked.starts_with("reads"))
        .max_by(|one, other| one.held.total_cmp(&other.held));
    let longest = longest.or_else(|| rows.iter().max_by(|one, other| one.held.total_cmp(&other.held)));
    if let Some(longest) = longest {
        let caption = format!(
            "Locks that block reads or writes of rows, and how long each is held (medians at the largest measured size): a lock stays \
             until the transaction ends, so later statements of the transaction extend it. The longest lock that blocks {} is held for \
                 {} ({}).",
            longest.blocked,
            Quantity::Seconds.text(longest.held),
            longest.name
        );
        let axis = Axis::new("time for which the lock is held", Quantity::Seconds, Spread::Linear);
        let groups = vec!["its statement runs".to_owned(), "until its transaction ends".to_owned()];
        let rest = |row: &Lock| Some(row.held - row.own).filter(|rest| *rest > 0.0);
        let bar = |row: &Lock| (row.name.clone(), vec![Some(row.own), rest(row)]);
        let chart = Bars { axis, groups, rows: rows.iter().map(bar).collect() };
        section.plots.push(Plot::new("locks", "Locks that block others", caption, Chart::Parts(chart)));
    } else {
        let is_unknown = |one: &Statement| one.found.is_some_and(|found| found["unknown_locks"].is_string());
        let text = if statements.iter().any(is_unknown) {
            "pgrig saw no lock that blocks reads or writes of rows. Not all locks are known."
        } else {
            "No statement takes a lock that blocks reads or writes of rows."
        };
        section.text.push(text.to_owned());
    }
    section.tables.push(("All locks".to_owned(), table));
    section
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(RELATIONS);
    let shown = names.iter().take(RELATIONS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// An observation of each statement with its work, for runs beside each other.
pub(super) fn each(run: &Run, name: &str) -> Vec<(String, Grouped)> {
    let of = |trial: &Trial| {
        let one = Statement::of(trial);
        one.found?;
        let runs = match name {
            "time" => one.observed("seconds"),
            "wal" => one.observed("wal"),
            _ => Vec::new(),
        };
        let interval = runs.iter().copied().reduce(f64::min).zip(runs.iter().copied().reduce(f64::max));
        Some((
            one.name(),
            Grouped { value: trial.value(name)?, interval: interval.filter(|_| runs.len() > 1) },
        ))
    };
    run.trials.iter().filter_map(of).collect()
}
