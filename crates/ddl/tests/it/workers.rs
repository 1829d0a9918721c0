//! Statements whose work parallel workers share.

use ddl::find::{Class, WorkKind};
use ddl::{Amount, Effort, Outcome, Request};
use testkit::{RELEASES, Server, spec};

use crate::support::{measured, request};

const ROWS: i64 = 60_000;

/// A server that uses workers wherever it can.
fn server(release: u16) -> Server {
    let set = [
        ("wal_level", "replica"),
        ("autovacuum", "off"),
        ("max_parallel_workers_per_gather", "4"),
        ("parallel_setup_cost", "0"),
        ("parallel_tuple_cost", "0"),
        ("min_parallel_table_scan_size", "0"),
        ("min_parallel_index_scan_size", "0"),
    ];
    Server::start(spec(release, &set))
}

fn of(release: u16, effort: Effort) -> Outcome {
    let schema = "CREATE TABLE t (id int PRIMARY KEY, n int);";
    let migration = "
        VACUUM t;
        SELECT sum(n) FROM t;
        CREATE INDEX ON t (n);
        SET enable_seqscan = off; SET enable_bitmapscan = off;
        SELECT count(*) FROM t;";
    let rows = u64::try_from(ROWS).unwrap();
    let request = Request { effort, ..request(schema, migration, Amount::Rows(rows)) };
    let outcome = measured(&server(release), &request).unwrap();
    let failed: Vec<_> = outcome.failed().collect();
    assert!(failed.is_empty(), "{release}: {failed:#?}");
    outcome
}

/// All rows are counted, whichever process reads them.
#[test]
fn rows_that_workers_read_are_counted() {
    // Before PostgreSQL 15, the server counts those of workers too late for a run that is timed.
    let runs = RELEASES.map(|release| (release, Effort::Full)).into_iter().chain([(18, Effort::Quick)]);
    for (release, effort) in runs {
        let outcome = of(release, effort);
        let found = |place: usize| outcome.statements[place].found.as_ref().unwrap();
        let classes = [1, 2, 5].map(|place| found(place).class);
        assert_eq!(classes, [Class::Scan, Class::IndexBuild, Class::Scan], "{release}, {effort:?}");
        for place in [1, 2] {
            let scan = found(place).works.iter().find(|work| work.kind == WorkKind::Scan).unwrap();
            let read = scan.proof.read.unwrap();
            assert_eq!((read.scans, read.returned), (1, ROWS), "{release}, {effort:?}: {place}");
        }
        let scan = found(5).works[0].proof.read.unwrap();
        assert_eq!(scan.scans, 0, "{release}, {effort:?}: not by an index");
    }
}
