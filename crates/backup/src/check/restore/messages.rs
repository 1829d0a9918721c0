//! Messages of psql and pg_restore: errors, and those of them that name something which no dump contains.

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use super::outcome::Restored;
use crate::run::dump::LATER_SETTING;

/// Beginnings of the text of an error, after the place.
const ERRORS: [&str; 4] = ["ERROR:  ", "FATAL:  ", "PANIC:  ", OF_PROGRAM];
const OF_PROGRAM: &str = "error: ";
/// Text of pg_restore between its own words and those of the server.
const QUERY: &str = "could not execute query: ";
/// Begins another error of pg_restore.
const COPY: &str = "COPY failed for table \"";
/// Last line of pg_restore, which only counts.
const COUNTS: &str = "errors ignored on restore: ";
/// The parts with which a line of pg_restore begins. It writes each of them by itself, and the text after them at once (PostgreSQL's
/// `logging.c`), so the parts of several jobs mingle.
const PARTS: [&str; 6] = ["pg_restore:", "error:", "warning:", "detail:", "hint:", " "];
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
    /// Errors that were read, and those that pg_restore counts: one for each object of a job.
    errors: u64,
    ignored: u64,
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
            found.ignored = ignored(&text).unwrap_or(found.ignored);
            let Some(error) = error(&text) else { continue };
            found.errors += 1;
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

    /// The number of errors of pg_restore that could not be read: jobs tore each other's lines.
    pub(super) fn unread(&self) -> u64 {
        self.ignored.saturating_sub(self.errors)
    }
}

/// The error in a line, if it has one.
pub(crate) fn error(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let text = without_parts(line);
    let error = if let Some(error) = of_query(line) {
        error
    } else if text.starts_with(COPY) {
        text
    } else {
        of_program(line)?
    };
    (!error.is_empty()).then_some(error)
}

/// The number of errors in the last line of pg_restore.
pub(crate) fn ignored(line: &str) -> Option<u64> {
    let (_, number) = line.split_once(COUNTS)?;
    number.trim().parse().ok().filter(|_| line.starts_with("pg_restore:"))
}

/// The server's error in a line of pg_restore, wherever it begins.
fn of_query(line: &str) -> Option<&str> {
    let (_, text) = line.split_once(QUERY)?;
    ERRORS.iter().find_map(|begin| text.strip_prefix(begin))
}

/// The error in a line that no other one has torn.
fn of_program(line: &str) -> Option<&str> {
    let (at, length) = ERRORS.iter().filter_map(|begin| Some((line.find(begin)?, begin.len()))).min()?;
    let (before, error) = (&line[..at], &line[at + length..]);
    if !line.starts_with("psql:") {
        let is_torn = line[at..].starts_with(OF_PROGRAM) && without_parts(error).len() < error.len();
        // The text of a statement, which follows an error, is no error.
        if is_torn || !without_parts(before).is_empty() {
            return None;
        }
    }
    let error = error.trim();
    let error = error.strip_prefix(QUERY).unwrap_or(error);
    Some(ERRORS.iter().find_map(|begin| error.strip_prefix(begin)).unwrap_or(error))
}

/// The text of a line of pg_restore.
fn without_parts(mut line: &str) -> &str {
    while let Some(rest) = PARTS.iter().find_map(|part| line.strip_prefix(part)) {
        line = rest;
    }
    line
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
    /// Lines of jobs that wrote at the same time.
    #[test]
    fn torn_lines_have_their_errors() {
        let app = Some(r#"role "app" does not exist"#);
        for line in [
            r#"pg_restore:could not execute query: ERROR:  role "app" does not exist"#,
            r#"pg_restore:pg_restore:  error: error: could not execute query: ERROR:  role "app" does not exist"#,
            r#"could not execute query: ERROR:  role "app" does not exist"#,
            r#" error: could not execute query: ERROR:  role "app" does not exist"#,
            r#"pg_restore: error: pg_restore:could not execute query: ERROR:  role "app" does not exist"#,
            r#"Command was: GRANT ALL ON t TO b;pg_restore: error: could not execute query: ERROR:  role "app" does not exist"#,
        ] {
            assert_eq!(error(line), app, "{line}");
        }
        let copy = "COPY failed for table \"t\": ERROR:  missing data";
        for begin in ["pg_restore: error: ", "pg_restore:pg_restore:  error: error: ", "", " error: "] {
            assert_eq!(error(&format!("{begin}{copy}")), Some(copy), "{begin}");
        }
        for line in [
            "pg_restore: error: pg_restore: from TOC entry 203; 1259 16386 TABLE t shop",
            "error: pg_restore: while PROCESSING TOC:",
            "pg_restore: from TOC entry 7; 0 0 COMMENT error: shop",
            "pg_restore: warning: errors ignored on restore: 4",
            "    RAISE NOTICE 'ERROR:  text';",
        ] {
            assert_eq!(error(line), None, "{line}");
        }
    }

    /// A job counts an object once, whatever the number of its errors is.
    #[test]
    fn fewer_errors_than_pg_restore_counts_are_no_verdict() {
        let unread = |log: String| {
            Messages::read(&mut log.as_bytes(), "postgres", &mut Restored::default()).unwrap().unread()
        };
        let error = "pg_restore: error: could not execute query: ERROR:  x\n";
        let end = "pg_restore: warning: errors ignored on restore: ";
        assert_eq!(unread(format!("{error}{error}{end}2\n")), 0);
        assert_eq!(unread(format!("{error}{error}{end}1\n")), 0);
        assert_eq!(unread(format!("{error}pg_restore: error: pg_restore: error: \n{end}2\n")), 1);
        assert_eq!(unread("psql:a.sql:1: ERROR:  x\n".to_owned()), 0);
    }
}
