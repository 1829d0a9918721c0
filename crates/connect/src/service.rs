//! The connection service file ("34.17 The Connection Service File"): named sets of parameters.

use std::path::{Path, PathBuf};

use super::error::ConnectError;
use super::params::{Origin, Params};

/// Directories in which packages of libpq look when PGSYSCONFDIR is unset: those compiled in by Debian and Red Hat.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql"];

/// The files to search, in order: the user's (`PGSERVICEFILE` or `~/.pg_service.conf`), the system's.
pub(super) fn files(user_file: Option<PathBuf>, sysconfdir: Option<String>) -> Vec<PathBuf> {
    let system =
        sysconfdir.map_or_else(|| SYSTEM_DIRECTORIES.map(PathBuf::from).to_vec(), |dir| vec![dir.into()]);
    user_file.into_iter().chain(system.into_iter().map(|dir| dir.join("pg_service.conf"))).collect()
}

/// Fills the unset parameters of `params` from the first file that defines `name`.
pub(super) fn apply(
    params: &mut Params,
    name: &str,
    origin: &Origin,
    files: &[PathBuf],
) -> Result<(), ConnectError> {
    for file in files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(fault(file, None, &format!("cannot be read: {error}"))),
        };
        if let Some(pairs) = section(&text, name).map_err(|(line, what)| fault(file, Some(line), what))? {
            let origin = Origin::Service { name: name.to_owned(), file: file.clone() };
            return pairs.into_iter().try_for_each(|(keyword, value)| {
                params.put_weaker(keyword, value.to_owned(), origin.clone())
            });
        }
    }
    Err(ConnectError::UnknownService {
        service: name.to_owned(),
        origin: origin.to_string(),
        files: files.to_vec(),
    })
}

fn fault(file: &Path, line: Option<usize>, what: &str) -> ConnectError {
    ConnectError::ServiceFile { file: file.to_owned(), line, what: what.to_owned() }
}

type Section<'t> = Vec<(&'t str, &'t str)>;

/// The section's lines, or the error of a line. Lines of other sections are not checked.
fn section<'t>(text: &'t str, name: &str) -> Result<Option<Section<'t>>, (usize, &'static str)> {
    let mut found: Option<Section<'t>> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if title.split(']').next() == Some(name) {
                found = Some(Vec::new());
            }
            continue;
        }
        let Some(pairs) = &mut found else { continue };
        match line.split_once('=') {
            None if line.starts_with("ldap") => return Err((index + 1, "LDAP lookup is not supported")),
            None => return Err((index + 1, "expected keyword=value")),
            Some(("service" | "servicefile", _)) => {
                return Err((
                    index + 1,
                    "a service section must not contain service or servicefile: remove the line",
                ));
            }
            // A value is taken as it stands: there is no quoting in this file.
            Some((keyword, value)) => pairs.push((keyword, value)),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example() {
        let text = "# comment\n[mydb]\nhost=somehost\nport=5433\nuser=admin\n\n[other]\nhost=x y\n";
        let mydb = vec![("host", "somehost"), ("port", "5433"), ("user", "admin")];
        assert_eq!(section(text, "mydb"), Ok(Some(mydb)));
        assert_eq!(section(text, "other"), Ok(Some(vec![("host", "x y")])));
        assert_eq!(section(text, "none"), Ok(None));
        assert_eq!(
            section("[a]\nservice=b", "a"),
            Err((2, "a service section must not contain service or servicefile: remove the line"))
        );
        assert_eq!(section("[a]\n\nhost", "a"), Err((3, "expected keyword=value")));
        assert_eq!(section("[b]\nhost\n[a]\nport=1", "a"), Ok(Some(vec![("port", "1")])));
    }
}
