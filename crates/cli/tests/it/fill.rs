//! `pgrig fill` on real servers of the newest and the oldest version: sizes, contents, documents.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use crate::support::{NEWEST, OLDEST, Rig, Server, observed};
use serde_json::Value;

/// Asked for against pg_total_relation_size of the four tables.
fn assert_size(rig: &Rig, server: &Server, bytes: f64, size: &str, options: &str) {
    let document = rig.document(&format!("fill {size} --drop --schema s {options}"));
    let total = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c \
                 WHERE relnamespace = 's'::regnamespace AND relkind = 'r'";
    let actual = server.number(total) as f64;
    assert!((actual / bytes - 1.0).abs() < 0.01, "{size} {options}: {actual} bytes");
    let reported = observed(&document, "heap") + observed(&document, "index");
    assert!((reported - actual).abs() < 1.0, "{size} {options}: {reported} reported, {actual} there");
    let predicted = observed(&document, "predicted-heap") + observed(&document, "predicted-index");
    assert!(
        (predicted / actual - 1.0).abs() < 0.01,
        "{size} {options}: {predicted} predicted, {actual} came"
    );
    let accounts = server.number("SELECT count(*) FROM s.pgbench_accounts");
    assert_eq!(document["plan"]["chunking"]["rows"], accounts);
}

fn assert_sizes(version: &str) {
    let rig = Rig::new();
    // It would add maps while sizes are compared.
    let server = rig.server(&format!("{version} --set autovacuum=off"));
    assert_size(&rig, &server, 50e6, "50MB", "");
    assert_size(&rig, &server, 50e6, "50MB", "--unlogged --fillfactor 37");
    assert_size(&rig, &server, 50.0 * 1_048_576.0, "50MiB", "--data-only --unlogged --fillfactor 10");
    assert_size(&rig, &server, 60e6, "60MB", "--data-only");
    assert_size(&rig, &server, 80e6, "0.08GB", "--streams 2 --unlogged");
    assert_size(&rig, &server, 80e6, "80MB", "--streams 3 --data-only --format text");
    assert_size(&rig, &server, 60e6, "60MB", "--streams 2 --fillfactor 10");
}

#[test]
fn the_size_asked_for_is_met_on_the_newest() {
    assert_sizes(NEWEST);
}

#[test]
fn the_size_asked_for_is_met_on_the_oldest() {
    assert_sizes(OLDEST);
}

#[test]
fn wal_is_about_what_the_plan_says() {
    let rig = Rig::new();
    let _server = rig.server("--profile stock");
    for (options, tolerance) in [("--streams 1", 0.1), ("--streams 2", 0.15), ("--data-only", 0.1)] {
        let document = rig.document(&format!("fill 60MB --drop {options}"));
        let (predicted, actual) = (observed(&document, "predicted-wal"), observed(&document, "wal"));
        assert!(
            (predicted / actual - 1.0).abs() < tolerance,
            "{options}: {predicted} predicted, {actual} came"
        );
    }
    let document = rig.document("fill 60MB --drop --unlogged");
    assert!(observed(&document, "wal") < 2e6, "unlogged tables: {document:#}");
}

/// Everything that pgbench's users can see of its tables in a schema. Of pages those with rows must
/// be all-visible, 61 rows at most each; streams may leave empty ones behind.
fn catalog(rig: &Rig, server: &Server, schema: &str) -> BTreeMap<String, String> {
    let query = format!(
        "SELECT c.relname::text AS name, \
                concat_ws(' ', c.relpersistence, c.relkind, c.reloptions::text, c.reltuples::bigint, \
                          c.relkind = 'i' OR c.relallvisible >= ceil(c.reltuples / 61), \
                          (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, \
                                                       atthasdef, atthasmissing, attidentity), ', ' ORDER BY attnum) \
                             FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0), \
                          (SELECT string_agg(conname || pg_get_constraintdef(oid), ', ' ORDER BY conname) \
                             FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p'), \
                          (SELECT count(*) FROM pg_stats WHERE schemaname = '{schema}' AND tablename = c.relname)) AS text \
           FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind IN ('r', 'i')"
    );
    let client = rig.connect(&server.url);
    let rows = rig.block_on(client.query(&query, &[])).unwrap();
    rows.iter().map(|row| (row.get("name"), row.get("text"))).collect()
}

