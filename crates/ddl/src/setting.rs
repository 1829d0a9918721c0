//! The setting that a statement sets, if it does nothing else: SET, RESET, or a call of `set_config`.

use crate::outside::words;

/// A setting of the session or transaction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its name, in lower case.
    pub(crate) name: String,
    /// The words of its new value in lower case, without blanks; none if it gets its default back.
    pub(crate) value: Option<String>,
}

impl Setting {
    /// None if the statement does something else, or if the value is an expression.
    pub(crate) fn of(sql: &str) -> Option<Self> {
        let words = words(sql);
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != ";").collect();
        match words.as_slice() {
            ["set", "session" | "local", rest @ ..] | ["set", rest @ ..] => Self::of_set(rest),
            ["select", "pg_catalog", ".", rest @ ..] | ["select", rest @ ..] => Self::of_call(rest),
            ["reset", name] => Some(Self { name: text(name), value: None }),
            _ => None,
        }
    }

    /// By the words after SET.
    fn of_set(words: &[&str]) -> Option<Self> {
        match words {
            ["names", value] => Some(Self::with("client_encoding", &[*value])),
            [name, "to" | "=", value @ ..] if !value.is_empty() => Some(Self::with(name, value)),
            _ => None,
        }
    }

    /// By the words of a call. The value may have a cast.
    fn of_call(words: &[&str]) -> Option<Self> {
        let ["set_config", "(", name, ",", value, cast @ .., ",", _, ")"] = words else { return None };
        let is_literal = |word: &str| word.contains('\'');
        if !is_literal(name) || !matches!(cast, [] | [":", ":", _]) {
            return None;
        }
        match *value {
            "null" => Some(Self { name: text(name), value: None }),
            value if is_literal(value) => Some(Self::with(name, &[value])),
            _ => None,
        }
    }

    fn with(name: &str, value: &[&str]) -> Self {
        let value = value.concat();
        Self { name: text(name), value: (value != "default").then_some(value) }
    }
}

/// The text of a name or literal: without its quotes, and without the letter before those.
pub(crate) fn text(word: &str) -> String {
    let text = word.split_once('\'').map_or(word, |(_, text)| text.trim_end_matches('\''));
    text.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_known_by_each_statement_that_sets_it() {
        for (sql, wanted) in [
            ("SET Lock_Timeout = '2s';", Some(("lock_timeout", Some("'2s'")))),
            ("set local \"lock_timeout\" to 5", Some(("lock_timeout", Some("5")))),
            ("SET SESSION search_path TO a, b", Some(("search_path", Some("a,b")))),
            ("SET names /* all */ 'LATIN1'", Some(("client_encoding", Some("'latin1'")))),
            ("SET lock_timeout TO DEFAULT", Some(("lock_timeout", None))),
            ("RESET lock_timeout;", Some(("lock_timeout", None))),
            ("SELECT set_config('lock_timeout', E'2s', true)", Some(("lock_timeout", Some("e'2s'")))),
            (
                "select pg_catalog.set_config(E'lock_timeout', '2s'::text, false);",
                Some(("lock_timeout", Some("'2s'"))),
            ),
            ("SELECT set_config('lock_timeout', NULL, false)", Some(("lock_timeout", None))),
            ("SELECT set_config('lock_timeout', '2' || 's', true)", None),
            ("SELECT set_config('a', '1', true), set_config('b', '2', true)", None),
            ("SELECT set_config(name, '1', true)", None),
            ("SET NAMES", None),
            ("SET ROLE app", None),
            ("SHOW lock_timeout", None),
            ("UPDATE t SET a = 1", None),
            ("", None),
        ] {
            let wanted = wanted
                .map(|(name, value)| Setting { name: name.to_owned(), value: value.map(str::to_owned) });
            assert_eq!(Setting::of(sql), wanted, "{sql}");
        }
    }
}
