//! `pgrig blockio` on real servers: its numbers add up, it says what it may not do, and it leaves nothing.

use crate::support::{NEWEST, OLDEST, Ran, Rig, Running, Server, configs_in_order, observed};
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

const BLOCK: f64 = 8192.0;

/// Nothing of pgrig's own is there.
fn assert_nothing_left(server: &Server) {
    let left = "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgrig%') \
                     + (SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%' OR relname = 'settings_loop') \
                     + (SELECT count(*) FROM pg_extension WHERE extname = 'pg_buffercache')";
    assert_eq!(server.number(left), 0);
}

fn assert_valid(document: &Value) {
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// How warm the data of a step were, in the first trial.
fn state(document: &Value, step: &str) -> Option<String> {
    let events = document["trials"][0]["events"].as_array().unwrap();
    let of_step = |event: &&Value| event["what"]["event"] == "state" && event["what"]["step"] == step;
    Some(events.iter().find(of_step)?["what"]["state"].as_str().unwrap().to_owned())
}

fn notes(document: &Value) -> String {
    document["notes"].to_string()
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}

fn assert_adds_up(release: &str) -> Value {
    let rig = Rig::new();
    let server = rig.server(release);
    // 32 rows of the same width to a page, 352 rows to a copy.
    let document = rig.document("blockio 20MB --trials 2 --keep");
    assert_valid(&document);
    assert_eq!(document["status"], "done");
    let version = rig.done("--version").stdout;
    assert_eq!(document["environment"]["pgrig"], version.trim_start_matches("pgrig ").trim_end());
    assert_eq!(document["trials"].as_array().unwrap().len(), 2);
    let is = |name: &str, query: &str| {
        let found = server.number(query) as f64;
        assert!(is_close(observed(&document, name), found), "{name}: {} {found}", observed(&document, name));
    };
    is("heap-after", "SELECT pg_relation_size('pgrig_blockio.pgrig_blockio_1')");
    is("index-after", "SELECT pg_relation_size('pgrig_blockio.pgrig_blockio_1_name')");
    is("rows", "SELECT count(*) FROM pgrig_blockio.pgrig_blockio_1");
    let rows = observed(&document, "rows");
    assert!(is_close(rows, (20e6_f64 / 11.0 / BLOCK).ceil() * 352.0), "{rows}");
    assert!(is_close(observed(&document, "heap-after"), rows / 32.0 * BLOCK));
    let clustered = "SELECT count(*) FROM (SELECT name < lag(name) OVER (ORDER BY ctid) AS falls \
                       FROM pgrig_blockio.pgrig_blockio_1) t WHERE falls";
    assert_eq!(server.number(clustered), 0);

    for scan in ["scan-first", "scan-again", "range"] {
        let touched =
            observed(&document, &format!("{scan}-hits")) + observed(&document, &format!("{scan}-reads"));
        assert!(touched * BLOCK >= observed(&document, "heap"), "{scan} touched {touched}");
        assert!(is_close(observed(&document, &format!("{scan}-must-read")), observed(&document, "heap")));
    }
    assert!(is_close(observed(&document, "create-must-write"), observed(&document, "heap")));
    assert!(is_close(observed(&document, "create-index-must-write"), observed(&document, "index")));
    // One block of each copy, and after CLUSTER one in 32 rows; the index comes on top.
    let lookup = |step: &str| {
        observed(&document, &format!("{step}-hits")) + observed(&document, &format!("{step}-reads"))
    };
    let copies = rows / 352.0;
    assert!(lookup("lookup-before") >= copies && lookup("lookup-before") < copies * 1.1 + 10.0);
    assert!(lookup("lookup-after") >= copies / 32.0 && lookup("lookup-after") < copies / 32.0 + 10.0);
    // VACUUM freezes every page, which is logged.
    assert!(observed(&document, "vacuum-wal") > rows);
    // Reads take time.
    assert!(
        observed(&document, "create-index-read-time") > 0.0
            || observed(&document, "create-index-reads") < 1.0
    );

    // Kept until the next run, which drops it.
    until("statistics of the checkpointer, which come a little after its checkpoint", || {
        let document = rig.document("blockio 10MB --trials 1");
        assert_eq!(document["status"], "done");
        assert_nothing_left(&server);
        (release == OLDEST || observed(&document, "checkpoint-io-fsyncs") >= 1.0).then_some(document)
    })
}

#[test]
fn numbers_add_up_on_the_newest() {
    let document = assert_adds_up(NEWEST);
    // Evicted before, in shared_buffers afterwards.
    let heap = observed(&document, "heap");
    assert!(observed(&document, "scan-first-reads") * BLOCK >= heap);
    assert!(observed(&document, "scan-first-evicted") > 0.0);
    assert_eq!(state(&document, "scan-first").as_deref(), Some("os-warm"));
    assert_eq!(state(&document, "scan-again").as_deref(), Some("cached"));
    assert_eq!(state(&document, "create"), None);
    assert!(observed(&document, "scan-first-io-reads") >= heap);
    assert!(observed(&document, "create-io-extends") >= heap);
    assert!(observed(&document, "checkpoint-io-fsyncs") >= 1.0);
    let events = document["trials"][0]["events"].as_array().unwrap();
    let rates = events.iter().find(|event| event["what"]["event"] == "server-rates").unwrap();
    assert!(rates["what"]["write"].as_f64().unwrap() > 0.0);
}

#[test]
fn numbers_add_up_on_the_oldest() {
    let document = assert_adds_up(OLDEST);
    assert!(
        notes(&document).contains("PostgreSQL before 18 has no function that evicts"),
        "{}",
        notes(&document)
    );
    assert!(
        notes(&document).contains("before PostgreSQL 15, VACUUM does not report its rates"),
        "{}",
        notes(&document)
    );
}

#[test]
fn only_what_no_cache_can_hold_is_cold() {
    let rig = Rig::new();
    let _server = rig.server("");
    for (memory, expected) in [("5MB", "cold"), ("50MB", "os-warm")] {
        let document = rig.document(&format!("blockio 12MB --trials 1 --memory {memory}"));
        assert_eq!(state(&document, "scan-first").as_deref(), Some(expected), "{memory}");
        assert_eq!(state(&document, "scan-again").as_deref(), Some("cached"), "{memory}");
    }
}

/// A role that may use and create in one schema, and nothing else.
fn assert_modest(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE guest LOGIN; \
         CREATE SCHEMA lent; GRANT CREATE ON SCHEMA lent TO guest",
    );
    let guest = server.url.replace("postgres@", "guest@");
    let ran = rig.run(&format!("blockio 10MB -d {guest}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("GRANT CREATE ON DATABASE"), "{ran:#?}");
    let ran = rig.run(&format!("blockio 10MB -d {guest} --schema lent"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("GRANT USAGE ON SCHEMA lent TO guest"), "{ran:#?}");

    server.execute("GRANT USAGE ON SCHEMA lent TO guest");
    for options in ["", "--compat", "--clients 2"] {
        let document = rig.document(&format!("blockio 10MB --trials 1 -d {guest} --schema lent {options}"));
        assert_valid(&document);
        assert_eq!(document["status"], "done");
        assert!(observed(&document, "rows") > 0.0);
        if options.is_empty() {
            for said in ["may not run CHECKPOINT", "may not set track_io_timing", "did not evict"] {
                assert!(notes(&document).contains(said), "{said}: {}", notes(&document));
            }
            let events = document["trials"][0]["events"].as_array().unwrap();
            assert!(events.iter().any(|event| event["what"]["event"] == "left-out"), "{events:?}");
        }
        assert_nothing_left(&server);
    }
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'lent'::regnamespace";
    assert_eq!(server.number(left), 0);
    // Its own schema, with the right to make one.
    server.execute("GRANT CREATE ON DATABASE postgres TO guest");
    rig.done(&format!("blockio 10MB --trials 1 -d {guest}"));
    assert_nothing_left(&server);
}

#[test]
fn a_modest_role_is_told_what_it_may_not_on_the_newest() {
    assert_modest(NEWEST);
}

#[test]
fn a_modest_role_is_told_what_it_may_not_on_the_oldest() {
    assert_modest(OLDEST);
}

/// The value of a line `KEY value`.
fn value<'t>(text: &'t str, key: &str) -> &'t str {
    let line = text.lines().find(|line| line.split(' ').next() == Some(key));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).split_whitespace().nth(1).unwrap()
}

fn assert_published(version: &str, has_rates: bool) {
    let rig = Rig::new();
    let server = rig.server(version);
    let ran = rig.done("blockio 10MB --compat --trials 1 --keep");
    // cbc-lines.txt of the published check.
    let keys = [
        "SERVER",
        "CREATE_TABLE",
        "VACUUM",
        "CREATE_INDEX",
        "SELECT_u1",
        "SELECT_c1",
        "SELECT_r",
        "CLUSTER",
        "SELECT_u2",
        "SELECT_c2",
        "SIZE_T",
        "SIZE_I",
        "READ_RATE",
        "WRITE_RATE",
    ];
    let printed: Vec<&str> =
        ran.stdout.lines().take(keys.len()).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(printed, keys);
    let table = server.number("SELECT pg_relation_size('pgrig_blockio.settings_loop')");
    assert_eq!(value(&ran.stdout, "SIZE_T"), table.to_string());
    let index = server.number("SELECT pg_relation_size('pgrig_blockio.by_name')");
    assert_eq!(value(&ran.stdout, "SIZE_I"), index.to_string());
    assert_eq!(value(&ran.stdout, "WRITE_RATE").parse::<f64>().is_ok(), has_rates, "{ran:#?}");
    // 0.01 × 12500, from 0 on.
    let settings = server.number("SELECT count(*) FROM pg_settings");
    let rows = server.number("SELECT count(*) FROM pgrig_blockio.settings_loop");
    assert_eq!(rows, 126 * settings);
    assert!(ran.stdout.contains("a 7700X (20 GB)"), "{}", ran.stdout);
    rig.done("blockio 10MB --trials 1");
    assert_nothing_left(&server);
}

#[test]
fn the_published_check_prints_its_collectors_keys_on_the_newest() {
    assert_published(NEWEST, true);
}

#[test]
fn the_published_check_prints_its_collectors_keys_on_the_oldest() {
    assert_published(OLDEST, false);
}

#[test]
fn clients_have_a_table_each() {
    let rig = Rig::new();
    let server = rig.server("");
    let document = rig.document("blockio 10MB --clients 3 --trials 2 --keep");
    assert_valid(&document);
    let of_trial = ["total", "client 1", "client 2", "client 3"];
    assert_eq!(configs_in_order(&document), [of_trial, of_trial].concat());
    let sizes =
        "SELECT sum(pg_relation_size(oid))::bigint FROM pg_class WHERE relname ~ '^pgrig_blockio_[0-9]$'";
    assert!(is_close(observed(&document, "heap-after"), server.number(sizes) as f64));
    for step in ["create", "vacuum", "cluster", "lookup-after"] {
        let total = observed(&document, step);
        for client in &document["trials"].as_array().unwrap()[1..4] {
            let observations = client["observations"].as_array().unwrap();
            let own = observations.iter().find(|observation| observation["name"] == step).unwrap();
            assert!(own["value"].as_f64().unwrap() <= total, "{step}: {own} {total}");
        }
    }
    let text = rig.done("blockio 10MB --clients 2 --trials 1").stdout;
    assert!(text.contains("client 2"), "{text}");
    assert_nothing_left(&server);
}

/// Runs until the server is at a statement of the run that is like this.
fn caught_at(rig: &Rig, server: &Server, arguments: &str, statement: &str) -> Running {
    let mut pgrig = rig.spawn(arguments);
    let running = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '{statement}%' \
           AND pid <> pg_backend_pid()"
    );
    until(&format!("{statement} runs"), || {
        assert!(!pgrig.has_ended(), "it was over before {statement}");
        (server.number(&running) > 0).then_some(())
    });
    pgrig
}

