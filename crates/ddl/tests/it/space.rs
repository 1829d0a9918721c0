//! Disk space of statements, compared with the files themselves and with the server's log of temporary files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ddl::{Amount, Cause, Effort, Figure, Forecast, Outcome, Request};
use testkit::{RELEASES, Server, block_on, spec};

use crate::support::{measured, request};

const SCHEMA: &str =
    "CREATE TABLE t (id int PRIMARY KEY, n int, note text); CREATE INDEX t_note ON t (note);";
const ROWS: u64 = 100_000;
/// Bytes of a block.
const BLOCK: u64 = 8192;

/// Sum of the sizes of a directory's files.
fn bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
}

/// Measures, and reads meanwhile the sizes of the directory of the database in which pgrig looks at the statements: the
/// greatest, and the smallest of the database of which it is a copy.
fn watched(server: &Server, request: &Request) -> (Outcome, u64) {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| measured(server, request).unwrap());
        let (mut most, mut filled) = (0, 0);
        block_on(async {
            let postgres = server.connect("postgres").await;
            while !running.is_finished() {
                let query = "SELECT oid, datname::text FROM pg_database WHERE datname LIKE 'pgrig_ddl_%'";
                let rows = postgres.client.query(query, &[]).await.unwrap();
                let of = |suffix: &str| -> Option<PathBuf> {
                    let row = rows.iter().find(|row| row.get::<_, &str>(1).ends_with(suffix))?;
                    Some(server.data_dir().join("base").join(row.get::<_, u32>(0).to_string()))
                };
                if let Some(copy) = of("_look") {
                    filled = of("_size0").map_or(filled, |directory| bytes(&directory));
                    for _ in 0..20 {
                        most = most.max(bytes(&copy));
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        (running.join().unwrap(), most - filled)
    })
}

#[test]
fn files_at_their_peak_are_those_in_the_directory() {
    for release in RELEASES {
        let server = crate::support::server(release);
        let request = request(SCHEMA, "ALTER TABLE t ALTER id TYPE bigint", Amount::Rows(ROWS));
        let (outcome, grown) = watched(&server, &request);
        let one = &outcome.statements[0];
        let space = one.found.as_ref().unwrap().space;
        // Catalogs, and the files in which sessions keep them for the next, grow a little beside it.
        assert!(space.files.abs_diff(grown) < 1 << 20, "{release}: {space:?}, in the directory {grown}");
        let table = one.largest().unwrap().bytes;
        assert!(space.files > table / 2, "{release}: {space:?}, the table {table}");
    }
}

#[test]
fn temporary_files_are_those_in_the_server_s_log() {
    for release in RELEASES {
        let set = [
            ("wal_level", "replica"),
            ("autovacuum", "off"),
            ("maintenance_work_mem", "1MB"),
            ("log_temp_files", "0"),
            // One file, and not one for each process.
            ("max_parallel_maintenance_workers", "0"),
        ];
        let server = Server::start(spec(release, &set));
        let migration = "CREATE INDEX ON t (note, id); ALTER TABLE t ADD a int;";
        let outcome = measured(&server, &request(SCHEMA, migration, Amount::Rows(ROWS))).unwrap();
        let log = fs::read_to_string(server.running().log_path()).unwrap();
        let sorts: Vec<u64> = log
            .lines()
            .filter(|line| line.contains("temporary file: "))
            .filter_map(|line| line.rsplit_once("size ")?.1.parse().ok())
            .collect();
        let most = *sorts.iter().max().unwrap();
        let temporary = |place: usize| outcome.statements[place].found.as_ref().unwrap().space.temporary;
        let read = temporary(0).unwrap();
        // The last reading comes a little before the end.
        assert!(read <= most && read > most / 2, "{release}: {read}, in the log {sorts:?}");
        assert_eq!(temporary(1), Some(0), "{release}");
    }
}

/// They are there for a few milliseconds, and the first reading comes later. The server counts them with the end of the transaction.
#[test]
fn temporary_files_that_no_reading_saw_are_not_measured() {
    let sort = "SELECT count(*) FROM (SELECT i FROM generate_series(1, 6000) i ORDER BY -i) x;";
    for release in RELEASES {
        let server = crate::support::server(release);
        for (migration, are_candidates) in [
            (format!("SET work_mem = '64kB'; {sort}"), &[true][..]),
            (
                format!("SET work_mem = '64kB'; BEGIN; ALTER TABLE t ADD a int; {sort} COMMIT;"),
                &[false, true],
            ),
            ("UPDATE t SET n = 1 WHERE id < 10; ALTER TABLE t ADD CHECK (id > 0);".to_owned(), &[]),
        ] {
            let outcome = measured(&server, &request(SCHEMA, &migration, Amount::Rows(ROWS / 20))).unwrap();
            let found: Vec<_> = outcome.statements.iter().filter_map(|one| one.found.as_ref()).collect();
            for (place, found) in found.iter().enumerate() {
                let space = found.space.temporary;
                if are_candidates.get(place).copied().unwrap_or_default() {
                    // A machine that stops the statement for a while lets a reading see them.
                    assert_eq!(space.is_none(), found.missed_temporary, "{release}: {migration}: {found:#?}");
                    assert_ne!(space, Some(0), "{release}: {migration}: {found:#?}");
                } else {
                    assert_eq!((space, found.missed_temporary), (Some(0), false), "{release}: {migration}");
                }
            }
        }
    }
}

/// A sort of several processes writes temporary files, however much memory it has; so do the runs that are timed.
#[test]
fn temporary_files_of_parallel_workers_are_seen() {
    let set = [
        ("wal_level", "replica"),
        ("autovacuum", "off"),
        ("maintenance_work_mem", "256MB"),
        ("max_parallel_maintenance_workers", "2"),
        ("min_parallel_table_scan_size", "0"),
    ];
    let server = Server::start(spec(18, &set));
    let rows = request(SCHEMA, "CREATE INDEX ON t (note, id)", Amount::Rows(ROWS * 3));
    for effort in [Effort::Quick, Effort::Full] {
        let outcome = measured(&server, &Request { effort, ..rows.clone() }).unwrap();
        let space = outcome.statements[0].found.as_ref().unwrap().space;
        assert!(space.temporary > Some(space.files / 4), "{effort:?}: {space:?}");
    }
}

/// The measured tables are so small that no build has workers; those of the forecast are not.
#[test]
fn temporary_files_of_workers_that_smaller_tables_do_not_have_are_not_forecast_as_none() {
    for release in RELEASES {
        for workers in ["2", "0"] {
            let set = [
                ("wal_level", "replica"),
                ("autovacuum", "off"),
                ("maintenance_work_mem", "64MB"),
                ("max_parallel_maintenance_workers", workers),
                ("min_parallel_table_scan_size", "2MB"),
            ];
            let server = Server::start(spec(release, &set));
            let request = request(SCHEMA, "CREATE INDEX ON t (note, id)", Amount::Rows(ROWS));
            let request = Request { effort: Effort::Full, up_to: 1_500_000, ..request };
            let outcome = measured(&server, &request).unwrap();
            let forecast = outcome.statements[0].forecast.as_ref().unwrap();
            if workers == "0" {
                assert_eq!(forecast.temporary, None, "{release}: {forecast:?}");
                continue;
            }
            let Some(Figure::Beyond { boundary, .. }) = forecast.temporary else {
                panic!("{release}: {forecast:?}")
            };
            assert_eq!(boundary.cause, Cause::ParallelWorkers, "{release}");
            assert!((2_000_000..6_000_000).contains(&boundary.at), "{release}: {boundary:?}");
        }
    }
}

/// The forecast of a statement's files, from sizes up to 4 MB.
fn forecast(outcome: &Outcome, place: usize) -> (&Forecast, f64) {
    let forecast = outcome.statements[place].forecast.as_ref().unwrap();
    let Figure::Value { value, .. } = forecast.space else { panic!("{forecast:?}") };
    (forecast, value)
}

/// The last reading of a rewrite comes before its commit, also if the look disturbs another statement. So old and new files count.
#[test]
fn a_statement_that_the_look_disturbs_leaves_the_spaces_of_others() {
    let schema = format!("{SCHEMA} CREATE TABLE beside (id int PRIMARY KEY, n int);");
    let of = |last: &str, rows: u64| {
        let migration = format!("ALTER TABLE t ALTER id TYPE bigint; ALTER TABLE beside ADD a int; {last}");
        request(&schema, &migration, Amount::Rows(rows))
    };
    let disturbed = ["VACUUM beside;", "DO $$ BEGIN UPDATE beside SET n = 1; COMMIT; END $$;"];
    for release in RELEASES {
        let server = crate::support::server(release);
        let space = |last: &str| {
            let outcome = measured(&server, &of(last, ROWS / 5)).unwrap();
            let failed: Vec<_> = outcome.failed().collect();
            assert!(failed.is_empty(), "{release}: {failed:#?}");
            outcome.statements[0].found.as_ref().unwrap().space.files
        };
        let without = space("");
        for last in disturbed {
            let with = space(last);
            assert!(with.abs_diff(without) <= 16 * BLOCK, "{release}: {with} with {last} {without} without");
        }
    }
    let server = crate::support::server(18);
    let forecast = |last: &str| {
        let request = Request { effort: Effort::Full, up_to: 4_000_000, ..of(last, ROWS) };
        forecast(&measured(&server, &request).unwrap(), 0).1
    };
    let (without, with) = (forecast(""), forecast(disturbed[0]));
    assert!((with / without - 1.0).abs() < 0.05, "{with} with VACUUM, {without} without");
}

/// Its new files are there together with the old ones, which are gone after it, however few readings meet them.
#[test]
fn a_table_that_is_written_anew_outside_of_transactions_takes_its_new_files() {
    // In the rehearsal, there are no rows.
    let sizes = "DO $$ BEGIN IF EXISTS (SELECT FROM t) THEN \
                 RAISE EXCEPTION '%', pg_relation_size('t') + pg_indexes_size('t'); END IF; END $$;";
    for release in RELEASES {
        let server = crate::support::server(release);
        let code = "DO $$ BEGIN ALTER TABLE t ALTER id TYPE bigint; COMMIT; END $$;";
        for migration in ["VACUUM FULL t;", "CLUSTER t USING t_pkey; CLUSTER;", code] {
            let request = request(SCHEMA, &format!("{migration} {sizes}"), Amount::Rows(ROWS / 5));
            let outcome = measured(&server, &request).unwrap();
            let [.., one, last] = outcome.statements.as_slice() else {
                panic!("{release}: {:#?}", outcome.statements);
            };
            let new: u64 = last.failed.as_ref().unwrap().message.parse().unwrap();
            let space = one.found.as_ref().unwrap().space;
            assert!((new..new + (1 << 20)).contains(&space.files), "{release}: {space:?} of {new}: {one:#?}");
        }
    }
    let vacuum = request(SCHEMA, "VACUUM FULL t", Amount::Rows(ROWS));
    let request = Request { effort: Effort::Full, up_to: 4_000_000, ..vacuum };
    let outcome = measured(&crate::support::server(18), &request).unwrap();
    let (forecast, space) = forecast(&outcome, 0);
    // Indexes may be smaller than before.
    let part = space / forecast.bytes as f64;
    assert!((0.7..1.2).contains(&part), "{part} {forecast:?}");
}
