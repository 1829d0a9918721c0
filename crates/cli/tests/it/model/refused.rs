//! Objects that a role may not see, and requests that pgrig refuses.

use std::fs;

use super::{captured, shop};
use crate::support::{Rig, Server};

/// A copy that cannot be compared: none at all, another one, one that the role cannot see.
fn assert_copies_are_refused(rig: &Rig, original: &Server<'_>, copy: &Server<'_>) {
    let check = |copy: &str, said: &str| {
        let mut command = rig.command("model check");
        let ran = crate::support::Ran::from(command.args([original.url.as_str(), copy]).output().unwrap());
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    };
    check(&copy.url, "the copy (database copy) has no table: fill it first");
    let same = "ORIGINAL and COPY are the same database, original: name the original first";
    check(&original.url, same);
    check(&format!("{} application_name=another_way", original.url), same);
    copy.execute("CREATE ROLE weak LOGIN; CREATE TABLE other (n int)");
    check(&copy.url, "the copy has none of the original's tables (app.");
    let weak = copy.url.replace("user=postgres", "user=weak");
    check(&weak, "role weak sees no statistics of the copy (database copy)");
    copy.execute("DROP TABLE other");
    check("nowhere.toml", "is a file: give the model first");
    let twice = rig.run("model check a.toml a.toml");
    assert_eq!(twice.code, Some(2), "{twice:#?}");
    let told =
        "a.toml is a file, and the copy must be a database: fill one with pgrig fill --model a.toml -d copy";
    assert!(twice.stderr.contains(told), "{twice:#?}");
}

