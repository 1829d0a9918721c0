//! `pgrig ddl` fills its own server under wal_level = minimal, and measures under the server's own level.

use std::fs;

use nix::sys::signal::Signal;
use testkit::{assert_says, until};

use crate::support::Rig;

/// A function with the level under which the tables were made, and a wait there if so many seconds are given.
fn schema(rig: &Rig, seconds: u32) -> String {
    let path = rig.home.path().join("schema.sql");
    let text = format!(
        "CREATE TABLE t (id int PRIMARY KEY, n int, b text);
         CREATE INDEX ON t (n);
         DO $do$ BEGIN
             EXECUTE format('CREATE FUNCTION made_under() RETURNS text LANGUAGE sql AS %L',
                 format('SELECT %L::text', current_setting('wal_level')));
             IF current_setting('wal_level') = 'minimal' THEN PERFORM pg_sleep({seconds}); END IF;
         END $do$;"
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A statement that fails on tables with rows unless they were filled under `made`, and it runs itself under replica.
fn levels(made: &str) -> String {
    format!(
        "ALTER TABLE t ADD a int;
         DO $do$ BEGIN
             IF (SELECT count(*) FROM t) > 0
                 AND (made_under(), current_setting('wal_level')) IS DISTINCT FROM ('{made}', 'replica')
             THEN RAISE 'filled under %, measured under %', made_under(), current_setting('wal_level'); END IF;
         END $do$;"
    )
}

/// Rows of a table that is large enough.
const ROWS: &str = "--rows 500000 --up-to 1GB";

#[test]
fn tables_are_filled_under_minimal_and_measured_under_replica() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let tables = format!("--schema-file {} {ROWS}", schema(&rig, 0));
        for effort in ["--quick", ""] {
            let command = format!("ddl {tables} {effort} --pg-version {version} -c");
            let ran = rig.command(&command).arg(levels("minimal")).output().unwrap();
            assert_eq!(ran.status.code(), Some(0), "{version} {effort}: {ran:#?}");
        }
    }
}

/// The server stops with the process that started it, and the next one starts it with its own settings.
#[test]
fn an_interrupted_fill_leaves_neither_databases_nor_the_level() {
    let rig = Rig::new();
    for (signal, code) in [(Signal::SIGINT, Some(130)), (Signal::SIGTERM, Some(130)), (Signal::SIGKILL, None)]
    {
        let told = rig.home.path().join(format!("told-{signal}"));
        let tables = format!("--schema-file {} {ROWS} --quick", schema(&rig, 600));
        let pgrig = rig.spawn_telling(&format!("ddl -c VACUUM {tables}"), &told);
        let config =
            || fs::read_to_string(rig.home.path().join("instances/ddl/data/pgrig.conf")).unwrap_or_default();
        until("the server runs under minimal", || config().contains("wal_level = 'minimal'"));
        until("the fill begins", || fs::read_to_string(&told).unwrap().contains("filling the tables"));
        pgrig.signal(signal);
        let ran = pgrig.end();
        assert_eq!(ran.code, code, "{}", fs::read_to_string(&told).unwrap());

        let tables = format!("--schema-file {} --rows 100 --quick", schema(&rig, 0));
        let next = rig.command(&format!("ddl {tables} -c")).arg(left()).output().unwrap();
        assert_eq!(next.status.code(), Some(0), "{signal}: {next:#?}");
        assert!(config().contains("wal_level = 'replica'") && !config().contains("minimal"), "{}", config());
    }
}

/// A statement that fails if there are databases of another run.
fn left() -> String {
    "DO $do$ BEGIN
         IF (SELECT count(*) FROM pg_database WHERE datname LIKE 'pgrig%'
                 AND left(datname, 26) <> left(current_database(), 26)) > 0
             OR current_setting('wal_level') <> 'replica'
         THEN RAISE 'something is left'; END IF;
     END $do$;"
        .to_owned()
}

/// Those that need a restart, too; a setting of the user comes first.
#[test]
fn pgrig_s_own_server_runs_with_the_settings_of_the_original() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let settings = "--set shared_buffers=48MB --set checkpoint_timeout=7min --set max_wal_size=300MB --set wal_log_hints=on";
        let original = rig.server(&format!("--pg-version {version} {settings}"));
        original.execute("CREATE TABLE t AS SELECT i AS id, i AS n FROM generate_series(1, 20000) i");
        original.execute("ALTER TABLE t ADD PRIMARY KEY (id)");
        original.execute("ANALYZE t");
        let expected = "48MB 7min 250MB on replica";
        let migration = format!(
            "ALTER TABLE t ADD a int;
             DO $do$ DECLARE found text := format('%s %s %s %s %s', current_setting('shared_buffers'), current_setting('checkpoint_timeout'),
                 current_setting('max_wal_size'), current_setting('wal_log_hints'), current_setting('wal_level'));
             BEGIN IF found <> '{expected}' THEN RAISE 'measured with %', found; END IF; END $do$;"
        );
        for effort in ["--quick", ""] {
            let command = format!(
                "ddl -d {} --instance migrations --pg-version {version} --set max_wal_size=250MB {effort} -c",
                original.url
            );
            let ran = rig.command(&command).arg(&migration).output().unwrap();
            let told = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(0), "{version} {effort}: {told}");
            assert!(!told.contains("the server that measures has"), "{told}");
        }
        // A limit of this machine: no disk has room for four times as much WAL.
        original.execute("ALTER SYSTEM SET max_wal_size = '100TB'");
        original.execute("SELECT pg_reload_conf()");
        let waited = || original.row("SELECT current_setting('max_wal_size') AS size").get::<_, String>(0);
        until("the setting is read", || waited() == "100TB");
        let ran = rig.done(&format!(
            "ddl -d {} --instance migrations --pg-version {version} --quick -c VACUUM",
            original.url
        ));
        let remedy = "the original 100TB. pgrig does not use the original's value, because it is more than 25 % of the free disk space; to use it nevertheless, give --set max_wal_size=100TB";
        assert_says(&ran.stderr, &[remedy]);
        // That server may not be restarted.
        rig.done(&format!("server start --instance kept --pg-version {version} --set wal_level=replica"));
        let kept = rig.done("server url --instance kept").stdout;
        let command = format!("ddl -d {} --scratch {} --quick -c VACUUM", original.url, kept.trim());
        let ran = rig.done(&command);
        rig.done("server destroy --instance kept");
        assert_says(
            &ran.stderr,
            &[
                "the server that measures has shared_buffers = ",
                ", the original 48MB",
                "use the original's values on the server that measures",
            ],
        );
    }
}
