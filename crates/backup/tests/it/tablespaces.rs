//! Tablespaces: base backups have their files, and a restored server writes only to its own directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use backup::{BackupError, Outcome, Request, Site, Tool, Way, Witness};
use pgserver::Home;
use testkit::{CLIENTS_RELEASE, Need, Server, assert_says, block_on, clients, require, spec, templates};

use crate::support::made::files;
use crate::support::{Unwatched, assert_nothing_is_left, rehearsed, server, ways};

const SCHEMA: &str = "
    CREATE TABLE near AS SELECT i, md5(i::text) AS v FROM generate_series(1, 1000) i;
    CREATE TABLE far (i int PRIMARY KEY USING INDEX TABLESPACE slow, v text) TABLESPACE fast;
    INSERT INTO far SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
";
const ROWS: u64 = 4000;

/// Creates two tablespaces below this directory, and a table in them. One path has an equals sign.
async fn fill(server: &Server, directory: &Path) {
    testkit::open_to_all(directory);
    let owner = fs::metadata(server.data_dir()).unwrap().uid();
    let connection = server.connect("postgres").await;
    for (name, place) in [("fast", "fast"), ("slow", "a=slow")] {
        let place = directory.join(place);
        fs::create_dir(&place).unwrap();
        chown(&place, Some(owner), None).unwrap();
        let create = format!("CREATE TABLESPACE {name} LOCATION '{}'", place.display());
        connection.client.batch_execute(&create).await.unwrap();
    }
    connection.client.batch_execute(SCHEMA).await.unwrap();
    // Nothing is written to these files later.
    connection.client.batch_execute("CHECKPOINT").await.unwrap();
    connection.close().await;
}

fn assert_restored(outcome: &Outcome, number: usize) {
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!(outcome.trials.len(), number, "{outcome:#?}");
    for trial in &outcome.trials {
        let witness = if trial.way.is_base() { Witness::Unchanged } else { Witness::SameSnapshot };
        assert_eq!((trial.verified.witness, trial.verified.rows), (witness, ROWS), "{trial:#?}");
    }
}

#[test]
fn base_backups_are_restored_with_their_tablespaces() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(13), testkit::directory());
    block_on(async {
        fill(&server, directory.path()).await;
        let before = files(directory.path());
        let names = ["custom:none", "base", "base-tar:none", "base-tar:client-gzip=1"];
        let outcome = rehearsed(&server, &server.target("postgres"), &names).await.unwrap();
        assert_restored(&outcome, names.len());
        let size = |way: &str| outcome.trials.iter().find(|trial| trial.way.to_string() == way).unwrap().size;
        let (plain, tar) = (size("base"), size("base-tar:none"));
        assert!(plain.abs_diff(tar) < plain / 10, "the same files: {plain} {tar}");
        // No other server has written there.
        assert_eq!(files(directory.path()), before);
    });
}

#[test]
fn incremental_backups_are_combined_with_their_tablespaces() {
    if !require(Need::Clients17) {
        return;
    }
    let settings =
        [("wal_level", "replica"), ("max_wal_senders", "4"), ("autovacuum", "off"), ("summarize_wal", "on")];
    let (server, directory) = (Server::start(spec(CLIENTS_RELEASE, &settings)), testkit::directory());
    block_on(fill(&server, directory.path()));
    let before = files(directory.path());
    let target = server.target("postgres");
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let version_num = u32::from(CLIENTS_RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request = Request {
        ways: ways(&["incremental", "base"]),
        trials: 1,
        bin: Some(clients()),
        probe: false,
        network: true,
    };
    let mut observer = Unwatched;
    let rehearsed = backup::rehearse(&site, &request, &mut observer, std::future::pending());
    let outcome = block_on(Box::pin(rehearsed)).unwrap();
    assert_nothing_is_left(home.root());
    assert_restored(&outcome, 2);
    for trial in &outcome.trials {
        assert!(trial.network.is_some(), "{:#?}", outcome.notes);
        assert_eq!(trial.verified.other_databases, ["template1"], "{trial:#?}");
    }
    assert_eq!(files(directory.path()), before);
}

/// Rehearses a tool.
fn rehearsed_by_tool(server: &Server, backup: &str, restore: &str) -> Result<Outcome, BackupError> {
    let tool = Tool::new("copy", backup, restore, None).unwrap();
    let target = server.target("postgres");
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let site = Site {
        target: &target,
        version_num: 130_000,
        home: &home,
        pg_bin: None,
        data: None,
        own: false,
        cores: 2,
    };
    let request =
        Request { ways: vec![Way::of_tool(tool)], trials: 1, bin: None, probe: false, network: false };
    let mut observer = Unwatched;
    let rehearsed = backup::rehearse(&site, &request, &mut observer, std::future::pending());
    let outcome = block_on(Box::pin(rehearsed));
    assert_nothing_is_left(home.root());
    outcome
}

/// A tool restores tablespaces to the directories of the original.
#[test]
fn other_tools_are_refused_with_the_remedy() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(13), testkit::directory());
    block_on(fill(&server, directory.path()));
    let refused =
        rehearsed_by_tool(&server, "pg_basebackup -D {backup}", "cp -a {backup}/. {restore}").unwrap_err();
    assert!(matches!(refused, BackupError::NoWay(_)), "{refused}");
    assert_says(
        &refused.to_string(),
        &[
            "copy: the server has tablespaces",
            "give {tablespaces} in --tool-restore",
            "--way base or base-tar",
        ],
    );
}

