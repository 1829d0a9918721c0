//! Messages of psql and pg_restore: errors, and those of them that name something which no dump contains.

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use super::outcome::Restored;
use crate::run::dump::LATER_SETTING;

/// Beginnings of the text of an error, after the place.
const ERRORS: [&str; 4] = ["ERROR:  ", "FATAL:  ", "PANIC:  ", "error: "];
/// Text of pg_restore between its own words and those of the server.
const QUERY: &str = "could not execute query: ";
/// Last line of pg_restore, which only counts.
const COUNTS: &str = "warning: errors ignored on restore";
/// Longest line of an error that is kept.
const LONGEST: usize = 500;

/// Errors that tell of the scratch server, not of the backup.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// Extensions that the scratch server lacks.
    pub(super) extensions: BTreeSet<String>,
    /// Whether the client programs are too old for the dump.
    pub(super) is_too_new: bool,
    /// Whether the dump, or pg_restore, sets something that the server does not know and a restore does not need.
    pub(super) has_later_setting: bool,
}

impl Messages {
    /// Reads all messages. `superuser` is in the scratch server already, and a dump of all databases creates it again.
    pub(super) fn read(log: &mut dyn BufRead, superuser: &str, restored: &mut Restored) -> io::Result<Self> {
        let mut found = Self::default();
        let (mut roles, mut tablespaces) = (BTreeSet::new(), BTreeSet::new());
        let exists = format!("role \"{superuser}\" already exists");
        let mut line = Vec::new();
        loop {
            line.clear();
            if log.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let Some(error) = error(&text) else { continue };
            if let Some(role) = between(error, "role \"", "\" does not exist") {
                roles.insert(role.to_owned());
            } else if let Some(name) = tablespace(error) {
                tablespaces.insert(name.to_owned());
            } else if let Some(name) = extension(error) {
                found.extensions.insert(name.to_owned());
            } else if is_too_new(error) {
                found.is_too_new = true;
            } else if error == LATER_SETTING {
                found.has_later_setting = true;
            } else if error != exists {
                restored.fail(error.chars().take(LONGEST).collect::<String>());
            }
        }
        restored.missing_roles = roles.into_iter().collect();
        restored.missing_tablespaces = tablespaces.into_iter().collect();
        Ok(found)
    }
}

/// The error in a line, if it has one.
pub(crate) fn error(line: &str) -> Option<&str> {
    let at = ERRORS.iter().filter_map(|begin| Some((line.find(begin)?, begin.len()))).min()?;
    // The text of a statement, which follows an error, is no error.
    let is_message = at.0 == 0 || line.starts_with("pg_restore:") || line.starts_with("psql:");
    if !is_message || line.contains(COUNTS) {
        return None;
    }
    let error = line[at.0 + at.1..].trim();
    let error = error.strip_prefix(QUERY).unwrap_or(error);
    let error = ERRORS.iter().find_map(|begin| error.strip_prefix(begin)).unwrap_or(error);
    (!error.is_empty()).then_some(error)
}

/// Whether pg_restore does not know the archive's format, or psql does not know a command that pg_dump has written.
fn is_too_new(error: &str) -> bool {
    error.starts_with("unsupported version (") && error.ends_with("in file header")
        || ["\\restrict", "\\unrestrict"].iter().any(|name| error == format!("invalid command {name}"))
}

/// The tablespace that is missing.
fn tablespace(error: &str) -> Option<&str> {
    between(error, "tablespace \"", "\" does not exist").or(between(
        error,
        "invalid value for parameter \"default_tablespace\": \"",
        "\"",
    ))
}

/// The extension that the server does not have (`extension.c`).
fn extension(error: &str) -> Option<&str> {
    if let Some(name) = between(error, "extension \"", "\" is not available") {
        return Some(name);
    }
    let file = between(error, "could not open extension control file \"", ".control\"")?;
    file.rsplit('/').next()
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(begin)?;
    rest.find(end).map(|at| &rest[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_from_statements_and_from_things_that_no_dump_contains() {
        let log = r#"pg_restore: while PROCESSING TOC:
pg_restore: from TOC entry 203; 1259 16386 TABLE t shop
pg_restore: error: could not execute query: ERROR:  role "shop ""a""" does not exist
Command was: ALTER TABLE public.t OWNER TO shop;
pg_restore: error: could not execute query: ERROR:  relation "public.x" does not exist
LINE 1: CREATE VIEW v AS SELECT 'ERROR:  text'
psql:dump.sql:12: ERROR:  role "postgres" already exists
psql:dump.sql:14: ERROR:  invalid value for parameter "default_tablespace": "fast"
psql:dump.sql:15: error: invalid command \N
psql:dump.sql:16: NOTICE:  ERROR
pg_restore: error: COPY failed for table "t": ERROR:  missing data for column "b"
pg_restore: error: could not execute query: ERROR:  extension "postgis" is not available
ERROR:  could not open extension control file "/usr/share/postgresql/13/extension/timescaledb.control": No such file or directory
pg_restore: error: could not execute query: ERROR:  unrecognized configuration parameter "transaction_timeout"
Command was: SET transaction_timeout = 0;
pg_restore: error: unsupported version (1.16) in file header
pg_restore: warning: errors ignored on restore: 4
"#;
        let mut restored = Restored::default();
        let found = Messages::read(&mut log.as_bytes(), "postgres", &mut restored).unwrap();
        assert_eq!(restored.missing_roles, [r#"shop ""a"""#]);
        assert!(found.is_too_new && found.has_later_setting);
        assert_eq!(restored.missing_tablespaces, ["fast"]);
        assert_eq!(found.extensions.into_iter().collect::<Vec<_>>(), ["postgis", "timescaledb"]);
        assert_eq!(
            restored.failures,
            [
                "relation \"public.x\" does not exist",
                r"invalid command \N",
                "COPY failed for table \"t\": ERROR:  missing data for column \"b\""
            ]
        );
    }
}