#[test]
fn a_role_that_may_only_read_captures_and_text_stays_where_that_is_asked_for() {
    let rig = Rig::new();
    let (original, copy) = shop(&rig, "");
    original.execute(
        "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA app TO reader; GRANT SELECT ON app.customers TO reader",
    );
    assert_copies_are_refused(&rig, &original, &copy);
    let model = rig.home.path().join("shop.model.toml").display().to_string();
    let url = original.url.replace("user=postgres", "user=reader");
    let mut capture = rig.command("model capture --keep-values customers.city --schema app");
    capture.args(["-o", &model, "-d", &url]);
    let ran = crate::support::Ran::from(capture.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let closed = ran.stderr.lines().find(|line| line.contains("role reader can read no statistics of app."));
    let closed = closed.unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(closed.contains("app.orders") && closed.contains("run GRANT SELECT ON app."), "{closed}");
    assert!(!closed.contains("app.customers") && !ran.stderr.contains("run ANALYZE app.orders"), "{ran:#?}");
    assert!(
        ran.stderr.contains("only the owner can read the extended statistics app.of_customers"),
        "{ran:#?}"
    );
    let shown = rig.done(&format!("model show {model} --values")).stdout;
    assert!(shown.contains("app.customers.city: \"Bordeaux\", \"Heidelberg\""), "{shown}");
    assert!(!shown.contains("@mail.invalid"), "{shown}");
    let shown = rig.done(&format!("model show {model}")).stdout;
    for said in ["app.customers: 20,000 rows", "5 values of the original", "no statistics: run ANALYZE"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }

    // At a tenth, of the tables that there are.
    let ran = rig.done(&format!("fill --model {model} --scale 0.1 --instance default -d copy -q"));
    assert!(ran.stdout.contains("rows of 6 tables"), "{ran:#?}");
    assert_eq!(copy.number("SELECT count(*) FROM app.customers"), 2_000);
    let cities = copy.rows("SELECT DISTINCT city FROM app.customers WHERE city IS NOT NULL ORDER BY 1");
    let cities: Vec<String> = cities.iter().map(|row| row.get(0)).collect();
    assert_eq!(cities, ["Bordeaux", "Heidelberg", "Manchester", "New Orleans", "Salzburg"]);

    // The tables that are there can be filled, too.
    copy.execute("TRUNCATE app.customers, app.orders, app.\"Odd names\", app.log, app.few, app.places");
    rig.done(&format!("fill 3MB --model {model} --all-tables --instance default -d copy -q"));
    assert!(copy.number("SELECT count(*) FROM app.customers") > 1_000);
}

/// Models whose parts do not fit together.
fn refuses_contradictions(rig: &Rig, text: &str) {
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let path = rig.home.path().join(format!("{}.toml", to.replace([' ', '"', '='], "")));
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        path.display().to_string()
    };
    let newer = edited("format = 7", "format = 8");
    let twice = edited("name = \"city\"", "name = \"country\"");
    let typo = edited("name = \"city\"", "nmae = \"city\"");
    let alone = edited("column = \"region\"", "column = \"nothing_there\"");
    let gone = edited("name = \"city\"", "name = \"town\"");
    let table = edited("name = \"app.places\"", "name = \"app.no_places\"");
    let lacking = edited("town text", "town no_such_type");
    let typed = edited("type = \"numeric(10,2)\"", "type = \"bigint\"");
    let narrow = edited("type = \"numeric(10,2)\"", "type = \"numeric(8,2)\"");
    let strange = edited("type = \"numeric(10,2)\"", "type = \"numeric 10\"");
    let negative = edited("rows = 20000", "rows = -20000");
    let above = edited("nulls = 0.1", "nulls = 1.1");
    let falling = edited("bounds = [\"1.", "bounds = [\"9999999.");
    let steep = edited("correlation = 1.0", "correlation = 1.5");
    let greek = edited("alphabet = \"words\"", "alphabet = \"greek\"");
    let word = edited("common = [[\"", "common = [[\"no number");
    let copy = "--instance default -d copy";
    for (arguments, said) in [
        (format!("fill --model {newer} {copy}"), "use a newer pgrig"),
        (format!("fill --model {typo} {copy}"), "nmae"),
        (format!("fill --model {twice} {copy}"), "two columns have this name"),
        (
            format!("fill --model {alone} {copy}"),
            "\"follows\" names nothing_there, which is not a column of the table",
        ),
        (format!("fill --model {gone} {copy}"), "app.customers lacks column town, which the model has"),
        (
            format!("fill --model {table} {copy}"),
            "has table app.no_places, and its statements do not create it",
        ),
        (format!("fill --model {lacking} {copy}"), "Create it in that database first"),
        (
            format!("fill --model {typed} {copy}"),
            "app.customers.credit: the model has type bigint, and its statements (ddl) make it numeric(10,2): edit one of the two",
        ),
        (format!("fill --model {narrow} {copy}"), "the model has type numeric(8,2)"),
        (format!("fill --model {strange} {copy}"), "the model has type numeric 10"),
        (format!("fill --model {negative} {copy}"), "rows = -20000"),
        (format!("fill --model {above} {copy}"), "\"nulls\" must be from 0 to 1"),
        (
            format!("fill --model {falling} {copy}"),
            ".toml: the model's column app.customers.credit: statistics of",
        ),
        (format!("fill --model {steep} {copy}"), "the correlation must be from -1 to 1"),
        (format!("fill --model {greek} {copy}"), "the alphabet greek is not digits"),
        (format!("fill --model {word} {copy}"), "no number"),
    ] {
        let ran = rig.run(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:#?}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let rig = Rig::new();
    let (server, _copy) = shop(&rig, "");
    let model = captured(&rig, "");
    let text = fs::read_to_string(&model).unwrap();
    refuses_contradictions(&rig, &text);
    // Rows that no statistics tell of: ANALYZE never ran.
    let (blank, half) = (server.database("blank"), server.database("half"));
    let unanalyzed =
        "CREATE TABLE never WITH (autovacuum_enabled = off) AS SELECT generate_series(1, 1000) AS n";
    server.execute("CREATE DATABASE blank");
    server.execute("CREATE DATABASE half");
    blank.execute(unanalyzed);
    half.execute(&format!(
        "{unanalyzed}; CREATE TABLE once AS SELECT 1 AS n FROM generate_series(1, 100); ANALYZE once"
    ));
    let path = rig.home.path().join("half.toml").display().to_string();
    let ran = rig.done(&format!("model capture --instance default -d half -o {path}"));
    assert!(ran.stderr.contains("public.never: the table has no statistics, nor a number"), "{ran:#?}");
    assert!(ran.stderr.contains("run ANALYZE public.never"), "{ran:#?}");
    let copy = "--instance default -d copy";
    let queries = rig.home.path().join("queries");
    fs::create_dir(&queries).unwrap();
    fs::write(queries.join("one.sql"), "SELECT 1").unwrap();
    for (arguments, said) in [
        (
            format!("model capture --instance default -d original -o {model}"),
            "exists: give another FILE, or --force",
        ),
        (
            format!(
                "model capture --instance default -d original --force -o {model} --keep-values nothing.at_all"
            ),
            "--keep-values nothing.at_all: the model has no text",
        ),
        (format!("model capture --instance default -d postgres -o {model}.new"), "there is no table"),
        (
            format!("model capture --instance default -d original --schema none -o {model}.new"),
            "there is no table in schema none: give another database with -d, or another --schema",
        ),
        (
            format!("model capture --instance default -d original --schema App -o {model}.new"),
            "there is no table in schema App; did you mean --schema app?",
        ),
        (
            format!("model capture --instance default -d blank -o {model}.new"),
            "no table has statistics: run ANALYZE",
        ),
        (format!("fill --model {model} --table app.few {copy}"), "cannot be used with"),
        (
            format!("fill --model {model} --instance default -d original"),
            "To fill tables that exist, give --all-tables",
        ),
        (format!("fill --model {model} --all-tables {copy}"), "no table"),
        (format!("fill --model {} {copy}", queries.join("one.sql").display()), "this is SQL, not a model"),
        (
            format!("model check {model} copy --queries {} --instance default", queries.display()),
            "a model can be neither analyzed nor queried",
        ),
        (format!("model check {model} copy --columns --instance default"), "give the original database"),
        (
            format!("model check original copy --queries {} --instance default", rig.home.path().display()),
            "there is no file *.sql",
        ),
        (
            "model check original copy --queries nowhere --instance default".to_owned(),
            "--queries nowhere: the directory does not exist; check the path",
        ),
        (
            format!("model check original copy --queries {model} --instance default"),
            "it is not a directory; give a directory with files *.sql",
        ),
    ] {
        let ran = rig.run(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{arguments}: {ran:#?}");
    }
    assert!(!rig.home.path().join("shop.model.toml.new").exists());
}

#[test]
fn a_query_with_parameters_is_refused_by_its_name() {
    let rig = Rig::new();
    let server = rig.server("");
    for database in ["original", "copy"] {
        server.execute(&format!("CREATE DATABASE {database}"));
        server
            .database(database)
            .execute("CREATE TABLE item AS SELECT generate_series(1, 1000) AS sku; ANALYZE item");
    }
    let queries = rig.home.path().join("queries");
    fs::create_dir(&queries).unwrap();
    for sql in ["SELECT * FROM item WHERE sku = $1", "SELECT * FROM item WHERE $1 IS NULL"] {
        fs::write(queries.join("a.sql"), sql).unwrap();
        let check = format!("model check original copy --queries {} --instance default", queries.display());
        let ran = rig.run(&check);
        assert_eq!(ran.code, Some(2), "{sql}: {ran:#?}");
        for said in ["query a on the original: ", "it has parameters ($1): write their values instead"] {
            assert!(ran.stderr.contains(said), "{sql}: {ran:#?}");
        }
    }
}

#[test]
fn the_hint_to_fill_names_another_database_where_the_tables_exist() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill 2MB");
    let model = rig.home.path().join("bank.toml").display().to_string();
    let captured = rig.done(&format!("model capture -o {model}"));
    let fill = format!("fill --model {model} --instance default -d copy");
    for said in ["pgrig server psql -- -c 'CREATE DATABASE copy'", &format!("pgrig {fill}")] {
        assert!(captured.stdout.contains(said), "{captured:#?}");
    }
    let refused = rig.run(&format!("fill --model {model}"));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let way = "or another database: run pgrig server psql -- -c 'CREATE DATABASE other', and give --instance default -d other";
    assert!(refused.stderr.contains(way), "{refused:#?}");
    server.execute("CREATE DATABASE copy");
    rig.done(&fill);
    // Without -d, the fill would go to the server of the environment.
    let other = rig.home.path().join("other.toml").display().to_string();
    let mut command = rig.command(&format!("model capture -d {} -o {other}", server.url));
    let ran = command.env("PGHOST", "/nowhere-of-the-tests").output().unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout);
    let safe = format!("createdb copy\n  pgrig fill --model {other} -d copy");
    assert!(stdout.contains(&safe), "{ran:#?}");
}

/// ANALYZE reads no such table, so nothing is missing in the model either.
#[test]
fn a_table_that_has_no_partitions_is_left_out() {
    let rig = Rig::new();
    let server = rig.server("");
    for database in ["original", "copy", "other"] {
        server.execute(&format!("CREATE DATABASE {database}"));
    }
    server.database("original").execute(
        "CREATE TABLE part (id int, d date) PARTITION BY RANGE (d);
         CREATE TABLE items AS SELECT i AS id FROM generate_series(1, 500) i; ANALYZE items",
    );
    let model = rig.home.path().join("m.toml").display().to_string();
    let ran = rig.done(&format!("model capture --instance default -d original -o {model}"));
    assert!(!ran.stderr.contains("public.part"), "{ran:#?}");
    let ran = rig.done(&format!("fill --model {model} --instance default -d copy"));
    assert!(
        ran.stderr.contains("public.part is left out: it has no partition that could hold a row"),
        "{ran:#?}"
    );
    assert_eq!(server.database("copy").number("SELECT count(*) FROM items"), 500);
    let excluded = "--exclude-table public.part --instance default -d other";
    rig.done(&format!("fill --model {model} {excluded}"));
}

/// As `-d` does, and not a database on pgrig's own server.
#[test]
fn names_of_databases_mean_the_server_that_psql_would_use() {
    let rig = Rig::new();
    let ran = rig.run("model check no_original no_copy");
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    assert!(!ran.stderr.contains("starting instance"), "{ran:#?}");
    assert!(!rig.home.path().join("instances").exists(), "{ran:#?}");
}

#[test]
fn a_locked_table_and_its_holder_are_named() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    let original = server.database("original");
    original.execute("CREATE TABLE busy AS SELECT generate_series(1, 1000) AS n; ANALYZE");
    let holder = rig.connect(&original.url);
    rig.block_on(holder.batch_execute("BEGIN; LOCK TABLE busy")).unwrap();
    let pid: i32 = rig.block_on(holder.query_one("SELECT pg_backend_pid()", &[])).unwrap().get(0);
    for timeout in ["", "--timeout 1s"] {
        let refused = rig.run(&format!("model capture --instance default -d original -o - {timeout}"));
        assert_ne!(refused.code, Some(0), "{refused:#?}");
        let said = &refused.stderr;
        assert!(
            said.contains(&format!("process {pid} (postgres")) && said.contains("locks public.busy"),
            "{said}"
        );
    }
    rig.block_on(holder.batch_execute("ROLLBACK")).unwrap();
    rig.done("model capture --instance default -d original -o - --timeout 1s");
}

#[test]
fn a_type_of_a_newer_release_has_the_remedy_of_an_older_server() {
    let rig = Rig::new();
    rig.server("--pg-version 13").execute("CREATE DATABASE copy");
    let path = rig.home.path().join("newer.toml");
    let text = r#"
        format = 5
        ddl = "CREATE TABLE t (n int, r int4multirange);"
        [[tables]]
        name = "public.t"
        rows = 10
        [[tables.columns]]
        name = "n"
        type = "integer"
        values = { from = "statistics", distinct = 5, correlation = 0.0, bounds = ["1", "9"] }
    "#;
    fs::write(&path, text).unwrap();
    let refused = rig.run(&format!("fill --model {} --instance default -d copy", path.display()));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let remedy = "Nothing was changed. If this server is older than the original's, edit ddl in the model";
    assert!(refused.stderr.contains(remedy) && !refused.stderr.contains("Create it"), "{refused:#?}");
}

/// A table with a name that SQL and shells quote, of which the role postgres sees all, and one that reader may read.
const REMEDIED: &str = r#"
    create schema "Odd Schema";
    create table "Odd Schema"."Kunden ""x"""(id int primary key, c1 char(1)) with (autovacuum_enabled = off);
    insert into "Odd Schema"."Kunden ""x""" select i, substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 1 + i % 62, 1)
      from generate_series(1, 3000) i;
    create table seen as select 1 + i % 9 as n, 2 as m from generate_series(1, 3000) i;
    create role reader login;
    grant usage on schema "Odd Schema" to reader;
    grant select (n) on seen to reader;
    grant select on "Odd Schema"."Kunden ""x""" to reader;
    alter table "Odd Schema"."Kunden ""x""" enable row level security;
    create policy half on "Odd Schema"."Kunden ""x""" using (id < 1500)"#;

