//! The encoding of the client: UTF-8 whatever a migration says, because pgrig reads its files as UTF-8, and sends them so.

use crate::outside::words;
use crate::script::Statement;

/// Makes a session's texts UTF-8 again, if a body of a function has changed that.
pub(crate) const RESTORE: &str = "SELECT pg_catalog.set_config('client_encoding', 'UTF8', false) \
                                  WHERE pg_catalog.current_setting('client_encoding') <> 'UTF8'";

/// The setting.
const NAME: &str = "client_encoding";
/// Values with which the texts stay UTF-8, without their signs. pgrig's sessions have UTF8 by default.
const UTF8: [&str; 3] = ["utf8", "unicode", "default"];

/// Whether a statement does nothing but set another encoding: SET client_encoding, SET NAMES, or a call of `set_config`.
pub(crate) fn is_another(sql: &str) -> bool {
    let words = words(sql);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != ";").collect();
    let value = match words.as_slice() {
        ["set", "session" | "local", rest @ ..] | ["set", rest @ ..] => of_set(rest),
        ["select", "pg_catalog", ".", rest @ ..] | ["select", rest @ ..] => of_call(rest),
        _ => None,
    };
    value.is_some_and(|value| !is_utf8(value))
}

/// The warning about a statement that is skipped for it.
pub(crate) fn warning(statement: &Statement) -> String {
    format!(
        "{}: pgrig skipped {}, because it reads migrations as UTF-8, and sends them so",
        statement.place(),
        statement.in_one_line()
    )
}

/// The value, by the words after SET.
fn of_set<'a>(words: &[&'a str]) -> Option<&'a str> {
    match words {
        ["names", value] => Some(*value),
        [name, "to" | "=", value] if name.trim_matches('"') == NAME => Some(*value),
        _ => None,
    }
}

/// The value, by the words of a call.
fn of_call<'a>(words: &[&'a str]) -> Option<&'a str> {
    match words {
        ["set_config", "(", name, ",", value, ",", _, ")"]
            if name.trim_matches('\'') == NAME && value.contains('\'') =>
        {
            Some(*value)
        }
        _ => None,
    }
}

/// Whether a value, as a word or a literal, names UTF-8: the server takes `UTF-8` and `utf_8`, too (encnames.c: `clean_encoding_name`).
fn is_utf8(value: &str) -> bool {
    let text = value.split_once('\'').map_or(value, |(_, text)| text);
    let name: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
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
        let wanted = "1.sql, line 2: pgrig skipped SET NAMES 'LATIN1', because it reads migrations as UTF-8, and sends them so";
        assert_eq!(script.warnings, [wanted]);
    }
}
