//! `pgrig testdb bench` on real servers: what the command sees in each variant, and that nothing is left of it.

use std::collections::BTreeSet;
use std::fs;

use crate::support::bench::{
    SCHEMA, SHORT, assert_forced_out, assert_nothing_left, assert_says, bench, configs, databases, named,
    read, schema, seeing, seen, set, suite,
};
use crate::support::{NEWEST, OLDEST, Ran, Rig};
use testkit::until_some as until;

fn each_way_is_what_it_says(version: &str) {
    let rig = Rig::not_in_memory();
    let (schema, suite) = (schema(&rig), seeing(&rig));
    let own = "--instance default --profile stock";
    let arguments = format!("{own} {version} {SHORT} --from {}", schema.display());
    let (ran, document) = bench(&rig, &arguments, &suite);
    assert_eq!(document["status"], "done");
    let ways = [
        "normal",
        "unlogged",
        "dangerous",
        "unlogged+dangerous",
        "template",
        "tmpfs",
        "dangerous+template+tmpfs",
    ];
    assert_eq!(configs(&document), set(&ways));
    for way in ways {
        assert!(ran.stdout.contains(way), "{way} is not in {}", ran.stdout);
    }
    let expected = [
        "on on on 0 f 50 t",
        "on on on 2 f 50 t",
        "off off off 0 f 50 t",
        "off off off 2 f 50 t",
        "on on on 0 t 50 t",
        "off off off 0 t 50 t",
    ];
    assert_eq!(seen(&rig), set(&expected));
    assert_eq!(fs::read_to_string(rig.home.path().join("same")).unwrap(), "t\n".repeat(7));
    for trial in document["trials"].as_array().unwrap() {
        let value = |name: &str| {
            let observations = trial["observations"].as_array().unwrap();
            let found = observations.iter().find(|observation| observation["name"] == name);
            found.unwrap_or_else(|| panic!("no {name} in {trial}"))["value"].as_f64().unwrap()
        };
        assert!((value("prepare") + value("command") - value("total")).abs() < 1e-9);
        let is_dangerous = trial["config"].as_str().unwrap().contains("dangerous");
        let active = &trial["events"][0]["what"]["active"];
        assert_eq!(active["fsync"], if is_dangerous { "off" } else { "on" });
    }
    let copying: Vec<&str> = document["plan"]["copying"]["strategies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|timed| timed["strategy"].as_str().unwrap())
        .collect();
    match version {
        OLDEST => assert_eq!(copying, ["default"]),
        // Whether the file system can clone is found by trying.
        _ => assert_eq!(copying[..2], ["wal-log", "file-copy"]),
    }
    let server = rig.server("");
    assert_nothing_left(&rig, &server);
}

#[test]
fn each_way_is_what_it_says_18() {
    each_way_is_what_it_says(NEWEST);
}

#[test]
fn each_way_is_what_it_says_13() {
    each_way_is_what_it_says(OLDEST);
}

#[test]
fn a_database_of_a_named_server_is_copied_and_never_changed() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::not_in_memory().of_others();
        let (server, url) = named(&rig, version);
        let (before, suite) = (databases(&server), seeing(&rig));
        // By default what is dangerous for others is left out.
        let (ran, document) = bench(&rig, &format!("{SHORT} -d {url}"), &suite);
        assert_eq!(configs(&document), set(&["normal", "unlogged", "template"]));
        assert_says(
            &ran,
            0,
            &[
                "dangerous, unlogged+dangerous: ",
                "--allow-dangerous-settings",
                "no -d, -h, -p, -U",
                "tmpfs: pgrig does not move the data of your server to memory",
            ],
        );
        let all = "--variants unlogged+dangerous+template,dangerous --allow-dangerous-settings";
        let (ran, document) = bench(&rig, &format!("{SHORT} {all} -d {url}"), &suite);
        assert_eq!(configs(&document), set(&["normal", "unlogged+dangerous+template", "dangerous"]));
        assert_says(&ran, 0, &["corrupt EVERY database"]);
        let expected =
            ["on on on 0 f 50 t", "on on on 2 f 50 t", "off off off 2 f 50 t", "off off off 0 f 50 t"];
        assert_eq!(seen(&rig), set(&expected));
        assert_eq!(databases(&server), before);
        let client = rig.connect(&url);
        let query = "SELECT bool_and(relpersistence = 'p') AND (SELECT count(*) FROM parent) = 50 \
                     FROM pg_class WHERE relkind = 'r' AND relname IN ('parent', 'child')";
        assert!(rig.block_on(client.query_one(query, &[])).unwrap().get::<_, bool>(0));
        assert_nothing_left(&rig, &server);
    }
}

