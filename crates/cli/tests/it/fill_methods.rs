//! Every way to fill makes the same tables: methods, partitions, steps, presets.

use std::process::Command;

use crate::support::{NEWEST, OLDEST, Rig, Server, observed};
use serde_json::Value;
use testkit::{Need, require};

/// Bytes of everything in a schema but sequences.
fn total(server: &Server, schema: &str) -> i64 {
    server.number(&format!(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class \
          WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p')"
    ))
}

fn assert_close(actual: f64, wanted: f64, what: &str) {
    assert!((actual / wanted - 1.0).abs() < 0.01, "{what}: {actual} instead of {wanted}");
}

/// All methods give the rows that the plain one gives.
fn assert_methods(version: &str) {
    let rows = 120_000;
    let rig = Rig::new();
    let server = rig.server(version);
    rig.done(&format!("fill --rows {rows} --schema plain --streams 1"));
    let plain = server.pgbench_rows("plain");
    for options in [
        "--chunk 5MB",
        "--partitions 3",
        "--partitions 3 --partition-method hash --streams 2",
        "--partitions 5 --partition-method hash --chunk 1MB --unlogged",
        "--method server --streams 2",
        "--server-side --partitions 3",
        "-I dtGvp --partitions 2 --partition-method hash",
        "--method reinsert --streams 3",
        "--method reinsert --partitions 3 --unlogged",
        "--method explode --fillfactor 30",
        "--method explode --fillfactor 30 --partitions 2 --partition-method hash --unlogged",
        "-I dtpgv --streams 2",
        "--no-autovacuum --index brin --streams 2",
        "--index none --format text --partitions 2",
    ] {
        rig.done(&format!("fill --rows {rows} --schema s --drop {options}"));
        assert_eq!(server.pgbench_rows("s"), plain, "{options}");
        let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'";
        assert_eq!(server.number(left), 0, "{options}");
    }
}

#[test]
fn methods_give_the_same_rows_on_the_newest() {
    assert_methods(NEWEST);
}

#[test]
fn methods_give_the_same_rows_on_the_oldest() {
    assert_methods(OLDEST);
}

/// Every method meets the size that was asked for, and predicts it.
#[test]
fn methods_meet_the_size() {
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    for options in [
        "--partitions 3 --unlogged",
        "--partitions 4 --partition-method hash --data-only",
        "--method server --unlogged",
        "--method reinsert --data-only --partitions 2 --partition-method hash --unlogged --fillfactor 10",
        "--method explode --fillfactor 10 --data-only --unlogged",
        "--index brin --unlogged",
        // Each stream may leave a few empty pages.
        "--chunk 10MB --streams 3",
        "--payload random --data-only",
    ] {
        let megabytes = if options.contains("--streams") { 60 } else { 30 };
        let document = rig.document(&format!("fill {megabytes}MB --schema s --drop {options}"));
        assert_close(total(&server, "s") as f64, f64::from(megabytes) * 1e6, options);
        let predicted = observed(&document, "predicted-heap") + observed(&document, "predicted-index");
        assert_close(predicted, total(&server, "s") as f64, options);
    }
}

/// Relations, constraints, partition bounds and storage options of a schema.
fn catalog(server: &Server, schema: &str) -> String {
    server
        .row(&format!(
            "SELECT string_agg(concat_ws(' ', c.relname, c.relkind, c.relpersistence, c.reloptions::text, \
                      pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid), \
                      (SELECT string_agg(conname || ' ' || replace(pg_get_constraintdef(oid), '{schema}.', ''), ', ' \
                                         ORDER BY conname) \
                         FROM pg_constraint WHERE conrelid = c.oid AND contype <> 'n')), E'\\n' ORDER BY c.relname) \
               FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind IN ('r', 'p')"
        ))
        .get(0)
}

#[test]
fn partitions_and_foreign_keys_are_those_of_pgbench() {
    if !require(Need::Pgbench) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    for options in [
        "--partitions 3 --partition-method range --foreign-keys",
        "--partitions 4 --partition-method hash",
        "--fillfactor 50 --foreign-keys",
    ] {
        server.execute("DROP SCHEMA IF EXISTS theirs CASCADE; CREATE SCHEMA theirs");
        let mut pgbench = Command::new("pgbench");
        pgbench.args(["-i", "-q", "-s", "2"]).args(options.split(' ')).arg(&server.url);
        let output = pgbench.env("PGOPTIONS", "-c search_path=theirs").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        rig.done(&format!("fill --scale 2 --schema ours --drop {options}"));
        assert_eq!(catalog(&server, "ours"), catalog(&server, "theirs"), "{options}");
        assert_eq!(server.pgbench_rows("ours"), server.pgbench_rows("theirs"), "{options}");
    }
}

