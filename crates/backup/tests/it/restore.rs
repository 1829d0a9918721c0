//! Backups that are checked by restoring them.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU64;

use backup::check::restore::{Request, RestoreError, Restored, restore};
use backup::check::{self, Verdict};
use pgserver::Home;
use testkit::{CLIENTS_RELEASE, Need, assert_says, block_on, clients, require, templates};

use crate::support::made::{Made, files};
use crate::support::{assert_nothing_is_left, by_hand, programs_with, server};

/// Restores a backup in which the check finds no damage.
fn restored(home: &Path, path: &Path, wal: Option<&Path>) -> Result<Restored, RestoreError> {
    restored_as(home, path, wal, |_| ())
}

fn restored_as(
    home: &Path,
    path: &Path,
    wal: Option<&Path>,
    change: impl FnOnce(&mut Request<'_>),
) -> Result<Restored, RestoreError> {
    let plan = check::plan(&check::Request { path: path.to_owned(), wal: wal.map(Path::to_owned) }).unwrap();
    let found = check::check(&plan, &AtomicU64::new(0)).unwrap();
    assert_ne!(found.verdict(), Verdict::Damaged, "{found:#?}");
    let home = Home::at(home).unwrap().with_postgresql_cache(&templates());
    let mut request =
        Request { home: &home, bin: None, version: None, superuser: "postgres".to_owned(), cores: 2 };
    change(&mut request);
    let never = std::future::pending();
    let done = block_on(restore(&plan, &found, &request, &|_| (), never));
    assert_nothing_is_left(home.root());
    done
}

#[test]
fn each_kind_of_backup_is_restored_and_read() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let home = testkit::directory();
    let all = made.all();
    let some = [
        "plain.sql.gz",
        "cluster.sql.zst",
        "custom.dump",
        "custom.dump.zst",
        "tar.tar",
        "directory",
        "base",
        "base-tar",
        "one.tar",
    ];
    for (name, path, _) in all.iter().filter(|(name, _, _)| some.contains(name)) {
        let found = restored(home.path(), path, None).unwrap();
        assert_eq!(found.failures, Vec::<String>::new(), "{name}");
        assert_eq!((found.tables, found.rows, found.constraints), (5, 9001, 1), "{name}: {found:#?}");
        assert_eq!((found.databases, &found.missing_roles), (1, &Vec::new()), "{name}");
        assert!(found.indexes > Some(50) && found.server.starts_with("13"), "{name}: {found:#?}");
    }
    let base = |name: &str| &all.iter().find(|(one, _, _)| *one == name).unwrap().1;
    // A base backup without WAL, which another directory has.
    let archive = made.path("archive");
    fs::rename(base("base").join("pg_wal"), &archive).unwrap();
    fs::create_dir(base("base").join("pg_wal")).unwrap();
    let found = restored(home.path(), base("base"), Some(&archive)).unwrap();
    assert!(found.is_sound() && found.rows == 9001, "{found:#?}");
    fs::remove_file(base("base").join("backup_manifest")).unwrap();
    let refused = restored(home.path(), base("base"), Some(&archive)).unwrap_err();
    assert_says(&refused.to_string(), &["has no backup_manifest", "leave out --wal-directory"]);

    let refused = restored_as(home.path(), base("one.tar"), None, |request| request.version = Some(14));
    assert_says(
        &refused.unwrap_err().to_string(),
        &["is a base backup of PostgreSQL 13", "leave out --pg-version 14"],
    );
    let refused = restored_as(home.path(), base("one.tar"), None, |request| {
        "nobody".clone_into(&mut request.superuser);
    });
    assert_says(&refused.unwrap_err().to_string(), &["no superuser \"nobody\"", "--superuser NAME"]);
}

/// pgrig copies its files, and starts a server on them.
#[test]
fn a_base_backup_needs_no_client_programs_of_its_version() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::by(None, 13);
    let home = testkit::directory();
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    let dump = made.make("one.dump", "pg_dump --format=custom --file=FILE postgres");
    let bin = programs_with(made.directory.path(), 13, "pg_dump", "echo 'pg_dump (PostgreSQL) 12.22'\n");
    let found = restored_as(home.path(), &base, None, |request| request.bin = Some(bin.clone())).unwrap();
    assert!(found.is_sound() && found.rows == 9001, "{found:#?}");
    let refused = restored_as(home.path(), &dump, None, |request| request.bin = Some(bin.clone()));
    assert_says(
        &refused.unwrap_err().to_string(),
        &["pg_dump 12.22", "client programs of version 13 or later"],
    );
}

