//! Plan and outcome of a fill for people.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{Table, presets};
use fill::limits::{Headroom, Limits, SpaceLimit, StopReason};
use fill::{
    Compression, IndexKind, InitStep, Method, Outcome, Part, PartEnd, Partitions, Persistence, Plan,
    ProbePoint, Subject,
};
use measure::human::{bytes, bytes_both, count, counted, grouped, latency};
use server::volume::Volume;

use crate::cmd::fill::TimeSpent;
use server::Survey;

use crate::app::disk::free_space;
use crate::app::table::{align_right, trimmed};
use crate::cmd::fill::progress::title;

/// The plan: the steps and the space that they need.
pub(crate) fn plan(plan: &Plan, survey: &Survey) -> String {
    let mut text = String::new();
    let kind = match plan.persistence {
        Persistence::Logged => "logged",
        Persistence::Unlogged => "unlogged",
    };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    let release = survey.environment.server.release();
    line("server", format!("{release}, {}", survey.environment.transport));
    let database = format!("{}, as role {}", survey.environment.database, survey.environment.role);
    line("database", database);
    if let Some(size) = plan.until_size {
        line("size", format!("until table and indexes take {}", bytes_both(size)));
    }
    if plan.is_own_table() {
        own_table(plan, &mut line);
    }
    if let Some(rows) = plan.rows().filter(|_| plan.includes(InitStep::Generate)) {
        line("rows", rows_line(plan, rows));
        let sizes = plan.predicted.sizes;
        let parts = if plan.is_size_estimated {
            format!("about {} and indexes", bytes(sizes.heap))
        } else {
            let heap_and_index = format!("heap {} + indexes {}", bytes(sizes.heap), bytes(sizes.index));
            format!("{} = {heap_and_index}", bytes_both(sizes.total()))
        };
        line("size", parts);
        let wal_and_temporary =
            format!("WAL {}, temporary {}", about(plan.predicted.wal), about(plan.predicted.temporary));
        line("also", wal_and_temporary);
    }
    line("disk", free_space(survey));
    match plan.subject {
        Subject::Table(_) => line("table", format!("{}.{}, {kind}", plan.schema, plan.bulk_name())),
        Subject::Pgbench | Subject::Series => line("tables", format!("{kind}, {}", tables(plan))),
    }
    if plan.persistence == Persistence::Unlogged {
        line("", "a crash of the server empties unlogged tables".to_owned());
    }
    line("steps", plan.steps.iter().map(title).collect::<Vec<_>>().join(", "));
    if !plan.dropped.is_empty() {
        let size = match plan.dropped_bytes {
            0 => "size unknown: never vacuumed".to_owned(),
            known => format!("{} when last vacuumed", bytes(known)),
        };
        line("drops", format!("{} ({size})", plan.dropped.join(", ")));
    }
    if plan.includes(InitStep::Generate) {
        line("method", method(plan));
        for reason in &plan.reasons {
            line("", reason.clone());
        }
    }
    if let (Some(Part { number, of }), Some((own, all))) = (plan.part(), plan.shares()) {
        let chunks = format!("part {number} of {of}: {} of {}", grouped(own), counted(all, "chunk"));
        line("part", chunks);
        line("", "the last part to end runs the steps after generate".to_owned());
    }
    if plan.emptied {
        line("completes", "a fill of unlogged tables that a crash has emptied".to_owned());
    }
    if plan.is_resumed() {
        // A fill to a size ends long before its ids do.
        let count = plan.rows().and(plan.chunking.count());
        let of = count.map_or(String::new(), |count| format!(" of {}", grouped(count)));
        line(
            "completes",
            format!(
                "{}: loaded chunks: {}{of} ({})",
                if plan.part().is_some() { "a fill that has begun" } else { "an interrupted fill" },
                grouped(plan.chunks_done()),
                counted(plan.rows_done(), "row")
            ),
        );
    }
    format!("plan\n{}", text.trim_end())
}

/// Columns that the plan shows at most.
const MOST_COLUMNS: usize = 40;
/// Limits of so many rows and more are not shown.
const UNLIMITED: u64 = 1_000_000_000;

/// The columns of a table of the user's own.
fn own_table(plan: &Plan, line: &mut impl FnMut(&str, String)) {
    let columns = plan.columns();
    for (number, column) in columns.iter().take(MOST_COLUMNS).enumerate() {
        let name = if number == 0 { "columns" } else { "" };
        line(name, format!("{} {}: {}", column.name, column.kind.sql(), column.phrase()));
    }
    if columns.len() > MOST_COLUMNS {
        line("", format!("and {} more; the run document has all", columns.len() - MOST_COLUMNS));
    }
    if let Some((most, why)) = plan.most_rows.as_ref().filter(|(most, _)| *most < UNLIMITED) {
        line("at most", format!("{} rows: {why}", grouped(*most)));
    }
    if plan.chunking.first_row > 0 {
        let before = grouped(plan.chunking.first_row);
        line("values", format!("continue after those of the {before} existing rows"));
    }
}