#[test]
fn tablespaces_that_a_tool_maps_are_restored_and_the_original_s_stay() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(13), testkit::directory());
    block_on(fill(&server, directory.path()));
    let before = files(directory.path());
    let at = directory.path().display();
    let backup = format!(
        "pg_basebackup --checkpoint=fast -D {{backup}}/base -T '{at}/fast'={{backup}}/1 -T '{at}/a\\=slow'={{backup}}/2"
    );
    let restore = "cp -a {backup}/base/. {restore} && cp -a {backup}/1 {backup}/2 {tablespaces} && \
                   for link in {restore}/pg_tblspc/*; do ln -sfn {tablespaces}/$(basename $(readlink $link)) $link || exit; done";
    let outcome = rehearsed_by_tool(&server, &backup, restore).unwrap();
    assert_restored(&outcome, 1);
    // The command leaves the links to the files of the backup.
    let outcome =
        rehearsed_by_tool(&server, &backup, "cp -a {backup}/base/. {restore}; : {tablespaces}").unwrap();
    let [(_, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert_says(
        why,
        &["its restore command succeeded, but tablespace ", "not into the directory {tablespaces}"],
    );
    assert_eq!(files(directory.path()), before);
}

/// Creates a directory for a tablespace, and returns the command that creates the tablespace there.
fn late(server: &Server, directory: &Path) -> String {
    testkit::open_to_all(directory);
    let place = directory.join("late");
    fs::create_dir(&place).unwrap();
    chown(&place, Some(fs::metadata(server.data_dir()).unwrap().uid()), None).unwrap();
    format!("psql -c \"CREATE TABLESPACE late LOCATION '{}'\"", place.display())
}

/// The plan does not know of it, and WAL of the backup may create it again, in the directory of the original.
#[test]
fn a_tool_does_not_restore_a_tablespace_that_was_created_meanwhile() {
    if !require(Need::Clients) {
        return;
    }
    for mapping in ["", "; : {tablespaces}"] {
        let (server, directory) = (server(13), testkit::directory());
        let restored = directory.path().join("restored");
        let create = late(&server, directory.path());
        let backup = format!("pg_basebackup --checkpoint=fast -D {{backup}}/base && {create}");
        let restore = format!("touch '{}'; cp -a {{backup}}/base/. {{restore}}{mapping}", restored.display());
        let outcome = rehearsed_by_tool(&server, &backup, &restore).unwrap();
        let [(_, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
        assert_says(
            why,
            &["tablespace late was created in the server during the rehearsal", "run pgrig again"],
        );
        assert!(!restored.exists());
    }
}

/// The restore command may have fetched WAL that creates it again.
#[test]
fn no_server_is_started_beside_a_tablespace_that_was_created_during_a_restore() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(13), testkit::directory());
    let create = late(&server, directory.path());
    let restore = format!("cp -a {{backup}}/base/. {{restore}} && {create}");
    let backup = "pg_basebackup --checkpoint=fast -D {backup}/base";
    let outcome = rehearsed_by_tool(&server, backup, &restore).unwrap();
    let [(_, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert_says(why, &["tablespace late was created in the server during the rehearsal"]);
}
