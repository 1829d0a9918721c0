//! Statements with effects outside of the database in which they run, by their first words. pgrig runs a migration several times, in
//! databases that it drops.

use std::collections::BTreeMap;

use dump::{Piece, Reader};
use sql::Kind;

use crate::error::ScriptError;
use crate::script::{Script, tokens};

/// Words for roles in CREATE, ALTER and DROP.
const ROLES: [&str; 3] = ["group", "role", "user"];
/// Other objects that CREATE, ALTER and DROP change for the whole server.
const SHARED: [&str; 3] = ["database", "system", "tablespace"];
/// Objects of the whole server that have comments and labels.
const COMMENTED: [&str; 4] = ["database", "role", "subscription", "tablespace"];
/// Objects of the whole server that have privileges.
const GRANTED: [&str; 3] = ["database", "parameter", "tablespace"];

/// A statement with effects outside of its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outside {
    /// Place of these effects.
    pub(crate) on: Affected,
    /// Its first words, for people.
    pub(crate) command: String,
}

/// Place of effects outside of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affected {
    /// Roles of the server.
    Roles,
    /// Subscriptions, with which the server connects with others.
    Subscriptions,
    /// Other objects of the server.
    Server,
    /// Other servers, with which foreign tables connect.
    Foreign,
}

impl Outside {
    /// None if the first words tell of no such effect. What a body of a function does is not known.
    pub(crate) fn of(sql: &str) -> Option<Self> {
        let words = words(sql);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let first = |number: usize| words[..number].join(" ").to_ascii_uppercase();
        // To drop one concerns the database alone. A role may have this name.
        let is_mapping = matches!(words[..], [_, "user", "mapping", "for" | "if", ..]);
        let (on, command) = match words[..] {
            ["create" | "alter", ..] if is_mapping => (Affected::Foreign, first(3)),
            ["import", "foreign", "schema", ..] => (Affected::Foreign, first(3)),
            ["create" | "alter" | "drop", object, ..] if ROLES.contains(&object) && !is_mapping => {
                (Affected::Roles, first(2))
            }
            ["create" | "alter" | "drop", object, ..] if SHARED.contains(&object) => {
                (Affected::Server, first(2))
            }
            ["create" | "alter" | "drop", "subscription", ..] => (Affected::Subscriptions, first(2)),
            ["reassign" | "drop", "owned", ..] => (Affected::Server, first(2)),
            ["comment", "on", object, ..] if COMMENTED.contains(&object) => (Affected::Server, first(3)),
            ["grant" | "revoke", ..] => return Self::of_privileges(&words),
            ["security", "label", ..] => return Self::of_label(&words),
            _ => return None,
        };
        Some(Self { on, command })
    }

    /// Of GRANT and REVOKE.
    fn of_privileges(words: &[&str]) -> Option<Self> {
        let command = words.first()?.to_ascii_uppercase();
        // Of roles; privileges are ON something.
        let Some(on) = words.iter().position(|word| *word == "on") else {
            return Some(Self { on: Affected::Roles, command: format!("{command} of a role") });
        };
        let (object, next) = (*words.get(on + 1)?, *words.get(on + 2)?);
        // A table may have such a name.
        let is_object = GRANTED.contains(&object) && !["to", "from", ",", "."].contains(&next);
        let command = format!("{command} ON {}", object.to_ascii_uppercase());
        is_object.then_some(Self { on: Affected::Server, command })
    }

    /// Of SECURITY LABEL, whose provider may come before the object.
    fn of_label(words: &[&str]) -> Option<Self> {
        let on = words.iter().position(|word| *word == "on")?;
        let object = *words.get(on + 1)?;
        let command = format!("SECURITY LABEL ON {}", object.to_ascii_uppercase());
        COMMENTED.contains(&object).then_some(Self { on: Affected::Server, command })
    }

    /// The refusal of a migration with it, at this place.
    pub(crate) fn refusal(self, place: String) -> ScriptError {
        let command = self.command;
        match self.on {
            Affected::Foreign => ScriptError::Foreign { place, command },
            on => ScriptError::WholeServer { place, command, is_of_roles: on == Affected::Roles },
        }
    }
}

