//! Another tool that backs up and restores, as two commands with placeholders.

use std::path::Path;

use serde::Serialize;

use crate::way::Format;

/// Most characters of a name.
const MOST: usize = 32;

/// A tool: its name, and its commands as the user wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Tool {
    name: String,
    backup: String,
    restore: String,
}

/// A placeholder of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// The directory of the backup.
    Backup,
    /// The directory into which it is restored.
    Restore,
    /// The URL of the database that is backed up, without a password.
    Url,
    /// The data directory of its server.
    Data,
}

/// An error in the name or in a command of a tool.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ToolError {
    /// A way has this name, or it has other characters.
    #[error(
        "\"{0}\" cannot be the name of a tool: give up to {MOST} lower-case letters, digits, hyphens and dots, beginning with a letter. A name that \
         pgrig itself uses for a --way is not possible"
    )]
    Name(String),
    /// There is no such placeholder.
    #[error(
        "the {command} command has the unknown placeholder {{{word}}}: its placeholders are {known}; for these characters themselves, write \
         {{{{{word}}}}}"
    )]
    Unknown {
        /// `backup` or `restore`.
        command: &'static str,
        /// The word between the braces.
        word: String,
        /// The placeholders that it may have.
        known: &'static str,
    },
    /// A placeholder is missing.
    #[error(
        "the {command} command does not have {{{missing}}}, {meaning}: add it (a script can get it as an argument)"
    )]
    Missing {
        /// `backup` or `restore`.
        command: &'static str,
        /// The placeholder.
        missing: &'static str,
        /// The directory for which it stands.
        meaning: &'static str,
    },
    /// A placeholder is within quotes.
    #[error(
        "the {command} command has {{{word}}} within quotes, and pgrig quotes the value itself: move {{{word}}} outside \
         the quotes, or write ${variable} within double quotes"
    )]
    Quoted {
        /// `backup` or `restore`.
        command: &'static str,
        /// The placeholder.
        word: &'static str,
        /// The environment variable with the same value.
        variable: &'static str,
    },
}

/// A part of a command.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder { place: Placeholder, is_quoted: bool },
}

impl Tool {
    /// Checks the name and the placeholders.
    ///
    /// # Errors
    /// If one of them cannot be used; the error names the remedy.
    pub fn new(name: &str, backup: &str, restore: &str) -> Result<Self, ToolError> {
        let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= MOST
            && name.chars().all(is_known);
        if !is_name || Format::ALL.into_iter().any(|format| format.name() == name) {
            return Err(ToolError::Name(name.to_owned()));
        }
        check("backup", backup, &[Placeholder::Backup])?;
        check("restore", restore, &[Placeholder::Backup, Placeholder::Restore])?;
        Ok(Self { name: name.to_owned(), backup: backup.to_owned(), restore: restore.to_owned() })
    }

    /// Its name, which is that of the way.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether one of the commands needs the data directory of the server.
    pub(crate) fn needs_data(&self) -> bool {
        [&self.backup, &self.restore].into_iter().any(|command| has(command, Placeholder::Data))
    }

    /// The command that backs up, for `sh -c`.
    pub(crate) fn backup(&self, value: &impl Fn(Placeholder) -> String) -> String {
        filled(&self.backup, value)
    }

    /// The command that restores, for `sh -c`.
    pub(crate) fn restore(&self, value: &impl Fn(Placeholder) -> String) -> String {
        filled(&self.restore, value)
    }
}

impl Placeholder {
    pub(crate) const ALL: [Self; 4] = [Self::Backup, Self::Restore, Self::Url, Self::Data];

    /// The word between the braces.
    fn word(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Restore => "restore",
            Self::Url => "url",
            Self::Data => "data",
        }
    }

    /// The environment variable with the same value.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Backup => "PGRIG_BACKUP",
            Self::Restore => "PGRIG_RESTORE",
            Self::Url => "PGRIG_URL",
            Self::Data => "PGRIG_DATA",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Backup => "the directory of the backup",
            Self::Restore => "the directory into which it has to restore",
            Self::Url | Self::Data => "",
        }
    }
}

/// Refuses unknown, quoted and missing placeholders.
fn check(command: &'static str, text: &str, needed: &[Placeholder]) -> Result<(), ToolError> {
    let known = if command == "backup" {
        "{backup}, {url} and {data}"
    } else {
        "{backup}, {restore}, {url} and {data}"
    };
    let is_known = |place: Placeholder| command == "restore" || place != Placeholder::Restore;
    let parts = parts(text).map_err(|word| ToolError::Unknown { command, word, known })?;
    for part in &parts {
        match *part {
            Part::Placeholder { place, .. } if !is_known(place) => {
                return Err(ToolError::Unknown { command, word: place.word().to_owned(), known });
            }
            Part::Placeholder { place, is_quoted: true } => {
                return Err(ToolError::Quoted { command, word: place.word(), variable: place.variable() });
            }
            _ => {}
        }
    }
    match needed.iter().find(|place| !has(text, **place)) {
        Some(place) => Err(ToolError::Missing { command, missing: place.word(), meaning: place.meaning() }),
        None => Ok(()),
    }
}

