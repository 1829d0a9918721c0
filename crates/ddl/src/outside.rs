//! Statements with effects outside of the database in which they run, by their first words, and by the functions that they call. pgrig
//! runs a migration several times, in databases that it drops.

use std::collections::BTreeMap;

use sql::Kind;

use crate::exchanged::{CLIENT, copied};
use crate::program;
use crate::script::{Script, tokens, without};
use crate::script_error::ScriptError;

/// Words for roles in CREATE, ALTER and DROP.
const ROLES: [&str; 3] = ["group", "role", "user"];
/// Other objects that CREATE, ALTER and DROP change for the whole server.
const SHARED: [&str; 3] = ["database", "system", "tablespace"];
/// Objects of the whole server that have comments and labels.
const COMMENTED: [&str; 4] = ["database", "role", "subscription", "tablespace"];
/// Objects of the whole server that have privileges.
const GRANTED: [&str; 3] = ["database", "parameter", "tablespace"];

/// Functions that act outside of the database whenever they are called.
static FUNCTIONS: [(&str, Affected); 27] = [
    ("dblink", Affected::Foreign),
    ("dblink_connect", Affected::Foreign),
    ("dblink_connect_u", Affected::Foreign),
    ("dblink_exec", Affected::Foreign),
    ("dblink_open", Affected::Foreign),
    ("dblink_send_query", Affected::Foreign),
    ("lo_export", Affected::Files),
    ("pg_cancel_backend", Affected::Server),
    ("pg_copy_logical_replication_slot", Affected::Server),
    ("pg_copy_physical_replication_slot", Affected::Server),
    ("pg_create_logical_replication_slot", Affected::Server),
    ("pg_create_physical_replication_slot", Affected::Server),
    ("pg_drop_replication_slot", Affected::Server),
    ("pg_file_rename", Affected::Files),
    ("pg_file_unlink", Affected::Files),
    ("pg_file_write", Affected::Files),
    ("pg_logical_slot_get_binary_changes", Affected::Server),
    ("pg_logical_slot_get_changes", Affected::Server),
    ("pg_promote", Affected::Server),
    ("pg_reload_conf", Affected::Server),
    ("pg_replication_origin_advance", Affected::Server),
    ("pg_replication_origin_create", Affected::Server),
    ("pg_replication_origin_drop", Affected::Server),
    ("pg_replication_slot_advance", Affected::Server),
    ("pg_rotate_logfile", Affected::Server),
    ("pg_switch_wal", Affected::Server),
    ("pg_terminate_backend", Affected::Server),
];
/// First words of statements that call the functions which they name. Definitions, privileges and comments do not.
const CALLING: [&str; 15] = [
    "(", "call", "copy", "declare", "delete", "execute", "explain", "insert", "merge", "prepare", "select",
    "table", "update", "values", "with",
];

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
    /// Files and programs of the server's machine.
    Files,
}

impl Outside {
    /// None if the text tells of no such effect. What a body of a function does is not known.
    pub(crate) fn of(sql: &str) -> Option<Self> {
        let words = words(sql);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Self::of_first_words(&words)
            .or_else(|| Self::of_copy(&words))
            .or_else(|| Self::of_call(&words))
            .or_else(|| Self::of_body(&words))
    }

    /// The same of a statement of a migration. The user mappings that a DO of a schema makes are dropped, and this DO is no reason to skip others
    /// of its effects.
    pub(crate) fn of_migration(sql: &str) -> Option<Self> {
        let is_mapping = || {
            let words = words(sql);
            words.first().is_some_and(|first| first == "do") && words.iter().any(|body| has_mapping(body))
        };
        let mapping = || Self { on: Affected::Foreign, command: "DO with CREATE USER MAPPING".to_owned() };
        Self::of(sql).or_else(|| is_mapping().then(mapping))
    }

