//! `pgrig ddl`: exit status, gates, the document, and what is left after kill -9.

use std::fs;

use nix::sys::signal::Signal;
use testkit::{assert_says, until};

use crate::support::Rig;

#[test]
fn a_migration_is_judged_and_a_killed_run_is_cleared_up() {
    let rig = Rig::new();
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = file("schema.sql", "CREATE TABLE t (id int PRIMARY KEY, n int);");
    let migration = file("m.sql", "ALTER TABLE t ADD a int;\nALTER TABLE t ALTER n TYPE bigint;\n");
    let tables = format!("--schema-file {schema} --rows 100");

    // Killed while the statement runs; its server ends with it.
    let sleeping = file("sleep.sql", "SELECT pg_sleep(3600);");
    let told = rig.home.path().join("told");
    let killed = rig.spawn_telling(&format!("ddl {sleeping} {tables}"), &told);
    until("the statement runs", || fs::read_to_string(&told).unwrap().contains("1 of 1: SELECT"));
    killed.signal(Signal::SIGKILL);
    killed.end();

    let document = rig.document(&format!("ddl {migration} {tables} -q"));
    assert_eq!((&document["verb"], &document["status"]), (&"ddl".into(), &"done".into()));
    let classes: Vec<&str> = document["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["events"][0]["what"]["found"]["class"].as_str().unwrap())
        .collect();
    assert_eq!(classes, ["catalog-only", "rewrite"]);

    let gates = "--fail-if class=rewrite --fail-if class=copy --fail-if lock=SHARE>1h --fail-if stall>1h";
    let missed = rig.run(&format!("ddl {migration} {tables} {gates}"));
    assert_eq!(missed.code, Some(3), "{missed:#?}");
    assert_says(&missed.stderr, &["--fail-if: statement 2 (", "line 2): its class is rewrite"]);
    assert_says(&missed.stdout, &["rewrite", "ACCESS EXCLUSIVE on t, t_pkey", "new file for t"]);
    assert!(missed.stdout.lines().take(3).all(|line| line.chars().count() <= 80), "{}", missed.stdout);

    let waits = &document["trials"][0]["events"].as_array().unwrap().last().unwrap()["what"];
    assert_eq!(waits["event"], "probes");
    assert!(waits["probes"]["baseline"]["read"].as_f64().is_some(), "{waits}");

    // The scan of each table has the rows of this table.
    let several = file(
        "several.sql",
        "CREATE TABLE u (id int PRIMARY KEY); CREATE TABLE v (id int PRIMARY KEY, u_id int);",
    );
    let key = "ALTER TABLE v ADD FOREIGN KEY (u_id) REFERENCES u";
    let command = format!("ddl --schema-file {several} --rows u=200,v=700 --quick --instance ddl -c");
    let ran = rig.command(&command).arg(key).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_says(
        &stdout,
        &["200 rows read by a sequential scan of u", "700 rows read by a sequential scan of v"],
    );
    // Nothing is left to look at.
    assert!(!stderr.contains("server psql"), "{stderr}");

    // In a transaction, the better way needs a migration of its own.
    let index = file("index.sql", "ALTER TABLE v ADD a int; CREATE INDEX ON v (u_id);");
    let ran = rig.run(&format!("ddl {index} -1 --alternatives --schema-file {several} --rows 100 --quick"));
    assert_says(&ran.stdout, &["needs   a migration of its own, without a transaction"]);
    assert_says(
        &ran.stderr,
        &["hint: statement 3 is in a transaction: the better way needs a migration of its own"],
    );

    let vacuum = file("vacuum.sql", "VACUUM t;");
    let failed = rig.run(&format!("ddl {vacuum} -1 {tables} -q"));
    assert_eq!(failed.code, Some(2), "{failed:#?}");
    assert_says(
        &failed.stderr,
        &["VACUUM cannot run inside a transaction block; leave out --single-transaction"],
    );

    let failing = file("failing.sql", "ALTER TABLE t ADD b int;\nALTER TABLE missing ADD b int;\nSELECT 1;");
    let failed = rig.run(&format!("ddl {failing} {tables} -q"));
    assert_eq!(failed.code, Some(2), "{failed:#?}");
    assert_says(
        &failed.stderr,
        &["statement 2 (", "line 2) fails even on empty tables", "add it to the schema"],
    );
    assert_eq!(failed.stdout, "");

    let empty = file("empty.sql", "\n");
    let failed = rig.run(&format!("ddl {failing} --schema-file {empty} -q"));
    assert_eq!(failed.code, Some(2), "{failed:#?}");
    assert_says(&failed.stderr, &["empty.sql is empty: give a file that creates the tables"]);

    let failing = file("grant.sql", "ALTER TABLE t ADD b int;\nGRANT SELECT ON t TO somebody;\nSELECT 1;");
    let failed = rig.run(&format!("ddl {failing} {tables} -q"));
    assert_eq!(failed.code, Some(2), "{failed:#?}");
    assert_says(
        &failed.stderr,
        &[
            "statement 2 (",
            "line 2) is not measurable",
            "Create the role on the server that measures (CREATE ROLE NAME)",
        ],
    );
    // The others are measured without it.
    assert!(failed.stdout.lines().any(|line| line.starts_with("3  catalog only")), "{}", failed.stdout);

    let databases = "server psql --instance ddl -- -Atc";
    let mut psql = rig.command(databases);
    let left = psql.arg("SELECT count(*) FROM pg_database WHERE datname LIKE 'pgrig%'").output().unwrap();
    if testkit::require(testkit::Need::Clients) {
        assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0", "{left:?}");
    }
}

/// `pgrig ddl migration.sql schema.sql` runs both as the migration.
#[test]
fn a_schema_among_the_files_of_the_migration_is_told_apart() {
    let rig = Rig::new();
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = file("schema.sql", "CREATE TABLE t (id int PRIMARY KEY);");
    let migration = file("migration.sql", "ALTER TABLE t ADD a int;");
    let shops = file("shops.sql", "CREATE TABLE t (id int);");
    let failed = rig.run(&format!("ddl {migration} {shops} --schema-file {schema} --rows 100 --quick -q"));
    assert_eq!(failed.code, Some(2), "{failed:#?}");
    assert_says(
        &failed.stderr,
        &["relation \"t\" already exists; if ", &format!("give it as --schema-file {shops}, without -d")],
    );
}

/// No figure is no proof that a limit holds.
#[test]
fn the_counter_of_the_server_proves_an_analyze() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE INDEX ON t (n);").unwrap();
    let mut command = rig.command("ddl --quick --rows 200 --instance ddl -c");
    let ran = command.args(["ANALYZE t", "--schema-file"]).arg(&schema).output().unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert_says(&stdout, &["proof   the server counted a VACUUM or ANALYZE of t"]);
    assert!(!stdout.contains("index entries"), "{stdout}");
}