#[test]
fn a_database_of_an_instance_is_copied_only_if_it_is_named() {
    let rig = Rig::not_in_memory();
    let server = rig.server(NEWEST);
    server.execute("CREATE DATABASE shop");
    let shop = server.database("shop");
    shop.execute(SCHEMA);
    let (before, suite) = (databases(&server), seeing(&rig));
    let ways = "--instance default --variants unlogged,dangerous,template";
    let (_, document) = bench(&rig, &format!("{SHORT} {ways} -d shop"), &suite);
    assert_eq!(configs(&document), set(&["normal", "unlogged", "dangerous", "template"]));
    assert_eq!(document["request"]["content"]["kind"], "database");
    assert_eq!(document["request"]["content"]["name"], "shop");
    assert_eq!(seen(&rig), set(&["on on on 0 f 50 t", "on on on 2 f 50 t", "off off off 0 f 50 t"]));
    assert_eq!(shop.number("SELECT count(*) FROM parent"), 50);
    let (_, document) = bench(&rig, &format!("{SHORT} --instance default --variants normal"), "true");
    assert_eq!(document["request"]["content"]["kind"], "empty");
    assert_eq!(databases(&server), before);
    assert_nothing_left(&rig, &server);
}

/// The server in memory is another one.
#[test]
fn a_database_of_an_instance_is_not_measured_in_memory() {
    let rig = Rig::not_in_memory();
    let server = rig.server(NEWEST);
    server.execute("CREATE DATABASE shop");
    server.database("shop").execute(SCHEMA);
    let remedy = "a server in memory has no copy of database shop: to measure it, run pgrig server start --instance default && \
                  pg_dump --no-owner --no-publications -d \"$(pgrig server url --instance default shop)\" -f FILE";
    let (ran, document) = bench(&rig, &format!("{SHORT} --instance default -d shop"), "true");
    let possible =
        ["normal", "unlogged", "dangerous", "unlogged+dangerous", "template", "dangerous+template"];
    assert_eq!(configs(&document), set(&possible));
    assert_says(&ran, 0, &[&format!("left out     tmpfs: {remedy}")]);
    let ran = rig.run(&format!("testdb bench {SHORT} --instance default -d shop --variants tmpfs -- true"));
    assert_says(&ran, 2, &["tmpfs cannot be tried here: ", remedy, "give --from FILE"]);
    assert_nothing_left(&rig, &server);
}

#[test]
fn what_cannot_be_unlogged_is_left_out_and_told() {
    let rig = Rig::not_in_memory().of_others();
    let (server, url) = named(&rig, NEWEST);
    let client = rig.connect(&url);
    rig.block_on(client.batch_execute("CREATE PUBLICATION news FOR ALL TABLES")).unwrap();
    drop(client);
    until("nobody uses it", || {
        (server.number("SELECT count(*) FROM pg_stat_activity WHERE datname = 'my shop'") == 0).then_some(())
    });
    let told =
        ["published by publication news", "DROP PUBLICATION \"news\"", "--no-publications", "--from FILE"];
    let (ran, document) = bench(&rig, &format!("{SHORT} -d {url}"), "true");
    assert_eq!(configs(&document), set(&["normal", "template"]));
    assert_says(
        &ran,
        0,
        &[&["left out     unlogged: tables public.child, public.parent are"][..], &told].concat(),
    );
    let ran = rig.run(&format!("testdb bench {SHORT} --variants unlogged -d {url} -- true"));
    assert_says(&ran, 2, &[&["unlogged cannot be tried here"][..], &told].concat());
    assert!(!ran.stderr.contains("--exclude-table"), "{ran:#?}");
    assert_nothing_left(&rig, &server);
}

