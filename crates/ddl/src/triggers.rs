//! Triggers of an original that fire for each row that a statement changes. The copy of the tables lacks them, so the statement is faster there.

use connect::{ConnectError, Connection};
use server::quote::shown;
use tokio_postgres::Row;

use crate::find::shown_relation;
use crate::run::rehearse::words;
use crate::script::Statement;

/// The bits of these events (`pg_trigger.h`).
pub(crate) const INSERT: i32 = 4;
pub(crate) const DELETE: i32 = 8;
pub(crate) const UPDATE: i32 = 16;
/// The words of statements that fire triggers, with the bits of the events.
const EVENTS: [(&str, i32); 4] =
    [("insert", INSERT), ("copy", INSERT), ("delete", DELETE), ("update", UPDATE)];

/// A trigger that fires for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowTrigger {
    schema: String,
    table: String,
    name: String,
    /// The bits of its events, among others.
    events: i32,
}

impl RowTrigger {
    /// Those that are enabled in a database.
    pub(crate) async fn of_database(connection: &Connection) -> Result<Vec<Self>, ConnectError> {
        let rows = match connection.client.query(include_str!("sql/triggers.sql"), &[]).await {
            Ok(rows) => rows,
            Err(error) => return Err(connection.explain(error).await),
        };
        let trigger = |row: &Row| Self {
            schema: row.get("schema"),
            table: row.get("name"),
            name: row.get("own"),
            events: row.get("events"),
        };
        Ok(rows.iter().map(trigger).collect())
    }

    /// Whether it is one of this table.
    pub(crate) fn is_of(&self, schema: &str, table: &str) -> bool {
        self.schema == schema && self.table == table
    }

    /// For people: `audit on orders`.
    pub(crate) fn shown(&self) -> String {
        format!("{} on {}", shown(&self.name), shown_relation(&self.schema, &self.table))
    }

    /// Whether these events of its table's rows, as bits, may fire it. Code that names none may change rows in any way.
    pub(crate) fn may_fire(&self, events: i32) -> bool {
        events == 0 || self.fires_on(events)
    }

    /// Whether one of these events fires it, as bits.
    pub(crate) fn fires_on(&self, events: i32) -> bool {
        self.events & events != 0
    }

    /// Whether the statements before one leave it as it is in the original, as far as their texts show.
    pub(crate) fn is_left_by<'a>(&self, earlier: impl IntoIterator<Item = &'a Statement>) -> bool {
        earlier.into_iter().filter_map(|statement| self.enabled_by(statement)).last().unwrap_or(true)
    }

    /// Whether a statement enables it, or disables or drops it; none if it does neither.
    fn enabled_by(&self, statement: &Statement) -> Option<bool> {
        let words = words(&statement.sql);
        let has = |word: &str| words.contains(word);
        if has("session_replication_role") {
            return Some(!has("replica"));
        }
        let is_named =
            has(&self.name.to_lowercase()) || has(&self.table.to_lowercase()) && (has("all") || has("user"));
        if !has("trigger") || !is_named {
            None
        } else if has("drop") || has("disable") {
            Some(false)
        } else {
            has("enable").then_some(true)
        }
    }
}

/// The bits of the events that the text of a statement names.
pub(crate) fn events(statement: &Statement) -> i32 {
    let words = words(&statement.sql);
    let of_text = EVENTS.iter().filter(|(word, _)| words.contains(*word));
    of_text.fold(0, |events, (_, event)| events | event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    /// After update or delete.
    fn trigger() -> RowTrigger {
        let (schema, table) = ("public".to_owned(), "orders".to_owned());
        RowTrigger { schema, table, name: "Audit".to_owned(), events: 1 | 8 | 16 }
    }

    fn statements(sql: &str) -> Vec<Statement> {
        Script::read(sql, None).unwrap().statements
    }

    #[test]
    fn statements_fire_the_triggers_of_their_events() {
        assert_eq!(trigger().shown(), "\"Audit\" on orders");
        for (sql, fires) in [
            ("UPDATE orders SET n = 1", true),
            ("DELETE FROM orders", true),
            ("INSERT INTO orders VALUES (1)", false),
            ("INSERT INTO orders VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 1", true),
            ("COPY orders FROM '/orders.csv'", false),
            ("MERGE INTO orders USING n ON a = b WHEN MATCHED THEN DELETE", true),
            ("DO $$ BEGIN UPDATE orders SET n = 1; END $$", true),
            ("CALL fill_orders()", true),
        ] {
            assert_eq!(trigger().may_fire(events(&statements(sql)[0])), fires, "{sql}");
        }
    }

    #[test]
    fn triggers_that_the_migration_drops_or_disables_do_not_fire() {
        for (sql, is_left) in [
            ("ALTER TABLE orders DROP COLUMN trigger", true),
            ("DROP TRIGGER IF EXISTS \"Audit\" ON orders", false),
            ("ALTER TABLE orders DISABLE TRIGGER USER", false),
            ("ALTER TABLE lines DISABLE TRIGGER ALL", true),
            (
                "ALTER TABLE orders DISABLE TRIGGER ALL; UPDATE t SET a = 1; ALTER TABLE orders ENABLE TRIGGER ALL",
                true,
            ),
            ("SET session_replication_role = replica", false),
            ("SET session_replication_role = 'replica'; RESET session_replication_role", true),
        ] {
            assert_eq!(trigger().is_left_by(&statements(sql)), is_left, "{sql}");
        }
    }
}
