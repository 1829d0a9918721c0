//! Plan and results as text. The lines of each statement: `details`.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::Table;
use ddl::{
    Amount, AtSize, Effects, Effort, Outcome, Plan, PlannedSize, Probed, Request, Stall, StatementKind,
    StatementOutcome,
};
use measure::human::{bytes, counted, grouped, time};

use super::details::details;
use super::rowless;
use crate::app::table::{align_right, new_table, trimmed};

/// Tables of a plan that are named.
const NAMED: usize = 8;
/// Columns that the table of results takes.
const WIDTH: usize = 80;
/// Least characters of a statement in that table.
const STATEMENT: usize = 12;

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
        "\n\npgrig runs the migration on empty tables, to see which tables the migration uses, and fills these tables up to {}. It runs each \
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
        0 if plan.without_rows.is_empty() => {
            format!("none of {}: no statement uses any", request.schema.origin)
        }
        0 => format!("none of {}: those that statements use have no rows there", request.schema.origin),
        number => format!("{number} of {}: {}{more}", request.schema.origin, named.join(", ")),
    };
    let sizes =
        |of: &dyn Fn(&PlannedSize) -> String| plan.sizes.iter().map(of).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "plan\n  tables       {tables}\n  sizes        about {}\n  runs         {}\n  statements   {statements}",
        sizes(&|size| bytes(size.bytes)),
        sizes(&|size| size.runs.to_string()),
    );
    let _ = write!(text, "\n  time         {}", estimate(plan.seconds));
    if !plan.empty.is_empty() {
        let tables = counted(plan.empty.len() as u64, "table");
        let _ = write!(text, "\n  left empty   {tables} that no statement uses");
    }
    if let Some(first) = plan.without_rows.first() {
        let named: Vec<&str> = plan.without_rows.iter().take(NAMED).map(String::as_str).collect();
        let named = named.join(", ");
        let more = plan.without_rows.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let _ = write!(
            text,
            "\n  left empty   {named}{more}: no rows in the original; to fill one, give --rows {first}=ROWS"
        );
    }
    for rule in plan.suited.iter().take(NAMED) {
        let _ = write!(text, "\n  values       {}", cut(&suited(rule), 66));
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

/// The time that all takes, as far as pgrig can estimate it.
fn estimate(seconds: u64) -> String {
    format!(
        "about {}, at speeds that pgrig assumes until it has measured; without the time that triggers, functions and DO take",
        rough(Duration::from_secs(seconds))
    )
}

/// A rule that the values satisfy: of a constraint of pgrig's own, the table and the condition.
fn suited(rule: &str) -> String {
    let parts = rule.split_once(" ADD CONSTRAINT pgrig_suits_");
    let parts = parts.and_then(|(alter, rest)| Some((alter, rest.split_once(' ')?.1)));
    let Some((alter, condition)) = parts else { return format!("satisfy {rule}") };
    let of = alter.strip_prefix("ALTER TABLE ").unwrap_or_else(|| alter.trim_start_matches("ALTER "));
    format!("of {} satisfy {condition}", of.replace('"', ""))
}

/// The table of statements, and the proof of each class.
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

/// Bytes that were computed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes for people")]
pub(super) fn shown_bytes(number: f64) -> String {
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
    use super::*;

    #[test]
    fn rules_of_values_are_shown_without_constraints_of_pgrigs_own() {
        let rule = |alter: &str| suited(&format!("{alter} ADD CONSTRAINT pgrig_suits_0 CHECK (n < 9)"));
        assert_eq!(rule(r#"ALTER TABLE "public"."t""#), "of public.t satisfy CHECK (n < 9)");
        assert_eq!(rule("ALTER DOMAIN d"), "of DOMAIN d satisfy CHECK (n < 9)");
        assert_eq!(suited("CREATE UNIQUE INDEX i ON t (n)"), "satisfy CREATE UNIQUE INDEX i ON t (n)");
    }

    #[test]
    fn an_estimate_says_which_time_it_leaves_out() {
        let text = estimate(2);
        assert!(text.starts_with("about 2 s, at speeds that pgrig assumes"), "{text}");
        assert!(text.ends_with("without the time that triggers, functions and DO take"), "{text}");
    }
}
