//! The fetched PostgreSQL with an `initdb` that copies the data directory of an earlier call.

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pgserver::{Home, Major};

use crate::RELEASES;
use crate::cache::cache;

const INITDB: &str = include_str!("initdb.sh");

/// Directory of the fetched PostgreSQL, as [`cache`] is, whose `initdb` copies a template: a new instance costs a tenth
/// of the CPU time. Tests of `initdb` itself and of downloads use [`cache`].
pub fn templates() -> PathBuf {
    for major in RELEASES {
        let _ = templates_of(major);
    }
    directory()
}

/// The directory in [`templates`] of a release, which is fetched if need be.
pub fn templates_of(major: u16) -> PathBuf {
    static READY: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let release = Major::from_number(major).unwrap();
    let place = directory().join(release.pinned());
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    if ready.get_or_insert_default().insert(major) && !place.exists() {
        make(release, &place);
    }
    place
}

fn directory() -> PathBuf {
    cache().join("templates")
}

/// Links to the fetched files, the other `initdb`, and a place for its templates. The server's account writes there.
fn make(release: Major, place: &Path) {
    let real = cache().join(release.pinned());
    if !real.is_dir() {
        let home = Home::at(&cache().join("home")).unwrap().with_postgresql_cache(&cache());
        pgserver::fetch(&home, Some(release), None, &|_| ()).unwrap();
    }
    fs::create_dir_all(directory()).unwrap();
    fs::set_permissions(directory(), Permissions::from_mode(0o755)).unwrap();
    let new = tempfile::Builder::new().prefix(".new-").tempdir_in(directory()).unwrap();
    let at = |name: &str| new.path().join(name);
    for name in ["bin", "templates"] {
        fs::create_dir(at(name)).unwrap();
    }
    for name in ["lib", "share"] {
        symlink(real.join(name), at(name)).unwrap();
    }
    for program in fs::read_dir(real.join("bin")).unwrap().map(|entry| entry.unwrap()) {
        if program.file_name() != "initdb" {
            symlink(program.path(), at("bin").join(program.file_name())).unwrap();
        }
    }
    let script = INITDB
        .replace("'REAL'", &format!("'{}'", real.join("bin/initdb").display()))
        .replace("'TEMPLATES'", &format!("'{}'", place.join("templates").display()));
    fs::write(at("bin/initdb"), script).unwrap();
    for (name, mode) in [(".", 0o755), ("bin", 0o755), ("bin/initdb", 0o755), ("templates", 0o1777)] {
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    // Another test program may be the first to put it there.
    if fs::rename(new.path(), place).is_ok() {
        let _ = new.keep();
    }
    assert!(place.is_dir(), "{} cannot be made", place.display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use crate::server::{Server, spec};

    fn identifier(server: &Server) -> i64 {
        block_on(async {
            let connection = server.connect("postgres").await;
            let query = "SELECT system_identifier FROM pg_control_system()";
            let row = connection.client.query_one(query, &[]).await.unwrap();
            connection.close().await;
            row.get(0)
        })
    }

    #[test]
    fn instances_of_a_template_are_servers_of_their_own() {
        for major in RELEASES {
            // One of them may be the template.
            let mut servers = [(); 3].map(|()| Server::start(spec(major, &[])));
            let identifiers: HashSet<i64> = servers.iter().map(identifier).collect();
            assert_eq!(identifiers.len(), 3, "{identifiers:?}");
            // WAL has the same identifier, else it would not be replayed.
            for server in &mut servers {
                server.sql("CREATE TABLE kept (a int)");
                server.crash();
                server.sql("SELECT a FROM kept");
                assert!(identifiers.contains(&identifier(server)));
            }
        }
    }
}
