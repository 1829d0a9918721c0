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

/// A tool restores tablespaces to the directories of the original.
#[test]
fn other_tools_are_refused_with_the_remedy() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(13), testkit::directory());
    block_on(fill(&server, directory.path()));
    let tool = Tool::new("copy", "pg_basebackup -D {backup}", "cp -a {backup}/. {restore}", None).unwrap();
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
    let refused = block_on(Box::pin(rehearsed)).unwrap_err();
    assert!(matches!(refused, BackupError::NoWay(_)), "{refused}");
    assert_says(&refused.to_string(), &["copy: the server has tablespaces", "--way base or base-tar"]);
}
