//! The schema's triggers do not run while pgrig fills the test tables: their rows are the state before the migration, and a trigger may insert rows
//! into another of these tables. Foreign keys are checked all the same. Afterwards, the triggers are as they were.

use connect::ConnectError;
use server::Session;

/// The triggers of users.
#[derive(Default)]
pub(crate) struct Triggers {
    all: Vec<Trigger>,
    /// Names of those that the role may not disable.
    running: Vec<String>,
}

struct Trigger {
    /// `ALTER TABLE` with the table.
    statement: String,
    /// Its name as SQL.
    name: String,
    /// The words that enable it as before.
    enable: &'static str,
}

impl Triggers {
    /// Those of the tables in a database.
    pub(crate) async fn read(session: &Session) -> Result<Self, ConnectError> {
        let mut triggers = Self::default();
        for row in session.rows(include_str!("../sql/triggers.sql"), &[]).await? {
            if !row.get::<_, bool>("may_disable") {
                triggers.running.push(row.get("shown"));
                continue;
            }
            let enable = match row.get::<_, &str>("enabled") {
                "A" => "ENABLE ALWAYS",
                "R" => "ENABLE REPLICA",
                _ => "ENABLE",
            };
            triggers.all.push(Trigger { statement: row.get("statement"), name: row.get("name"), enable });
        }
        Ok(triggers)
    }

    /// SQL that disables them.
    pub(crate) fn disable(&self) -> String {
        let disable = |one: &Trigger| format!("{} DISABLE TRIGGER {};\n", one.statement, one.name);
        self.all.iter().map(disable).collect()
    }

    /// SQL that enables them as they were.
    pub(crate) fn enable(&self) -> String {
        let enable = |one: &Trigger| format!("{} {} TRIGGER {};\n", one.statement, one.enable, one.name);
        self.all.iter().map(enable).collect()
    }

    /// A warning about those that run.
    pub(crate) fn warning(&self) -> Option<String> {
        (!self.running.is_empty()).then(|| {
            format!(
                "these triggers run while pgrig fills the tables, because only a superuser may disable them: {}. If they make the fill fail, \
                 connect as a superuser, or leave out --scratch",
                self.running.join(", ")
            )
        })
    }
}
