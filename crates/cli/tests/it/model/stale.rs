//! Statistics of a time at which the table had fewer rows.

use std::fs;

use super::captured;
use crate::support::{Rig, Server};

/// Five values in five rows each; later rows have other values. As autovacuum does, only the partition is analyzed again.
const PARTED: [&str; 4] = [
    "create table pt (id int, salary numeric(10,2), phone bigint) partition by range (id);
     create table pt_1 partition of pt for values from (0) to (1000000);
     insert into pt select i, 50000.25 + i % 5 * 1234.17, 4917012345678 + i % 3 * 77777 from generate_series(1, 25) i",
    "analyze pt",
    "insert into pt select i, 30000 + i % 7 * 7.77, 4915712345678 + i from generate_series(100, 20000) i",
    "analyze pt_1",
];

/// 15 rows with values. VACUUM counts rows, and reads no values.
const GROWN: [&str; 4] = [
    "create table s (id int, salary numeric(10,2), phone bigint) with (autovacuum_enabled = off);
     insert into s select i, 50000.25 + i % 5 * 1234.17, 4917012345678 + i % 3 * 77777 from generate_series(1, 15) i;
     insert into s select i, null, null from generate_series(16, 30) i",
    "analyze s",
    "insert into s select i from generate_series(31, 20030) i",
    "vacuum s",
];

/// The first value of each column.
const VALUES: [&str; 2] = ["50000.25", "4917012345678"];

fn original<'a>(server: &Server<'a>, steps: &[&str]) -> Server<'a> {
    server.execute("CREATE DATABASE original");
    let original = server.database("original");
    for step in steps {
        original.execute(step);
    }
    original
}

fn no_value_stays(steps: &[&str], table: &str, version: &str) {
    let rig = Rig::new();
    let server = rig.server(&format!("{version} --set autovacuum=off"));
    let original = original(&server, steps);
    let rows = "SELECT sum(greatest(reltuples, 0))::int8 FROM pg_class WHERE relkind = 'r' AND relname IN ('s', 'pt_1')";
    assert!(original.number(rows) > 15_000);
    for options in ["", "--aggregates"] {
        let ran = rig.run(&format!("model capture --instance default -d original -o - {options}"));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("run ANALYZE {table}, then capture again")), "{said}");
        for value in VALUES {
            assert!(!ran.stdout.contains(value), "{options}: {}", ran.stdout);
        }
    }
}

#[test]
fn values_of_few_rows_of_a_partitioned_table_that_has_grown_do_not_count_as_frequent() {
    no_value_stays(&PARTED, "public.pt", "");
}

#[test]
fn the_same_before_servers_count_partitioned_tables() {
    no_value_stays(&PARTED, "public.pt", "--pg-version 13");
}

#[test]
fn values_of_few_rows_of_a_table_that_has_grown_do_not_count_as_frequent() {
    no_value_stays(&GROWN, "public.s", "");
}

#[test]
fn values_of_all_rows_stay_where_they_are_analyzed_again() {
    let rig = Rig::new();
    let server = rig.server("--set autovacuum=off");
    let original = original(&server, &PARTED);
    original.execute("analyze pt");
    let model = fs::read_to_string(captured(&rig, "")).unwrap();
    assert!(model.contains("changed = 0\n") && model.contains("30007.77"), "{model}");
}
