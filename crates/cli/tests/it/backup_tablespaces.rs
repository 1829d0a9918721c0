//! `pgrig backup rehearse` of a server with tablespaces, by other tools as the guide says.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use testkit::{Need, assert_says, require};

use crate::backup_tools::{rehearsed, scripted};
use crate::support::Rig;

/// The files below a directory, with the times of their last changes.
fn files(directory: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let changed = path.metadata().unwrap().modified().unwrap();
            found.insert(path, changed);
        }
    }
    found
}

/// The options of a tool.
fn options<'a>(name: &'a str, backup: &'a str, restore: &'a str) -> [&'a str; 6] {
    ["--tool-name", name, "--tool-backup", backup, "--tool-restore", restore]
}

#[test]
fn pgbackrest_and_barman_restore_tablespaces_as_the_guide_says() {
    if ![Need::Clients, Need::PgBackRest, Need::Barman].map(require).iter().all(|is_met| *is_met) {
        return;
    }
    let (rig, directory) = (Rig::new(), testkit::directory());
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    testkit::open_to_all(directory.path());
    let owner = fs::metadata(rig.data()).unwrap().uid();
    for name in ["fast", "so slow"] {
        let place = directory.path().join(name);
        fs::create_dir(&place).unwrap();
        chown(&place, Some(owner), None).unwrap();
        server.execute(&format!("CREATE TABLESPACE \"{name}\" LOCATION '{}'", place.display()));
    }
    server.execute(
        "CREATE TABLE far (i int PRIMARY KEY USING INDEX TABLESPACE \"so slow\", v text) TABLESPACE fast",
    );
    server.execute("INSERT INTO far SELECT i, md5(i::text) FROM generate_series(1, 3000) i");
    // Nothing is written to these files later, no hint bits either.
    server.execute("VACUUM (FREEZE) far");
    server.execute("CHECKPOINT");
    let before = files(directory.path());
    let [[first, second], [third, fourth]] =
        [scripted("rehearse-pgbackrest", "{data}"), scripted("rehearse-barman", "")];
    let [mapped, also_mapped] = [&second, &fourth].map(|restore| format!("{restore} '' {{tablespaces}}"));
    let tools = |restore: &str, other: &str| {
        let more = [options("pgbackrest", &first, restore), options("barman", &third, other)].concat();
        rehearsed(&rig, &server.url, &more)
    };
    let ran = tools(&mapped, &also_mapped);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(
        &ran.stdout,
        &["pgbackrest, barman: each logged table has the same hash", "3,000 rows of 1 table"],
    );
    let refused = tools(&second, &fourth);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert_says(
        &refused.stderr,
        &["pgbackrest, barman: the server has tablespaces", "give {tablespaces} in"],
    );
    assert_eq!(files(directory.path()), before);
}