#[test]
fn steps_can_be_done_one_by_one() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill -I t");
    let missing = rig.run("fill 5MB -I g --schema elsewhere");
    assert!(missing.stderr.contains("add t to --init-steps"), "{missing:#?}");
    rig.done("fill --rows 150000 -I g");
    let again = rig.run("fill --rows 150000 -I g");
    assert_eq!(again.code, Some(2), "{again:#?}");
    assert!(again.stderr.contains("give --append to add rows"), "{again:#?}");
    for step in ["v", "p", "f", "p"] {
        rig.done(&format!("fill -I {step}"));
    }
    assert_eq!(server.number("SELECT count(*) FROM pg_constraint WHERE conname LIKE 'pgbench%fkey'"), 5);
    assert_eq!(server.number("SELECT count(*) FROM pg_constraint WHERE conname LIKE 'pgbench%pkey'"), 3);
    rig.done("fill --rows 150000 --schema plain");
    assert_eq!(server.pgbench_rows("public"), server.pgbench_rows("plain"));
}

#[test]
fn what_is_appended_goes_on_where_the_rest_ends() {
    let rig = Rig::new();
    let server = rig.server("");
    for options in ["", "--partitions 3", "--unlogged --fillfactor 20 --streams 2"] {
        rig.done(&format!("fill 20MB --drop --foreign-keys {options}"));
        let before = total(&server, "public");
        let document = rig.document("fill 30MB --append");
        let grown = total(&server, "public") - before;
        assert!((grown as f64 / 30e6 - 1.0).abs() < 0.02, "{options}: {grown}");
        let reported = observed(&document, "heap") + observed(&document, "index")
            - observed(&document, "heap-before")
            - observed(&document, "index-before");
        assert!((reported - grown as f64).abs() < 1.0, "{options}: {reported} {grown}");
        rig.done("fill --rows 123456 --append");
        let ids = server.row("SELECT count(*), count(DISTINCT aid), max(aid)::bigint FROM pgbench_accounts");
        let ids: [i64; 3] = [ids.get(0), ids.get(1), ids.get(2)];
        assert_eq!(ids, [ids[0]; 3], "{options}");
        let scale = server.number("SELECT count(*) FROM pgbench_branches");
        assert_eq!(scale, ids[0] / 100_000, "{options}: every account of the scale is there");
        assert_eq!(server.number("SELECT count(*) FROM pgbench_tellers"), scale * 10, "{options}");
    }
}

#[test]
fn tablespaces_are_used() {
    let rig = Rig::new();
    let server = rig.server("");
    let client = rig.connect(&format!("{}&options=-c%20allow_in_place_tablespaces%3Don", server.url));
    for name in ["one", "two"] {
        rig.block_on(client.batch_execute(&format!("CREATE TABLESPACE {name} LOCATION ''"))).unwrap();
    }
    rig.done("fill 10MB --tablespace one --index-tablespace two --partitions 2 --foreign-keys");
    let placed = |name: &str, kind: &str| {
        server.number(&format!(
            "SELECT count(*) FROM pg_class c JOIN pg_tablespace t ON t.oid = c.reltablespace \
              WHERE spcname = '{name}' AND relkind = '{kind}' AND relnamespace = 'public'::regnamespace"
        ))
    };
    assert_eq!((placed("one", "r"), placed("two", "i"), placed("one", "i")), (5, 4, 0));
    server.execute("CREATE ROLE guest LOGIN; GRANT CREATE ON SCHEMA public TO guest");
    let guest = server.url.replace("postgres@", "guest@");
    let refused = rig.run(&format!("fill 5MB --drop -d {guest} --tablespace one"));
    assert!(refused.stderr.contains("GRANT CREATE ON TABLESPACE one TO guest"), "{refused:#?}");
    let of_another = rig.run(&format!("fill 5MB --drop -d {guest}"));
    assert!(
        of_another.stderr.contains("connect as their owner (-U); or give another --schema"),
        "{of_another:#?}"
    );
    let missing = rig.run("fill 5MB --drop --tablespace three");
    assert!(missing.stderr.contains("tablespace three does not exist"), "{missing:#?}");
}