#[test]
fn a_limit_that_was_not_checked_is_missed() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    let tables = "CREATE TABLE keyless (n int);
        CREATE TABLE listed (k int NOT NULL) PARTITION BY LIST (k);
        CREATE TABLE listed_1 PARTITION OF listed FOR VALUES IN (1);";
    fs::write(&schema, tables).unwrap();
    let ddl = format!("ddl --schema-file {} --rows 100 --quick", schema.display());
    for (migration, gate, code, says) in [
        (
            "ALTER TABLE keyless ADD a int",
            "stall>500ms",
            3,
            "stall>500ms counts as true, because pgrig could not check it: no reader or writer used public.keyless (it has no key",
        ),
        ("CREATE INDEX CONCURRENTLY ON keyless (n)", "stall>500ms", 0, ""),
        (
            "ALTER TABLE listed DETACH PARTITION listed_1 CONCURRENTLY",
            "lock=ACCESS EXCLUSIVE>1ms",
            0,
            "lock=ACCESS EXCLUSIVE>1.00ms does not apply: the statement runs several transactions",
        ),
        (
            "VACUUM FULL keyless",
            "lock=ACCESS EXCLUSIVE>1us",
            3,
            "it holds ACCESS EXCLUSIVE on keyless for up to",
        ),
    ] {
        let ran = rig.command(&ddl).args(["-c", migration, "--fail-if", gate]).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{migration}: {stderr}");
        assert_says(&stderr, &[says]);
        assert_eq!(
            stderr.contains("could not check"),
            says.contains("could not check"),
            "{migration}: {stderr}"
        );
    }
}

/// A lock that pgrig could not see passes no limit of locks.
#[test]
fn locks_that_are_not_known_pass_no_limit() {
    let rig = Rig::new();
    let server = rig.server("--set wal_level=replica");
    server.execute("CREATE ROLE guest LOGIN CREATEDB");
    let schema = rig.home.path().join("schema.sql");
    let tables = "CREATE TABLE t (id int PRIMARY KEY, n int);
        CREATE TABLE secret (n int);
        REVOKE ALL ON secret FROM guest; GRANT INSERT ON secret TO guest;";
    fs::write(&schema, tables).unwrap();
    let guest = server.url.replace("postgres@", "guest@");
    let ddl = format!("ddl --rows 100 --quick --scratch {guest} --schema-file {}", schema.display());
    let committing = "DO $$ BEGIN UPDATE t SET n = 1; COMMIT; END $$";
    for (migration, gate, code) in [
        (committing, "lock=SHARE", 3),
        (committing, "stall>1h", 3),
        (committing, "class=rewrite", 0),
        ("CREATE INDEX CONCURRENTLY ON t (n)", "lock=SHARE", 0),
    ] {
        let ran = rig.command(&ddl).args(["-c", migration, "--fail-if", gate]).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(code), "{migration}, {gate}: {stderr}");
        let is_known = migration != committing;
        assert_eq!(stdout.contains("known: to read the locks"), !is_known, "{migration}, {gate}: {stdout}");
        let warning = "the locks of statement 1 are not all known: to read the locks";
        assert_eq!(stderr.contains(warning), !is_known, "{migration}, {gate}: {stderr}");
        let unchecked = "could not check it: its locks are not known: to read the locks";
        assert_eq!(stderr.contains(unchecked), code == 3, "{migration}, {gate}: {stderr}");
    }
}

