//! Triggers of an original that fire for each row that a statement changes. The copy of the tables lacks them, so the statement is faster there.

use connect::{ConnectError, Connection};
use server::quote::{self, shown};
use tokio_postgres::Row;

use crate::find::{Class, WorkKind, shown_relation};
use crate::outcome::StatementOutcome;
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

/// The triggers that the updates of a better way may fire for each row, for people. The statement that rewrites the table fires none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) names: Vec<String>,
    /// Whether only the original has them.
    pub(crate) is_lacking: bool,
}

/// The triggers of all tables, before the migration.
pub(crate) struct RowTriggers {
    pub(crate) all: Vec<RowTrigger>,
    /// Whether only the original has them.
    pub(crate) are_lacking: bool,
}

impl RowTriggers {
    /// Notes beside each statement that rewrites a table those that an UPDATE of the table may fire, unless earlier statements disable them.
    pub(crate) fn note(&self, statements: &mut [StatementOutcome]) {
        for place in 0..statements.len() {
            let (earlier, rest) = statements.split_at_mut(place);
            let Some(found) = rest.first_mut().and_then(|one| one.found.as_mut()) else { continue };
            if found.class != Class::Rewrite {
                continue;
            }
            let is_on = |trigger: &RowTrigger| {
                let table = shown_relation(&trigger.schema, &trigger.table);
                let sql = quote::qualified(&trigger.schema, &trigger.table);
                found.works.iter().any(|work| work.kind == WorkKind::Rewrite && work.relation == table)
                    || found.partitions.first().is_some_and(|root| root.sql == sql)
            };
            let is_left = |trigger: &RowTrigger| trigger.is_left_by(earlier.iter().map(|one| &one.statement));
            let fires =
                |trigger: &&RowTrigger| trigger.fires_on(UPDATE) && is_on(trigger) && is_left(trigger);
            let names = self.all.iter().filter(fires).map(RowTrigger::shown).collect();
            found.fired = Fired { names, is_lacking: self.are_lacking };
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
    use crate::better::tests::found;
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
    fn the_updates_of_a_better_way_may_fire_triggers_of_the_table() {
        let mut gone = RowTrigger { name: "gone".to_owned(), events: 1 | DELETE, ..trigger() };
        let other = RowTrigger { table: "lines".to_owned(), ..trigger() };
        let of = |sql: &str, all: &[RowTrigger], relation: &str| {
            let mut statements = StatementOutcome::of_all(&statements(sql));
            for one in &mut statements {
                let mut effects = found(Class::Rewrite, WorkKind::Rewrite);
                effects.works[0].relation = relation.to_owned();
                one.found = Some(effects);
            }
            RowTriggers { all: all.to_vec(), are_lacking: true }.note(&mut statements);
            statements.pop().unwrap().found.unwrap().fired
        };
        let add = "ALTER TABLE orders ADD a uuid DEFAULT gen_random_uuid()";
        let all = [trigger(), gone.clone(), other];
        assert_eq!(
            of(add, &all, "orders"),
            Fired { names: vec!["\"Audit\" on orders".to_owned()], is_lacking: true }
        );
        let disabled = format!("ALTER TABLE orders DISABLE TRIGGER ALL; {add}");
        assert_eq!(of(&disabled, &all, "orders").names, Vec::<String>::new());
        gone.schema = "s".to_owned();
        gone.events |= UPDATE;
        assert_eq!(of(add, std::slice::from_ref(&gone), "orders").names, Vec::<String>::new());
        assert_eq!(of(add, &[gone], "s.orders").names, ["gone on s.orders"]);
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