fn assert_interrupted(version: &str, statement: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    let json = rig.home.path().join("run.json");
    let command = format!("blockio 100MB --trials 1 --clients 2 --json {}", json.display());
    let pgrig = caught_at(&rig, &server, &command, statement);
    pgrig.signal(Signal::SIGINT);
    let Ran { code, stderr, .. } = pgrig.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("interrupted in step"), "{stderr}");
    assert_nothing_left(&server);
    let document: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(document["status"], "interrupted");
    assert_valid(&document);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    assert_interrupted(NEWEST, "CREATE TABLE");
    assert_interrupted(OLDEST, "CLUSTER");
}

fn assert_killed(version: &str, statement: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    let pgrig = caught_at(&rig, &server, "blockio 80MB --trials 1", statement);
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    let journal = "SELECT count(*) FROM pg_class WHERE relname = 'pgrig_blockio'";
    assert_eq!(server.number(journal), 1, "the journal lists the objects");
    rig.done("blockio 10MB --trials 1");
    assert_nothing_left(&server);
}

#[test]
fn the_next_run_drops_what_a_killed_one_left() {
    assert_killed(NEWEST, "CREATE TABLE");
    assert_killed(OLDEST, "CREATE INDEX");
}

#[test]
fn a_failed_step_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$; \
         CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION refuse()",
    );
    let ran = rig.run("blockio 10MB --trials 1");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("index failed") && ran.stderr.contains("not now"), "{ran:#?}");
    assert_nothing_left(&server);
}