#[test]
fn a_dash_is_standard_input() {
    let rig = Rig::new();
    let path = rig.home.path().join("input.sql");
    let file = path.display();
    fs::write(&path, "CREATE TABLE t (id int PRIMARY KEY)").unwrap();
    for (arguments, said) in [
        (format!("ddl - --ddl {file} --explain"), "CREATE TABLE t (id"),
        (format!("ddl {file} --schema-file - --explain"), "tables of standard input"),
    ] {
        let ran = rig.command(&arguments).stdin(fs::File::open(&path).unwrap()).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(0), "{arguments}: {stderr}");
        assert_says(&stdout, &[said]);
    }
}

/// A database that psql would look for on a local server, and that has none, may be one of pgrig's own.
#[test]
fn a_database_of_no_server_gets_the_remedy_for_pgrig_s_own() {
    let rig = Rig::new();
    let ran = rig.run("ddl -c VACUUM -d shop -p 1");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_says(
        &ran.stderr,
        &["cannot read database shop", "run pgrig server start, then give -d \"$(pgrig server url shop)\""],
    );
    // The database is that of the instance.
    let ran = rig.run("ddl -c VACUUM -d shop -p 1 --instance old");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let told =
        "run pgrig server start --instance old, then give -d \"$(pgrig server url shop --instance old)\"";
    assert_says(&ran.stderr, &[told]);
}