    /// Of definitions and privileges.
    fn of_first_words(words: &[&str]) -> Option<Self> {
        let first = |number: usize| words[..number].join(" ").to_ascii_uppercase();
        // To drop one concerns the database alone. A role may have this name.
        let is_mapping = matches!(words[..], [_, "user", "mapping", "for" | "if", ..]);
        let (on, command) = match words[..] {
            ["create" | "alter", ..] if is_mapping => (Affected::Foreign, first(3)),
            ["import", "foreign", "schema", ..] => (Affected::Foreign, first(3)),
            ["create" | "alter", "foreign", "table", ..] if program::is_option(words) => {
                (Affected::Files, format!("{} with the option program", first(3)))
            }
            ["create" | "alter" | "drop", object, ..] if ROLES.contains(&object) && !is_mapping => {
                (Affected::Roles, first(2))
            }
            ["create" | "alter" | "drop", object, ..] if SHARED.contains(&object) => {
                (Affected::Server, first(2))
            }
            ["create" | "alter" | "drop", "subscription", ..] => (Affected::Subscriptions, first(2)),
            ["reassign" | "drop", "owned", ..] => (Affected::Server, first(2)),
            ["comment", "on", object, ..] if COMMENTED.contains(&object) => (Affected::Server, first(3)),
            ["grant" | "revoke", ..] => return Self::of_privileges(words),
            ["security", "label", ..] => return Self::of_label(words),
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

    /// Of COPY that writes a file or runs a program.
    fn of_copy(words: &[&str]) -> Option<Self> {
        let command = match copied(words)? {
            ("to", "program") => "COPY … TO PROGRAM",
            ("from", "program") => "COPY … FROM PROGRAM",
            ("to", file) if !CLIENT.contains(&file) => "COPY … TO a file",
            _ => return None,
        };
        Some(Self { on: Affected::Files, command: command.to_owned() })
    }

    /// Of a statement that calls one of the functions.
    fn of_call(words: &[&str]) -> Option<Self> {
        if !calls(words) {
            return None;
        }
        let is_call = |(at, pair): &(usize, &[&str])| pair[1] == "(" && !is_inserted_into(&words[..*at]);
        let mut called =
            words.windows(2).enumerate().filter(is_call).map(|(_, pair)| pair[0].trim_matches('"'));
        called.find_map(|called| {
            let (name, on) = FUNCTIONS.iter().find(|(name, _)| *name == called)?;
            Some(Self { on: *on, command: format!("{name}()") })
        })
    }

    /// Of a DO whose body has such a call, also in a comment or a string, which it may execute.
    fn of_body(words: &[&str]) -> Option<Self> {
        if words.first() != Some(&"do") {
            return None;
        }
        let (name, on) = FUNCTIONS.iter().find(|(name, _)| words.iter().any(|body| has_call(body, name)))?;
        Some(Self { on: *on, command: format!("DO with {name}()") })
    }

    /// The refusal of a migration with it, at this place.
    pub(crate) fn refusal(self, place: String) -> ScriptError {
        let command = self.command;
        match self.on {
            Affected::Foreign => ScriptError::Foreign { place, command },
            Affected::Files => ScriptError::Files { place, command },
            on => ScriptError::WholeServer { place, command, is_of_roles: on == Affected::Roles },
        }
    }
}

/// Whether a statement calls the functions that it names.
fn calls(words: &[&str]) -> bool {
    let words = words.strip_suffix(&[";"]).unwrap_or(words);
    let has_data = !words.ends_with(&["with", "no", "data"]);
    match words {
        ["create", "materialized", "view", ..] => has_data,
        ["create", rest @ ..] => {
            let is_table = rest[..rest.len().min(3)].contains(&"table");
            has_data && is_table && rest.contains(&"as")
        }
        [first, ..] => CALLING.contains(first),
        [] => false,
    }
}

/// Whether the name after these words is that of a table which gets rows: its columns are in brackets.
fn is_inserted_into(words: &[&str]) -> bool {
    let mut before = words;
    while let [rest @ .., _, "."] = before {
        before = rest;
    }
    before.last() == Some(&"into")
}

/// Whether a text in lower case has a call of this function.
fn has_call(text: &str, name: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let after = &text[at + name.len()..];
        let after = after.strip_prefix('"').unwrap_or(after);
        !text[..at].ends_with(continues) && after.trim_start().starts_with('(')
    })
}

/// Whether a text in lower case has CREATE USER MAPPING, with the word that follows it.
fn has_mapping(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    words.windows(4).any(|four| matches!(four, ["create", "user", "mapping", "for" | "if"]))
}

/// The tokens of a statement in lower case, without blanks and comments.
pub(crate) fn words(sql: &str) -> Vec<String> {
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
    // Text that pgrig cannot split into statements is refused later, by pgrig or by the server.
    let script = Script::read_whole(schema, None).ok()?;
    script.statements.iter().find_map(|one| {
        let outside = Outside::of(&one.sql)?;
        let makes = outside.on == Affected::Subscriptions && outside.command != "DROP SUBSCRIPTION";
        makes.then_some((one.line, outside.command))
    })
}

/// The SQL of a schema without the statements that have effects outside of the database, and warnings about them. Lines keep their numbers. None
/// if the SQL cannot be cut.
pub(crate) fn inside(schema: &str, origin: &str) -> Option<(String, Vec<String>)> {
    let mut skipped: Vec<Outside> = Vec::new();
    let kept = without(schema, |sql, _| {
        let outside = Outside::of(sql);
        let is_skipped = outside.is_some();
        skipped.extend(outside);
        is_skipped
    })?;
    Some((kept, warnings(&skipped, origin)))
}