/// pgbench with these arguments; none where it is not installed, which CI does not accept.
fn pgbench(server: &Server, schema: &str, arguments: &str) -> String {
    let mut command = Command::new("pgbench");
    command.args(arguments.split_whitespace()).arg(&server.url);
    command.env("PGOPTIONS", format!("-c search_path={schema}"));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "pgbench {arguments}: {text}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn assert_like_pgbench(version: &str) {
    if !testkit::require(testkit::Need::Pgbench) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute("CREATE SCHEMA theirs");
    pgbench(&server, "theirs", "-i -q -s 3");
    for (schema, options) in [("ours", ""), ("many", "--streams 2"), ("texts", "--format text")] {
        rig.done(&format!("fill --scale 3 --schema {schema} {options}"));
        assert_eq!(catalog(&rig, &server, schema), catalog(&rig, &server, "theirs"), "{options}");
        assert_eq!(server.pgbench_rows(schema), server.pgbench_rows("theirs"), "{options}");
    }
    for script in ["tpcb-like", "simple-update", "select-only"] {
        let report = pgbench(&server, "ours", &format!("-n -c 2 -t 200 -b {script}"));
        assert!(report.contains("scaling factor: 3"), "{report}");
        assert!(report.contains("number of failed transactions: 0"), "{report}");
    }
    let accounts = server.number("SELECT sum(abalance)::bigint FROM ours.pgbench_accounts");
    assert_eq!(accounts, server.number("SELECT sum(delta)::bigint FROM ours.pgbench_history"));
    assert!(accounts != 0, "accounts were found and updated");
}

#[test]
fn tables_are_those_of_pgbench_on_the_newest() {
    assert_like_pgbench(NEWEST);
}

#[test]
fn tables_are_those_of_pgbench_on_the_oldest() {
    assert_like_pgbench(OLDEST);
}

#[test]
fn any_number_of_streams_gives_the_same_rows() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --rows 243210 --schema one --streams 1");
    rig.done("fill --rows 243210 --schema three --streams 3");
    rig.done("fill --rows 243210 --schema unlogged --streams 3 --unlogged --data-only --format text");
    assert_eq!(server.pgbench_rows("one"), server.pgbench_rows("three"));
    assert_eq!(server.pgbench_rows("one"), server.pgbench_rows("unlogged"));
    let ids = server
        .row("SELECT count(DISTINCT aid), min(aid)::bigint, max(aid)::bigint FROM three.pgbench_accounts");
    assert_eq!((ids.get(0), ids.get(1), ids.get(2)), (243_210_i64, 1_i64, 243_210_i64));
    // Accounts past the last whole scale belong to the last branch.
    assert_eq!(server.number("SELECT max(bid)::bigint FROM three.pgbench_accounts"), 2);
    assert_eq!(server.number("SELECT count(*) FROM three.pgbench_branches"), 2);
}

#[test]
fn heap_and_index_are_sound() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill 60MB --fillfactor 50");
    server.execute("CREATE EXTENSION amcheck; CREATE EXTENSION pg_visibility");
    server.execute("SELECT bt_index_check('pgbench_accounts_pkey', true)");
    assert_eq!(server.number("SELECT count(*) FROM verify_heapam('pgbench_accounts')"), 0);
    let summary = server.row(
        "SELECT all_visible, all_frozen, pg_relation_size('pgbench_accounts') / 8192 \
           FROM pg_visibility_map_summary('pgbench_accounts')",
    );
    let (visible, frozen, blocks): (i64, i64, i64) = (summary.get(0), summary.get(1), summary.get(2));
    assert_eq!((visible, frozen), (blocks, blocks));
}

