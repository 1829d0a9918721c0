//! The password file ("34.16 The Password File"): lines `host:port:database:user:password`, the first
//! that matches wins.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A password, and where it came from. Shows only the latter.
#[derive(Clone)]
pub(super) struct Secret {
    pub(super) value: String,
    pub(super) source: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<password from {}>", self.source)
    }
}

/// A password file as read once.
#[derive(Clone, Default)]
pub(super) struct PassFile {
    /// Its path, whether it exists or not.
    pub(super) path: PathBuf,
    lines: Vec<[String; 5]>,
    /// Why it is not used, with the remedy.
    pub(super) problem: Option<String>,
}

impl fmt::Debug for PassFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} lines of {}>", self.lines.len(), self.path.display())
    }
}

impl PassFile {
    /// Reads the file. One that others may read is not used, as in libpq; the warning says so.
    pub(super) fn read(path: &Path) -> (Self, Option<String>) {
        let empty = Self { path: path.to_owned(), ..Self::default() };
        let unused = |problem: String| {
            (Self { problem: Some(problem.clone()), path: path.to_owned(), ..Self::default() }, Some(problem))
        };
        let Ok(metadata) = path.metadata() else {
            return (empty, None);
        };
        let name = path.display();
        if !metadata.is_file() {
            return unused(format!(
                "password file {name} is not a plain file and is ignored; name a plain file in PGPASSFILE"
            ));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return unused(format!(
                "password file {name} has group or world access and is ignored; run: chmod 0600 {name}"
            ));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => (Self { lines: text.lines().filter_map(fields).collect(), ..empty }, None),
            Err(error) => unused(format!("password file {name} cannot be read: {error}")),
        }
    }

    /// The password for a connection. `host` is `localhost` for the default socket directory.
    pub(super) fn find(&self, host: &str, port: u16, dbname: &str, user: &str) -> Option<Secret> {
        let wanted = [host, &port.to_string(), dbname, user];
        let line = self.lines.iter().find(|line| {
            line.iter().zip(wanted).all(|(pattern, value)| pattern == "*" || unescape(pattern) == value)
        })?;
        Some(Secret { value: unescape(&line[4]), source: self.path.display().to_string() })
    }
}

/// The five fields, escapes kept: an escaped `*` is not the wildcard.
fn fields(line: &str) -> Option<[String; 5]> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields: [String; 5] = Default::default();
    let mut index = 0;
    let mut escaped = false;
    for c in line.chars() {
        match c {
            // The password also ends at an unescaped colon: libpq treats the rest as a comment.
            ':' if !escaped && index == 4 => break,
            ':' if !escaped => index += 1,
            c => fields[index].push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    (index == 4).then_some(fields)
}

fn unescape(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(mode: u32, text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn wildcards_escapes_and_order() {
        let text = "#db:*:*:*:comment\n\
                    short:line\n\
                    db:5432:app:me:first\n\
                    db:*:*:me:any\\:port\\\\\n\
                    /run/x:*:*:*:socket\n\
                    \\::*:*:*:colon\n\
                    *:*:*:you:yours:rest\n";
        let cases = [
            (("db", 5432, "app", "me"), Some("first")),
            (("db", 1, "app", "me"), Some("any:port\\")),
            (("/run/x", 1, "a", "b"), Some("socket")),
            ((":", 1, "a", "b"), Some("colon")),
            (("anything", 1, "a", "you"), Some("yours")),
            (("anything", 1, "a", "me"), None),
        ];
        let file = file(0o600, text);
        let (read, warning) = PassFile::read(file.path());
        assert_eq!(warning, None);
        for ((host, port, dbname, user), expected) in cases {
            let found = read.find(host, port, dbname, user);
            assert_eq!(found.as_ref().map(|s| s.value.as_str()), expected, "{host}:{port}");
        }
        let secret = read.find("db", 5432, "app", "me").unwrap();
        assert!(!format!("{secret:?} {read:?}").contains("first"));
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored_aloud() {
        let file = file(0o640, "*:*:*:*:secret\n");
        let (read, warning) = PassFile::read(file.path());
        assert!(read.find("h", 1, "d", "u").is_none());
        assert!(warning.unwrap().contains("chmod 0600"));
        let (_, warning) = PassFile::read(Path::new("/nonexistent/pgpass"));
        assert_eq!(warning, None);
        let (_, warning) = PassFile::read(Path::new("/"));
        assert!(warning.unwrap().contains("not a plain file"));
    }
}