#[test]
fn what_cannot_work_is_refused_before_a_server_is_started() {
    let rig = Rig::new();
    for (arguments, said) in [
        ("fill", "no amount is given"),
        ("fill 1GB -I vp", "none of the steps generates"),
        ("fill 1GB -I gt", "put it before g"),
        ("fill 1GB -I dg", "t, which creates them, is missing"),
        ("fill 1GB -I tgf", "p has to come before f"),
        ("fill 1GB -I tgx", "is not a step"),
        ("fill 1GB -I tgg", "given twice"),
        (
            "fill 1GB --append --drop",
            "--append keeps the existing tables, and --drop (or the step d) drops them",
        ),
        ("fill 1GB --append -I tgv", "leave out the step t"),
        ("fill 1GB --table t --drop", "--drop (the step d) is for pgbench's tables: leave it out"),
        ("fill 1GB --table t --foreign-keys", "the steps p and f (--foreign-keys) are for pgbench's tables"),
        ("fill --table t --rows t=5000", "with --table, give the number alone: --rows 5000"),
        ("fill 1GB --append --partitions 3", "keeps the existing partitions"),
        ("fill 1GB --append --method explode", "would rewrite the old rows"),
        ("fill 1GB --method explode", "below 100"),
        ("fill 1GB --method explode -F 10 --chunk 10MB", "loads whole tables"),
        ("fill --brim --method explode -F 10", "cannot fill until a limit"),
        ("fill --brim --partitions 4 --partition-method range", "need a known number of rows"),
        ("fill 1GB --method reinsert -I g", "has no seed rows"),
        (
            "fill 1GB --method reinsert --partitions 2 --partition-method hash",
            "a primary key is not possible",
        ),
        ("fill 1GB --method reinsert --payload random", "repeats its seed rows"),
        ("fill 1GB --method server --format text", "without COPY"),
        ("fill 1GB --index brin --foreign-keys", "foreign keys reference primary keys"),
        ("fill 1GB --data-only --index-tablespace x", "needs an index"),
        ("fill 1GB --level 0 --fillfactor 10", "one CREATE TABLE AS"),
        ("fill --series --scale 3", "level 0 (--series)"),
        ("fill 1GB --partition-method hash", "--partitions"),
        ("fill 1GB --level 9", "invalid value"),
        ("fill 1GB --ladder 1GB", "SIZE and --ladder each set the amount"),
        ("fill --ladder 1GB --unlogged", "only --schema, --trials, --json"),
        ("fill 1GB --trials 3", "--ladder"),
        ("fill --brim --until-free 1GB", "cannot be used with"),
        ("fill 1GB --reserve 1GB", "--brim"),
        ("fill --for 5", "has no unit"),
        ("fill 1GB --mark 100%", "1% to 99%"),
        ("fill 1GB --probe nonsense", "there is no probe"),
        ("size", "give SIZE"),
        ("size 1kB", "is out of range"),
        ("size 1GB --block-size 1000", "8192"),
    ] {
        let ran = rig.run(arguments);
        assert_eq!(ran.code, Some(2), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "pgrig {arguments}: {ran:#?}");
        assert!(!ran.stderr.contains("instance"), "pgrig {arguments} started a server: {ran:#?}");
    }
}

#[test]
fn size_says_what_fill_makes() {
    let rig = Rig::new();
    let server = rig.server("");
    for options in ["", "--data-only --fillfactor 10", "--partitions 3", "--index brin"] {
        let said = rig.done(&format!("size 40MB --json {options}")).stdout;
        let said: Value = serde_json::from_str(&said).unwrap();
        rig.done(&format!("fill 40MB --drop --streams 1 {options}"));
        let rows = server.number("SELECT count(*) FROM pgbench_accounts");
        assert_eq!(said["rows"], rows, "{options}");
        let bytes = said["heap"].as_i64().unwrap() + said["index"].as_i64().unwrap();
        assert_close(total(&server, "public") as f64, bytes as f64, options);
    }
    let scale = rig.done("size --scale 5000").stdout;
    assert!(scale.contains("500,000,000 accounts, 61 a page"), "{scale}");
}