fn rows_line(plan: &Plan, rows: u64) -> String {
    let more = if plan.append { " more" } else { "" };
    match plan.subject {
        Subject::Pgbench => {
            format!("{}{more} accounts, pgbench scale {}", grouped(rows), grouped(plan.scale))
        }
        Subject::Series => format!("{} integers", grouped(rows)),
        Subject::Table(_) => format!("{}{more} rows of {}", grouped(rows), plan.bulk_name()),
    }
}

/// Storage of the tables.
fn tables(plan: &Plan) -> String {
    let mut parts = vec![format!("fillfactor {}", plan.fillfactor)];
    if let Some(Partitions { count, method }) = plan.partitions {
        parts.push(format!(
            "{} by {}",
            counted(u64::from(count.get()), "partition"),
            method.sql().to_lowercase()
        ));
    }
    match (plan.index, plan.includes(InitStep::PrimaryKeys)) {
        (IndexKind::Btree, true) => {}
        (IndexKind::Brin, true) => parts.push("BRIN index on accounts".to_owned()),
        // The storage of existing tables does not change.
        (_, false) if !plan.includes(InitStep::Create) => {}
        (IndexKind::None, _) | (_, false) => parts.push("no index".to_owned()),
    }
    if !plan.autovacuum {
        parts.push("no autovacuum".to_owned());
    }
    parts.extend(plan.tablespace.iter().map(|name| format!("tablespace {name}")));
    parts.extend(plan.index_tablespace.iter().map(|name| format!("indexes in tablespace {name}")));
    let new = if plan.create_schema { ", a new schema" } else { "" };
    parts.push(format!("in schema {}{new}", plan.schema));
    parts.join(", ")
}

fn about(number: u64) -> String {
    if number == 0 { "almost none".to_owned() } else { format!("about {}", bytes(number)) }
}

/// Method of making and loading the rows.
fn method(plan: &Plan) -> String {
    let chunk = format!("a transaction for every {} rows", grouped(plan.chunking.chunk_rows));
    let how = match plan.method {
        Method::CreateTableAs => "CREATE TABLE AS SELECT generate_series".to_owned(),
        Method::FrozenCopy if plan.is_single_transaction() => "create and load in one transaction".to_owned(),
        Method::Direct if plan.is_single_transaction() => {
            "writes pages into the table's files in the transaction that creates the table".to_owned()
        }
        Method::Direct if plan.is_own_table() => {
            "writes pages into the table's files in the transaction that truncates the table".to_owned()
        }
        Method::Direct => "writes pages into the partitions' files, a transaction for each".to_owned(),
        Method::FrozenCopy => "a transaction for each leaf".to_owned(),
        Method::ChunkedCopy => chunk,
        Method::Server => format!("INSERT … SELECT generate_series, {chunk}"),
        Method::Reinsert => format!("seed rows repeated, {chunk}"),
        Method::Explode => format!("load densely, then VACUUM FULL at fillfactor {}", plan.fillfactor),
    };
    format!("{}: {how}", method_name(plan))
}

pub(crate) fn method_name(plan: &Plan) -> String {
    if plan.method.copies() {
        format!("{}, {}", plan.method.name(), plan.format.name())
    } else {
        plan.method.name().to_owned()
    }
}

/// Limits of the fill besides its amount, as lines of the plan. `volume` is the tables' volume and `kept` the space
/// that stays free on it, where pgrig can see them.
pub(crate) fn limits(limits: &Limits, volume: Option<(&Volume, &Headroom)>) -> String {
    let mut lines = Vec::new();
    let full = || match volume {
        Some((volume, kept)) => {
            format!("until {} has {} free ({})", volume.mount(), bytes(kept.bytes), kept.because)
        }
        None => "until the server reports that its disk is full".to_owned(),
    };
    match limits.space {
        SpaceLimit::MustFit => {}
        SpaceLimit::Brim { .. } => lines.push(full()),
        SpaceLimit::UntilFree(size) => lines.push(format!("until {} are free", bytes(size))),
    }
    lines.extend(limits.duration.map(|duration| format!("for {} s", duration.as_secs_f64())));
    if let Some(wait) = limits.wait_for_space {
        lines.push(format!("waits up to {} s each time that there is too little space", wait.as_secs_f64()));
    }
    if !limits.marks.is_empty() {
        let marks: Vec<String> = limits.marks.iter().map(ToString::to_string).collect();
        lines.push(format!("marks: {}", marks.join(", ")));
    }
    let name = |first| if first { "limits" } else { "" };
    lines
        .iter()
        .enumerate()
        .fold(String::new(), |text, (number, line)| format!("{text}\n  {:<12} {line}", name(number == 0)))
}

