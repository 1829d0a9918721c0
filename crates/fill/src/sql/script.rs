//! SQL files, read as far as psql would read them differently from the server.

use crate::error::FillError;

/// psql's own commands that `pg_dump` writes around a dump since August 2025 (CVE-2025-8714). They
/// restrict psql, and mean nothing to the server.
const RESTRICTIONS: [&str; 2] = ["\\restrict", "\\unrestrict"];
/// What stands for NULL in data for COPY, and what ends it.
const COPY_DATA: [&str; 2] = ["\\N", "\\."];

/// The SQL of a file that psql could run: without psql's restrictions, lines keeping their numbers.
///
/// # Errors
/// If it has other commands of psql's own, or data for COPY: the server knows neither.
pub fn sql_of_script(text: &str) -> Result<String, FillError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sql = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '"', '-', '/', '$', '\\']) {
        let (plain, from) = rest.split_at(at);
        sql.push_str(plain);
        let (taken, left) = if from.starts_with('\\') {
            let (command, left) = from.split_at(line_end(from));
            refuse(command.trim_end(), 1 + sql.matches('\n').count())?;
            ("", left)
        } else {
            from.split_at(opaque(&sql, from))
        };
        sql.push_str(taken);
        rest = left;
    }
    sql.push_str(rest);
    Ok(sql)
}

/// Refuses a command of psql's own, unless it is one that can be passed over.
fn refuse(command: &str, line: usize) -> Result<(), FillError> {
    let word = command.split_whitespace().next().unwrap_or(command);
    if RESTRICTIONS.contains(&word) {
        return Ok(());
    }
    let problem = if COPY_DATA.contains(&word) {
        format!("line {line} is data for COPY: give the definitions alone (pg_dump --schema-only)")
    } else {
        format!(
            "line {line} is psql's own command {word}, which the server does not know: leave that line out"
        )
    };
    Err(FillError::Ddl { problem })
}

fn line_end(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

/// Length of the string, quoted identifier or comment that `from` begins with, in which a backslash is
/// no command; 1 if it begins with none. `before` is what comes before it.
fn opaque(before: &str, from: &str) -> usize {
    let length = match from.as_bytes() {
        [b'\'', ..] if has_escapes(before) => escaped(from),
        // A doubled quote is two strings beside each other, which ends the same.
        [quote @ (b'\'' | b'"'), ..] => from[1..].find(char::from(*quote)).map(|end| end + 2),
        [b'-', b'-', ..] => Some(line_end(from)),
        [b'/', b'*', ..] => comment(from),
        [b'$', ..] => dollar_quoted(before, from),
        _ => Some(1),
    };
    // What never ends is for the server to complain about.
    length.unwrap_or(from.len())
}

fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// Whether a string that begins here is of the form E'…'.
fn has_escapes(before: &str) -> bool {
    let word = before.strip_suffix(['e', 'E']);
    word.is_some_and(|before| !before.ends_with(is_of_a_word))
}

fn escaped(from: &str) -> Option<usize> {
    let bytes = from.as_bytes();
    let mut at = 1;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'\\', _) | (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Comments nest.
fn comment(from: &str) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    loop {
        let step = &from.as_bytes()[at..];
        at += match step {
            [] => return None,
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        if depth == 0 {
            return Some(at);
        }
    }
}

/// `$tag$ … $tag$`; a `$` within a word or before a digit begins none.
fn dollar_quoted(before: &str, from: &str) -> Option<usize> {
    let tag_length = from[1..].find(|character: char| !is_of_a_word(character) || character == '$');
    let is_tag = |length: &usize| {
        from[1 + length..].starts_with('$') && !from[1..].starts_with(|first: char| first.is_ascii_digit())
    };
    match tag_length.filter(is_tag) {
        Some(length) if !before.ends_with(is_of_a_word) => {
            let tag = &from[..length + 2];
            from[tag.len()..].find(tag).map(|end| end + 2 * tag.len())
        }
        _ => Some(1),
    }
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
            ("SELECT 1;\n\\connect shop\n", "line 2 is psql's own command \\connect,"),
            ("SELECT 'a\n\\d';\n  \\d", "line 3 is psql's own command \\d,"),
            ("SELECT $1a$ \\d $1a$", "line 1 is psql's own command \\d,"),
            ("SELECT value'x\\' \\gexec", "line 1 is psql's own command \\gexec,"),
            ("COPY t FROM stdin;\n1\t\\N\n\\.\n", "line 2 is data for COPY"),
            ("COPY t FROM stdin;\n1\n\\.\n", "line 3 is data for COPY"),
        ] {
            let error = sql_of_script(script).unwrap_err().to_string();
            assert!(error.contains(said), "{script}: {error}");
        }
    }
}