#[test]
fn databases_are_dropped_when_fsync_is_on_again_and_all_is_on_disk() {
    let rig = Rig::not_in_memory().of_others();
    let (server, url) = named(&rig, "--set log_statement=all");
    let before = databases(&server);
    let ways = "--variants dangerous,unlogged+dangerous --allow-dangerous-settings";
    let (ran, _) = bench(&rig, &format!("{SHORT} {ways} -d {url}"), "true");
    assert_forced_out(&rig, 2);
    // It is on this machine.
    assert!(!ran.stderr.contains("run sync"), "{ran:#?}");
    assert_eq!(databases(&server), before);
    assert_nothing_left(&rig, &server);
}

#[test]
fn a_suite_that_makes_its_own_tables_gets_an_empty_database() {
    let rig = Rig::not_in_memory();
    let suite =
        suite(&rig, "psql -XqAt -c 'CREATE TABLE parent (id int)' -c \"SELECT 'made'\" >> $HERE/seen");
    let (ran, document) = bench(&rig, SHORT, &suite);
    assert_eq!(configs(&document), set(&["normal", "dangerous", "tmpfs", "dangerous+tmpfs"]));
    assert_says(
        &ran,
        0,
        &[
            "instance testdb-bench",
            "profile stock",
            "unlogged, unlogged+dangerous: pgrig creates no tables here",
        ],
    );
    assert_eq!(fs::read_to_string(rig.home.path().join("seen")).unwrap(), "made\n".repeat(4));
    rig.done("server destroy --instance testdb-bench");
}

#[test]
fn other_variables_that_name_a_server_are_taken_away() {
    let rig = Rig::not_in_memory();
    let suite = suite(&rig, "env | grep -E '^(PG|DATABASE_URL)' | cut -d= -f1 | sort > $HERE/seen");
    let arguments = format!("testdb bench --instance default {SHORT} --variants normal -- {suite}");
    let mut command = rig.command(&arguments);
    // pgrig's own instance was asked for.
    command.env("PGSERVICE", "elsewhere").env("PGHOSTADDR", "203.0.113.1").env("PGOPTIONS", "-c fsync=off");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("no recommendation: only normal completed"), "{ran:#?}");
    let expected =
        ["DATABASE_URL", "PGDATABASE", "PGHOST", "PGPORT", "PGRIG_HOME", "PGRIG_POSTGRESQL_CACHE", "PGUSER"];
    assert_eq!(seen(&rig), set(&expected));
}

#[test]
fn a_server_that_the_environment_names_is_told_by_its_variables() {
    let rig = Rig::not_in_memory().of_others();
    let server = rig.server("");
    let socket = rig.data().parent().unwrap().join("socket");
    for way in ["tmpfs", "dangerous"] {
        let mut command = rig.command(&format!("testdb bench {SHORT} --variants {way} -- true"));
        command
            .env("PGHOST", &socket)
            .env("PGPORT", "5432")
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres");
        let ran = Ran::from(command.output().unwrap());
        assert_says(&ran, 2, &["(unset PGHOST PGPORT PGUSER PGDATABASE, or give --instance NAME)"]);
        assert!(!ran.stderr.contains("no -d"), "{ran:#?}");
    }
    assert_nothing_left(&rig, &server);
}

#[test]
fn a_way_in_which_the_command_fails_is_out() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let suite = suite(
        &rig,
        "echo it ran >> $HERE/seen; test \"$(psql -XqAt -c 'SHOW fsync')\" = on || { echo no fsync, no tests >&2; exit 3; }",
    );
    let ways = "--variants dangerous,template --instance default --trials 2";
    let (ran, document) = bench(&rig, &format!("{ways} --from {}", schema.display()), &suite);
    assert_says(
        &ran,
        0,
        &[
            "9: a warm-up round and 2 rounds, in balanced order",
            "dangerous failed, and pgrig does not try it any more: exit status: 3",
            "no fsync, no tests",
        ],
    );
    assert!(ran.stdout.contains("failed: exit status: 3"), "{}", ran.stdout);
    assert_eq!(configs(&document), set(&["normal", "template"]));
    // Normal and template in three rounds, and once what failed.
    assert_eq!(fs::read_to_string(rig.home.path().join("seen")).unwrap().lines().count(), 7);
    assert_eq!(document["trials"].as_array().unwrap().len(), 4);
    let server = rig.server("");
    assert_nothing_left(&rig, &server);
}

