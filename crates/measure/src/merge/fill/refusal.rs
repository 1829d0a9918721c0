//! Runs that are no parts of one fill: each difference is named.

use serde_json::{Map, Value, json};

use super::super::clock::Clock;
use super::super::parts::{is_merged, is_of_the_server, numbers, part};
use crate::compare::{differences, differing_settings};
use crate::run::{Run, Status, Trial};

/// Event of a part that has ended.
pub(super) const PART: &str = "part";
/// The difference of requests that parts have.
const NUMBER: &str = "request.part.number";
/// Parts of the plan on which the rows depend.
const OF_ROWS: [&str; 12] = [
    "schema",
    "subject",
    "columns",
    "chunking",
    "until_size",
    "scale",
    "scale_before",
    "persistence",
    "fillfactor",
    "partitions",
    "index",
    "payload",
];
/// Parts of the request that only one of the kinds of fills has: of pgbench's tables or one table, and of a schema.
const KINDS: [(&str, &str); 2] = [("subject", "of pgbench's tables or of one table"), ("ddl", "of a schema")];

/// The fill that a run is a part of.
pub(super) struct Fill<'r> {
    /// System identifier of the server, OIDs of the database and of the fill's record.
    identity: &'r Value,
    /// Whether this part ran the steps after the rows.
    pub(super) is_last: bool,
}

impl<'r> Fill<'r> {
    /// None if the run does not tell.
    pub(super) fn of(run: &'r Run) -> Option<Self> {
        let events = run.trials.iter().flat_map(|trial| &trial.events);
        let what = &events
            .filter(|event| event.what["event"] == PART)
            .find(|event| !event.what["fill"].is_null())?
            .what;
        Some(Self { identity: &what["fill"], is_last: what["end"] == "last" })
    }
}

/// The clocks of all trials of a run.
pub(super) fn clocks(run: &Run) -> Vec<Clock> {
    run.trials.iter().filter_map(Clock::of).collect()
}

/// The reason why a run cannot be merged with any other.
pub(super) fn unfit(run: &Run) -> Option<String> {
    let id = &run.id;
    if let Some(why) = is_merged(run) {
        return Some(why);
    }
    let Some((number, of)) = part(run) else {
        return Some(format!(
            "{id} was filled without --part: its document is that of the whole fill already; merge takes runs of pgrig fill --part I/N"
        ));
    };
    if run.status != Status::Done {
        let status = run.status.name();
        return Some(format!(
            "{id} is {status}, and records no rows: run part {number} again with the same options (--part {number}/{of}), and give that run, or leave \
             it out (the result is then partial)"
        ));
    }
    let has_clock = |trial: &Trial| Clock::of(trial).is_some();
    (Fill::of(run).is_none() || !run.trials.iter().any(has_clock)).then(|| {
        format!(
            "{id} has no reading of the server's clock: an older pgrig wrote it, and its times cannot be compared with those of other \
             parts; repeat the whole fill, all parts with this pgrig"
        )
    })
}

/// Everything in which runs differ, and may not: each compared with the first.
pub(super) fn disagreements(runs: &[Run]) -> Vec<String> {
    let mut found = numbers(runs);
    let Some((first, others)) = runs.split_first() else { return found };
    let reduced = with_rows_only(first);
    for run in others {
        let both = format!("{} and {}", first.id, run.id);
        let [one, other] = [first, run].map(kind);
        let is_same_kind = one == other;
        if !is_same_kind {
            found.push(format!("{both} differ in kind: a fill {one} → a fill {other}"));
        }
        let all = differences(&reduced, &with_rows_only(run)).into_iter().filter(|difference| {
            let what = difference.what.as_str();
            let is_of_rows = what.starts_with("request.") || what.starts_with("plan.");
            is_of_the_server(difference) || is_same_kind && is_of_rows && what != NUMBER
        });
        found.extend(all.map(|difference| format!("{both} differ in {difference}")));
        found.extend(another_fill(first, run).map(|why| format!("{both} {why}")));
    }
    found
}

/// The kind of fill.
fn kind(run: &Run) -> &'static str {
    let has = |(name, _): &&(&str, &str)| run.request.get(name).is_some();
    KINDS.iter().find(has).map_or("of another kind", |(_, kind)| kind)
}

/// The run with the parts of its plan on which the rows depend.
fn with_rows_only(run: &Run) -> Run {
    let mut plan = Map::new();
    for name in OF_ROWS {
        if let Some(value) = run.plan.get(name) {
            plan.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(tables) = run.plan["tables"].as_array() {
        let rows = |table: &Value| {
            let name = |of: &str| table[of].as_str().unwrap_or_default().to_owned();
            (format!("{}.{}", name("schema"), name("name")), json!({ "rows": table["rows"] }))
        };
        plan.insert("tables".to_owned(), Value::Object(tables.iter().map(rows).collect()));
    }
    Run { plan: Value::Object(plan), trials: Vec::new(), ..run.clone() }
}

/// The reason why these are parts of different fills.
fn another_fill(one: &Run, other: &Run) -> Option<&'static str> {
    let [then, now] = [one, other].map(|run| Fill::of(run).map_or(&Value::Null, |fill| fill.identity));
    if then == now && !then["server"].is_null() {
        return None;
    }
    if then["server"] != now["server"] || then["database"] != now["database"] {
        return Some("were loaded into different servers or databases");
    }
    if then["record"] != now["record"] {
        return Some(
            "are parts of different fills of this database: one began after the other had ended, or fills other tables; give the parts of \
             one fill",
        );
    }
    // The role may not ask for the system identifier.
    let started = |run: &Run| clocks(run).first().map(|clock| clock.server.0);
    (started(one) != started(other)).then_some(
        "may be of different servers: their servers started at different times, and the role may not call pg_control_system(), which \
         would show whether they are one server; run GRANT EXECUTE \
         ON FUNCTION pg_control_system() TO this role, and repeat all parts",
    )
}

/// Settings that differ between the parts, and do not only name places.
pub(super) fn settings(runs: &[Run]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let Some((first, others)) = runs.split_first() else { return found };
    for run in others {
        let all = differing_settings(&first.environment.server.settings, &run.environment.server.settings);
        for difference in all.iter().filter(|difference| difference.hinders) {
            let text = difference.to_string();
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}
