//! Limits of `pgrig ddl` on waits, hints about time-outs, and the proof of a scan by an index.

use std::fs;

use testkit::assert_says;

use crate::support::Rig;

#[test]
fn a_lock_timeout_ends_before_statements_that_wait_for_old_transactions() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n int);").unwrap();
    let told = |migration: &str| {
        let mut command = rig.command("ddl --quick --rows 300 --instance ddl");
        let ran = command.args(["-c", migration, "--schema-file"]).arg(&schema).output().unwrap();
        assert!(ran.status.success(), "{ran:#?}");
        [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let index = "CREATE INDEX CONCURRENTLY i ON t (n)";
    let [_, hints] = told(&format!("ALTER TABLE t ADD a int; {index}"));
    assert_says(&hints, &["hint: statement 1 waits for open transactions", "repeat the statement after a"]);
    assert_says(&hints, &["longer than that, statement 2 fails", "\n  RESET lock_timeout;"]);
    // The statements of a better way, too.
    let way = "\n  RESET lock_timeout;\n  CREATE INDEX CONCURRENTLY ON t (n);\n  SET lock_timeout = '2s';";
    let [_, hints] = told("ALTER TABLE t ADD a int; CREATE INDEX ON t (n)");
    assert_says(&hints, &["put the following statement before it", way]);
    let [_, hints] = told("SET lock_timeout = '2s'; CREATE INDEX ON t (n)");
    assert_says(&hints, &[way]);
    let [_, hints] = told("CREATE INDEX ON t (n)");
    assert!(!hints.contains("lock_timeout"), "{hints}");
    let [_, hints] = told("BEGIN; ALTER TABLE t ADD a int; COMMIT");
    assert_says(&hints, &["repeat the transaction after a"]);
    assert!(!hints.contains("RESET"), "{hints}");
    let [_, hints] = told(&format!("SET lock_timeout = '2s'; {index}"));
    assert_says(&hints, &["hint: statement 2 runs under lock_timeout = '2s'", "leaves an invalid index"]);

    let [results, _] = told("SET enable_seqscan = off; SELECT count(n) FROM t WHERE id > 0");
    assert_says(&results, &["as many index entries read (90 % or more) as rows in t"]);
}

/// The statements of readers and writers fail after their wait: their tables are no longer there.
#[test]
fn a_wait_that_ends_with_an_error_exceeds_a_limit() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n int);").unwrap();
    for (migration, options) in [
        ("BEGIN; ALTER TABLE t RENAME TO t2; SELECT pg_sleep(2); COMMIT", ""),
        ("ALTER TABLE t RENAME TO t2", "--blocker 3s"),
    ] {
        let mut command = rig.command(&format!("ddl --quick --rows 300 --fail-if stall>1s {options}"));
        let ran = command.args(["-c", migration, "--schema-file"]).arg(&schema).output().unwrap();
        let [results, errors] = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(ran.status.code(), Some(3), "{migration}: {errors}");
        assert_says(&results, &["for locks, public.t, then it failed)"]);
        assert_says(&errors, &["): the ", "er of public.t waits ", " (stall>1"]);
    }
}

/// Writers change rows after the snapshot of the migration, so that it fails, though it succeeds alone.
#[test]
fn a_statement_that_fails_beside_writers_passes_no_limit_on_waits() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n int);").unwrap();
    let migration = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t LIMIT 1; SELECT pg_sleep(1); \
                     UPDATE t SET n = 1; ALTER TABLE t ADD a int; COMMIT";
    let told = |gate: &[&str], code: i32| {
        let mut command = rig.command("ddl --quick --rows 300");
        let ran =
            command.args(["-c", migration]).args(gate).arg("--schema-file").arg(&schema).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(code), "{stderr}");
        stderr
    };
    let failed = "failed beside readers and writers: could not serialize access";
    let missed = told(&["--fail-if", "stall>1h"], 3);
    let not_run = "counts as true, because pgrig could not check it: it did not run beside readers and writers, where statement 4 failed: could not";
    assert_says(
        &missed,
        &[&format!("counts as true, because pgrig could not check it: it {failed}"), not_run],
    );
    assert!(!missed.contains("So its stall is not known"), "{missed}");
    assert_says(&told(&[], 0), &[&format!("statement 4 {failed}"), "So its stall is not known"]);
}

