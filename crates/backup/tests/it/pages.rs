//! Pages with a wrong checksum in a backup without a manifest: those that a restore replaces or makes anew are no damage.

use std::fs;
use std::path::Path;
use std::process::Command;

use backup::check::{Outcome, Verdict};
use testkit::{Server, assert_says, block_on};

use crate::check::{checked, checked_with};
use crate::support::{by_hand, server};

/// From PostgreSQL 18 on, servers have checksums by default.
const RELEASE: u16 = 18;
const PAGE: usize = 8192;
/// All rows of the first table are frozen, so that no read changes a page.
const TABLES: &str = "
    CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 2000) i;
    CREATE TABLE m AS SELECT i, md5(i::text) AS v FROM generate_series(1, 2000) i;
    DELETE FROM m WHERE i % 50 = 0;
    CREATE UNLOGGED TABLE u AS SELECT i FROM generate_series(1, 2000) i";
/// Changes all rows of a page.
const CHANGE: &str = "UPDATE t SET v = 'changed' WHERE ctid >= '(2,0)' AND ctid < '(3,0)'";

/// The path of a table's file below the data directory.
fn file_of(server: &Server, table: &str) -> String {
    block_on(async {
        let connection = server.connect("postgres").await;
        let query = format!("SELECT pg_relation_filepath('{table}')");
        let path = connection.client.query_one(&query, &[]).await.unwrap().get(0);
        connection.close().await;
        path
    })
}

/// Flips a bit in the second half of a page.
fn flip(file: &Path, page: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[page * PAGE + 8000] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn has_gap(found: &Outcome, says: &str) -> bool {
    found.gaps.iter().any(|gap| gap.part.contains(says))
}

#[test]
fn a_wrong_page_is_damage_unless_a_restore_replaces_it() {
    let mut server = server(RELEASE);
    let directory = testkit::directory();
    let backup = directory.path().join("backup");
    server.sql(TABLES);
    server.sql("VACUUM (FREEZE) t");
    server.sql("VACUUM m");
    // Only a shutdown writes unlogged tables.
    server.restart_with(&[]);
    by_hand::back_up(&server, &backup, &[CHANGE]);
    let [table, with_maps, unlogged] = ["t", "m", "u"].map(|name| file_of(&server, name));
    let whole = checked(&backup).unwrap();
    assert_eq!(whole.verdict(), Verdict::NoDamageFound, "{whole:#?}");

    // The page that changed was torn, a restore empties the unlogged table, and a server makes the maps anew.
    flip(&backup.join(&table), 2);
    flip(&backup.join(&unlogged), 1);
    for map in ["_fsm", "_vm"] {
        flip(&backup.join(format!("{with_maps}{map}")), 0);
    }
    let found = checked(&backup).unwrap();
    assert_eq!((found.verdict(), &found.gaps), (Verdict::NoDamageFound, &whole.gaps), "{found:#?}");
    flip(&backup.join(&table), 4);
    let found = checked(&backup).unwrap();
    assert_eq!(found.damages.len(), 1, "{found:#?}");
    let said = format!("{table}, byte 32768: the checksum of the page that begins there is wrong");
    assert_says(&found.damages[0].to_string(), &[&said]);
    flip(&backup.join(&table), 4);

    // Only the WAL tells of the page.
    let (own, elsewhere) = (backup.join("pg_wal"), directory.path().join("wal"));
    fs::rename(&own, &elsewhere).unwrap();
    fs::create_dir(&own).unwrap();
    let found = checked(&backup).unwrap();
    assert_eq!(found.damages.len(), 1, "{found:#?}");
    assert_says(&found.damages[0].to_string(), &["pg_wal: segment ", "with which a restore begins"]);
    assert!(has_gap(&found, "1 page with a wrong checksum, unless the WAL of the backup replaces it"));
    let found = checked_with(&backup, Some(&elsewhere)).unwrap();
    assert_eq!(found.verdict(), Verdict::NoDamageFound, "{found:#?}");
    assert!(!has_gap(&found, "with a wrong checksum"), "{found:#?}");
}

/// GNU tar stores the files of a directory in any order. That the page is damaged shows only once all WAL of the backup is read.
#[test]
fn segments_in_a_tar_file_come_in_any_order() {
    let (server, directory) = (server(RELEASE), testkit::directory());
    let (backup, tar) = (directory.path().join("backup"), directory.path().join("whole.tar"));
    server.sql(TABLES);
    server.sql("VACUUM (FREEZE) t");
    by_hand::back_up(&server, &backup, &[CHANGE, "SELECT pg_switch_wal()"]);
    let table = file_of(&server, "t");
    flip(&backup.join(&table), 4);
    let entries = fs::read_dir(backup.join("pg_wal")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut segments: Vec<String> =
        names.filter(|name| name.len() == 24).map(|name| format!("./pg_wal/{name}")).collect();
    segments.sort_unstable();
    segments.reverse();
    let run = |option: &str, members: &[String]| {
        let mut command = Command::new("tar");
        command.arg("--directory").arg(&backup).arg(option).arg("--file").arg(&tar).args(members);
        assert!(command.status().unwrap().success());
    };
    run("--create", &["--exclude=./pg_wal/0*".to_owned(), ".".to_owned()]);
    run("--append", &segments);
    let found = checked(&tar).unwrap();
    assert_eq!(found.damages.len(), 1, "{found:#?}");
    assert_says(&found.damages[0].to_string(), &[&format!("{table}, byte 32768")]);
}
