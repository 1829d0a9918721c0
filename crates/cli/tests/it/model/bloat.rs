//! Free space that updates left in the original's heaps.

use super::captured;
use crate::support::{Rig, Server};

/// Two tables that were updated as a whole, one of them with partitions and one of them with a fillfactor; and one that was not.
const UPDATED: &str = "
    create table jobs (id int primary key, state int not null, note text) with (fillfactor = 90);
    create table log (at int not null, what text) partition by range (at);
    create table log_1 partition of log for values from (0) to (20000);
    create table log_2 partition of log for values from (20000) to (40000);
    create table plain (id int primary key, n bigint);
    insert into jobs select i, i % 7, 'note ' || i % 1000 from generate_series(1, 40000) i;
    insert into log select i, 'entry ' || i % 1000 from generate_series(0, 39999) i;
    insert into plain select i, i from generate_series(1, 40000) i;
    update jobs set state = state + 1;
    update log set what = what;";

/// A server with such tables in the database `original`, and an empty database `copy`.
fn updated<'a>(rig: &'a Rig, version: &str) -> (Server<'a>, Server<'a>) {
    let server = rig.server(version);
    server.execute("CREATE DATABASE original");
    server.execute("CREATE DATABASE copy");
    let original = server.database("original");
    original.execute(UPDATED);
    // Not in a transaction with others.
    for table in ["jobs", "log", "plain"] {
        original.execute(&format!("VACUUM ANALYZE {table}"));
    }
    (original, server.database("copy"))
}

#[test]
fn a_model_states_the_bloat_of_its_tables() {
    let rig = Rig::new();
    let (_original, _copy) = updated(&rig, "");
    let model = captured(&rig, "");
    let shown = rig.done(&format!("model show {model}")).stdout;
    let of = |table: &str| {
        let line = shown.lines().find(|line| line.starts_with(&format!("public.{table}:")));
        line.unwrap_or_else(|| panic!("{shown}")).to_owned()
    };
    for table in ["jobs", "log"] {
        assert!(of(table).contains("without bloat about"), "{shown}");
    }
    assert!(!of("plain").contains("bloat"), "{shown}");
}
