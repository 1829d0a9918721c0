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

fn keeps_bloat(version: &str, method: &str, scale: f64) {
    let rig = Rig::new();
    let (original, copy) = updated(&rig, version);
    let model = captured(&rig, "");
    let fill = format!("fill --model {model} --instance default -d copy --method {method} --scale {scale}");
    let planned = rig.done(&format!("{fill} --explain")).stdout;
    assert!(planned.contains("to keep the bloat, give --bloat keep"), "{planned}");
    let planned = rig.done(&format!("{fill} --explain --bloat keep")).stdout;
    assert!(planned.contains("as many rows in each page as in the original"), "{planned}");
    rig.done(&format!("{fill} --bloat keep -q"));
    for table in ["jobs", "log", "plain"] {
        let query = format!(
            "SELECT sum(pg_relation_size(oid))::int8 FROM pg_class WHERE relkind = 'r' AND relname ~ '^{table}'"
        );
        let heap = |server: &Server<'_>| -> f64 {
            let bytes: i64 = server.row(&query).get(0);
            bytes as f64
        };
        let factor = heap(&copy) / (heap(&original) * scale);
        assert!((factor - 1.0).abs() < 0.04, "{table}: {factor}");
    }
    // Afterwards, the tables have the original's fillfactors.
    let options = "SELECT string_agg(relname || coalesce(reloptions::text, ''), ' ' ORDER BY relname) FROM pg_class \
                   WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace";
    let of = |server: &Server<'_>| -> String { server.row(options).get(0) };
    assert_eq!(of(&original), of(&copy));
}

#[test]
fn heaps_keep_their_bloat_by_copy_13() {
    keeps_bloat("--pg-version 13", "copy", 1.0);
}

#[test]
fn heaps_keep_their_bloat_as_pages_18() {
    keeps_bloat("--pg-version 18", "direct", 0.5);
}

#[test]
fn bloat_is_kept_only_in_tables_that_the_model_creates() {
    let rig = Rig::new();
    let (_original, _copy) = updated(&rig, "");
    let model = captured(&rig, "");
    let ran =
        rig.run(&format!("fill --model {model} --instance default -d original --all-tables --bloat keep"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("leave out --all-tables"), "{ran:#?}");
    let ran = rig.run("fill 1MB --bloat keep");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("--model"), "{ran:#?}");
}