/// The tokens of a statement in lower case, without blanks and comments.
fn words(sql: &str) -> Vec<String> {
    let tokens = tokens(sql).into_iter().filter(|(kind, _)| !matches!(kind, Kind::Blank | Kind::Comment));
    tokens.map(|(_, token)| token.to_ascii_lowercase()).collect()
}

/// The first words of a statement for transactions that outlive their session; none for other statements.
pub(crate) fn two_phase(sql: &str) -> Option<&'static str> {
    let words = words(sql);
    match (words.first()?.as_str(), words.get(1)?.as_str()) {
        ("prepare", "transaction") => Some("PREPARE TRANSACTION"),
        ("commit", "prepared") => Some("COMMIT PREPARED"),
        ("rollback", "prepared") => Some("ROLLBACK PREPARED"),
        _ => None,
    }
}

/// The line and the first words of the first statement of a schema that makes or changes a subscription.
pub(crate) fn subscription(schema: &str) -> Option<(u64, String)> {
    // What pgrig cannot cut, it refuses anyway; or the server does.
    let script = Script::read(schema, None).ok()?;
    script.statements.iter().find_map(|one| {
        let outside = Outside::of(&one.sql)?;
        let makes = outside.on == Affected::Subscriptions && outside.command != "DROP SUBSCRIPTION";
        makes.then_some((one.line, outside.command))
    })
}

/// The SQL of a schema without the statements that have effects outside of the database, and warnings about them. Lines keep their numbers. None
/// if the SQL cannot be cut.
pub(crate) fn inside(schema: &str, origin: &str) -> Option<(String, Vec<String>)> {
    let mut reader = Reader::new(schema.as_bytes());
    let mut kept = String::with_capacity(schema.len());
    let mut skipped: Vec<Outside> = Vec::new();
    loop {
        let Some(piece) = reader.next().ok()? else { return Some((kept, warnings(&skipped, origin))) };
        let text = String::from_utf8_lossy(piece.bytes());
        let outside = if matches!(piece, Piece::Statement(_)) { Outside::of(&text) } else { None };
        match outside {
            Some(outside) => {
                skipped.push(outside);
                kept.extend(std::iter::repeat_n('\n', text.matches('\n').count()));
            }
            None => kept.push_str(&text),
        }
    }
}

/// Warnings about skipped statements of a schema.
fn warnings(skipped: &[Outside], origin: &str) -> Vec<String> {
    let (foreign, server): (Vec<&Outside>, Vec<&Outside>) =
        skipped.iter().partition(|one| one.on == Affected::Foreign);
    let mut warnings = Vec::new();
    if !server.is_empty() {
        warnings.push(format!(
            "{origin}: pgrig skipped {}, because that concerns the whole server. If the migration needs a role, create the role on the server \
             that measures: pgrig server psql --instance ddl -- -c 'CREATE ROLE NAME'",
            kinds(&server)
        ));
    }
    if !foreign.is_empty() {
        warnings.push(format!(
            "{origin}: pgrig skipped {}, so that the migration cannot change foreign servers: statements on foreign tables are not measurable",
            kinds(&foreign)
        ));
    }
    warnings
}

