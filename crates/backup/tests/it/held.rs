//! The row versions that the snapshot of a dump keeps under a load, also those in TOAST tables, on one of the newest servers.

use std::time::Duration;

use backup::{Figure, Load, Request, Shape, SizesRequest, SizesSite};
use pgserver::Home;
use script::Source;
use testkit::{CLIENTS_RELEASE, Need, block_on, clients, require, templates, templates_of};
use tps::Length;

use crate::support::{Unwatched, assert_nothing_is_left, ways};

const MB: u64 = 1_000_000;
const TABLE: &str =
    "CREATE TABLE a (id bigint PRIMARY KEY, t text); ALTER TABLE a ALTER COLUMN t SET STORAGE EXTERNAL";
/// Each transaction replaces a row and its value of 8000 bytes, which has five rows in the TOAST table.
const SCRIPT: &str = "UPDATE a SET t = repeat('01234567', 1000) WHERE id = (SELECT min(id) FROM a);\n";

#[test]
fn a_snapshot_keeps_row_versions_in_toast_tables_too() {
    if !require(Need::Clients17) {
        return;
    }
    let _ = templates_of(CLIENTS_RELEASE);
    let directory = testkit::directory();
    let home = Home::at(directory.path()).unwrap().with_postgresql_cache(&templates());
    let major = Some(CLIENTS_RELEASE);
    let site = SizesSite { home: &home, pg_bin: None, major, set: &[], cores: 2, pgrig: "test" };
    let source = Source::file("load.sql", SCRIPT, 1);
    let length = Length::Time(Duration::from_secs(1));
    let load = tps::Request { clients: 2, rate: Some(50.0), seed: 4711, ..tps::Request::of(source, length) };
    let asked = SizesRequest {
        request: Request {
            ways: ways(&["custom"]),
            trials: 1,
            bin: Some(clients()),
            probe: false,
            network: false,
        },
        shape: Shape::of_script(TABLE, "a.sql".to_owned()).unwrap(),
        size: 120 * MB,
        up_to: 10 * MB,
        price: None,
        rto: None,
        changes: 0.01,
        load: Some(Load { request: load }),
    };
    let never = std::future::pending();
    let outcome = block_on(Box::pin(backup::rehearse_sizes(&site, &asked, &mut Unwatched, never))).unwrap();
    assert_nothing_is_left(home.root());
    let [held] = &outcome.held[..] else { panic!("{outcome:#?}") };
    assert!((25..=75).contains(&held.transactions), "{held:#?}");
    assert!((4 * held.transactions..=7 * held.transactions).contains(&held.rows), "{held:#?}");
    assert!((5000 * held.transactions..=9000 * held.transactions).contains(&held.dead), "{held:#?}");
    // Counters of sessions of the load that end after VACUUM are added to those of VACUUM.
    let reported = held.reported.unwrap();
    assert!((held.rows / 2..=held.rows * 3).contains(&reported), "{held:#?}");
    assert!(held.per_hour() > held.dead as f64 * 1000.0, "{held:#?}");
    let forecast = &outcome.forecasts[0];
    let is_known = matches!(forecast.backup, Figure::Value { .. });
    assert_eq!(matches!(forecast.held, Some(Figure::Value { .. })), is_known, "{forecast:#?}");
}
