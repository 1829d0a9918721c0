//! Hints of `pgrig ddl`.

use std::fs;

use testkit::assert_says;

use crate::support::Rig;

/// The messages of a measurement of one statement on this schema.
fn told(rig: &Rig, schema: &str, statement: &str, alternatives: &[&str]) -> String {
    let file = rig.home.path().join("schema.sql");
    fs::write(&file, schema).unwrap();
    let mut command = rig.command("ddl --quick --rows 100 --instance ddl");
    command.args(["-c", statement, "--schema-file"]).arg(&file);
    let ran = command.args(alternatives).output().unwrap();
    assert!(ran.status.success(), "{ran:#?}");
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// A way that failed is not printed to paste, and the hint tells why.
#[test]
fn a_better_way_that_failed_is_no_statement_to_paste() {
    let rig = Rig::new();
    // The name of the CHECK that the better way adds and drops.
    let taken = "CONSTRAINT pgrig_better_1 CHECK (id IS NOT NULL)";
    let schema = format!("CREATE TABLE t (id int PRIMARY KEY, n int, {taken});");
    let told =
        |alternatives: &[&str]| told(&rig, &schema, "ALTER TABLE t ALTER n SET NOT NULL", alternatives);
    let pasted = "\n  ALTER TABLE t VALIDATE CONSTRAINT pgrig_better_1;";
    assert_says(&told(&[]), &[pasted]);
    let failed = told(&["--alternatives"]);
    assert_says(
        &failed,
        &["hint: statement 1: add a CHECK constraint NOT VALID", "failed when pgrig measured it"],
    );
    assert_says(&failed, &["\" failed: constraint \"pgrig_better_1\" for relation \"t\" already exists"]);
    assert!(!failed.contains(pasted), "{failed}");
}

#[test]
fn a_migration_that_does_not_commit_gets_a_hint() {
    let rig = Rig::new();
    let schema = "CREATE TABLE t (id int PRIMARY KEY);";
    let open = told(&rig, schema, "BEGIN; ALTER TABLE t ADD z int", &[]);
    assert_says(&open, &["hint: the migration ends in its transaction", "add COMMIT at its end"]);
    let committed = told(&rig, schema, "BEGIN; ALTER TABLE t ADD z int; COMMIT", &[]);
    assert!(!committed.contains("ends in its transaction"), "{committed}");
}

#[test]
fn a_file_after_c_is_no_sql() {
    let rig = Rig::new();
    let file = rig.home.path().join("m.sql");
    fs::write(&file, "ALTER TABLE t ADD z int").unwrap();
    let ran = rig.run(&format!("ddl -c {} --schema-file {0}", file.display()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_says(&ran.stderr, &["-c takes SQL, and ", "m.sql without -c"]);
}

/// Later migrations drop a constraint by this name.
#[test]
fn a_better_way_has_the_name_that_the_server_chose() {
    let rig = Rig::new();
    let schema = "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n < 2000000000));";
    let told = told(&rig, schema, "ALTER TABLE t ADD CHECK (n > -2000000000)", &[]);
    assert_says(
        &told,
        &[
            "\n  ALTER TABLE t ADD CONSTRAINT t_n_check1 CHECK (n > -2000000000) NOT VALID;",
            "\n  ALTER TABLE t VALIDATE CONSTRAINT t_n_check1;",
        ],
    );
    assert!(!told.contains("pgrig_better_"), "{told}");
}

/// The waits of a statement behind a lock of its transaction count for another one, but they are the cost that a better way avoids.
#[test]
fn a_better_way_is_compared_with_the_waits_behind_a_kept_lock() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY, n int);").unwrap();
    let migration = "BEGIN; ALTER TABLE t ADD a int; SELECT pg_sleep(1); CREATE INDEX ON t (n); COMMIT";
    let mut command = rig.command("ddl --quick --rows 300 --alternatives");
    let ran = command.args(["-c", migration, "--schema-file"]).arg(&schema).output().unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{ran:#?}");
    let before = stdout.lines().find(|line| line.starts_with("   before  ")).unwrap_or_default();
    assert_says(
        before,
        &["waits for a lock that statement 2 holds count for that statement, ACCESS EXCLUSIVE"],
    );
}

/// For a constraint that fails during the fill, and for a default that a statement of the migration needs.
#[test]
fn objects_that_a_copy_lacks_get_commands_to_paste() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(
        "CREATE FUNCTION positive(x int) RETURNS bool LANGUAGE sql AS 'SELECT x > 0';
         CREATE FUNCTION valid(x int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN positive(x); END';
         CREATE FUNCTION made() RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN positive(1); END';
         CREATE TABLE t (id int PRIMARY KEY, n int CHECK (valid(n)));
         CREATE TABLE u (id int PRIMARY KEY, n bool DEFAULT made());
         INSERT INTO t SELECT i, i FROM generate_series(1, 100) i; INSERT INTO u SELECT i FROM generate_series(1, 100) i;
         ANALYZE;",
    );
    let home = rig.home.path();
    for statement in ["ALTER TABLE t ADD z int", "INSERT INTO u (id) VALUES (-1)"] {
        let mut command = rig.command("ddl --quick --rows 100 --instance ddl");
        let ran =
            command.current_dir(home).args(["-c", statement, "-d", server.url.as_str()]).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{statement}: {stderr}");
        let again = format!(
            " -f schema.sql\n  pgrig ddl --quick --rows 100 --instance ddl -c '{statement}' --schema-file schema.sql\n"
        );
        assert_says(
            &stderr,
            &["run these commands:\n  pg_dump --schema-only --no-subscriptions -d '", again.as_str()],
        );
        assert!(!stderr.contains("--column"), "{statement}: {stderr}");
    }
}
