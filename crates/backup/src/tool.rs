//! Another tool that backs up and restores, as commands with placeholders.

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
    /// The command that stores WAL, for a restore to a point in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    wal: Option<String>,
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
    /// The time to which it is restored.
    Time,
    /// The directory into which its tablespaces are restored.
    Tablespaces,
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
        /// `backup`, `WAL` or `restore`.
        command: &'static str,
        /// The word between the braces.
        word: String,
        /// The placeholders that it may have.
        known: String,
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
    /// WAL is not stored, which a restore to a point in time needs.
    #[error(
        "the restore command has {{time}}, so it needs WAL from after the backup: also give --tool-wal COMMAND, where COMMAND stores the WAL"
    )]
    NoWal,
    /// WAL is stored, and the restore does not use it.
    #[error(
        "--tool-wal stores WAL for a restore to a point in time, but the restore command does not have {{time}}: add it, or leave out --tool-wal"
    )]
    NoTime,
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
    pub fn new(name: &str, backup: &str, restore: &str, wal: Option<&str>) -> Result<Self, ToolError> {
        let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= MOST
            && name.chars().all(is_known);
        if !is_name || Format::ALL.into_iter().any(|format| format.name() == name) {
            return Err(ToolError::Name(name.to_owned()));
        }
        check("backup", backup, &Placeholder::OF_BACKUP, &[Placeholder::Backup])?;
        check("restore", restore, &Placeholder::ALL, &[Placeholder::Backup, Placeholder::Restore])?;
        if let Some(wal) = wal {
            check("WAL", wal, &Placeholder::OF_BACKUP, &[Placeholder::Backup])?;
        }
        match (Self::is_to_a_time(restore), wal) {
            (true, None) => return Err(ToolError::NoWal),
            (false, Some(_)) => return Err(ToolError::NoTime),
            _ => {}
        }
        Ok(Self {
            name: name.to_owned(),
            backup: backup.to_owned(),
            restore: restore.to_owned(),
            wal: wal.map(str::to_owned),
        })
    }

    /// Whether a restore command restores to a point in time, so that the tool must store WAL, too.
    pub fn is_to_a_time(restore: &str) -> bool {
        has(restore, Placeholder::Time)
    }

    /// Whether it restores to a point in time.
    pub(crate) fn recovers(&self) -> bool {
        self.wal.is_some()
    }

    /// Its name, which is that of the way.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it restores tablespaces into a directory of pgrig's.
    pub(crate) fn maps_tablespaces(&self) -> bool {
        has(&self.restore, Placeholder::Tablespaces)
    }

    /// Whether one of the commands needs the data directory of the server.
    pub(crate) fn needs_data(&self) -> bool {
        let commands = [Some(&self.backup), Some(&self.restore), self.wal.as_ref()];
        commands.into_iter().flatten().any(|command| has(command, Placeholder::Data))
    }

    /// The command that backs up, for `sh -c`.
    pub(crate) fn backup(&self, value: &impl Fn(Placeholder) -> String) -> String {
        filled(&self.backup, value)
    }

    /// The command that stores WAL, for `sh -c`; none if the restore needs none.
    pub(crate) fn wal(&self, value: &impl Fn(Placeholder) -> String) -> Option<String> {
        self.wal.as_deref().map(|wal| filled(wal, value))
    }

    /// The command that restores, for `sh -c`.
    pub(crate) fn restore(&self, value: &impl Fn(Placeholder) -> String) -> String {
        filled(&self.restore, value)
    }
}

impl Placeholder {
    pub(crate) const ALL: [Self; 6] =
        [Self::Backup, Self::Restore, Self::Url, Self::Data, Self::Time, Self::Tablespaces];
    /// Those of the commands that back up and that store WAL.
    pub(crate) const OF_BACKUP: [Self; 3] = [Self::Backup, Self::Url, Self::Data];

    /// The word between the braces.
    fn word(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Restore => "restore",
            Self::Url => "url",
            Self::Data => "data",
            Self::Time => "time",
            Self::Tablespaces => "tablespaces",
        }
    }

    /// The environment variable with the same value.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Backup => "PGRIG_BACKUP",
            Self::Restore => "PGRIG_RESTORE",
            Self::Url => "PGRIG_URL",
            Self::Data => "PGRIG_DATA",
            Self::Time => "PGRIG_TIME",
            Self::Tablespaces => "PGRIG_TABLESPACES",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Backup => "the directory of the backup",
            Self::Restore => "the directory into which it has to restore",
            Self::Url | Self::Data | Self::Time | Self::Tablespaces => "",
        }
    }
}