/// `2 × CREATE ROLE, 1 × GRANT of a role`.
fn kinds(statements: &[&Outside]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in statements {
        *counts.entry(one.command.as_str()).or_default() += 1;
    }
    counts.iter().map(|(command, count)| format!("{count} × {command}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_effects_outside_of_the_database_are_known_by_their_first_words() {
        for (sql, on, command) in [
            ("CREATE ROLE app", Affected::Roles, "CREATE ROLE"),
            ("ALTER/* */USER app LOGIN", Affected::Roles, "ALTER USER"),
            ("drop group if exists app", Affected::Roles, "DROP GROUP"),
            ("CREATE USER mapping", Affected::Roles, "CREATE USER"),
            ("GRANT app TO bob", Affected::Roles, "GRANT of a role"),
            ("REVOKE ADMIN OPTION FOR app FROM bob", Affected::Roles, "REVOKE of a role"),
            ("ALTER SYSTEM SET work_mem = '1GB'", Affected::Server, "ALTER SYSTEM"),
            ("DROP DATABASE shop", Affected::Server, "DROP DATABASE"),
            ("CREATE SUBSCRIPTION s CONNECTION 'x'", Affected::Subscriptions, "CREATE SUBSCRIPTION"),
            ("REASSIGN OWNED BY app TO bob", Affected::Server, "REASSIGN OWNED"),
            ("DROP OWNED BY app", Affected::Server, "DROP OWNED"),
            ("GRANT CONNECT, TEMP ON DATABASE shop TO app", Affected::Server, "GRANT ON DATABASE"),
            ("REVOKE ALL ON TABLESPACE fast FROM app", Affected::Server, "REVOKE ON TABLESPACE"),
            ("GRANT SET ON PARAMETER work_mem TO app", Affected::Server, "GRANT ON PARAMETER"),
            ("COMMENT ON DATABASE shop IS 'x'", Affected::Server, "COMMENT ON DATABASE"),
            ("COMMENT ON SUBSCRIPTION s IS NULL", Affected::Server, "COMMENT ON SUBSCRIPTION"),
            ("SECURITY LABEL FOR p ON ROLE app IS 'x'", Affected::Server, "SECURITY LABEL ON ROLE"),
            ("CREATE USER MAPPING IF NOT EXISTS FOR app SERVER s", Affected::Foreign, "CREATE USER MAPPING"),
            ("ALTER USER MAPPING FOR app SERVER other OPTIONS ()", Affected::Foreign, "ALTER USER MAPPING"),
            ("IMPORT FOREIGN SCHEMA s FROM SERVER other INTO t", Affected::Foreign, "IMPORT FOREIGN SCHEMA"),
        ] {
            assert_eq!(Outside::of(sql), Some(Outside { on, command: command.to_owned() }), "{sql}");
        }
        for sql in [
            "DROP USER MAPPING FOR app SERVER other",
            "GRANT SELECT ON t TO app",
            "GRANT SELECT ON database TO app",
            "GRANT SELECT ON parameter, t TO app",
            "REVOKE SELECT ON tablespace.t FROM app",
            "GRANT USAGE ON FOREIGN SERVER other TO app",
            "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO app",
            "COMMENT ON COLUMN role.name IS 'x'",
            "SECURITY LABEL ON TABLE role IS 'x'",
            "CREATE TABLE role (id int)",
            "CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw",
            "SELECT 'CREATE ROLE app'",
            "",
        ] {
            assert_eq!(Outside::of(sql), None, "{sql}");
        }
    }

    #[test]
    fn statements_of_a_schema_are_skipped_and_lines_keep_their_numbers() {
        let schema = "-- roles\nCREATE ROLE app;\nCREATE ROLE\n  bob;\nGRANT app TO bob;\nCREATE TABLE t (a text DEFAULT ';');\n\
                      CREATE USER MAPPING FOR app SERVER other;\nSELECT 1";
        let (sql, warnings) = inside(schema, "shop.sql").unwrap();
        assert_eq!(sql, "-- roles\n\n\n\n\nCREATE TABLE t (a text DEFAULT ';');\n\nSELECT 1");
        let [server, foreign] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(
            server.starts_with("shop.sql: pgrig skipped 2 × CREATE ROLE, 1 × GRANT of a role, because"),
            "{server}"
        );
        assert!(foreign.starts_with("shop.sql: pgrig skipped 1 × CREATE USER MAPPING, so that"), "{foreign}");
        let whole = "CREATE TABLE t (a int)";
        assert_eq!(inside(whole, "shop.sql"), Some((whole.to_owned(), Vec::new())));
        assert_eq!(inside("CREATE ROLE app; SELECT '", "shop.sql"), None);
    }
}
