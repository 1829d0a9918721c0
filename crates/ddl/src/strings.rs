//! Statements under `standard_conforming_strings = off`: there, a backslash escapes the next character also in a string without a prefix. Such a
//! string gets the prefix E, with which it means the same under any setting, so that all else reads one syntax.

use sql::{Backslash, Kind, Syntax, Text};

use crate::setting::{self, Setting};

/// The setting.
const NAME: &str = "standard_conforming_strings";

/// The setting as the statements so far have left it.
#[derive(Default)]
pub(crate) struct Strings {
    /// Whether a backslash escapes the next character.
    are_escaped: bool,
}

impl Strings {
    /// The next statement in the standard syntax.
    pub(crate) fn standard(&mut self, sql: String) -> String {
        let sql = if self.are_escaped { prefixed(&sql) } else { sql };
        match Setting::of(&sql) {
            Some(set) if set.name == NAME => self.are_escaped = set.value.is_some_and(|value| is_off(&value)),
            // RESET ALL.
            Some(set) if set.name == "all" && set.value.is_none() => self.are_escaped = false,
            _ => {}
        }
        sql
    }
}

/// Whether a value means off: any beginning of these words that means no other (bool.c: `parse_bool_with_len`).
fn is_off(value: &str) -> bool {
    let value = setting::text(value);
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    begins("off", 2) || begins("false", 1) || begins("no", 1) || value == "0"
}

/// The text with the prefix E of its strings that have a backslash and no prefix.
fn prefixed(sql: &str) -> String {
    let syntax = Syntax { backslash: Backslash::Escapes, ..Syntax::default() };
    let mut text = String::with_capacity(sql.len());
    let mut at = 0;
    while let Ok(Some((kind, length))) = (Text { syntax, ..Text::whole(sql) }).from(at).token() {
        let token = &sql[at..at + length];
        // After a letter, it has a prefix: N.
        let is_plain = token.starts_with('\'') && !text.ends_with(char::is_alphanumeric);
        if kind == Kind::Literal && is_plain && token.contains('\\') {
            text.push('E');
        }
        text.push_str(token);
        at += length;
    }
    text.push_str(&sql[at..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn strings_with_escapes_mean_the_same_under_each_setting() {
        for (sql, wanted) in [
            (
                r"INSERT INTO t VALUES ('it\'s; here', '\\', $$it\'s$$)",
                r"INSERT INTO t VALUES (E'it\'s; here', E'\\', $$it\'s$$)",
            ),
            (r"SELECT E'\'', 'plain', 'it''s' -- it\'s", r"SELECT E'\'', 'plain', 'it''s' -- it\'s"),
            (r#"SELECT "a\" FROM t"#, r#"SELECT "a\" FROM t"#),
        ] {
            assert_eq!(prefixed(sql), wanted);
        }
    }

    #[test]
    fn a_script_is_read_as_its_settings_say() {
        let of = |sql: &str| -> Vec<String> {
            Script::read(sql, None).unwrap().statements.into_iter().map(|one| one.sql).collect()
        };
        let off = "SET standard_conforming_strings = off;";
        let text = r"SELECT 'it\'s; here';";
        let found = of(&format!(r"{off} {text} RESET standard_conforming_strings; SELECT '\';"));
        assert_eq!(found[1], r"SELECT E'it\'s; here';");
        assert_eq!(found[3], r"SELECT '\';");
        assert_eq!(
            of(&format!(r"SET standard_conforming_strings TO 'false'; {text} RESET ALL; SELECT '\'"))[1],
            r"SELECT E'it\'s; here';"
        );
        assert_eq!(of(r"SET standard_conforming_strings = on; SELECT '\'")[1], r"SELECT '\'");
    }
}
