//! The schema's triggers, which a caller disables while it fills the tables: the rows are a state that is there already, and a trigger may insert
//! rows into another of these tables, or refuse them. Foreign keys are checked all the same. Afterwards, the triggers are as they were.

use connect::{ConnectError, Connection};

/// The triggers of users, on tables and on events.
#[derive(Debug, Default)]
pub struct SchemaTriggers {
    tables: Vec<Trigger>,
    /// They also run for the statements that change the others.
    events: Vec<Trigger>,
    /// Names of those that the role may not disable.
    running: Vec<String>,
}

#[derive(Debug)]
struct Trigger {
    /// `ALTER EVENT TRIGGER` with the name, or `ALTER TABLE` with the table.
    statement: String,
    /// `TRIGGER` with the name, after a blank; empty for an event trigger.
    name: String,
    /// The words that enable it as before.
    enable: &'static str,
}

impl SchemaTriggers {
    /// Those in the connection's database.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn read(connection: &Connection) -> Result<Self, ConnectError> {
        let rows = match connection.client.query(include_str!("../sql/schema_triggers.sql"), &[]).await {
            Ok(rows) => rows,
            Err(error) => return Err(connection.explain(error).await),
        };
        let mut triggers = Self::default();
        for row in &rows {
            if !row.get::<_, bool>("may_disable") {
                triggers.running.push(row.get("shown"));
                continue;
            }
            let enable = match row.get::<_, &str>("enabled") {
                "A" => "ENABLE ALWAYS",
                "R" => "ENABLE REPLICA",
                _ => "ENABLE",
            };
            let of_kind = if row.get("is_of_events") { &mut triggers.events } else { &mut triggers.tables };
            of_kind.push(Trigger { statement: row.get("statement"), name: row.get("name"), enable });
        }
        Ok(triggers)
    }

    /// The SQL of a schema, and after it statements that disable these triggers.
    #[must_use]
    pub fn disabled_after(&self, sql: &str) -> String {
        let all = self.events.iter().chain(&self.tables);
        let disable: Vec<String> =
            all.map(|one| format!("{} DISABLE{};\n", one.statement, one.name)).collect();
        // The last statement may end without a semicolon, or with a comment.
        if disable.is_empty() { sql.to_owned() } else { format!("{sql}\n;\n{}", disable.concat()) }
    }

    /// SQL that enables them as they were.
    pub fn enable(&self) -> String {
        // Older servers set the state of partitions, too: these come after their table.
        let all = self.tables.iter().chain(&self.events);
        let enable: Vec<String> =
            all.map(|one| format!("{} {}{};\n", one.statement, one.enable, one.name)).collect();
        enable.concat()
    }

    /// Names of those that the role may not disable.
    pub fn running(&self) -> &[String] {
        &self.running
    }
}