/// Refuses unknown, quoted and missing placeholders.
fn check(
    command: &'static str,
    text: &str,
    known: &[Placeholder],
    needed: &[Placeholder],
) -> Result<(), ToolError> {
    let unknown = |word: String| ToolError::Unknown { command, word, known: listed(known) };
    let parts = parts(text).map_err(unknown)?;
    for part in &parts {
        match *part {
            Part::Placeholder { place, .. } if !known.contains(&place) => {
                return Err(unknown(place.word().to_owned()));
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

/// Placeholders in a sentence.
fn listed(all: &[Placeholder]) -> String {
    let words: Vec<String> = all.iter().map(|place| format!("{{{}}}", place.word())).collect();
    match words.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Whether a command has a placeholder, or the environment variable with its value.
fn has(text: &str, wanted: Placeholder) -> bool {
    let is_wanted = |part: &Part| matches!(part, Part::Placeholder { place, .. } if *place == wanted);
    has_variable(text, wanted.variable()) || parts(text).is_ok_and(|parts| parts.iter().any(is_wanted))
}

/// Whether a text has this word, which is no part of a longer name.
fn has_variable(text: &str, name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_of_name) && !text[at + name.len()..].starts_with(is_of_name))
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
            Placeholder::Time => "2026-01-01 00:00:00+00".to_owned(),
            Placeholder::Tablespaces => "/spaces".to_owned(),
        }
    }

    #[test]
    fn placeholders_become_words_of_the_shell_and_other_braces_stay() {
        let tool = |command: &str| Tool::new("t", command, "{backup}{restore}", None).unwrap().backup(&value);
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
            let error = Tool::new("t", backup, restore, None).unwrap_err().to_string();
            assert!(error.contains(says), "{backup} / {restore}: {error}");
        }
        for name in ["", "base", "pitr", "Barman", "a=1", "a:b", "1a", "a,b", &"a".repeat(33)] {
            let error = Tool::new(name, "b {backup}", "r {backup} {restore}", None).unwrap_err();
            assert_eq!(error, ToolError::Name(name.to_owned()));
        }
        assert!(Tool::new("wal-g", "b {backup}", "r $PGRIG_BACKUP {restore}", None).is_ok());
    }

    #[test]
    fn a_restore_maps_tablespaces_if_it_names_their_directory() {
        let tool = |restore: &str| Tool::new("t", "b {backup}", restore, None).unwrap();
        let mapping = tool("r {backup} {restore} --map-all={tablespaces}");
        assert!(
            mapping.maps_tablespaces() && tool("r {backup} {restore} $PGRIG_TABLESPACES").maps_tablespaces()
        );
        assert_eq!(mapping.restore(&value), r"r '/a b/it'\''s' /new --map-all=/spaces");
        assert!(!tool("r {backup} {restore}").maps_tablespaces());
        assert!(Tool::new("t", "b {backup} {tablespaces}", "r {backup} {restore}", None).is_err());
    }

    #[test]
    fn a_restore_to_a_time_needs_wal() {
        let tool = |restore: &str, wal| Tool::new("t", "b {backup}", restore, wal);
        let to_a_time = tool("r {backup} {restore} {time}", Some("w {backup} {data}")).unwrap();
        assert!(to_a_time.recovers() && to_a_time.needs_data());
        assert_eq!(to_a_time.restore(&value), r"r '/a b/it'\''s' /new '2026-01-01 00:00:00+00'");
        assert_eq!(to_a_time.wal(&value).unwrap(), r"w '/a b/it'\''s' ''");
        assert!(tool("r {backup} {restore} \"$PGRIG_TIME\"", Some("w {backup}")).unwrap().recovers());
        assert!(tool("r {backup} {restore} ${PGRIG_TIME}", Some("w {backup}")).unwrap().recovers());
        for other in ["$PGRIG_TIMEOUT", "$MY_PGRIG_TIME", "$PGRIG_TIME_2"] {
            assert!(!Tool::is_to_a_time(&format!("r {{backup}} {{restore}} {other}")), "{other}");
        }
        assert_eq!(tool("r {backup} {restore} {time}", None).unwrap_err(), ToolError::NoWal);
        assert_eq!(tool("r {backup} {restore}", Some("w {backup}")).unwrap_err(), ToolError::NoTime);
        let error = tool("r {backup} {restore} {time}", Some("w {time}")).unwrap_err().to_string();
        assert!(error.contains("the WAL command has the unknown placeholder {time}"), "{error}");
    }
}
