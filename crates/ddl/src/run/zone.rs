//! A change between timestamp and timestamptz rewrites a table, unless the session's time zone has the fixed offset 0 (timestamp.c:
//! `TimestampTimestampTzRequiresRewrite`). With a file or a model, nothing tells the time zone of the sessions in production.

use connect::{ConnectError, Target};
use server::Session;
use server::quote::shown;

use crate::parts::Parts;
use crate::request::Request;
use crate::run::rehearse::{Table, Tables, words};
use crate::run::suit::Zoned;
use crate::script::{Statement, StatementKind};

/// Names of the time zone with the fixed offset 0, in lower case.
const UTC: [&str; 11] = [
    "utc",
    "etc/utc",
    "uct",
    "etc/uct",
    "gmt",
    "etc/gmt",
    "universal",
    "etc/universal",
    "zulu",
    "etc/zulu",
    "greenwich",
];

/// A warning if the migration changes such columns in the time zone of the server that measures, for which nobody asked.
pub(crate) async fn warning(
    request: &Request,
    target: &Target,
    (zoned, tables): (&[Zoned], &Tables),
) -> Result<Option<String>, ConnectError> {
    let statements = &request.script.statements;
    if zoned.is_empty() || request.schema.is_of_database() || statements.iter().any(sets_time_zone) {
        return Ok(None);
    }
    let session = Session::open(target).await?;
    let row = session.row(include_str!("../sql/time_zone.sql"), &[]).await?;
    let (zone, is_given): (String, bool) = (row.get("zone"), row.get("is_given"));
    session.close().await;
    let columns = decided(zoned, tables, statements, is_utc(&zone));
    Ok((!is_given && !columns.is_empty()).then(|| of_columns(&columns, &zone)))
}

/// The columns for which the time zone decides whether the table is rewritten, for people: `orders.at`. `is_utc` is true if the statements ran
/// in a zone that needs no rewrite.
fn decided(zoned: &[Zoned], tables: &Tables, statements: &[Statement], is_utc: bool) -> Vec<String> {
    let computed: Vec<(String, Vec<String>)> =
        statements.iter().filter_map(|one| Some((one.target()?, computed_by(one)?))).collect();
    let column = |one: &Zoned| {
        let table = tables.get(one.table)?;
        let is_computed = is_computed(one, table, &computed);
        let is_anew = is_utc && one.has_new_file && is_named_once(table, statements);
        (!is_computed && !is_anew).then(|| format!("{}.{}", table.shown(), shown(&one.names[0])))
    };
    zoned.iter().filter_map(column).collect()
}

/// The columns that a statement computes with USING; none if there are none.
fn computed_by(statement: &Statement) -> Option<Vec<String>> {
    let columns = Parts::of(&statement.sql).computed_columns();
    (!columns.is_empty()).then_some(columns)
}

/// Whether a statement computes the column with USING, so that the table is rewritten in each time zone. `computed` has the table of each statement,
/// and its columns.
fn is_computed(one: &Zoned, table: &Table, computed: &[(String, Vec<String>)]) -> bool {
    computed.iter().any(|(target, columns)| {
        (one.is_inherited || table.is_named(target)) && one.names.iter().any(|name| columns.contains(name))
    })
}

/// Whether a single statement names the table: it is then the one that has made the new file.
fn is_named_once(table: &Table, statements: &[Statement]) -> bool {
    let name = table.name.to_lowercase();
    statements.iter().filter(|one| words(&one.sql).contains(&name)).count() == 1
}

/// Whether it is a time zone with the fixed offset 0.
fn is_utc(zone: &str) -> bool {
    UTC.contains(&zone.to_ascii_lowercase().as_str())
}

/// Whether it is SET TimeZone or SET TIME ZONE.
fn sets_time_zone(statement: &Statement) -> bool {
    let line = statement.in_one_line().to_ascii_lowercase();
    statement.kind == StatementKind::Session
        && line.starts_with("set ")
        && ["timezone", "time zone"].iter().any(|name| line.contains(name))
}

fn of_columns(columns: &[String], zone: &str) -> String {
    format!(
        "the migration changes columns between timestamp and timestamptz ({}). PostgreSQL rewrites the table, unless the session's TimeZone is UTC. \
         It is {zone} on the server that measures: give the time zone of the migration's sessions in production (--set TimeZone=ZONE, or SET \
         TimeZone in the migration)",
        columns.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn zones_that_need_no_rewrite_are_known() {
        for (zone, wanted) in [("Etc/UTC", true), ("GMT", true), ("Europe/London", false)] {
            assert_eq!(is_utc(zone), wanted, "{zone}");
        }
    }

    #[test]
    fn statements_that_set_the_time_zone_are_known() {
        for (sql, sets) in [
            ("SET TimeZone = 'Europe/Berlin'", true),
            ("set local time /* */ zone 'UTC'", true),
            ("SET search_path = public", false),
            ("SHOW TimeZone", false),
            ("SELECT 'set timezone'", false),
        ] {
            assert_eq!(sets_time_zone(&Script::read(sql, None).unwrap().statements[0]), sets, "{sql}");
        }
    }
}