/// Warnings about skipped statements of a schema.
fn warnings(skipped: &[Outside], origin: &str) -> Vec<String> {
    let (foreign, others): (Vec<&Outside>, Vec<&Outside>) =
        skipped.iter().partition(|one| one.on == Affected::Foreign);
    let (files, server): (Vec<&Outside>, Vec<&Outside>) =
        others.into_iter().partition(|one| one.on == Affected::Files);
    let mut warnings = Vec::new();
    if !files.is_empty() {
        let kinds = kinds(&files);
        warnings.push(format!("{origin}: pgrig skipped {kinds}, because that writes files or runs programs"));
    }
    if !server.is_empty() {
        let has_roles = server.iter().any(|one| one.on == Affected::Roles);
        let of_roles =
            ". If the migration needs a role, create the role on the server that measures (CREATE ROLE NAME)";
        warnings.push(format!(
            "{origin}: pgrig skipped {}, because that concerns the whole server{}",
            kinds(&server),
            if has_roles { of_roles } else { "" }
        ));
    }
    if !foreign.is_empty() {
        warnings.push(format!(
            "{origin}: pgrig skipped {}, so that the migration cannot change data on other servers: statements on foreign tables are not measurable",
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
            ("COPY t (a, b) TO '/tmp/t.csv' (FORMAT csv);", Affected::Files, "COPY … TO a file"),
            ("copy (SELECT a FROM t) to program 'gzip'", Affected::Files, "COPY … TO PROGRAM"),
            ("COPY t FROM PROGRAM 'cat'", Affected::Files, "COPY … FROM PROGRAM"),
            ("SELECT pg_replication_origin_create('x')", Affected::Server, "pg_replication_origin_create()"),
            (
                "SELECT * FROM pg_logical_slot_get_changes('x', NULL, NULL)",
                Affected::Server,
                "pg_logical_slot_get_changes()",
            ),
            ("SELECT pg_file_unlink('x')", Affected::Files, "pg_file_unlink()"),
            ("DO 'BEGIN PERFORM pg_rotate_logfile(); END'", Affected::Server, "DO with pg_rotate_logfile()"),
            (
                "SELECT pg_catalog.PG_Terminate_Backend (pid) FROM s",
                Affected::Server,
                "pg_terminate_backend()",
            ),
            ("(SELECT \"pg_switch_wal\"())", Affected::Server, "pg_switch_wal()"),
            ("INSERT INTO s.dblink (a) SELECT lo_export(1, 'x')", Affected::Files, "lo_export()"),
            (
                "CREATE TEMP TABLE t AS SELECT * FROM dblink('x', 'y') AS r(a int)",
                Affected::Foreign,
                "dblink()",
            ),
            ("DO $a$ BEGIN PERFORM pg_reload_conf(); END $a$", Affected::Server, "DO with pg_reload_conf()"),
            ("DO 'BEGIN EXECUTE ''SELECT dblink_exec(1)''; END'", Affected::Foreign, "DO with dblink_exec()"),
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
            "COPY t FROM '/tmp/t.csv'",
            "COPY (SELECT * INTO x FROM t) TO STDOUT",
            "COPY t TO stdout",
            "SELECT pg_reload_conf, my_dblink(1), 'dblink(', dblink_rows(2)",
            "INSERT INTO dblink (a) VALUES (1)",
            "INSERT INTO s.\"dblink\" (a) VALUES (1)",
            "GRANT EXECUTE ON FUNCTION dblink(text) TO app",
            "CREATE VIEW v AS SELECT * FROM dblink('x', 'y') AS r(a int)",
            "CREATE MATERIALIZED VIEW v AS SELECT * FROM dblink('x', 'y') AS r(a int) WITH NO DATA;",
            "CREATE FUNCTION f() RETURNS bool LANGUAGE sql AS 'SELECT pg_reload_conf()'",
            "DO $$ BEGIN PERFORM count(dblink) FROM my_dblink (1); END $$",
            "DO $$ BEGIN CREATE USER MAPPING FOR app SERVER other; END $$",
            "",
        ] {
            assert_eq!(Outside::of(sql), None, "{sql}");
        }
    }

    #[test]
    fn user_mappings_in_a_do_are_refused_in_a_migration() {
        let mapping = Outside { on: Affected::Foreign, command: "DO with CREATE USER MAPPING".to_owned() };
        for sql in [
            "DO $$ BEGIN CREATE USER MAPPING FOR app SERVER other; END $$",
            "DO $$ BEGIN EXECUTE 'create user\nmapping if not exists for app SERVER other'; END $$",
        ] {
            assert_eq!(Outside::of_migration(sql).as_ref(), Some(&mapping), "{sql}");
        }
        for sql in
            ["DO $$ BEGIN CREATE TABLE user_mapping (a int); END $$", "SELECT 'create user mapping for x'"]
        {
            assert_eq!(Outside::of_migration(sql), None, "{sql}");
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
        let call = "CREATE TABLE t (a int);\nSELECT pg_reload_conf();";
        let (sql, warnings) = inside(call, "shop.sql").unwrap();
        let skipped = "shop.sql: pgrig skipped 1 × pg_reload_conf(), because that concerns the whole server";
        assert_eq!((sql.as_str(), warnings), ("CREATE TABLE t (a int);\n", vec![skipped.to_owned()]));
        let (_, warnings) = inside("CREATE FOREIGN TABLE f () SERVER s OPTIONS (program 'ls')", "s").unwrap();
        assert!(
            warnings[0].contains("1 × CREATE FOREIGN TABLE with the option program, because"),
            "{warnings:?}"
        );
        let whole = "CREATE TABLE t (a int)";
        assert_eq!(inside(whole, "shop.sql"), Some((whole.to_owned(), Vec::new())));
        assert_eq!(inside("CREATE ROLE app; SELECT '", "shop.sql"), None);
    }
}
