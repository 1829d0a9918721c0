//! Recovery to a point in time, on the oldest server and on one of the newest, and the WAL of a load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backup::{
    BackupError, Day, Figure, Load, Method, Outcome, Request, Shape, SizesRequest, SizesSite, Witness,
};
use failure::{Class, Classified};
use pgserver::Home;
use script::Source;
use testkit::{CLIENTS_RELEASE, Need, assert_says, block_on, clients, require, templates, templates_of};
use tps::Length;

use crate::support::{Unwatched, assert_nothing_is_left, programs_with, ways};

const MB: u64 = 1_000_000;
const OLDEST: u16 = 13;
/// Rows of pgbench's table of accounts, changed and added.
const SCRIPT: &str = "\\set id random(1, 1000)\n\
    UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;\n\
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :id, 1, now());\n";

/// Transactions of a script, 50 each second of 2 clients.
fn load(script: &str, seconds: u64) -> Load {
    let source = Source::file("load.sql", script, 1);
    let length = Length::Time(Duration::from_secs(seconds));
    let request =
        tps::Request { clients: 2, rate: Some(50.0), seed: 4711, ..tps::Request::of(source, length) };
    Load { request }
}

/// Rehearses on pgbench's tables of three sizes in a home of this directory.
fn rehearsed(
    directory: &Path,
    programs: (u16, Option<PathBuf>),
    load: Option<Load>,
) -> Result<Outcome, BackupError> {
    rehearsed_on(Shape::pgbench(), directory, programs, load)
}

/// The same on other tables.
fn rehearsed_on(
    shape: Shape,
    directory: &Path,
    (major, bin): (u16, Option<PathBuf>),
    load: Option<Load>,
) -> Result<Outcome, BackupError> {
    let home = Home::at(directory).unwrap().with_postgresql_cache(&templates());
    let ground =
        SizesSite { home: &home, pg_bin: None, major: Some(major), set: &[], cores: 2, pgrig: "test" };
    let asked = SizesRequest {
        request: Request { ways: ways(&["pitr"]), trials: 1, bin, probe: false, network: false },
        shape,
        size: 120 * MB,
        up_to: 10 * MB,
        price: None,
        rto: None,
        changes: 0.01,
        load,
    };
    let never = std::future::pending();
    let outcome = block_on(Box::pin(backup::rehearse_sizes(&ground, &asked, &mut Unwatched, never)));
    assert_nothing_is_left(home.root());
    outcome
}

fn assert_is_recovered(outcome: &Outcome) {
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!(outcome.trials.len(), 3);
    for trial in &outcome.trials {
        let parts = trial.recovery.as_ref().unwrap();
        assert_eq!(trial.verified.witness, Witness::PointInTime);
        assert!(trial.verified.indexes > Some(2), "{trial:#?}");
        assert!(parts.before > 10 && parts.after > 10, "{parts:?}");
        assert!(parts.replayed > 0 && parts.replay > 0.0 && parts.files < trial.restore, "{parts:?}");
        assert_eq!(trial.size, parts.base_size + parts.wal_size);
        assert!(parts.written > parts.replayed && parts.data > 100_000, "{parts:?}");
        assert!(parts.wal_size >= 16 << 20 && parts.target.ends_with("+00"), "{parts:?}");
    }
    let [wal] = &outcome.wal[..] else { panic!("{:#?}", outcome.wal) };
    assert!((25..=75).contains(&wal.transactions) && wal.bytes > 10_000, "{wal:#?}");
    assert!(wal.sample == wal.bytes && wal.per_day() > wal.bytes as f64 * 40_000.0, "{wal:#?}");
    assert!(wal.ratio(Method::Gzip) < Some(1.0), "{wal:#?}");
    // Without the zeros of the last segment: these alone would be larger than this WAL.
    assert!(wal.compressed.iter().all(|one| one.bytes > 0 && one.bytes < wal.bytes), "{wal:#?}");
    let forecast = &outcome.forecasts[0];
    let Some(Day {
        wal: Figure::Value { value: day, .. }, replay: Figure::Value { value: replay, .. }, ..
    }) = forecast.day
    else {
        panic!("{forecast:#?}")
    };
    assert!((day - wal.per_day()).abs() < 1.0, "{forecast:#?}");
    let Figure::Value { value: size, .. } = forecast.size else { panic!("{forecast:#?}") };
    assert!(size > day, "{forecast:#?}");
    if let Figure::Value { value, .. } = forecast.restore {
        assert!(value > replay, "{forecast:#?}");
    }
    assert_says(&outcome.notes.join("\n"), &["checkpoint_timeout is 300 s"]);
}