#[test]
fn without_a_normal_trial_there_is_nothing_to_compare() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let ran = rig.run(&format!(
        "testdb bench --instance default --from {} -- {}",
        schema.display(),
        suite(&rig, "echo all is broken; exit 7")
    ));
    assert_says(&ran, 1, &["all is broken", "exit status: 7", "nothing to compare with"]);
    fs::write(&schema, "CREATE TABLE a (id int); CREATE TABEL b (id int);").unwrap();
    let ran = rig.run(&format!("testdb bench --instance default --from {} -- true", schema.display()));
    assert_says(&ran, 2, &[&format!("error: {}: line 1: ", schema.display()), "TABEL", "42601"]);
    // Roles that the first load created exist when the script is loaded again.
    let server = rig.server("");
    fs::write(&schema, "CREATE ROLE appx; CREATE TABLE a (i int); GRANT SELECT ON a TO appx;").unwrap();
    let ran = rig.run(&format!(
        "testdb bench --instance default --variants template --from {} -- true",
        schema.display()
    ));
    assert_says(&ran, 2, &["appx", "belong to the cluster", "create them once", "leave them out of it"]);
    assert!(!ran.stderr.contains("empty database"), "{ran:#?}");
    server.execute("DROP ROLE appx");
    assert_nothing_left(&rig, &server);
}

#[test]
fn a_wrong_request_is_refused_before_anything_is_made() {
    let rig = Rig::not_in_memory().of_others();
    for (arguments, told) in [
        ("-- no-such-program", "cannot find the program no-such-program"),
        ("", "give your test command"),
        ("--variants safe -- true", "is not a variant: give unlogged, dangerous"),
        ("--from nowhere.sql -- true", "nowhere.sql"),
        ("--tps nowhere.sql", "nowhere.sql"),
        ("--tps tpcb-like -- true", "cannot be used with"),
        ("-c 2 -- true", "cannot be used with"),
        ("--trials 0 -- true", "0 is out of range: give 1 to 10000"),
    ] {
        let ran = rig.run(&format!("testdb bench {arguments}"));
        assert_says(&ran, 2, &[told]);
    }
    assert!(!rig.home.path().join("instances").exists());
    let server = rig.server("");
    for (arguments, told) in [
        (format!("--variants dangerous -d {}", server.url), "--allow-dangerous-settings"),
        (format!("--variants tmpfs -d {}", server.url), "use pgrig's own server (no -d"),
        ("--variants unlogged --instance default".to_owned(), "pgrig creates no tables here"),
    ] {
        // A document that is there stays, and no empty one is left.
        let [old, new] = ["old.json", "new.json"].map(|name| rig.home.path().join(name));
        std::fs::write(&old, "{}\n").unwrap();
        for file in [&old, &new] {
            let ran = rig.run(&format!("testdb bench {arguments} --json {} -- true", file.display()));
            assert_says(&ran, 2, &["cannot be tried here", told]);
        }
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "{}\n");
        assert!(!new.exists(), "{arguments}");
    }
    assert_nothing_left(&rig, &server);
}

#[test]
fn a_role_that_may_not_is_told_what_it_needs() {
    let rig = Rig::not_in_memory().of_others();
    let server = rig.server("");
    server.execute("CREATE ROLE plain LOGIN");
    let url = server.url.replace("postgres@", "plain@");
    let ran = rig.run(&format!("testdb bench {SHORT} -d {url} -- true"));
    assert_says(&ran, 2, &["role plain may not create databases", "CREATEDB"]);
    server.execute("ALTER ROLE plain CREATEDB");
    let ran = rig.run(&format!("testdb bench {SHORT} --variants template -d {url} -- true"));
    assert_says(&ran, 2, &["role plain may not copy database postgres", "IS_TEMPLATE"]);
    assert_nothing_left(&rig, &server);
}

