//! The encoding of the client: UTF-8 whatever a migration or schema says, because pgrig reads its files as UTF-8, and sends them so.

use crate::script::{Statement, StatementKind, without};
use crate::setting::{self, Setting};

/// Makes a session's texts UTF-8 again, if a body of a function has changed that.
pub(crate) const RESTORE: &str = "SELECT pg_catalog.set_config('client_encoding', 'UTF8', false) \
                                  WHERE pg_catalog.current_setting('client_encoding') <> 'UTF8'";

/// The setting.
const NAME: &str = "client_encoding";
/// Values with which the texts stay UTF-8, without their signs. pgrig's sessions have UTF8 by default.
const UTF8: [&str; 2] = ["utf8", "unicode"];

/// Whether a statement does nothing but set another encoding: SET client_encoding, SET NAMES, or a call of `set_config`.
pub(crate) fn is_another(sql: &str) -> bool {
    let setting = Setting::of(sql).filter(|setting| setting.name == NAME);
    setting.and_then(|setting| setting.value).is_some_and(|value| !is_utf8(&value))
}

/// The SQL of a schema without these statements, and a warning about each. Lines keep their numbers. SQL that cannot be cut stays as it is.
pub(crate) fn of_schema(schema: &str, origin: &str) -> (String, Vec<String>) {
    let mut warnings = Vec::new();
    let kept = without(schema, |sql, line| {
        let is_skipped = is_another(sql);
        if is_skipped {
            let (sql, file) = (sql.trim().to_owned(), Some(origin.to_owned()));
            warnings.push(warning(&Statement { sql, file, line, kind: StatementKind::Session }));
        }
        is_skipped
    });
    kept.map_or_else(|| (schema.to_owned(), Vec::new()), |kept| (kept, warnings))
}

/// The warning about a statement that is skipped for it.
pub(crate) fn warning(statement: &Statement) -> String {
    format!(
        "{}: pgrig skipped {}, because it reads SQL as UTF-8, and sends it so",
        statement.place(),
        statement.in_one_line()
    )
}

/// Whether a value, as a word or a literal, names UTF-8: the server takes `UTF-8` and `utf_8`, too (encnames.c: `clean_encoding_name`).
fn is_utf8(value: &str) -> bool {
    let name: String = setting::text(value).chars().filter(char::is_ascii_alphanumeric).collect();
    UTF8.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn statements_that_set_another_encoding_are_known() {
        for sql in [
            "SET client_encoding = 'LATIN1';",
            "set local Client_Encoding to latin1",
            "SET SESSION \"client_encoding\" TO E'WIN1252'",
            "SET /* the */ NAMES 'SJIS'",
            "SELECT pg_catalog.set_config('client_encoding', 'LATIN1', false);",
            "SELECT set_config('client_encoding', 'sql_ascii', true)",
        ] {
            assert!(is_another(sql), "{sql}");
        }
        for sql in [
            "SET client_encoding = 'UTF8'",
            "SET client_encoding TO 'utf-8'",
            "SET client_encoding = E'UTF8'",
            "SET client_encoding TO DEFAULT",
            "SET NAMES unicode",
            "SET NAMES",
            "RESET client_encoding",
            "SET search_path = 'latin1'",
            "SELECT set_config('search_path', '', false)",
            "SELECT set_config('client_encoding', 'UTF8', false)",
            "SELECT 'client_encoding', 'LATIN1'",
            "",
        ] {
            assert!(!is_another(sql), "{sql}");
        }
    }

    #[test]
    fn such_a_statement_is_skipped_with_a_warning() {
        let script = Script::read("SELECT 1;\nSET NAMES 'LATIN1';\nSELECT 2", Some("1.sql")).unwrap();
        assert_eq!(script.statements.iter().map(|one| one.line).collect::<Vec<_>>(), [1, 3]);
        let wanted =
            "1.sql, line 2: pgrig skipped SET NAMES 'LATIN1', because it reads SQL as UTF-8, and sends it so";
        assert_eq!(script.warnings, [wanted]);
    }

    #[test]
    fn a_schema_has_its_other_statements_on_their_lines() {
        let (kept, warnings) =
            of_schema("BEGIN;\nSET\n  client_encoding = 'LATIN1';\nCREATE TABLE t ();\nCOMMIT;\n", "s.sql");
        assert_eq!(kept.lines().position(|line| line.contains("CREATE TABLE")), Some(3), "{kept}");
        assert!(!kept.contains("LATIN1"), "{kept}");
        let wanted = "s.sql, line 2: pgrig skipped SET client_encoding = 'LATIN1', because it reads SQL as UTF-8, and sends it so";
        assert_eq!(warnings, [wanted]);
        let whole = "SELECT 'a";
        assert_eq!(of_schema(whole, "s.sql"), (whole.to_owned(), Vec::new()));
    }
}
