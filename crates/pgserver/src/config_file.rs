//! `data/pgrig.conf`: everything that pgrig sets, in a file of its own that postgresql.conf includes.
//!
//! Settings are not on the server's command line, because ALTER SYSTEM cannot change those. Syntax:
//! PostgreSQL's documentation, "Setting Parameters", and guc-file.l.

use crate::Result;
use crate::account::Account;
use crate::error::OnPath;
use crate::files::replace;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const NAME: &str = "pgrig.conf";
const INCLUDE: &str =
    "\n# settings chosen by pgrig, written at every start\ninclude_if_exists 'pgrig.conf'\n";

/// Appends the include to the postgresql.conf that initdb made, unless it is there.
pub(crate) fn include(data: &Path, owner: &Account) -> Result<()> {
    let path = data.join("postgresql.conf");
    let mut text = fs::read_to_string(&path).on("read", &path)?;
    if text.contains(INCLUDE) {
        return Ok(());
    }
    text.push_str(INCLUDE);
    replace(&path, text.as_bytes(), 0o600, Some(owner))?;
    crate::files::sync(&path)
}

/// Writes the settings; where a name occurs twice, the later value holds.
pub(crate) fn write(data: &Path, settings: &[(String, String)], owner: &Account) -> Result<()> {
    let mut text = "# Written by pgrig at every start: changes here are lost. Use --set.\n".to_owned();
    for (name, value) in settings {
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    replace(&data.join(NAME), text.as_bytes(), 0o600, Some(owner))
}

/// The settings without those that later ones override, in order.
pub(crate) fn effective(settings: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::new();
    for (name, value) in settings {
        // Names are case-insensitive, as in the server.
        kept.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        kept.push((name, value));
    }
    kept
}

/// A string literal of configuration files: quotes are doubled, backslashes escape.
fn quoted(value: &str) -> String {
    let mut text = String::from("'");
    for c in value.chars() {
        match c {
            '\'' => text.push_str("''"),
            '\\' => text.push_str(r"\\"),
            '\n' => text.push_str(r"\n"),
            '\r' => text.push_str(r"\r"),
            c => text.push(c),
        }
    }
    text + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        assert_eq!(quoted("1GB"), "'1GB'");
        assert_eq!(quoted(r"a'b\c"), r"'a''b\\c'");
        assert_eq!(quoted("x'\nfsync = off\n"), r"'x''\nfsync = off\n'");
    }

    #[test]
    fn later_settings_win() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let all = vec![pair("a", "1"), pair("b", "2"), pair("A", "3")];
        assert_eq!(effective(all), [pair("b", "2"), pair("A", "3")]);
    }
}