#[test]
fn all_grants_that_dangerous_settings_need_are_told_at_once_and_suffice() {
    let rig = Rig::not_in_memory().of_others();
    let (server, url) = named(&rig, NEWEST);
    server.execute("CREATE ROLE \"a dev\" LOGIN CREATEDB");
    let url = url.replace("postgres@", "a%20dev@");
    let schema = schema(&rig);
    let suite = seeing(&rig);
    let arguments =
        format!("testdb bench {SHORT} --allow-dangerous-settings -d {url} --from {}", schema.display());
    let ran = rig.run(&format!("{arguments} --variants dangerous -- {suite}"));
    let grants = [
        "GRANT ALTER SYSTEM ON PARAMETER fsync, full_page_writes TO \"a dev\";",
        "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO \"a dev\";",
        "GRANT pg_read_all_settings TO \"a dev\";",
    ];
    assert_says(
        &ran,
        2,
        &[&["dangerous cannot be tried here", "in database \"my shop\""][..], &grants].concat(),
    );
    assert!(!ran.stderr.contains("DANGEROUS"), "{ran:#?}");
    // By default it is left out; what would be dangerous about it is not told then.
    let ran = rig.done(&format!("{arguments} -- true"));
    assert_says(&ran, 0, &[&["left out     dangerous, unlogged+dangerous: role"][..], &grants].concat());
    assert!(!ran.stderr.contains("DANGEROUS"), "{ran:#?}");
    let client = rig.connect(&url.replace("a%20dev@", "postgres@"));
    rig.block_on(client.batch_execute(&grants.concat())).unwrap();
    let ran = rig.done(&format!("{arguments} --variants dangerous -- {suite}"));
    assert_says(&ran, 0, &["DANGEROUS"]);
    assert_eq!(seen(&rig), set(&["on on on 0 f 50 t", "off off off 0 f 50 t"]));
    assert_nothing_left(&rig, &server);
}

#[test]
fn a_script_of_transactions_gives_the_articles_table() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let script = rig.home.path().join("insert.sql");
    fs::write(
        &script,
        "\\set id random(1, 1000000000)\nINSERT INTO child VALUES (:id) ON CONFLICT DO NOTHING;\n",
    )
    .unwrap();
    let file = rig.home.path().join("out.json");
    let ran = rig.done(&format!(
        "testdb bench --instance default {SHORT} --variants unlogged,dangerous --from {} --tps {} -c 1,2 -T 1 \
         --json {}",
        schema.display(),
        script.display(),
        file.display()
    ));
    let document = read(&file);
    let mut expected = BTreeSet::new();
    for way in ["normal", "unlogged", "dangerous"] {
        expected.extend([1, 2].map(|clients| format!("{way} clients={clients}")));
    }
    assert_eq!(configs(&document), expected);
    for part in ["1 client", "2 clients", "×"] {
        assert!(ran.stdout.contains(part), "{part:?} is not in {}", ran.stdout);
    }
    let server = rig.server("");
    assert_nothing_left(&rig, &server);
}

#[test]
fn pgbenchs_scripts_want_a_dump_of_pgbenchs_tables() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let ran = rig.run(&format!(
        "testdb bench --instance default {SHORT} --variants normal --from {} --tps tpcb-like -c 1 -T 1",
        schema.display()
    ));
    assert_says(&ran, 2, &[&format!("{} has no pgbench tables", schema.display()), "--from FILE", "pg_dump"]);
    assert!(!ran.stderr.contains("pgrig_testdb_bench_"), "{ran:#?}");
}

#[test]
fn runs_compare_with_each_other() {
    let rig = Rig::not_in_memory();
    let schema = schema(&rig);
    let arguments = format!("--instance default --variants template --trials 4 --from {}", schema.display());
    let files = ["before.json", "after.json"].map(|name| {
        let (_, document) = bench(&rig, &arguments, "true");
        let file = rig.home.path().join(name);
        fs::write(&file, document.to_string()).unwrap();
        file.display().to_string()
    });
    let ran = rig.done(&format!("compare {} {}", files[0], files[1]));
    for figure in ["prepare", "command", "total"] {
        assert!(ran.stdout.contains(figure), "{figure} is not in {}", ran.stdout);
    }
}
