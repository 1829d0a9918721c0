//! The command line as run documents keep it: without passwords, and without the commands of other tools.

use server::quote::shell_word;

/// Replaces a password in the text.
const HIDDEN: &str = "***";
/// The word before a password: `password=`, `sslpassword=`, `PGPASSWORD=`, and SQL's PASSWORD.
const WORD: &str = "password";

/// Options with a command of another tool as their value. Such a command can have secrets under any name.
const COMMANDS: [&str; 3] = ["--tool-backup", "--tool-restore", "--tool-wal"];

/// The arguments of this process for a document; the first one is `pgrig`, wherever the program is.
pub(crate) fn of_this_process() -> Vec<String> {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| without_passwords(&argument.to_string_lossy()));
    without_commands(std::iter::once("pgrig".to_owned()).chain(arguments).collect())
}

/// The words with the commands of other tools replaced, in both forms: `--tool-backup COMMAND` and `--tool-backup=COMMAND`.
fn without_commands(words: Vec<String>) -> Vec<String> {
    let mut is_command = false;
    let shown = |word: String| {
        if is_command {
            is_command = false;
            return HIDDEN.to_owned();
        }
        is_command = COMMANDS.contains(&word.as_str());
        let option = COMMANDS
            .into_iter()
            .find(|option| word.strip_prefix(*option).is_some_and(|value| value.starts_with('=')));
        option.map_or(word, |option| format!("{option}={HIDDEN}"))
    };
    words.into_iter().map(shown).collect()
}

/// Words as a shell reads them, for a command to paste. Passwords of connection strings are left out: `***` would be the
/// password of the pasted command.
pub(crate) fn shown(words: &[String]) -> String {
    let words = words.iter().map(|word| shell_word(&left_out(word)));
    words.collect::<Vec<_>>().join(" ")
}

/// The command line of this process with these two words in each other's place, for a shell.
pub(crate) fn exchanged(first: &str, second: &str) -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    format!("pgrig {}", shown(&with_exchanged(words, first, second)))
}

/// The words with two of them in each other's place, also as values: `--schema-file=a.sql`.
fn with_exchanged(words: impl Iterator<Item = String>, first: &str, second: &str) -> Vec<String> {
    let other = |value: &str| match value {
        value if value == first => Some(second.to_owned()),
        value if value == second => Some(first.to_owned()),
        _ => None,
    };
    let exchanged = |word: String| {
        let of_option = || {
            let (option, value) = word.split_once('=').filter(|(option, _)| option.starts_with("--"))?;
            Some(format!("{option}={}", other(value)?))
        };
        other(&word).or_else(of_option).unwrap_or(word)
    };
    words.map(exchanged).collect()
}

/// Whether [`shown`] leaves out a password of this word.
pub(crate) fn has_password(word: &str) -> bool {
    !word.contains(HIDDEN) && left_out(word) != without_passwords(word)
}

/// The word without the passwords of its connection string. Other passwords are replaced.
pub(crate) fn left_out(word: &str) -> String {
    const FORMS: [(&str, &str); 5] = [
        (":***@", "@"),
        ("?password=***&", "?"),
        ("?password=***", ""),
        ("&password=***", ""),
        (" password=***", ""),
    ];
    let hidden = without_passwords(word);
    if hidden == word {
        return hidden;
    }
    let left = FORMS.into_iter().fold(hidden, |text, (form, instead)| text.replace(form, instead));
    match left.strip_prefix("password=*** ") {
        Some(rest) => rest.to_owned(),
        None => left,
    }
}

/// The text with each password replaced: that of a URI (`user:password@`), and each value after the word password.
pub(crate) fn without_passwords(text: &str) -> String {
    without_values(&without_user_passwords(text))
}

/// Without the passwords of URIs. As in libpq, the part with user and password reaches to the first slash.
fn without_user_passwords(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        result += before;
        let end = after.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(after.len());
        let (authority, after) = after.split_at(end);
        match authority.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?.0, host))) {
            Some((user, host)) => result.extend([user, ":", HIDDEN, "@", host]),
            None => result += authority,
        }
        rest = after;
    }
    result + rest
}

/// Without the values after the word password and an equals sign, and without strings after it.
fn without_values(text: &str) -> String {
    // Of the same length: only ASCII letters change.
    let lower = text.to_ascii_lowercase();
    let mut result = String::new();
    let mut done = 0;
    while let Some(found) = lower[done..].find(WORD) {
        let word_end = done + found + WORD.len();
        let after = &text[word_end..];
        let trimmed = after.trim_start();
        let value = match trimmed.strip_prefix('=') {
            Some(value) => value.trim_start(),
            None if trimmed.starts_with('\'') => trimmed,
            None => "",
        };
        let start = text.len() - if value.is_empty() { after.len() } else { value.len() };
        result += &text[done..start];
        if !value.is_empty() {
            result += HIDDEN;
        }
        done = start + value_length(value);
    }
    result + &text[done..]
}