#[test]
fn a_level_is_its_flags() {
    let rig = Rig::new();
    let server = rig.server("");
    let explained = rig.done("fill 10MB --level 4 --explain").stdout;
    assert!(explained.contains("--unlogged --streams 1 --data-only --fillfactor 10"), "{explained}");
    let document = rig.document("fill 10MB --level 4 --fillfactor 20");
    assert_eq!(document["request"]["fillfactor"], 20);
    assert_eq!(document["request"]["persistence"], "unlogged");
    rig.done("fill 10MB --level 0");
    let integers = server.row("SELECT count(*), min(x)::bigint, max(x)::bigint FROM series");
    let integers: [i64; 3] = [integers.get(0), integers.get(1), integers.get(2)];
    assert_eq!(integers, [integers[0], 1, integers[0]]);
    rig.done("fill 20MB --level bonus --drop");
    let leaves =
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgbench_accounts_%' AND relpersistence = 'u'";
    assert_eq!(server.number(leaves), 4);
}

#[test]
fn a_ladder_compares_all_levels_and_leaves_nothing() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE SCHEMA pgrig_ladder; CREATE TABLE pgrig_ladder.pgbench_tellers AS SELECT 42::bigint AS mine",
    );
    let ran = rig.run("fill --ladder 8MB --trials 1");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("pgbench_tellers, which pgrig fill --ladder did not make"), "{ran:#?}");
    assert_eq!(server.number("SELECT mine FROM pgrig_ladder.pgbench_tellers"), 42);
    server.execute(
        "DROP SCHEMA pgrig_ladder CASCADE; CREATE SCHEMA pgrig_ladder; \
         COMMENT ON SCHEMA pgrig_ladder IS 'made by pgrig fill --ladder, whose next run drops it'; \
         CREATE TABLE pgrig_ladder.series (left_by_a_killed_one int); \
         COMMENT ON TABLE pgrig_ladder.series IS 'made by pgrig fill --ladder, whose next run drops it'",
    );
    let document = rig.document("fill --ladder 8MB --trials 2");
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let trials = document["trials"].as_array().unwrap();
    for level in ["0", "1", "2", "3", "4", "5", "bonus", "best of 1", "best of 5"] {
        let of_level = trials.iter().filter(|trial| trial["config"] == level).count();
        assert_eq!(of_level, 2, "{level}");
        assert!(document["request"]["ladder"]["levels"][level].is_string(), "{level}");
    }
    let order =
        |round: usize| -> Vec<&Value> { trials[round * 9..][..9].iter().map(|t| &t["config"]).collect() };
    assert_ne!(order(0), order(1), "shuffled");
    assert_eq!(server.number("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgrig%'"), 0);
    // A role that may create no schema names its own.
    server.execute(
        "CREATE ROLE clerk LOGIN; CREATE SCHEMA desk AUTHORIZATION clerk; CREATE TABLE desk.pgbench_notes AS SELECT 1 AS mine",
    );
    let clerk = server.url.replace("postgres@", "clerk@");
    let table = rig.done(&format!("fill --ladder 8MB --trials 1 --schema desk -d {clerk}")).stdout;
    assert!(table.contains("times level 1"), "{table}");
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'desk'::regnamespace";
    assert_eq!(server.number(left), 1, "only the user's own table is left");
}