/// The log of the server is deleted with it.
#[test]
fn a_server_that_does_not_start_is_an_error_with_the_reason() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let home = testkit::directory();
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast --no-manifest");
    for (segment, size) in files(&base.join("pg_wal")) {
        fs::write(segment, vec![0; usize::try_from(size).unwrap()]).unwrap();
    }
    let found = restored(home.path(), &base, None).unwrap();
    let [failure] = &found.failures[..] else { panic!("{found:#?}") };
    assert_says(failure, &["the server does not start: could not locate required checkpoint record"]);
    assert!(!failure.contains("(log: ") && !failure.contains("read its log"), "{failure}");
}

/// Data that violate a constraint, an index whose function has changed, an owner.
const UNSOUND: &str = r#"
    CREATE ROLE "App" NOLOGIN;
    CREATE TABLE one (id int PRIMARY KEY);
    CREATE TABLE many (id int CONSTRAINT of_one REFERENCES one);
    ALTER TABLE many OWNER TO "App";
    CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
    INSERT INTO one SELECT i FROM generate_series(1, 300) i;
    CREATE INDEX by_f ON one (f(id));
    CREATE OR REPLACE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT -$1';
    SET session_replication_role = replica;
    INSERT INTO many VALUES (1), (4711);
"#;

#[test]
fn errors_of_a_restore_and_damage_in_it_are_found() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let home = testkit::directory();
    block_on(async {
        let connection = made.server.connect("postgres").await;
        connection.client.batch_execute(UNSOUND).await.unwrap();
        connection.close().await;
    });
    let dump = made.make("unsound.dump", "pg_dump --format=custom --file=FILE postgres");
    let plain = made.make("unsound.sql", "pg_dump --file=FILE postgres");
    for path in [&dump, &plain] {
        let found = restored(home.path(), path, None).unwrap();
        let [failure] = &found.failures[..] else { panic!("{found:#?}") };
        assert_says(failure, &["violates foreign key constraint", "of_one"]);
        assert_eq!(found.missing_roles, ["App"]);
        assert_eq!((found.rows, found.is_sound()), (9001 + 300 + 2, false), "{found:#?}");
    }
    let base = made.make("unsound", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    let found = restored(home.path(), &base, None).unwrap();
    let [constraint, index] = &found.failures[..] else { panic!("{found:#?}") };
    assert_says(constraint, &["constraint of_one of table", "\"many\" does not hold"]);
    assert_says(index, &["index by_f of table one is damaged", "lacks matching index tuple"]);

    let text = fs::read_to_string(&plain).unwrap();
    let changed = |statement: &str| {
        let end = "--\n-- PostgreSQL database dump complete";
        let path = made.path("changed.sql");
        fs::write(&path, text.replace(end, &format!("{statement}\n{end}"))).unwrap();
        restored(home.path(), &path, None)
    };
    let refused = changed("CREATE EXTENSION postgis;").unwrap_err();
    assert_says(
        &refused.to_string(),
        &["the extension postgis", "give --bin DIR", "the cause of 1 other error"],
    );
    let refused = changed("CREATE TABLESPACE fast LOCATION '/fast';").unwrap_err();
    assert_says(&refused.to_string(), &["has tablespaces", "by hand"]);
}

/// Settings of a database that name a library which the scratch server lacks.
#[test]
fn libraries_of_the_original_are_not_loaded() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let home = testkit::directory();
    made.server.sql("CREATE ROLE plain LOGIN");
    made.server.sql("ALTER DATABASE postgres SET session_preload_libraries = 'pgrig_absent'");
    let cluster = made.path("cluster.sql");
    let mut dump = made.command("pg_dumpall");
    dump.env("PGOPTIONS", "-c session_preload_libraries=").arg("--file").arg(&cluster);
    assert!(dump.status().unwrap().success());
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    for path in [&cluster, &base] {
        let found = restored(home.path(), path, None).unwrap();
        assert!(found.is_sound() && found.rows == 9001, "{}: {found:#?}", path.display());
    }
    let refused = restored_as(home.path(), &base, None, |request| "plain".clone_into(&mut request.superuser));
    assert_says(&refused.unwrap_err().to_string(), &["no superuser \"plain\"", "--superuser NAME"]);
}

