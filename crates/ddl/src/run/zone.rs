//! A change between timestamp and timestamptz rewrites a table, unless the session's time zone has the fixed offset 0 (timestamp.c:
//! `TimestampTimestampTzRequiresRewrite`). With a file or a model, nothing tells the time zone of the sessions in production.

use connect::{ConnectError, Target};
use server::Session;

use crate::request::Request;
use crate::script::{Statement, StatementKind};

/// A warning if the migration changes such columns in the time zone of the server that measures, for which nobody asked.
pub(crate) async fn warning(
    request: &Request,
    target: &Target,
    columns: &[String],
) -> Result<Option<String>, ConnectError> {
    if columns.is_empty()
        || request.schema.is_of_database()
        || request.script.statements.iter().any(sets_time_zone)
    {
        return Ok(None);
    }
    let session = Session::open(target).await?;
    let row = session.row(include_str!("../sql/time_zone.sql"), &[]).await?;
    let (zone, is_given): (String, bool) = (row.get("zone"), row.get("is_given"));
    session.close().await;
    Ok((!is_given).then(|| of_columns(columns, &zone)))
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