/// Statement 2 fails on the rows, and statement 1 misses a condition.
#[test]
fn a_statement_that_is_not_measurable_hides_no_missed_condition() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n int);").unwrap();
    let migration = "ALTER TABLE t ALTER n TYPE bigint; GRANT SELECT ON t TO nobody_here";
    for (migration, code) in [(migration, 2), ("ALTER TABLE t ALTER n TYPE bigint", 3)] {
        let path = rig.home.path().join(format!("status{code}.json"));
        let mut command = rig.command("ddl --quick --rows 300 --fail-if class=rewrite --json");
        let ran = command.arg(&path).args(["-c", migration, "--schema-file"]).arg(&schema).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{migration}: {stderr}");
        assert_says(&stderr, &["--fail-if: statement 1 (", "its class is rewrite"]);
        let document = fs::read_to_string(&path).unwrap();
        assert_says(&document, &["its class is rewrite"]);
    }
}

/// In the order of bytes, an index serves LIKE, and in most other locales none does.
#[test]
fn a_scan_that_depends_on_an_unknown_locale_passes_no_condition() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n text NOT NULL); CREATE INDEX ON t (n);")
        .unwrap();
    for (locale, code, says) in [
        (
            "",
            3,
            "class=scan counts as true, because pgrig could not check it: the locale of the database decides whether LIKE uses an index",
        ),
        ("--locale C", 0, ""),
        ("--locale C.UTF-8", 3, "its class is scan"),
    ] {
        let mut command = rig.command(&format!("ddl --quick --rows 20000 --fail-if class=scan {locale}"));
        let select = "SELECT FROM t WHERE n LIKE 'abcd%'";
        let ran = command.args(["-c", select, "--schema-file"]).arg(&schema).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{locale}: {stderr}");
        assert_says(&stderr, &[says]);
    }
}

/// They do not vary from run to run: one run on each side is enough. pgrig ab does not run ddl.
#[test]
fn classes_and_locks_of_migrations_are_compared() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    let measured = |length: u32| {
        let sql = format!("CREATE TABLE o (id int PRIMARY KEY, s varchar({length}));");
        fs::write(&schema, sql).unwrap();
        let document = rig.home.path().join(format!("{length}.json"));
        let mut command = rig.command("ddl --quick --rows 300 -c");
        command.arg("ALTER TABLE o ALTER s TYPE varchar(30)").arg("--schema-file").arg(&schema);
        let ran = command.arg("--json").arg(&document).output().unwrap();
        assert!(ran.status.success(), "{ran:#?}");
        document.to_str().unwrap().to_owned()
    };
    let [short, long] = [20, 40].map(measured);
    let regressed =
        "class of 1: ALTER TABLE o ALTER s TYPE varchar(30) regressed: rewrite instead of catalog only";
    let compared = rig.run(&format!("compare {short} {long}"));
    assert_eq!(compared.code, Some(0), "{compared:#?}");
    assert!(compared.stdout.contains(regressed), "{compared:#?}");
    assert!(compared.stdout.contains("make at least"), "{compared:#?}");
    assert!(!compared.stdout.contains("pgrig ab") && !compared.stderr.contains("pgrig ab"), "{compared:#?}");
    let failed = rig.run(&format!("compare {short} {long} --fail-on regressed"));
    assert_eq!(failed.code, Some(3), "{failed:#?}");
    assert!(failed.stderr.contains(regressed), "{failed:#?}");
    let improved = rig.run(&format!("compare {long} {short} --fail-on regressed"));
    assert_eq!(improved.code, Some(0), "{improved:#?}");
    assert!(improved.stdout.contains("improved: catalog only instead of rewrite"), "{improved:#?}");
}