/// Scripts of readers and writers are read before there is a server, and what is in them is refused there.
#[test]
fn scripts_of_readers_and_writers_are_refused_before_anything_is_made() {
    let rig = Rig::new();
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = file("schema.sql", "CREATE TABLE t (id int PRIMARY KEY, n int);");
    let migration = file("m.sql", "ALTER TABLE t ADD a int;");
    let ddl = format!("ddl {migration} --schema-file {schema} --rows 100 --quick");
    let (wrong, shell) = (file("wrong.sql", "\\set id random(1\nSELECT :id;"), file("shell", "\\shell true"));
    for (option, wanted) in [
        (format!("--probe-read {wrong}"), "wrong.sql:1: syntax error"),
        (format!("--probe-write {shell}"), "shell:1: a reader or writer runs SQL only"),
        (
            "--probe-read missing.sql".to_owned(),
            "cannot read --probe-read missing.sql: the file does not exist",
        ),
    ] {
        let refused = rig.run(&format!("{ddl} {option}"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert_says(&refused.stderr, &[wanted]);
        assert!(!refused.stderr.contains("pgrig's own PostgreSQL"), "{refused:#?}");
    }

    let good = file("lookup.sql", "\\set id random(1, 100)\nSELECT n FROM t WHERE id = :id;\nSELECT 1;");
    let ran = rig.run(&format!("{ddl} --probe-read {good} --probe-write UPDATE(t)"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(&ran.stderr, &["--probe-write fails even on empty tables", "syntax error"]);
    let ran = rig.run(&format!("{ddl} --probe-read {good}"));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stdout, &["lookup.sql at "]);
}

/// Effects outside of pgrig's databases would stay, and come once for each run.
#[test]
fn statements_with_effects_outside_of_the_database_are_refused_before_anything_is_made() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY);").unwrap();
    let ddl = format!("ddl --schema-file {} --rows 100 --quick -c", schema.display());
    for (statement, says) in [
        ("GRANT CONNECT ON DATABASE shop TO app", "GRANT ON DATABASE concerns the whole server"),
        ("REASSIGN OWNED BY app TO bob", "REASSIGN OWNED concerns the whole server"),
        ("COMMENT ON ROLE app IS 'x'", "COMMENT ON ROLE concerns the whole server"),
        ("CREATE USER MAPPING FOR app SERVER other", "CREATE USER MAPPING lets foreign tables connect"),
        (
            "IMPORT FOREIGN SCHEMA s FROM SERVER other INTO t",
            "IMPORT FOREIGN SCHEMA lets foreign tables connect",
        ),
        (
            "CREATE FOREIGN TABLE f (x text) SERVER s OPTIONS (program 'touch made')",
            "CREATE FOREIGN TABLE with the option program acts on files or programs",
        ),
    ] {
        let ran = rig.command(&ddl).arg(format!("ALTER TABLE t ADD a int;\n{statement}")).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{stderr}");
        assert_says(&stderr, &["line 2: ", says, ": remove this statement"]);
        assert!(!stderr.contains("pgrig's own PostgreSQL"), "{stderr}");
    }
}

/// The files of a migration as Flyway and psql have them, without a server.
#[test]
fn files_are_transactions_in_the_order_of_their_versions() {
    let rig = Rig::new();
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = file("schema.sql", "CREATE TABLE t (id int PRIMARY KEY, n int);");
    let (second, tenth) = (file("V2__b.sql", "SELECT 2;"), file("V10__a.sql", "SELECT 10;"));
    let explained = format!("--schema-file {schema} --explain");
    let ran = rig.run(&format!("ddl {second} {tenth} -1 {explained}"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    let kinds: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.trim().split_once("  ")?.1.split("  ").next()).collect();
    assert_eq!(kinds, ["transaction", "measured", "transaction"].repeat(2), "{ran:#?}");

    let ran = rig.run(&format!("ddl {tenth} {second} {explained}"));
    assert_says(&ran.stderr, &["V2__b.sql runs after V10__a.sql", "in the order of their versions"]);

    let django = "BEGIN;\nSELECT 1;\n--\n-- Raw Python operation\n--\n-- THIS OPERATION CANNOT BE WRITTEN AS SQL\nCOMMIT;\n";
    let ran = rig.run(&format!("ddl {} {explained}", file("0002.sql", django)));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stderr, &["warning: ", "0002.sql, line 6: Django has no SQL for this operation"]);

    let own = file("own.sql", "BEGIN;\nSELECT 1;\nCOMMIT;");
    let ran = rig.run(&format!("ddl {own} -1 {explained}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(&ran.stderr, &["own.sql, line 1: BEGIN", "leave out --single-transaction"]);
}

/// pgrig names the option that this verb has, not that of `fill`.
#[test]
fn errors_of_the_schema_name_the_option_and_the_line() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    for (sql, says) in [
        ("CREATE TABLE t (id int);\n\nSELEC 1;", "line 3: "),
        ("CREATE TABLE t (id int);\n\\gexec\n", "line 2 is the psql command"),
    ] {
        fs::write(&schema, sql).unwrap();
        let mut command = rig.command("ddl -q --quick --rows 10 -c SELECT(1) --schema-file");
        let ran = command.arg(&schema).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{stderr}");
        let stderr = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_says(&stderr, &[&format!("--schema-file {}: {says}", schema.display())]);
        assert!(!stderr.contains("--ddl") && !stderr.contains("--all-tables"), "{stderr}");
    }
    // The files in the wrong order: the error names the right one.
    fs::write(&schema, "CREATE TABLE t (id int);").unwrap();
    let migration = rig.home.path().join("migration.sql");
    fs::write(&migration, "ALTER TABLE t ADD a int;").unwrap();
    let quick = "-q --quick --rows 10";
    let ran = rig.run(&format!("ddl {quick} {} --schema-file {}", schema.display(), migration.display()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let right = ran.stderr.split("swapped? Then run pgrig ").nth(1).and_then(|rest| rest.lines().next());
    rig.done(right.filter(|right| right.contains(quick)).unwrap_or_else(|| panic!("{ran:#?}")));
}

/// Each warning is printed once, and stays with the run: about the files, about the schema, and about the result.
#[test]
fn warnings_are_notes_of_the_document_and_of_reports() {
    let rig = Rig::new();
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = file("schema.sql", "CREATE EXTENSION missing; CREATE TABLE t (id int PRIMARY KEY);");
    let later = file("V2__b.sql", "ALTER TABLE IF EXISTS nowhere ADD a int;");
    let sooner = file("V1__a.sql", "ALTER TABLE t ADD a int;");
    let ran =
        rig.done(&format!("ddl {later} {sooner} --schema-file {schema} --rows 100 --quick --json - -q"));
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let markdown = rig.done("report latest:ddl --format md").stdout;
    let page = rig.home.path().join("page.html");
    rig.done(&format!("report latest:ddl -o {}", page.display()));
    let page = fs::read_to_string(&page).unwrap();
    let notes = document["notes"].to_string();
    for warning in [
        "give the files in the order of their versions",
        "the server has no extension missing, so pgrig skipped",
        "statement 1 did nothing to tables: there is no table nowhere",
    ] {
        assert_eq!(ran.stderr.matches(warning).count(), 1, "{warning}: {}", ran.stderr);
        for text in [&notes, &markdown, &page] {
            assert_says(text, &[warning]);
        }
    }
}