#[test]
fn what_is_not_pgrigs_is_left_alone() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE public.settings_loop AS SELECT 42::bigint AS mine");
    let ran = rig.run("blockio 10MB --compat --schema public");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("settings_loop that pgrig did not make"), "{ran:#?}");
    let ran = rig.run("blockio 10MB --schema none");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("there is no schema none: run CREATE SCHEMA none"), "{ran:#?}");
    // Another table in pgrig's schema keeps that, and nothing else.
    server.execute("CREATE SCHEMA pgrig_blockio; CREATE TABLE pgrig_blockio.other (x int)");
    rig.done("blockio 10MB --trials 1");
    let there = "SELECT count(*) FROM pg_class WHERE relnamespace = 'pgrig_blockio'::regnamespace";
    assert_eq!(server.number(there), 1);
    assert_eq!(server.number("SELECT mine FROM public.settings_loop"), 42);
    // A journal is believed only if it is this role's own.
    server.execute(
        "CREATE ROLE guest LOGIN; GRANT ALL ON SCHEMA public TO guest; SET ROLE guest; \
         CREATE TABLE public.pgrig_blockio AS SELECT 'table' AS kind, 'settings_loop' AS name; \
         COMMENT ON TABLE public.pgrig_blockio IS 'made by pgrig blockio, whose next run drops it'",
    );
    let ran = rig.run("blockio 10MB --schema public");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("role guest created with an earlier pgrig blockio"), "{ran:#?}");
    assert_eq!(server.number("SELECT mine FROM public.settings_loop"), 42);
}