#[test]
fn documents_fit_the_schema_and_are_all_that_stdout_holds() {
    let rig = Rig::new();
    let document = rig.document("fill 20MB --set shared_buffers=64MB");
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(document["status"], "done");
    let settings = document["environment"]["server"]["settings"].as_array().unwrap();
    let value = |name| &settings.iter().find(|setting| setting["name"] == name).unwrap()["value"];
    assert_eq!(value("shared_buffers"), "64MB");
    assert_eq!(value("wal_level"), "minimal");

    let saved = std::fs::read_dir(rig.home.path().join("runs")).unwrap();
    let saved: Vec<_> = saved.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(saved.len(), 1, "{saved:?}");
    let text = std::fs::read_to_string(&saved[0]).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
}

#[test]
fn explain_writes_nothing_and_quiet_says_only_results() {
    let rig = Rig::new();
    let server = rig.server("");
    let explained = rig.done("fill 50MB --schema new --unlogged --explain");
    assert!(explained.stdout.contains("a new schema"), "{explained:#?}");
    assert!(explained.stdout.contains("direct: writes pages"), "{explained:#?}");
    assert_eq!(server.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'new'"), 0);
    assert!(!rig.home.path().join("runs").exists(), "nothing ran, so there is no run");

    let quiet = rig.done("fill 5MB -q");
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("primary keys"), "{quiet:#?}");
}

#[test]
fn requests_that_cannot_be_met_touch_nothing_and_name_the_remedy() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE TABLE pgbench_tellers (mine int); CREATE SCHEMA v; CREATE VIEW v.pgbench_history AS SELECT 1; \
         CREATE ROLE guest LOGIN; REVOKE CREATE ON SCHEMA public FROM public",
    );
    let guest = server.url.replace("postgres@", "guest@");
    let nobody_s_port = "-h 127.0.0.1 -p 1";
    for (arguments, code, said) in [
        ("fill 50MB".to_owned(), 2, "--drop to drop and replace the tables"),
        ("fill 50MB --schema v --drop".to_owned(), 2, "pgbench_history in schema v is not a table"),
        ("fill 100".to_owned(), 2, "has no unit"),
        ("fill".to_owned(), 2, "no amount is given"),
        ("fill 1GB --scale 3".to_owned(), 2, "SIZE and --scale each set the amount"),
        ("fill 1kB --schema s".to_owned(), 2, "is out of range"),
        ("fill --scale 0 --schema s".to_owned(), 2, "give a whole number, 1 or more"),
        ("fill --scale 1.5 --schema s".to_owned(), 2, "a whole number"),
        ("fill --scale 5MB --schema s".to_owned(), 2, "without --scale: pgrig fill 5MB"),
        ("fill --scale 900000000 --schema s".to_owned(), 2, "--scale 900000000 is out of range"),
        ("fill 5MB --schema pg_x".to_owned(), 2, "schema pg_x belongs to the server"),
        (format!("fill 5MB --schema {}", "x".repeat(64)), 2, "1 to 63 bytes"),
        ("fill --rows 999999999999 --schema s".to_owned(), 2, "--rows 999999999999 is out of range"),
        ("fill 30TB --schema s".to_owned(), 1, "of disk space (tables"),
        ("fill 999TB --schema s".to_owned(), 2, "is out of range"),
        ("fill 1GB --fillfactor 9".to_owned(), 2, "10 to 100"),
        ("fill 1GB --streams 0".to_owned(), 2, "--streams"),
        ("fill 1GB --schema s --streams 500".to_owned(), 2, "give at most 94"),
        ("fill 5MB --schema s --json /no/such/x".to_owned(), 2, "there is no directory /no/such; check"),
        (format!("fill 50MB -d {guest}"), 2, "guest may not create tables in schema public"),
        (
            format!("fill 50MB -d {guest} --schema new"),
            2,
            "have the owner of the database run GRANT CREATE ON DATABASE postgres TO guest, or a superuser CREATE SCHEMA new \
             AUTHORIZATION guest",
        ),
        (format!("fill 50MB -d {guest} --instance default"), 2, "leave out the connection string of -d"),
        (format!("fill 50MB {nobody_s_port}"), 1, "127.0.0.1"),
        ("fill 50MB -d hots=x".to_owned(), 2, "hots"),
        ("fill 50MB --profile bluk".to_owned(), 2, "bluk"),
        ("fill 50MB --pg-version 12".to_owned(), 2, "13"),
    ] {
        let ran = rig.run(&arguments);
        assert_eq!(ran.code, Some(code), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "pgrig {arguments}: {ran:#?}");
        assert_eq!(ran.stdout, "", "pgrig {arguments}");
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench%' AND relkind = 'r'";
    assert_eq!(server.number(tables), 1, "only the one that was there");
    assert_eq!(server.number("SELECT count(*) FROM pg_namespace WHERE nspname IN ('s', 'new')"), 0);
}