/// Bytes of the value at the start: a quoted string, or all to the next space or `&`.
fn value_length(value: &str) -> usize {
    let Some(quote) = value.chars().next().filter(|first| matches!(first, '\'' | '"')) else {
        return value.find(|c: char| c.is_whitespace() || c == '&').unwrap_or(value.len());
    };
    let mut is_escaped = false;
    for (at, character) in value.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_they_are() {
        for (given, kept) in [
            ("postgresql://u:s3cret@h:5432/d?sslmode=require", "postgresql://u:***@h:5432/d?sslmode=require"),
            ("postgres://u:s3?c@ret#@h/d", "postgres://u:***@h/d"),
            ("postgresql:///d?user=u&password=s3cret&host=h", "postgresql:///d?user=u&password=***&host=h"),
            ("postgresql://u:s3cret@h", "postgresql://u:***@h"),
            ("host=h password=s3cret dbname=d", "host=h password=*** dbname=d"),
            ("host=h password = 's3 \\' cret' dbname=d", "host=h password = *** dbname=d"),
            ("sslpassword=s3cret", "sslpassword=***"),
            (
                "PGPASSWORD=\"s3 cret\" psql postgresql://a:s3cret@h/d -c x",
                "PGPASSWORD=*** psql postgresql://a:***@h/d -c x",
            ),
            ("ALTER ROLE é PASSWORD 's3cret'; SELECT 1", "ALTER ROLE é PASSWORD ***; SELECT 1"),
            ("a password='s3cret", "a password=***"),
        ] {
            assert_eq!(without_passwords(given), kept);
            assert!(!kept.contains("s3"));
        }
    }

    #[test]
    fn a_command_to_paste_has_no_password_instead_of_a_wrong_one() {
        for (word, kept) in [
            ("postgresql://u:s3cret@h:5432/d?sslmode=require", "'postgresql://u@h:5432/d?sslmode=require'"),
            ("-dpostgresql://u:s3cret@h/d", "-dpostgresql://u@h/d"),
            ("postgresql:///d?password=s3cret&host=h", "'postgresql:///d?host=h'"),
            ("postgresql:///d?host=h&password=s3cret", "'postgresql:///d?host=h'"),
            ("host=h password=s3cret dbname=d", "'host=h dbname=d'"),
            ("password=s3cret dbname=d", "dbname=d"),
        ] {
            assert!(has_password(word), "{word}");
            assert_eq!(shown(&[word.to_owned()]), kept);
        }
        for word in ["shop", "postgresql://u@h/d", "ALTER ROLE a PASSWORD 's3cret'"] {
            assert!(!has_password(word), "{word}");
            assert!(!shown(&[word.to_owned()]).contains("s3cret"), "{word}");
        }
    }

    #[test]
    fn words_are_exchanged_and_all_others_stay() {
        for (line, told) in [
            ("ddl a.sql --schema-file b.sql --quick", "ddl b.sql --schema-file a.sql --quick"),
            ("ddl --schema-file=b.sql a.sql", "ddl --schema-file=a.sql b.sql"),
            ("model check a.sql b.sql -h db", "model check b.sql a.sql -h db"),
        ] {
            let words = line.split(' ').map(str::to_owned);
            assert_eq!(with_exchanged(words, "a.sql", "b.sql").join(" "), told);
        }
    }

    #[test]
    fn commands_of_other_tools_are_hidden_whatever_they_are() {
        let given = "pgrig backup rehearse --tool-name x --tool-backup KEY=s3 --tool-restore=KEY=s3 --tool-wal --tool-wal -q";
        let kept =
            "pgrig backup rehearse --tool-name x --tool-backup *** --tool-restore=*** --tool-wal *** -q";
        let words: Vec<String> = given.split(' ').map(str::to_owned).collect();
        assert_eq!(without_commands(words).join(" "), kept);
        let others = ["pgrig", "fill", "1GB", "--tool-backup"].map(str::to_owned).to_vec();
        assert_eq!(without_commands(others.clone()), others);
    }

    #[test]
    fn all_else_stays() {
        for text in [
            "",
            "postgresql://u@h:5432/d",
            "http://h:80/a@b:c",
            "SELECT password FROM t",
            "password",
            "password=",
        ] {
            assert_eq!(without_passwords(text), text);
        }
    }
}