#[test]
fn a_panic_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.panics("blockio", &["blockio", "10MB", "--trials", "1"]);
    assert_nothing_left(&server);
}

#[test]
fn tables_without_the_mark_are_refused_and_stay() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(
            "CREATE SCHEMA pgrig_blockio; CREATE TABLE pgrig_blockio.pgrig_blockio AS SELECT 42::bigint AS mine",
        );
        let ran = rig.run("blockio 10MB --trials 1");
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("pgrig_blockio that pgrig did not make"), "{ran:#?}");
        assert_eq!(server.number("SELECT mine FROM pgrig_blockio.pgrig_blockio"), 42);
        // A journal that lists what somebody has made.
        server.execute(
            "DROP TABLE pgrig_blockio.pgrig_blockio; \
             CREATE TABLE pgrig_blockio.pgrig_blockio AS \
             SELECT * FROM (VALUES ('table', 'pgrig_blockio_1'), ('schema', 'pgrig_blockio')) v (kind, name); \
             COMMENT ON TABLE pgrig_blockio.pgrig_blockio IS 'made by pgrig blockio, whose next run drops it'; \
             CREATE TABLE pgrig_blockio.pgrig_blockio_1 AS SELECT 42::bigint AS mine",
        );
        let ran = rig.run("blockio 10MB --trials 1");
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("pgrig_blockio_1 that pgrig did not make"), "{ran:#?}");
        assert_eq!(server.number("SELECT mine FROM pgrig_blockio.pgrig_blockio_1"), 42);
    }
}