#[test]
fn remedies_of_missing_statistics_suit_their_causes() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE original");
    let original = server.database("original");
    original.execute(REMEDIED);
    original.execute("ANALYZE");
    let captured = |url: &str| {
        let mut capture = rig.command("model capture -o - -d");
        capture.arg(url);
        let ran = crate::support::Ran::from(capture.output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stderr
    };
    let said = captured(&original.url);
    assert!(said.contains(r#"--keep-values 'Odd Schema.Kunden "x".c1'"#), "{said}");
    // A SELECT privilege does not help there.
    let said = captured(&original.url.replace("user=postgres", "user=reader"));
    let secured =
        r#"can read no statistics of "Odd Schema"."Kunden ""x""", because row-level security applies"#;
    assert!(said.contains(secured) && said.contains("BYPASSRLS"), "{said}");
    assert!(said.contains("Run GRANT SELECT (m) ON public.seen TO reader"), "{said}");
    assert!(!said.contains("run GRANT SELECT ON"), "{said}");
    // Analyzed, and without statistics, as after an upgrade.
    original
        .execute("DELETE FROM pg_statistic WHERE starelid = '\"Odd Schema\".\"Kunden \"\"x\"\"\"'::regclass");
    let said = captured(&original.url);
    let remedy = r#"run ANALYZE "Odd Schema"."Kunden ""x""""#;
    assert!(said.contains(remedy) && !said.contains("GRANT"), "{said}");
    original.execute(remedy.trim_start_matches("run "));
    assert!(!captured(&original.url).contains("no statistics"), "{said}");
}
