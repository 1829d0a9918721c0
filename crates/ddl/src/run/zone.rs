//! A change between timestamp and timestamptz rewrites a table, unless the session's time zone has the fixed offset 0 (timestamp.c:
//! `TimestampTimestampTzRequiresRewrite`). With a file or a model, nothing tells the time zone of the sessions in production.

use std::collections::BTreeSet;

use connect::{ConnectError, Target};
use server::Session;
use server::quote::shown;

use crate::outcome::StatementOutcome;
use crate::parts::Parts;
use crate::request::Request;
use crate::rowless::UnknownZone;
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

/// Changes of columns in the time zone of the server that measures, for which nobody asked, and that decides whether the tables are rewritten.
pub(crate) struct Unasked {
    zone: String,
    columns: Vec<Decided>,
}

/// A column for which the time zone decides whether the table is rewritten.
#[derive(Debug)]
struct Decided {
    /// Its name for people: `orders.at`.
    shown: String,
    /// The name of its table, in lower case.
    table: String,
    /// Its names before and after the migration, in lower case.
    names: [String; 2],
    /// Whether a parent of the table has the column.
    is_inherited: bool,
}

impl Unasked {
    /// A sentence for people.
    pub(crate) fn warning(&self) -> String {
        let columns: Vec<&str> = self.columns.iter().map(|column| column.shown.as_str()).collect();
        format!(
            "the migration changes columns between timestamp and timestamptz ({}). PostgreSQL rewrites the table, unless the session's TimeZone is \
             UTC. It is {} on the server that measures: {}",
            columns.join(", "),
            self.zone,
            UnknownZone::REMEDY
        )
    }

    /// Notes the columns at the statements that change them.
    pub(crate) fn note(&self, statements: &mut [StatementOutcome]) {
        for column in self.columns.iter().filter(|column| !column.is_inherited) {
            for place in column.changed_by(statements) {
                let none = || UnknownZone { columns: Vec::new(), zone: self.zone.clone() };
                statements[place].zone.get_or_insert_with(none).columns.push(column.shown.clone());
            }
        }
    }
}

impl Decided {
    /// The places of the statements that change its type. If none names column and table, the table may have had another name, or code makes the
    /// statement.
    fn changed_by(&self, statements: &[StatementOutcome]) -> Vec<usize> {
        let words: Vec<BTreeSet<String>> = statements.iter().map(|one| words(&one.statement.sql)).collect();
        let changes =
            |of: &BTreeSet<String>| of.contains("type") && self.names.iter().any(|name| of.contains(name));
        let places = |is_meant: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..statements.len()).filter(|place| is_meant(*place)).collect()
        };
        let named = places(&|place| changes(&words[place]) && words[place].contains(&self.table));
        if !named.is_empty() {
            return named;
        }
        places(&|place| changes(&words[place]) || statements[place].statement.is_code())
    }
}

/// The columns that the migration changes in the time zone of the server that measures; none if somebody asked for this zone, or it decides on no
/// rewrite.
pub(crate) async fn unasked(
    request: &Request,
    target: &Target,
    (zoned, tables): (&[Zoned], &Tables),
) -> Result<Option<Unasked>, ConnectError> {
    let statements = &request.script.statements;
    if zoned.is_empty() || request.schema.is_of_database() || statements.iter().any(sets_time_zone) {
        return Ok(None);
    }
    let session = Session::open(target).await?;
    let row = session.row(include_str!("../sql/time_zone.sql"), &[]).await?;
    let (zone, is_given): (String, bool) = (row.get("zone"), row.get("is_given"));
    session.close().await;
    let columns = decided(zoned, tables, statements, is_utc(&zone));
    Ok((!is_given && !columns.is_empty()).then_some(Unasked { zone, columns }))
}

/// The columns for which the time zone decides whether the table is rewritten. `is_utc` is true if the statements ran in a zone that needs no rewrite.
fn decided(zoned: &[Zoned], tables: &Tables, statements: &[Statement], is_utc: bool) -> Vec<Decided> {
    let computed: Vec<(String, Vec<String>)> =
        statements.iter().filter_map(|one| Some((one.target()?, computed_by(one)?))).collect();
    let column = |one: &Zoned| {
        let table = tables.get(one.table)?;
        let is_computed = is_computed(one, table, &computed);
        let is_anew = is_utc && one.has_new_file && is_named_once(table, statements);
        (!is_computed && !is_anew).then(|| Decided {
            shown: format!("{}.{}", table.shown(), shown(&one.names[0])),
            table: table.name.to_lowercase(),
            names: one.names.clone().map(|name| name.to_lowercase()),
            is_inherited: one.is_inherited,
        })
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
    fn a_column_is_noted_at_the_statements_that_change_its_type() {
        let decided = |is_inherited| Decided {
            shown: "events.at".to_owned(),
            table: "events".to_owned(),
            names: ["at", "at"].map(str::to_owned),
            is_inherited,
        };
        let unasked = Unasked { zone: "Etc/UTC".to_owned(), columns: vec![decided(false), decided(true)] };
        for (migration, wanted) in [
            ("ALTER TABLE events ADD a int; ALTER TABLE events ALTER at TYPE timestamptz", &[2][..]),
            (
                "ALTER TABLE events RENAME TO e; ALTER TABLE e ALTER \"at\" TYPE timestamptz; DROP TABLE t",
                &[2],
            ),
            ("DO $$BEGIN EXECUTE 'ALTER TABLE ' || t(); END$$; ALTER TABLE events ADD a int", &[1]),
            ("DO $$BEGIN ALTER TABLE events ALTER at TYPE timestamptz; END$$; SELECT 1", &[1]),
        ] {
            let script = Script::read(migration, None).unwrap();
            let mut statements = StatementOutcome::of_all(&script.statements);
            unasked.note(&mut statements);
            let noted = statements.iter().filter(|one| one.zone.is_some()).map(|one| one.number);
            assert_eq!(noted.collect::<Vec<_>>(), wanted, "{migration}");
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