#[test]
fn probes_show_latencies_as_the_table_grows() {
    let rig = Rig::new();
    let _server = rig.server("");
    for (probe, points) in [("lookup", 3), ("batch", 3), ("scan", 3)] {
        let document = rig.document(&format!("fill 100MB --drop --probe {probe}"));
        let series = document["trials"][0]["series"].as_array().unwrap();
        let p50 = series.iter().find(|series| series["name"].as_str().unwrap().contains("p50")).unwrap();
        let found = p50["points"].as_array().unwrap();
        assert!(found.len() >= points, "{probe}: {p50:#}");
        let sizes: Vec<f64> = found.iter().map(|point| point[0].as_f64().unwrap()).collect();
        assert!(sizes.is_sorted(), "{probe}: {sizes:?}");
        assert!(found.iter().all(|point| point[1].as_f64().unwrap() > 0.0), "{probe}: {p50:#}");
        let rate = series.iter().find(|series| series["name"] == "rows-sent").unwrap();
        let rows: f64 =
            rate["points"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).sum();
        assert!((rows - observed(&document, "rows")).abs() < 1.0, "{probe}");
    }
    let mut own = rig.command("fill 20MB --drop -I dtpgv");
    own.args(["--probe", "SELECT sum(abalance) FROM pgbench_accounts WHERE aid <= $1 AND $2 > 0"]);
    let output = own.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for (probe, said) in
        [("SELECT nonsense FROM nowhere", "nowhere"), ("DELETE FROM pgbench_accounts", "only reads")]
    {
        let mut wrong = rig.command("fill 20MB --drop");
        let output = wrong.args(["--probe", probe]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{probe}: {text}");
    }
    let without_index = rig.run("fill 20MB --drop --data-only --probe lookup");
    assert!(without_index.stderr.contains("--probe scan"), "{without_index:#?}");
}

#[test]
fn a_conflict_is_refused_before_the_old_tables_are_dropped() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill 2MB");
    let rows = server.number("SELECT count(*) FROM pgbench_accounts");
    server.execute(
        "CREATE SCHEMA seen; CREATE TABLE seen.pgbench_branches (x int); \
         CREATE VIEW seen.of_it AS SELECT x FROM seen.pgbench_branches; \
         CREATE SCHEMA forbidden; CREATE TABLE forbidden.pgbench_history (x int); \
         CREATE FUNCTION no_key() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF current_query() LIKE '%forbidden%ADD PRIMARY KEY%' THEN RAISE 'no keys here'; END IF; END $$; \
         CREATE EVENT TRIGGER no_key ON ddl_command_end EXECUTE FUNCTION no_key()",
    );
    for (options, said) in [
        ("--for 2s --unlogged --data-only --probe lookup", "--probe scan"),
        ("2MB -I dtgp --probe batch", "--probe scan"),
        ("2MB --schema seen", "other objects depend on it"),
        ("2MB --index-tablespace pg_global", "pg_global"),
        ("2MB --schema forbidden", "no keys here"),
    ] {
        for explain in ["--explain", ""] {
            let ran = rig.run(&format!("fill --drop {options} {explain}"));
            assert_eq!(ran.code, Some(2), "{options} {explain}: {ran:#?}");
            assert!(ran.stderr.contains(said), "{options} {explain}: {ran:#?}");
            assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), rows, "{options}");
            let others = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'pgbench%' \
                          AND relnamespace::regnamespace::text IN ('seen', 'forbidden')";
            assert_eq!(server.number(others), 2, "{options}");
        }
    }
    // Limits are refused by --explain as well.
    for explain in ["--explain", ""] {
        let ran = rig.run(&format!("fill --brim --reserve 100TB --drop --schema unseen {explain}"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("no room for the first chunk"), "{ran:#?}");
        // Tables that are to be dropped do not have that much to give back.
        for limit in ["--until-free 100TB", "--brim --reserve 100TB"] {
            let ran = rig.run(&format!("fill {limit} --drop {explain}"));
            assert_eq!(ran.code, Some(2), "{limit}: {ran:#?}");
            assert!(ran.stderr.contains("once the old tables are dropped"), "{limit}: {ran:#?}");
            assert!(ran.stderr.contains("Give a smaller --reserve or --until-free"), "{limit}: {ran:#?}");
            assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), rows, "{limit}");
        }
    }

    // A query is tried on the tables that will be there, not on those that are.
    server.execute("DROP TABLE pgbench_accounts CASCADE; CREATE TABLE pgbench_accounts (x int)");
    let probed = |options: &str| {
        let mut command = rig.command(&format!("fill 2MB --drop {options}"));
        command.args(["--probe", "SELECT abalance FROM pgbench_accounts WHERE aid <= $1 AND $2 > 0"]);
        command.output().unwrap()
    };
    for options in ["--explain", ""] {
        let output = probed(options);
        assert!(output.status.success(), "{options}: {output:?}");
    }

    // --explain does not wait for a lock.
    let holder = rig.connect(&server.url);
    rig.block_on(holder.batch_execute("BEGIN; LOCK TABLE pgbench_tellers")).unwrap();
    let explained = rig.done("fill 2MB --drop --explain").stdout;
    assert!(explained.contains("another session holds a lock"), "{explained}");
}
