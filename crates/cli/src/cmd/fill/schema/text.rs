//! The plan and the outcome of a schema fill as people read them.

use std::fmt::Write;

use comfy_table::{Table, presets};
use fill::limits::{Limits, StopReason};
use fill::{FilledTable, InitStep, Part, PartEnd, PlannedTable, SchemaOutcome, SchemaPlan};
use measure::human::{bytes, bytes_both, count, counted, grouped};
use server::Survey;

use super::seconds;
use crate::app::disk::free_space;
use crate::app::table::{align_right, trimmed};
use crate::cmd::fill::text::{limits as limits_of_one, method_name, of_part};

/// Most tables that the plan shows; --explain shows all.
const MOST_TABLES: usize = 30;

/// The plan; if `whole`, with the columns of every table.
pub(super) fn plan(plan: &SchemaPlan, survey: &Survey, limits: &Limits, whole: bool) -> String {
    let mut text = String::from("plan\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    let release = survey.environment.server.release();
    line("server", format!("{release}, {}", survey.environment.transport));
    line("database", format!("{}, as role {}", survey.environment.database, survey.environment.role));
    if let Some(size) = plan.size {
        line("asked for", bytes_both(size));
    }
    line("disk", free_space(survey));
    let done = plan.tables.iter().filter(|table| table.plan().is_none()).count();
    if plan.is_resumed {
        let begun = if plan.part().is_some() { "a fill that has begun" } else { "an interrupted fill" };
        line(
            "completes",
            format!("{begun}: {done} of {} filled", counted(plan.tables.len() as u64, "table")),
        );
    }
    if let Some(Part { number, of }) = plan.part() {
        line("part", format!("{number} of {of}: the last part to end runs the steps after generate"));
    }
    text = text.trim_end().to_owned() + &limits_of_one(limits, None) + "\n\n";
    text += &tables(plan, whole);
    text += &reasons(plan);
    if whole {
        text += &columns(plan);
    }
    text.trim_end().to_owned()
}

fn tables(plan: &SchemaPlan, whole: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["table", "rows", "about", "method", "rows because"]);
    let shown = if whole { plan.tables.len() } else { MOST_TABLES };
    for of in plan.tables.iter().take(shown) {
        let method = of.plan().map_or("filled already", |plan| plan.method.name());
        table.add_row([
            name(plan, of),
            grouped(of.rows),
            bytes(of.predicted),
            method.to_owned(),
            of.why.clone(),
        ]);
    }
    let count = plan.tables.len();
    let total = counted(count as u64, "table");
    table.add_row([total, grouped(plan.rows()), bytes(plan.predicted()), String::new(), String::new()]);
    align_right(&mut table, 1..3);
    let more = match count.saturating_sub(shown) {
        0 => String::new(),
        more => format!("({} more: --explain shows all)\n", counted(more as u64, "table")),
    };
    format!("{}\n{more}", trimmed(&table))
}

/// The table's name, with its schema if there are several.
fn name(plan: &SchemaPlan, table: &PlannedTable) -> String {
    let several = plan.tables.iter().any(|other| other.schema != table.schema);
    if several { format!("{}.{}", table.schema, table.name) } else { table.name.clone() }
}

/// Why tables are not filled with direct pages, each reason once.
fn reasons(plan: &SchemaPlan) -> String {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for table in &plan.tables {
        for reason in table.plan().iter().flat_map(|plan| &plan.reasons) {
            let name = name(plan, table);
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names.push(name),
                None => reasons.push((reason.clone(), vec![name])),
            }
        }
    }
    let of = |names: &[String]| match names {
        names if names.len() == plan.tables.len() => "all tables".to_owned(),
        names if names.len() > 4 => format!("{} and {} more", names[..3].join(", "), names.len() - 3),
        names => names.join(", "),
    };
    let line = |(reason, names): &(String, Vec<String>)| format!("{}: {reason}\n", of(names));
    let lines: String = reasons.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The result of the whole fill; empty unless this part is the last.
fn complete(outcome: &SchemaOutcome, plan: &SchemaPlan) -> String {
    if outcome.part_end != Some(PartEnd::Last) {
        return String::new();
    }
    format!(": {} of {}", counted(plan.rows(), "row"), counted(plan.tables.len() as u64, "table"))
}

/// Parts in whose place this one has loaded rows.
pub(super) fn absent(outcome: &SchemaOutcome) -> Option<String> {
    if outcome.absent.is_empty() {
        return None;
    }
    let parts: Vec<String> = outcome.absent.iter().map(u32::to_string).collect();
    Some(format!(
        "also loaded chunks of parts that did not run ({}), because other tables reference these rows",
        parts.join(", ")
    ))
}

fn columns(plan: &SchemaPlan) -> String {
    let mut text = String::new();
    for table in &plan.tables {
        let Some(of) = table.plan() else { continue };
        let _ = writeln!(text, "\n{}", name(plan, table));
        for column in of.columns() {
            let _ = writeln!(text, "  {} {}: {}", column.name, column.kind.sql(), column.phrase());
        }
    }
    text
}

/// The reason why a fill ended before all tables were filled, and the next step for the user.
pub(super) fn stopped(reason: &StopReason, outcome: &SchemaOutcome, plan: &SchemaPlan) -> String {
    let filled = plan.tables.iter().filter(|table| table.plan().is_none()).count() + outcome.tables.len();
    let of = plan.tables.len();
    format!(
        "stopped, because {reason}: {filled} of {} filled; to fill the rest, repeat the command",
        counted(of as u64, "table")
    )
}

/// The result: a line for each table, then the whole.
pub(super) fn outcome(outcome: &SchemaOutcome, plan: &SchemaPlan, survey: &Survey) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["table", "rows", "seconds", "rows/s", "heap", "indexes", "method"]);
    for FilledTable { place, outcome } in &outcome.tables {
        let of = &plan.tables[*place];
        let loading = outcome.step(InitStep::Generate).as_secs_f64().max(1e-6);
        let method = of.plan().map_or(String::new(), method_name);
        table.add_row([
            name(plan, of),
            grouped(outcome.rows),
            seconds(outcome.elapsed()),
            count(outcome.rows as f64 / loading),
            bytes(outcome.grown().heap),
            bytes(outcome.grown().index),
            method,
        ]);
    }
    align_right(&mut table, 1..6);
    let total = outcome.elapsed.as_secs_f64();
    if let (Some(part), Some(end)) = (plan.part(), &outcome.part_end) {
        let loaded = format!(
            "{} of {}",
            counted(outcome.rows(), "row"),
            counted(outcome.tables.len() as u64, "table")
        );
        let sentence = of_part(part, &loaded, total, end);
        return format!("{}\n\n{sentence}{}", trimmed(&table), complete(outcome, plan));
    }
    let off =
        plan.size.filter(|_| !plan.is_resumed && outcome.stopped.is_none()).map_or(String::new(), |size| {
            format!(" ({:+.2} % of {})", (outcome.bytes() as f64 / size as f64 - 1.0) * 100.0, bytes(size))
        });
    let before = plan.tables.iter().filter(|table| table.plan().is_none()).count();
    let before = if before == 0 {
        String::new()
    } else {
        format!("; filled before: {}", counted(before as u64, "table"))
    };
    format!(
        "{}\n\n{}{off} in {total:.2} s: {} of {} in database {}, {} rows/s{before}",
        trimmed(&table),
        bytes_both(outcome.bytes()),
        counted(outcome.rows(), "row"),
        counted(outcome.tables.len() as u64, "table"),
        survey.environment.database,
        count(outcome.rows() as f64 / total.max(1e-6)),
    )
}