#[test]
fn explain_shows_the_plan_of_a_fill_for_which_the_disk_lacks_room() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE one (id bigint PRIMARY KEY); CREATE TABLE two (id bigint PRIMARY KEY)");
    for (arguments, says) in [
        ("fill 30TB --explain", "free on"),
        ("fill 30TB --explain --json -", "\"predicted\""),
        ("fill 30TB --all-tables --explain", "free on"),
    ] {
        let ran = rig.run(arguments);
        assert_eq!(ran.code, Some(1), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stdout.contains(says), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains("of disk space (tables"), "pgrig {arguments}: {ran:#?}");
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench%'"), 0);
}

#[test]
fn a_role_with_nothing_but_create_on_a_schema_is_enough() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(
            "REVOKE CREATE ON SCHEMA public FROM public; CREATE ROLE clerk LOGIN; \
             CREATE SCHEMA desk; GRANT CREATE, USAGE ON SCHEMA desk TO clerk",
        );
        let url = server.url.replace("postgres@", "clerk@");
        for options in ["", "--drop --streams 2", "--drop --unlogged"] {
            let document = rig.document(&format!("fill 20MB --schema desk -d {url} {options}"));
            assert_eq!(document["environment"]["role"], "clerk");
            let accounts = server.number("SELECT count(*) FROM desk.pgbench_accounts");
            assert_eq!(document["plan"]["chunking"]["rows"], accounts, "{version} {options}");
        }
    }
}

#[test]
fn a_role_that_hides_the_free_space_is_named_with_the_grant() {
    let rig = Rig::new().of_others();
    let server = rig.server("");
    server.execute("CREATE ROLE clerk LOGIN; CREATE SCHEMA desk AUTHORIZATION clerk");
    let url = server.url.replace("postgres@", "clerk@");
    let explain = format!("fill 5MB --schema desk --explain -d {url}");
    for limit in ["--until-free 1GB", "--brim --reserve 1GB", "5MB --mark 99%"] {
        let ran = rig.run(&format!("fill {limit} --schema desk -d {url}"));
        assert_eq!(ran.code, Some(2), "{limit}: {ran:#?}");
        let said = "cannot see it (role clerk may not read data_directory): run GRANT pg_read_all_settings TO clerk, or ";
        assert!(ran.stderr.contains(said), "{limit}: {ran:#?}");
    }
    let unknown = "free space is not known: role clerk may not read data_directory (GRANT pg_read_all_settings TO clerk)";
    for plan in [&explain, &format!("blockio 10MB --schema desk --explain -d {url}")] {
        let ran = rig.done(plan);
        assert!(ran.stdout.contains(unknown), "{plan}: {ran:#?}");
    }
    let doctor = rig.done(&format!("doctor -d {url}")).stdout;
    let grant = "for --until-free, --reserve and --mark, run GRANT pg_read_all_settings TO clerk";
    assert!(doctor.contains(grant), "{doctor}");
    server.execute("GRANT pg_read_all_settings TO clerk");
    let ran = rig.done(&explain);
    assert!(!ran.stdout.contains("not known") && ran.stdout.contains(" free on "), "{ran:#?}");
    rig.done(&format!("fill 5MB --mark 99% --schema desk -d {url}"));
}