#[test]
fn a_second_run_in_the_same_schema_is_refused_while_the_first_works() {
    let rig = Rig::new();
    let server = rig.server("");
    let first = caught_at(&rig, &server, "blockio 40MB --trials 1", "CREATE TABLE");
    first.signal(Signal::SIGSTOP);
    let second = rig.run("blockio 10MB --trials 1");
    assert_eq!(second.code, Some(1), "{second:#?}");
    assert!(second.stderr.contains("runs pgrig blockio"), "{second:#?}");
    first.signal(Signal::SIGCONT);
    assert_eq!(first.end().code, Some(0));
    assert_nothing_left(&server);
}

#[test]
fn a_baseline_is_of_the_same_kind_and_gets_no_verdict() {
    let rig = Rig::new();
    let _server = rig.server("");
    let baseline = rig.home.path().join("baseline.json");
    let baseline = baseline.to_str().unwrap();
    rig.done(&format!("blockio 10MB --trials 1 --json {baseline}"));
    let ran = rig.done(&format!("blockio 10MB --trials 1 --baseline {baseline}"));
    assert!(ran.stdout.contains("no verdict: run both sides in turn with pgrig ab"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("inconclusive") && !ran.stdout.contains("now: scaled"), "{}", ran.stdout);
    for (options, said) in [
        ("10MB --compat", "so their statements differ"),
        ("11MB", "give the same"),
        ("10MB --clients 2", "has --clients 1, not 2"),
    ] {
        let ran = rig.run(&format!("blockio {options} --baseline {baseline}"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(said), "{ran:#?}");
    }
    // The same run with other times.
    let text = std::fs::read_to_string(baseline).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let observations = document["trials"][0]["observations"].as_array_mut().unwrap();
    let create = observations.iter_mut().find(|observation| observation["name"] == "create").unwrap();
    create["value"] = 1000.into();
    let heap = observations.iter_mut().find(|observation| observation["name"] == "heap").unwrap();
    heap["value"] = (2.0 * heap["value"].as_f64().unwrap()).into();
    document["trials"] = vec![document["trials"][0].clone(); 20].into();
    std::fs::write(baseline, document.to_string()).unwrap();
    let ran = rig.done(&format!("blockio 10MB --trials 3 --baseline {baseline}"));
    let create = ran.stdout.lines().rfind(|line| line.starts_with("create")).unwrap();
    assert!(create.contains("1000 s") && create.trim_end().ends_with("-100.0 %"), "{}", ran.stdout);
    assert!(ran.stdout.contains("now: scaled to the baseline's table of "), "{}", ran.stdout);
}

#[test]
fn what_cannot_work_is_refused_before_a_server_is_started() {
    let rig = Rig::new();
    std::fs::write(rig.home.path().join("fill.json"), "{}").unwrap();
    let no_run = rig.home.path().join("fill.json");
    for (arguments, said) in [
        ("blockio 1MB", "give 10MB to"),
        ("blockio 100TB", "give 10MB to"),
        ("blockio 1", "has no unit"),
        ("blockio 10MB --trials 0", "invalid value"),
        ("blockio 10MB --clients 0", "invalid value"),
        ("blockio 10MB --compat --clients 2", "use one client"),
        ("blockio 10MB --baseline /nowhere.json", "--baseline /nowhere.json: cannot read"),
        (&format!("blockio 10MB --baseline {}", no_run.display()), "not a run document"),
        ("blockio 10MB --memory much", "invalid value"),
    ] {
        let ran = rig.run(arguments);
        assert_eq!(ran.code, Some(2), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "pgrig {arguments}: {ran:#?}");
        assert!(!ran.stderr.contains("instance"), "pgrig {arguments} started a server: {ran:#?}");
    }
}

#[test]
fn a_full_disk_is_refused_before_anything_is_made() {
    let rig = Rig::new();
    let server = rig.server("");
    let ran = rig.run("blockio 25TB");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("of disk space (tables"), "{ran:#?}");
    // Its plan says how much that is.
    let explained = rig.run("blockio 25TB --explain");
    assert_eq!(explained.code, Some(1), "{explained:#?}");
    assert!(explained.stdout.contains(" TB at once; "), "{explained:#?}");
    assert!(explained.stderr.contains("of disk space (tables"), "{explained:#?}");
    assert_nothing_left(&server);
    let plan = rig.done("blockio 10MB --explain").stdout;
    assert!(plan.contains("shared_buffers") && plan.contains("pg_buffercache"), "{plan}");
    assert_nothing_left(&server);
}