/// The jobs of pg_restore write their errors at the same time.
#[test]
fn missing_roles_of_several_jobs_are_no_errors() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let home = testkit::directory();
    made.server.sql(
        "DO $$ BEGIN
         FOR i IN 10 .. 99 LOOP
            EXECUTE format('CREATE ROLE app_%s', i);
         END LOOP;
         FOR i IN 10 .. 99 LOOP
            EXECUTE format('CREATE TABLE granted_%s (id int)', i);
            EXECUTE format('ALTER TABLE granted_%s OWNER TO app_%s', i, i);
            EXECUTE format('GRANT SELECT ON granted_%s TO app_%s', i, 109 - i);
         END LOOP;
         END $$",
    );
    let dump = made.make("granted.dump", "pg_dump --format=custom --file=FILE postgres");
    let found = restored_as(home.path(), &dump, None, |request| request.cores = 8).unwrap();
    assert!(found.is_sound(), "{found:#?}");
    let roles: Vec<String> = (10..100).map(|number| format!("app_{number}")).collect();
    assert_eq!((found.missing_roles, found.tables), (roles, 95));
}

/// A dump by newer programs sets a parameter that an earlier server does not know.
#[test]
fn a_dump_by_newer_programs_is_restored() {
    if !require(Need::Clients17) {
        return;
    }
    let made = Made::by(Some(&clients()), 13);
    let home = testkit::directory();
    for (name, format) in [("new.sql", "plain"), ("new.dump", "custom"), ("new", "directory")] {
        let path = made.make(name, &format!("pg_dump --format={format} --file=FILE postgres"));
        let found = restored_as(home.path(), &path, None, |request| request.bin = Some(clients())).unwrap();
        assert!(found.is_sound() && found.rows == 9001, "{name} by {CLIENTS_RELEASE}: {found:#?}");
    }
}

/// Its locks are there again in the restored server, and nothing ends them.
#[test]
fn a_table_that_a_prepared_transaction_locks_is_an_error_with_the_remedy() {
    if !require(Need::Clients) {
        return;
    }
    let mut made = Made::new();
    made.server.restart_with(&[("max_prepared_transactions", "5")]);
    let home = testkit::directory();
    block_on(async {
        let connection = made.server.connect("postgres").await;
        let statements = [
            "CREATE TABLE checked (id int CHECK (id > 0))",
            "BEGIN",
            "LOCK TABLE two",
            "LOCK TABLE checked IN SHARE MODE",
            "PREPARE TRANSACTION 'it''s'",
        ];
        for sql in statements {
            connection.client.batch_execute(sql).await.unwrap();
        }
        connection.close().await;
    });
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    let found = restored(home.path(), &base, None).unwrap();
    let [failure] = &found.failures[..] else { panic!("{found:#?}") };
    assert_says(
        failure,
        &[
            "table \"public\".\"two\"",
            "constraint checked_id_check of table \"public\".\"checked\"",
            "'it''s'",
            "ROLLBACK PREPARED 'it''s'",
            "make a new backup",
        ],
    );
    // Neither the locked table nor the constraint that waits for its table.
    assert_eq!((found.tables, found.constraints), (5, 1), "{found:#?}");
}

/// An index that another version of the library has sorted is not called damaged.
#[test]
fn indexes_by_a_collation_of_another_version_are_left_out() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let home = testkit::directory();
    block_on(async {
        let connection = made.server.connect("postgres").await;
        let schema = "CREATE COLLATION old FROM \"C\"; CREATE INDEX by_old ON three (v COLLATE old); \
                      UPDATE pg_collation SET collversion = '0.1' WHERE collname = 'old'";
        connection.client.batch_execute(schema).await.unwrap();
        connection.close().await;
    });
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    let found = restored(home.path(), &base, None).unwrap();
    assert!(found.is_sound() && found.indexes > Some(50), "{found:#?}");
    assert_eq!(found.other_order, 1, "{found:#?}");
}

