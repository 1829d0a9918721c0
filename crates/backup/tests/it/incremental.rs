//! Incremental base backups, by client programs of PostgreSQL 17.

use std::sync::atomic::{AtomicBool, Ordering};

use backup::{BackupError, Increment, Outcome, Request, Shape, Site, SizesRequest, SizesSite, Witness};
use pgserver::Home;
use testkit::{
    CLIENTS_RELEASE, Need, Server, assert_says, block_on, clients, require, spec, templates, templates_of,
};

use crate::support::{Unwatched, assert_nothing_is_left, ways};

const MB: u64 = 1_000_000;
const INCREMENTAL: &str = "incremental";

fn request(names: &[&str], trials: u32) -> Request {
    Request { ways: ways(names), trials, bin: Some(clients()), probe: false, network: false }
}

fn increments(outcome: &Outcome) -> Vec<Increment> {
    outcome.trials.iter().filter_map(|trial| trial.increment).collect()
}

/// The bytes of the last trial are about those of its files.
fn assert_both_parts_are_counted(outcome: &Outcome) {
    let last = outcome.trials.iter().rfind(|trial| trial.increment.is_some()).unwrap();
    let received = last.network.unwrap_or_else(|| panic!("{:#?}", outcome.notes)).received;
    // pg_basebackup pads the last segment of WAL of each part.
    let unsent = 2 * (16 << 20);
    assert!(
        received + unsent > last.size / 10 * 9 && received < last.size * 2,
        "{received} of {}",
        last.size
    );
    assert!(received > last.increment.unwrap().full_size / 2, "{last:?}");
}

/// Compressions that only newer programs have are there, too.
#[test]
fn an_incremental_backup_holds_a_stated_share_of_changes() {
    if !require(Need::Clients17) {
        return;
    }
    let directory = testkit::directory();
    let _ = templates_of(CLIENTS_RELEASE);
    let home = Home::at(directory.path()).unwrap().with_postgresql_cache(&templates());
    let ground = SizesSite { home: &home, pg_bin: None, major: None, set: &[], cores: 2, pgrig: "test" };
    let names = [INCREMENTAL, "custom:lz4", "directory:zstd=1,jobs=2"];
    let asked = SizesRequest {
        request: Request { network: true, ..request(&names, 1) },
        shape: Shape::pgbench(),
        size: 120 * MB,
        up_to: 12 * MB,
        price: None,
        rto: None,
        changes: 0.01,
        load: None,
    };
    let mut observer = Unwatched;
    let rehearsed = backup::rehearse_sizes(&ground, &asked, &mut observer, std::future::pending());
    let outcome = block_on(Box::pin(rehearsed)).unwrap();
    assert_nothing_is_left(home.root());
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!((outcome.trials.len(), outcome.forecasts.len()), (names.len() * 3, names.len()));
    let all = increments(&outcome);
    assert_eq!(all.len(), 3);
    for (trial, parts) in outcome.trials.iter().filter(|trial| trial.increment.is_some()).zip(&all) {
        assert_eq!(trial.verified.witness, Witness::Unchanged);
        assert!(parts.wal > 0 && parts.size < parts.full_size && parts.combine < trial.restore, "{parts:?}");
        assert_eq!((trial.size, parts.changes), (parts.size + parts.full_size, Some(0.01)));
    }
    assert!(all[0].wal < all[2].wal, "{all:?}");
    // Dumps were counted before the changes, after which there is no snapshot to dump.
    let counted = outcome.trials.iter().filter(|trial| trial.network.is_some());
    let counted = counted.map(|trial| format!("{} {}", trial.way, trial.at.unwrap().is_largest));
    let mut counted: Vec<String> = counted.collect();
    counted.sort();
    let expected = ["custom:lz4 true", "directory:zstd=1,jobs=2 true", "incremental true"];
    assert_eq!(counted, expected, "{:#?}", outcome.notes);
    assert_both_parts_are_counted(&outcome);
    assert_says(&outcome.notes.join("\n"), &["updated 1 % of the rows of each table"]);
}

fn server(settings: &[(&str, &str)]) -> Server {
    let common = [("wal_level", "replica"), ("max_wal_senders", "4"), ("autovacuum", "off")];
    let server = Server::start(spec(CLIENTS_RELEASE, &[&common, settings].concat()));
    server.sql("CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 5000) i");
    server
}

async fn rehearsed(server: &Server, trials: u32) -> Result<Outcome, BackupError> {
    rehearsed_by(server, Request { network: true, ..request(&[INCREMENTAL], trials) }).await
}

async fn rehearsed_by(server: &Server, request: Request) -> Result<Outcome, BackupError> {
    let target = server.target("postgres");
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let version_num = u32::from(CLIENTS_RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let outcome = Box::pin(backup::rehearse(&site, &request, &mut Unwatched, std::future::pending())).await;
    assert_nothing_is_left(home.root());
    outcome
}

#[test]
fn a_database_that_is_only_read_has_the_changes_of_others() {
    if !require(Need::Clients17) {
        return;
    }
    let server = server(&[("summarize_wal", "on")]);
    block_on(async {
        let quiet = rehearsed(&server, 2).await.unwrap();
        assert!(quiet.failed.is_empty(), "{:#?}", quiet.failed);
        assert_eq!(increments(&quiet).len(), 2);
        for trial in &quiet.trials {
            let parts = trial.increment.unwrap();
            assert_eq!((trial.verified.witness, parts.changes), (Witness::Unchanged, None));
            assert!(parts.size < parts.full_size, "{parts:?}");
        }
        assert_both_parts_are_counted(&quiet);
        assert_says(
            &quiet.notes.join("\n"),
            &["only the changes that other sessions made during the rehearsal"],
        );

        let writer = server.connect("postgres").await;
        let done = AtomicBool::new(false);
        let writing = async {
            while !done.load(Ordering::Relaxed) {
                writer.client.batch_execute("UPDATE t SET v = md5(v) WHERE i % 100 = 0").await.unwrap();
            }
        };
        let rehearsing = async {
            let outcome = rehearsed(&server, 1).await.unwrap();
            done.store(true, Ordering::Relaxed);
            outcome
        };
        let ((), busy) = tokio::join!(writing, rehearsing);
        assert!(busy.failed.is_empty(), "{:#?}", busy.failed);
        assert_eq!(busy.trials[0].verified.witness, Witness::Changed);
        writer.close().await;
    });
}

/// A second of the baseline, with 50 lookups, comes before each part.
#[test]
fn rows_are_looked_up_beside_both_parts() {
    if !require(Need::Clients17) {
        return;
    }
    let server = server(&[("summarize_wal", "on")]);
    server.sql("ALTER TABLE t ADD PRIMARY KEY (i)");
    let outcome =
        block_on(rehearsed_by(&server, Request { probe: true, ..request(&[INCREMENTAL], 1) })).unwrap();
    let [trial] = &outcome.trials[..] else { panic!("{outcome:#?}") };
    let beside = trial.beside.as_ref().unwrap();
    assert!(beside.baseline.latencies.count() >= 98, "{beside:#?}");
    assert_eq!((beside.baseline.failed, beside.during.failed, beside.transactions), (0, 0, 0));
    assert_eq!(trial.verified.witness, Witness::Unchanged);
}

#[test]
fn a_server_that_summarizes_no_wal_is_refused_with_the_remedy() {
    if !require(Need::Clients17) {
        return;
    }
    let refused = block_on(rehearsed(&server(&[]), 1)).unwrap_err();
    assert_says(
        &refused.to_string(),
        &["pgrig can make no backup here: incremental: ", "ALTER SYSTEM SET summarize_wal = on"],
    );
}
