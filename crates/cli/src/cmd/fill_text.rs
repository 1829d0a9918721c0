//! A fill's plan and outcome as people read them.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use measure::human::{bytes, bytes_both, count, grouped};
use workload::fill::{InitStep, Method, Outcome, Persistence, Plan, Survey};

use crate::progress::title;

/// What will be done, and what it will take.
pub(crate) fn plan(plan: &Plan, survey: &Survey) -> String {
    let mut text = String::new();
    let kind = match plan.persistence {
        Persistence::Logged => "logged",
        Persistence::Unlogged => "unlogged",
    };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    let server = &survey.environment.server;
    let release = server.version.split(" on ").next().unwrap_or_default();
    line("server", format!("{release}, {}", survey.environment.transport));
    let database = format!("{}, as role {}", survey.environment.database, survey.environment.role);
    line("database", database);
    line("rows", format!("{} accounts, pgbench scale {}", grouped(plan.accounts), grouped(plan.scale)));
    let sizes = plan.predicted.sizes;
    line(
        "size",
        format!(
            "{} = heap {} + indexes {}",
            bytes_both(sizes.total()),
            bytes(sizes.heap),
            bytes(sizes.index)
        ),
    );
    let wal_and_temporary =
        format!("WAL {}, temporary {}", about(plan.predicted.wal), about(plan.predicted.temporary));
    line("also", wal_and_temporary);
    if let Some(disk) = &survey.environment.data_volume {
        line("disk", format!("{} free on {} ({})", bytes(disk.free), disk.mount, disk.file_system));
    } else {
        line("disk", "free space cannot be seen from here".to_owned());
    }
    let new = if plan.create_schema { ", a new schema" } else { "" };
    line("tables", format!("{kind}, fillfactor {}, in schema {}{new}", plan.fillfactor, plan.schema));
    if !plan.dropped.is_empty() {
        line("drops", format!("{} ({})", plan.dropped.join(", "), bytes(plan.dropped_bytes)));
    }
    line("method", method(plan));
    for reason in &plan.reasons {
        line("", reason.clone());
    }
    format!("plan\n{}", text.trim_end())
}

fn about(number: u64) -> String {
    if number == 0 { "almost none".to_owned() } else { format!("about {}", bytes(number)) }
}

/// How the rows travel.
fn method(plan: &Plan) -> String {
    let format = plan.format.name();
    match plan.method {
        Method::FrozenCopy { .. } => format!("frozen-copy, {format}: create and load in one transaction"),
        Method::ParallelCopy { streams, chunk_rows } => format!(
            "parallel-copy, {format}: {streams} streams, a transaction for every {} rows",
            grouped(chunk_rows)
        ),
    }
}

/// What came of it: phases, then predicted against actual sizes.
pub(crate) fn outcome(outcome: &Outcome, plan: &Plan, survey: &Survey) -> String {
    let mut phases = Table::new();
    phases.load_style(presets::NOTHING).set_header(["step", "seconds", "", ""]);
    for (step, elapsed) in &outcome.steps {
        let seconds = elapsed.as_secs_f64();
        let rates = if *step == InitStep::Generate {
            let heap = plan.predicted.sizes.heap as f64;
            [
                format!("{} rows/s", count(outcome.accounts as f64 / seconds)),
                format!("{:.0} MB/s", heap / seconds / 1e6),
            ]
        } else {
            [String::new(), String::new()]
        };
        let [rows, heap] = rates;
        phases.add_row([title(*step).to_owned(), format!("{seconds:.2}"), rows, heap]);
    }
    let total = outcome.elapsed().as_secs_f64();
    let rate = format!("{:.0} MB/s", outcome.sizes.total() as f64 / total / 1e6);
    phases.add_row(["total".to_owned(), format!("{total:.2}"), String::new(), rate]);
    align_right(&mut phases, 1..4);

    let mut sizes = Table::new();
    sizes.load_style(presets::NOTHING).set_header(["size", "predicted", "actual", ""]);
    let predicted = plan.predicted;
    for (name, expected, actual) in [
        ("heap", predicted.sizes.heap, outcome.sizes.heap),
        ("indexes", predicted.sizes.index, outcome.sizes.index),
        ("total", predicted.sizes.total(), outcome.sizes.total()),
        ("WAL", predicted.wal, outcome.wal),
    ] {
        let off = if name == "WAL" { String::new() } else { difference(expected, actual) };
        let expected = if expected == 0 { "almost none".to_owned() } else { bytes(expected) };
        sizes.add_row([name.to_owned(), expected, bytes(actual), off]);
    }
    align_right(&mut sizes, 1..4);

    format!(
        "{}\n\n{}\n\n{} in {total:.2} s: {} accounts in database {}, schema {}, {}",
        trimmed(&phases),
        trimmed(&sizes),
        bytes_both(outcome.sizes.total()),
        grouped(outcome.accounts),
        survey.environment.database,
        plan.schema,
        method(plan).split(':').next().unwrap_or_default(),
    )
}

fn difference(expected: u64, actual: u64) -> String {
    if expected == 0 {
        return String::new();
    }
    format!("{:+.2} %", (actual as f64 / expected as f64 - 1.0) * 100.0)
}

fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Without the blank that the table puts at both ends of a line.
fn trimmed(table: &Table) -> String {
    let line = |line: String| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned();
    table.lines().map(line).collect::<Vec<_>>().join("\n")
}