#[test]
fn a_read_only_session_is_refused_and_lets_itself_be_overruled() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("ALTER DATABASE postgres SET default_transaction_read_only = on");
    let ran = rig.run(&format!("fill 5MB -d {}", server.url));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("PGOPTIONS"), "{ran:#?}");
    let mut command = rig.command(&format!("fill 5MB -d {}", server.url));
    command.env("PGOPTIONS", "-c default_transaction_read_only=off");
    assert!(command.output().unwrap().status.success());
    // Variables have no effect on pgrig's own server.
    let ran = rig.run("fill 5MB --schema other");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let sql = "SET transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only";
    assert!(ran.stderr.contains(&format!("run pgrig server psql -- -c '{sql}'")), "{ran:#?}");
    server.execute(sql);
    rig.done("fill 5MB --schema other");
}

#[test]
fn a_standby_is_refused() {
    let rig = Rig::new();
    let server = rig.server("--profile stock");
    let data: String = server.row("SELECT setting FROM pg_settings WHERE name = 'data_directory'").get(0);
    rig.done("server stop");
    std::fs::write(format!("{data}/standby.signal"), "").unwrap();
    rig.done("server start");
    let ran = rig.run("fill 50MB");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("in recovery"), "{ran:#?}");
}

/// The headline's time is the one of the steps; the last line has the whole command's.
#[test]
fn the_printed_times_agree_with_a_second_clock() {
    let rig = Rig::new();
    let started = Instant::now();
    let ran = rig.done("fill 5MB");
    let process = started.elapsed().as_secs_f64();
    let numbers =
        |line: &str| -> Vec<f64> { line.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let line = ran.stderr.lines().find(|line| line.starts_with("whole command: "));
    let line = line.unwrap_or_else(|| panic!("{ran:#?}"));
    let [whole, steps, before, sample, rest] = numbers(line)[..] else { panic!("{line}") };
    // Each is rounded to hundredths.
    assert!((steps + before + sample + rest - whole).abs() < 0.03, "{line}");
    assert!(whole < process + 0.01 && whole > process / 2.0, "{line}: the process took {process} s");
    let headline = ran.stdout.lines().find(|line| line.contains(" s, all steps: ")).unwrap();
    let total = ran.stdout.lines().find(|line| line.starts_with("total ")).unwrap();
    let (headline, total) = (numbers(headline), numbers(total));
    assert!(
        (headline[1] - steps).abs() < 0.011 && (total[0] - steps).abs() < 0.011,
        "{line}: {headline:?} {total:?}"
    );
}

/// Tables of a small scale have integer ids. A disk with less room may refuse the sizes that the ids allow.
#[test]
fn integer_ids_bound_the_growth_of_existing_tables() {
    let rig = Rig::new();
    rig.done("fill --scale 1");
    for amount in ["1TB", "--rows 6000000000", "--scale 60000"] {
        let refused = rig.run(&format!("fill {amount} --append --explain"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains("--drop instead of --append"), "{refused:#?}");
        let rest = refused.stderr.split("can grow by at most ").nth(1).unwrap();
        let size = rest.split(" (").next().unwrap().replace(' ', "");
        for possible in [format!("{size} --append"), format!("{amount} --drop")] {
            let ran = rig.run(&format!("fill {possible} --explain"));
            assert!(!ran.stderr.contains("are integer") && ran.code != Some(2), "{possible}: {ran:#?}");
        }
    }
}