/// Whether a command has a placeholder, or the environment variable with its value.
fn has(text: &str, wanted: Placeholder) -> bool {
    let is_wanted = |part: &Part| matches!(part, Part::Placeholder { place, .. } if *place == wanted);
    text.contains(wanted.variable()) || parts(text).is_ok_and(|parts| parts.iter().any(is_wanted))
}

fn filled(text: &str, value: &impl Fn(Placeholder) -> String) -> String {
    let parts = parts(text).unwrap_or_default();
    let fill = |part| match part {
        Part::Text(text) => text,
        Part::Placeholder { place, .. } => quoted(&value(place)),
    };
    parts.into_iter().map(fill).collect()
}

/// Splits at placeholders: a word in braces that does not follow a dollar sign. Doubled braces stand for themselves. The error is a word that is
/// no placeholder.
fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    // The quote within which the rest begins.
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        let is_variable = plain.ends_with('$');
        if let Some((word, after)) = word(rest, "{{", "}}").filter(|_| !is_variable) {
            plain.extend(["{", word, "}"]);
            rest = after;
            continue;
        }
        if let Some((word, after)) = word(rest, "{", "}").filter(|_| !is_variable) {
            let place = Placeholder::ALL.into_iter().find(|place| place.word() == word);
            let place = place.ok_or_else(|| word.to_owned())?;
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Placeholder { place, is_quoted: quote.is_some() });
            rest = after;
            continue;
        }
        let mut length = c.len_utf8();
        match (c, quote) {
            ('\\', None | Some('"')) => length += rest[1..].chars().next().map_or(0, char::len_utf8),
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            _ => {}
        }
        plain += &rest[..length];
        rest = &rest[length..];
    }
    parts.push(Part::Text(plain));
    Ok(parts)
}

/// A word between these braces at the beginning, and the text after them.
fn word<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    let (word, after) = text.strip_prefix(open)?.split_once(close)?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '_'));
    is_word.then_some((word, after))
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.:=@%+,-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The value of a path in a command.
pub(crate) fn of_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(place: Placeholder) -> String {
        match place {
            Placeholder::Backup => "/a b/it's".to_owned(),
            Placeholder::Restore => "/new".to_owned(),
            Placeholder::Url => "postgresql://u@/d?host=%2Ftmp".to_owned(),
            Placeholder::Data => String::new(),
        }
    }

    #[test]
    fn placeholders_become_words_of_the_shell_and_other_braces_stay() {
        let tool = |command: &str| Tool::new("t", command, "{backup}{restore}").unwrap().backup(&value);
        assert_eq!(tool("b --to={backup} {url}"), r"b --to='/a b/it'\''s' 'postgresql://u@/d?host=%2Ftmp'");
        assert_eq!(tool("b {data} $PGRIG_BACKUP"), "b '' $PGRIG_BACKUP");
        let shell = r#"{ x; } "${HOME}/a" {1..2} '{{print}}' \" "it's" {backup}"#;
        assert_eq!(tool(shell), r#"{ x; } "${HOME}/a" {1..2} '{print}' \" "it's" '/a b/it'\''s'"#);
    }

    #[test]
    fn commands_that_cannot_work_are_refused_with_the_remedy() {
        for (backup, restore, says) in [
            (
                "b {repo}",
                "r {backup} {restore}",
                "the unknown placeholder {repo}: its placeholders are {backup}, {url} and {data}",
            ),
            ("b {repo}", "r {backup} {restore}", "write {{repo}}"),
            ("b {backup} {restore}", "r {backup} {restore}", "the unknown placeholder {restore}"),
            (
                "b",
                "r {backup} {restore}",
                "the backup command does not have {backup}, the directory of the backup",
            ),
            (
                "b {backup}",
                "r {backup}",
                "the restore command does not have {restore}, the directory into which",
            ),
            ("b {backup}", "r {restore}", "the restore command does not have {backup}"),
            ("b '{backup}'", "r {backup} {restore}", "{backup} within quotes"),
            ("b {backup}", "r {backup} \"a {restore}\"", "or write $PGRIG_RESTORE within"),
        ] {
            let error = Tool::new("t", backup, restore).unwrap_err().to_string();
            assert!(error.contains(says), "{backup} / {restore}: {error}");
        }
        for name in ["", "base", "pitr", "Barman", "a=1", "a:b", "1a", "a,b", &"a".repeat(33)] {
            let error = Tool::new(name, "b {backup}", "r {backup} {restore}").unwrap_err();
            assert_eq!(error, ToolError::Name(name.to_owned()));
        }
        assert!(Tool::new("wal-g", "b {backup}", "r $PGRIG_BACKUP {restore}").is_ok());
    }
}