#[test]
fn the_oldest_server_is_recovered_to_a_point_between_two_transactions() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    // The archive's path is in a shell command.
    let home = directory.path().join("it's a \"home\" $HOME");
    assert_is_recovered(&rehearsed(&home, (OLDEST, None), Some(load(SCRIPT, 1))).unwrap());
}

#[test]
fn a_newer_server_is_recovered_to_a_point_between_two_transactions() {
    if !require(Need::Clients17) {
        return;
    }
    let _ = templates_of(CLIENTS_RELEASE);
    let directory = testkit::directory();
    let newest = (CLIENTS_RELEASE, Some(clients()));
    assert_is_recovered(&rehearsed(directory.path(), newest, Some(load(SCRIPT, 1))).unwrap());
}

/// Stands for pg_receivewal, and loses the last segment when it ends.
const LOSING_A_SEGMENT: &str = "\
    for word; do test \"$before\" = --directory && directory=$word; before=$word; done\n\
    lose() {\n  wait $child\n  cd \"$directory\" && rm $(ls | grep -E '^[0-9A-F]{24}$' | tail -1)\n  exit 0\n}\n\
    trap lose TERM\n\
    \"$REAL/pg_receivewal\" \"$@\" &\n\
    child=$!\n\
    wait $child\n";

#[test]
fn a_missing_segment_is_noticed() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let bin = programs_with(directory.path(), OLDEST, "pg_receivewal", LOSING_A_SEGMENT);
    let programs = (OLDEST, Some(bin));
    let outcome = rehearsed(&directory.path().join("home"), programs, Some(load(SCRIPT, 1))).unwrap();
    let [(way, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert_eq!(way.to_string(), "pitr");
    assert_says(
        why,
        &["its recovery failed", "recovery ended before configured recovery target was reached"],
    );
    assert!(outcome.trials.is_empty(), "{outcome:#?}");
}

/// Transactions after the target time may leave values of sequences in the replayed WAL.
#[test]
fn sequences_of_a_load_are_recovered_within_their_range() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let sql = "CREATE SEQUENCE s; CREATE TABLE a (id bigint PRIMARY KEY, t text)";
    let shape = Shape::of_script(sql, "a.sql".to_owned()).unwrap();
    let load = load("SELECT count(nextval('s')) FROM generate_series(1, 50);\n", 1);
    let outcome = rehearsed_on(shape, directory.path(), (OLDEST, None), Some(load)).unwrap();
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!(outcome.trials.len(), 3);
    for trial in &outcome.trials {
        let found = &trial.verified;
        assert_eq!((found.witness, found.sequences), (Witness::PointInTime, 1), "{trial:#?}");
    }
}

/// The script is tried in a copy: the trials have the rows that it deletes.
#[test]
fn a_script_that_deletes_all_rows_leaves_the_data_of_the_forecast() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let script = load("DELETE FROM pgbench_accounts;\n", 1);
    let outcome = rehearsed(directory.path(), (OLDEST, None), Some(script)).unwrap();
    let rows: Vec<u64> = outcome.sizes().iter().map(|size| size.rows).collect();
    assert!(rows.len() == 3 && rows.iter().all(|rows| *rows > 1000), "{outcome:#?}");
}

#[test]
fn a_load_that_cannot_run_is_refused() {
    if !require(Need::Clients) {
        return;
    }
    let directory = testkit::directory();
    let refused = rehearsed(directory.path(), (OLDEST, None), None).unwrap_err();
    assert_says(&refused.to_string(), &["pgrig can make no backup here: pitr:", "--load FILE -R 500"]);
    let failed = rehearsed(directory.path(), (OLDEST, None), Some(load("SELECT * FROM nothing;\n", 1)));
    let failed = failed.unwrap_err();
    assert_eq!(failed.class(), Class::Request, "{failed}");
    assert_says(&failed.to_string(), &["the load load.sql failed", "\"nothing\" does not exist"]);
}