/// A server on a copy with links would write to the original's WAL or tablespaces.
#[test]
fn a_tar_file_with_links_is_not_restored() {
    if !require(Need::Clients) {
        return;
    }
    let mut made = Made::new();
    let home = testkit::directory();
    // A copy of a server that was stopped needs no backup_label.
    let (base, data) = (made.path("base"), made.server.data_dir());
    made.server.stop();
    let copied = Command::new("cp").arg("-a").arg(&data).arg(&base).status();
    assert!(copied.unwrap().success());
    let elsewhere = made.path("elsewhere");
    fs::rename(base.join("pg_wal"), &elsewhere).unwrap();
    symlink(&elsewhere, base.join("pg_wal")).unwrap();
    let tar = |name: &str| {
        let path = made.path(name);
        let made = Command::new("tar").arg("-cf").arg(&path).arg("-C").arg(&base).arg(".").status();
        assert!(made.unwrap().success());
        path
    };
    let before = fs::read_dir(&elsewhere).unwrap().count();
    let with_wal_elsewhere = tar("links.tar");
    let plan = check::plan(&check::Request { path: with_wal_elsewhere.clone(), wal: None }).unwrap();
    let found = check::check(&plan, &AtomicU64::new(0)).unwrap();
    assert!(
        found.gaps.iter().any(|gap| gap.part.starts_with("pg_wal: a tar file has only the link")),
        "{found:#?}"
    );
    let refused = restored(home.path(), &with_wal_elsewhere, None).unwrap_err();
    assert_says(&refused.to_string(), &["has the link pg_wal", "Unpack the backup"]);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), before);

    fs::remove_file(base.join("pg_wal")).unwrap();
    fs::rename(&elsewhere, base.join("pg_wal")).unwrap();
    symlink("/nowhere", base.join("pg_tblspc/16384")).unwrap();
    let refused = restored(home.path(), &tar("tablespace.tar"), None).unwrap_err();
    assert_says(&refused.to_string(), &["has tablespaces"]);
}

#[test]
fn base_backups_with_tablespaces_are_restored_within_their_copy() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let (home, place) = (testkit::directory(), testkit::directory());
    testkit::open_to_all(place.path());
    let owner = fs::metadata(made.server.data_dir()).unwrap().uid();
    chown(place.path(), Some(owner), None).unwrap();
    let old = place.path().display();
    made.server.sql(&format!(
        "CREATE TABLESPACE fast LOCATION '{old}'; \
         CREATE TABLE far TABLESPACE fast AS SELECT i FROM generate_series(1, 700) i; CHECKPOINT"
    ));
    let new = made.path("moved");
    let plain =
        format!("pg_basebackup --pgdata=FILE --checkpoint=fast --tablespace-mapping={old}={}", new.display());
    let before = files(place.path());
    let plain = made.make("base", &plain);
    let tar = made.make("base-tar", "pg_basebackup --pgdata=FILE --checkpoint=fast --format=tar --gzip");
    let copied = files(&new);
    assert_eq!(copied.len(), before.len());
    let rows: Vec<u64> = [plain, tar]
        .iter()
        .map(|backup| {
            let found = restored(home.path(), backup, None).unwrap();
            assert!(found.is_sound(), "{found:#?}");
            found.rows
        })
        .collect();
    assert_eq!(rows, [9001 + 700; 2]);
    assert_eq!((files(place.path()), files(&new)), (before, copied));
}

/// The replay would create it in the directory of the original, which may be on this machine.
#[test]
fn a_base_backup_whose_wal_creates_a_tablespace_is_not_restored() {
    let (server, directory, home) = (server(18), testkit::directory(), testkit::directory());
    let backup = directory.path().join("backup");
    let statements =
        ["SET allow_in_place_tablespaces = on", "CREATE TABLESPACE late LOCATION ''", "DROP TABLESPACE late"];
    by_hand::back_up(&server, &backup, &statements);
    let refused = restored(home.path(), &backup, None).unwrap_err();
    assert!(matches!(refused, RestoreError::NewTablespace { .. }), "{refused}");
}