/// Results of probes as the table grew.
pub(crate) fn probes(points: &[ProbePoint]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "table",
        "rows",
        "runs",
        "p50",
        "p95",
        "p99",
        "max",
        "cache hits",
        "MB/s",
    ]);
    for point in points {
        let hits = point.hit_ratio().map_or(String::new(), |ratio| format!("{:.1} %", ratio * 100.0));
        let seen = point.latency;
        table.add_row([
            bytes(point.table_bytes),
            count(point.rows as f64),
            grouped(point.executions),
            latency(seen.p50),
            latency(seen.p95),
            latency(seen.p99),
            latency(seen.max),
            hits,
            format!("{:.0}", point.bytes_per_second() / 1e6),
        ]);
    }
    align_right(&mut table, 0..9);
    format!("\n{}", trimmed(&table))
}

/// The results: phases, then predicted and actual sizes.
pub(crate) fn outcome(outcome: &Outcome, plan: &Plan, survey: &Survey) -> String {
    let mut phases = Table::new();
    phases.load_style(presets::NOTHING).set_header(["step", "seconds", "", ""]);
    for (step, elapsed) in &outcome.steps {
        let seconds = elapsed.as_secs_f64();
        let rates = if *step == InitStep::Generate {
            [
                format!("{} rows/s", count(outcome.rows as f64 / seconds)),
                format!("{:.0} MB/s", loaded_heap(outcome, plan) / seconds / 1e6),
            ]
        } else {
            [String::new(), String::new()]
        };
        let [rows, heap] = rates;
        phases.add_row([title(*step).to_owned(), format!("{seconds:.2}"), rows, heap]);
    }
    let total = outcome.elapsed().as_secs_f64();
    let rate = format!("{:.0} MB/s", outcome.grown().total() as f64 / total / 1e6);
    let rate = if plan.part().is_some() { String::new() } else { rate };
    phases.add_row(["total".to_owned(), format!("{total:.2}"), String::new(), rate]);
    align_right(&mut phases, 1..4);

    let summary = format!(
        "{} in {total:.2} s, all steps: {} in database {}, schema {}, {}",
        total_size(outcome, plan),
        rows_line(plan, outcome.rows).split(", pgbench").next().unwrap_or_default(),
        survey.environment.database,
        plan.schema,
        method_name(plan),
    ) + &from_before(plan)
        + &outcome.compression.map_or(String::new(), compression);
    let generated = plan.includes(InitStep::Generate);
    let completed = plan.append && plan.is_resumed();
    let predicted =
        outcome.is_whole() && generated && plan.rows().is_some() && !plan.is_own_table() && !completed;
    let sizes = predicted.then(|| sizes(outcome, plan));
    let summary = match (&outcome.part_end, plan.part()) {
        (Some(end), Some(part)) => {
            let loaded = format!("{}, {}", counted(outcome.rows, "row"), method_name(plan));
            let all = if *end == PartEnd::Last {
                format!(": {} in schema {}", bytes_both(outcome.grown().total()), plan.schema)
            } else {
                String::new()
            };
            Some(of_part(part, &loaded, outcome.elapsed().as_secs_f64(), end) + &all)
        }
        _ => generated.then_some(summary),
    };
    let end = (outcome.stop != StopReason::Complete).then(|| end(outcome));
    let summary = [summary, end].into_iter().flatten().reduce(|summary, end| format!("{summary}\n{end}"));
    [Some(trimmed(&phases)), sizes, summary].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// The result of a part, and the rest of the fill.
pub(super) fn of_part(part: Part, loaded: &str, seconds: f64, end: &PartEnd) -> String {
    let Part { number, of } = part;
    let rest = match end {
        PartEnd::Last => "The fill is complete".to_owned(),
        PartEnd::Done => "The fill is complete: another part ran the last steps".to_owned(),
        PartEnd::Others { chunks, parts } if parts.is_empty() => format!(
            "All parts have ended, but the fill is not complete ({} left): run the same command without --part, or run all \
             parts again",
            counted(*chunks, "chunk")
        ),
        PartEnd::Others { chunks, parts } => format!(
            "The fill is not complete: {} left, and {} not ended. The last part to end runs the other steps",
            counted(*chunks, "chunk"),
            listed(parts)
        ),
    };
    format!("part {number} of {of}: {loaded}, in {seconds:.2} s\n{rest}")
}

/// Parts that have not ended, with a verb.
fn listed(parts: &[u32]) -> String {
    const MOST: usize = 8;
    match parts {
        [only] => format!("part {only} has"),
        parts if parts.len() > MOST => format!("{} parts have", parts.len()),
        parts => format!("parts {} have", parts.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The time of the whole command with its parts, if it is more than 10 % above that of the steps.
pub(crate) fn whole_command(spent: &TimeSpent, whole: Duration) -> Option<String> {
    let rest = whole.saturating_sub(spent.before + spent.steps + spent.sample);
    (whole > spent.steps + spent.steps / 10).then(|| {
        format!(
            "whole command: {:.2} s = steps {:.2} + server start, connection and plan {:.2} + sample for zstd {:.2} \
             + run document, server stop and other work {:.2}",
            whole.as_secs_f64(),
            spent.steps.as_secs_f64(),
            spent.before.as_secs_f64(),
            spent.sample.as_secs_f64(),
            rest.as_secs_f64()
        )
    })
}

/// The rows that an interrupted run had loaded.
fn from_before(plan: &Plan) -> String {
    match plan.rows_done() {
        0 => String::new(),
        rows => format!(" ({} existed before)", counted(rows, "row")),
    }
}

/// Heap of the rows that this run loaded, bytes: of a fill that it completed a part.
fn loaded_heap(outcome: &Outcome, plan: &Plan) -> f64 {
    let heap = outcome.grown().heap as f64;
    let rows = outcome.rows + plan.rows_done();
    if plan.rows_done() == 0 { heap } else { heap * outcome.rows as f64 / rows.max(1) as f64 }
}

/// Size of tables and indexes together; where it was not predicted, each.
fn total_size(outcome: &Outcome, plan: &Plan) -> String {
    let grown = outcome.grown();
    let parts = format!(" (heap {}, indexes {})", bytes(grown.heap), bytes(grown.index));
    bytes_both(grown.total()) + if plan.is_own_table() { &parts } else { "" }
}

/// The reason for which a fill with a limit ended, and the free space now.
fn end(outcome: &Outcome) -> String {
    if let StopReason::BrimReached { volume, free, kept, because, needed } = &outcome.stop {
        let now = outcome.free.map_or(String::new(), |free| format!("; {} are free now", bytes(free)));
        let reserved = match kept {
            0 => String::new(),
            kept => format!("\n  {} must stay free ({because})", bytes(*kept)),
        };
        let (free, needed) = (bytes(*free), bytes(*needed));
        return format!(
            "no room for more on {volume}:\n  {free} were free at the end of the load{now}{reserved}\n  the next chunk and later \
             steps need {needed}"
        );
    }
    let free = outcome.free.map_or(String::new(), |free| format!("; now {} are free", bytes(free)));
    format!("{}{free}", outcome.stop)
}

/// Compression of the data, as far as it is known.
fn compression(sample: Compression) -> String {
    let times = |ratio: f64| if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") };
    let rows = format!("; zstd compresses a plain dump {}:1", times(sample.rows.ratio()));
    let blocks =
        sample.blocks.map_or(String::new(), |blocks| format!(", and blocks {}:1", times(blocks.ratio())));
    rows + &blocks
}

/// Predicted against actual sizes.
fn sizes(outcome: &Outcome, plan: &Plan) -> String {
    let mut sizes = Table::new();
    sizes.load_style(presets::NOTHING).set_header(["size", "predicted", "actual", ""]);
    let (predicted, grown) = (plan.predicted, outcome.grown());
    for (name, expected, actual) in [
        ("heap", predicted.sizes.heap, grown.heap),
        ("indexes", predicted.sizes.index, grown.index),
        ("total", predicted.sizes.total(), grown.total()),
        ("WAL", predicted.wal, outcome.wal),
    ] {
        let off = if name == "WAL" { String::new() } else { difference(expected, actual) };
        let expected = if expected == 0 { "almost none".to_owned() } else { bytes(expected) };
        sizes.add_row([name.to_owned(), expected, bytes(actual), off]);
    }
    align_right(&mut sizes, 1..4);
    trimmed(&sizes)
}

fn difference(expected: u64, actual: u64) -> String {
    if expected == 0 {
        return String::new();
    }
    format!("{:+.2} %", (actual as f64 / expected as f64 - 1.0) * 100.0)
}
