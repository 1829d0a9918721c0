//! Output of `pgrig testdb unlog` of a live database.

use std::fmt::Write;

use measure::human::bytes;
use testdb::unlog::{Direction, ObjectKind, UnlogPlan, Unlogged};

use crate::app::table::{align_right, new_table};
use crate::cmd::testdb::unlog::live::progress::Times;

/// Most tables that are listed one by one; the others are summed up.
const LISTED: usize = 20;
/// The warning of every verb that makes unlogged tables.
const CRASH: &str = "if the server crashes, unlogged tables are empty afterwards";

/// `1 table`, `2 tables`.
fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The plan of a change, as text.
pub(crate) fn plan(plan: &UnlogPlan, database: &str) -> String {
    let mut text = format!("plan\n  database   {database}\n");
    let after = plan.direction.after();
    let mut line = |title: &str, value: &str| _ = writeln!(text, "  {title:<9}  {}", one_line(value));
    let tables = plan.changes(ObjectKind::Table).count();
    let sequences = plan.changes(ObjectKind::Sequence).count() + plan.following;
    line(
        "change",
        &format!("{} and {} to {after}", counted(tables, "table"), counted(sequences, "sequence")),
    );
    if tables > 0 {
        let logged = if plan.direction == Direction::Logged {
            ", writes as much WAL unless wal_level is minimal,"
        } else {
            ""
        };
        line(
            "disk",
            &format!(
                "the server rewrites {}{logged} and needs as much extra space until the transaction ends",
                bytes(plan.bytes())
            ),
        );
        let patience = plan.lock_timeout;
        line(
            "locks",
            &format!(
                "other sessions cannot read or write these tables until the end; pgrig waits up to {} s for each lock",
                patience.as_secs_f64()
            ),
        );
    }
    for key in plan.cycles() {
        line(
            "cycle",
            &format!(
                "foreign key \"{}\" of {} is part of a cycle: pgrig drops it and adds it again in the transaction",
                key.name, key.table
            ),
        );
    }
    for left in &plan.left {
        line("unchanged", &format!("{}: {}", left.object, left.why));
    }
    match plan.already {
        0 => {}
        1 => line("already", &format!("1 table or sequence is {after}")),
        already => line("already", &format!("{already} tables and sequences are {after}")),
    }
    text
}

/// The plan as a script for psql.
pub(crate) fn script(plan: &UnlogPlan) -> String {
    let mut text = String::new();
    let mut comment = |line: &str| _ = writeln!(text, "-- {}", one_line(line));
    if plan.is_empty() && plan.already == 0 && plan.left.is_empty() {
        comment("nothing to do: there are no tables");
    } else if plan.is_empty() {
        comment(&format!("nothing to do: all tables that can be {} already are", plan.direction.after()));
    } else {
        comment(&format!("needs {} of extra space until the end", bytes(plan.bytes())));
        if plan.direction == Direction::Unlogged {
            comment(CRASH);
        }
    }
    for key in plan.cycles() {
        comment(&format!(
            "foreign key \"{}\" of {} is part of a cycle: pgrig drops it and adds it again, which checks all rows",
            key.name, key.table
        ));
    }
    for left in &plan.left {
        comment(&format!("unchanged: {}: {}", left.object, left.why));
    }
    if plan.is_empty() { text } else { text + &plan.script() }
}

/// The message that there was nothing to change.
pub(crate) fn nothing_to_do(plan: &UnlogPlan, database: &str) -> String {
    if plan.already == 0 && plan.left.is_empty() {
        return format!("nothing to do: database {database} has no tables (is it the right one?)");
    }
    let left = match plan.left.len() {
        0 => String::new(),
        1 => "; 1 does not change (--explain shows why)".to_owned(),
        left => format!("; {left} do not change (--explain shows why)"),
    };
    format!(
        "nothing to do in database {database}: {} of its tables and sequences {} {} already{left}",
        plan.already,
        if plan.already == 1 { "is" } else { "are" },
        plan.direction.after()
    )
}

/// The result of a change, as text.
pub(crate) fn done(plan: &UnlogPlan, done: &Unlogged, times: &Times, database: &str) -> String {
    let mut text = String::new();
    if !times.is_empty() {
        text = listed(plan, times) + "\n\n";
    }
    let after = plan.direction.after();
    let seconds = done.took.as_secs_f64();
    let (tables, sequences) = (counted(done.tables, "table"), counted(done.sequences, "sequence"));
    let _ = writeln!(
        text,
        "made {tables} ({}) and {sequences} of database {database} {after} in {seconds:.2} s",
        bytes(done.bytes)
    );
    let settings: Vec<String> =
        done.durability.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let _ = write!(text, "active: {}", settings.join(", "));
    if plan.direction == Direction::Unlogged {
        let _ = write!(text, "\n{CRASH}; to make them logged again, repeat the command with --back");
    }
    text
}

fn listed(plan: &UnlogPlan, times: &Times) -> String {
    let mut rows: Vec<(String, u64, f64)> = plan
        .changes(ObjectKind::Table)
        .zip(times)
        .map(|((table, size), (_, took))| (table.to_string(), size, took.as_secs_f64()))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    let rest = rows.split_off(rows.len().min(LISTED));
    if !rest.is_empty() {
        let (size, took) = rest.iter().fold((0, 0.0), |(size, took), row| (size + row.1, took + row.2));
        rows.push((format!("{} more", rest.len()), size, took));
    }
    let mut table = new_table(&["table", "size", "seconds"]);
    for (name, size, took) in rows {
        table.add_row([one_line(&name), bytes(size), format!("{took:.2}")]);
    }
    align_right(&mut table, 1..3);
    table.trim_fmt()
}
