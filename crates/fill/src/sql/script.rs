//! Reads SQL files that are written for psql, as far as psql and the server read them differently.

use ::sql::{Kind, Text};

use crate::error::FillError;

/// psql's own commands that `pg_dump` writes around a dump since August 2025 (CVE-2025-8714). They
/// restrict psql, and mean nothing to the server.
const RESTRICTIONS: [&str; 2] = ["\\restrict", "\\unrestrict"];
/// The marks of NULL and of the end in data for COPY.
const COPY_DATA: [&str; 2] = ["\\N", "\\."];

/// The SQL of a file that psql could run: without psql's restrictions, lines keeping their numbers.
///
/// # Errors
/// If it has other commands of psql's own, or data for COPY: the server knows neither.
pub fn sql_of_script(text: &str) -> Result<String, FillError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sql = String::with_capacity(text.len());
    let mut at = 0;
    // The server reports a text that ends within a token.
    while let Ok(Some((kind, length))) = Text::whole(text).from(at).token() {
        let rest = &text[at..];
        at += if kind == Kind::Backslash {
            let command = &rest[..line_end(rest)];
            refuse(command.trim_end(), &sql)?;
            command.len()
        } else {
            sql.push_str(&rest[..length]);
            length
        };
    }
    sql.push_str(&text[at..]);
    Ok(sql)
}

/// Refuses a command of psql's own, after the text before it, unless it is one that can be passed over.
fn refuse(command: &str, before: &str) -> Result<(), FillError> {
    let word = command.split_whitespace().next().unwrap_or(command);
    if RESTRICTIONS.contains(&word) {
        return Ok(());
    }
    let line = 1 + before.matches('\n').count();
    let is_copy = |text: &str| {
        let text = text.trim_start().to_ascii_lowercase();
        text.starts_with("copy ") && text.contains(" from stdin")
    };
    let problem = if COPY_DATA.contains(&word) {
        let copies = before.lines().enumerate().filter(|(_, text)| is_copy(text));
        let line = copies.last().map_or(line, |(number, _)| number + 1);
        format!("line {line} is COPY with rows: give only the definitions (pg_dump --schema-only)")
    } else {
        let remedy = remedy(command, word);
        format!("line {line} is the psql command {word}, which the server does not know: {remedy}")
    };
    Err(FillError::refused_ddl(problem))
}

/// The remedy for a line with a command of psql's own.
fn remedy(command: &str, word: &str) -> String {
    let argument = command[word.len()..].trim();
    match word {
        "\\i" | "\\include" | "\\ir" | "\\include_relative" if !argument.is_empty() => {
            format!("replace the line by the content of {argument}")
        }
        "\\c" | "\\connect" => {
            "the rest is for another database. Give a file for one database, for example from pg_dump"
                .to_owned()
        }
        _ => "remove the line".to_owned(),
    }
}

fn line_end(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_are_left_out_and_lines_keep_their_numbers() {
        let dump = "\u{feff}--\n\\restrict Xy'z\nSET a = 1;\n\\unrestrict Xy'z\nSELECT 1";
        assert_eq!(sql_of_script(dump).unwrap(), "--\n\nSET a = 1;\n\nSELECT 1");
    }

    #[test]
    fn backslashes_in_strings_and_comments_are_no_commands() {
        for sql in [
            "SELECT '\\d', \"\\d\", 'it''s \\d' -- \\d\n/* \\d /* \\d */ \\d */;",
            "SELECT E'it\\'s \\d', e'''\\d', name'\\d'",
            "DO $$ '\\d' $$; DO $a_1$ $$ \\d $a_1$",
            "SELECT a$b, $1, 1 - 2 / 3 $",
            "SELECT 'without end \\d",
            "SELECT E'without end \\d",
            "/* without end \\d",
            "$x$ without end \\d",
        ] {
            assert_eq!(sql_of_script(sql).unwrap(), sql);
        }
    }

    #[test]
    fn commands_of_psql_are_refused_by_their_line() {
        for (script, said) in [
            ("SELECT 1;\n\\connect shop\n", "line 2 is the psql command \\connect,"),
            ("\\c shop\n", "the rest is for another database. Give a file for one database"),
            ("\\i a/other.sql\n", ": replace the line by the content of a/other.sql"),
            ("\\timing on\n", ": remove the line"),
            ("SELECT 'a\n\\d';\n  \\d", "line 3 is the psql command \\d,"),
            ("SELECT $1a$ \\d $1a$", "line 1 is the psql command \\d,"),
            ("SELECT value'x\\' \\gexec", "line 1 is the psql command \\gexec,"),
            ("COPY t FROM stdin;\n1\t\\N\n\\.\n", "line 1 is COPY with rows"),
            ("--\ncopy t (a) FROM stdin;\n1\n\\.\n", "line 2 is COPY with rows"),
        ] {
            let error = sql_of_script(script).unwrap_err().to_string();
            assert!(error.contains(said), "{script}: {error}");
        }
    }
}
