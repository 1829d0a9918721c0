//! `pgrig testdb unlog` of a live database: the program itself, on the oldest and the newest release.

use crate::support::{Rig, Running, Server};
use nix::sys::signal::Signal;
use testkit::until_some as until;

/// A cycle, a partitioned table that references, and whatever is changed last: table and sequence.
const SCHEMA: &str = "CREATE TABLE egg (id int PRIMARY KEY, hen int); \
    CREATE TABLE hen (id int PRIMARY KEY, egg int REFERENCES egg); \
    ALTER TABLE egg ADD CONSTRAINT laid_by FOREIGN KEY (hen) REFERENCES hen; \
    CREATE TABLE site (id int PRIMARY KEY); \
    CREATE TABLE reading (id serial, site int REFERENCES site) PARTITION BY LIST (site); \
    CREATE TABLE reading_1 PARTITION OF reading FOR VALUES IN (1); \
    CREATE TABLE \"Last one\" (id int); \
    INSERT INTO site VALUES (1); INSERT INTO reading (site) SELECT 1 FROM generate_series(1, 1000)";

/// A session that rewrites the last table waits for advisory lock 1.
const GATE: &str = "CREATE FUNCTION gate() RETURNS event_trigger LANGUAGE plpgsql AS $$ \
    BEGIN IF pg_event_trigger_table_rewrite_oid() = 'reading_1'::regclass \
    THEN PERFORM pg_advisory_lock(1); END IF; END $$; \
    CREATE EVENT TRIGGER gate ON table_rewrite EXECUTE FUNCTION gate()";

const UNLOGGED: &str = "SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relkind IN ('r', 'S')";

fn on_each_release(test: impl Fn(&Rig, &Server<'_>, u32)) {
    for release in [13, 18] {
        let rig = Rig::new();
        let server = rig.server(&format!("--pg-version {release}"));
        server.execute(SCHEMA);
        test(&rig, &server, release);
    }
}

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no \"{part}\" in: {text}");
    }
}

#[test]
fn there_and_back() {
    on_each_release(|rig, server, release| {
        let unlog = format!("testdb unlog -d {}", server.url);
        // Nothing but looking.
        let script = rig.done(&format!("{unlog} --dry-run")).stdout;
        assert_says(
            &script,
            &[
                "BEGIN;\nSET LOCAL lock_timeout = '10000ms';\n",
                "ALTER TABLE \"public\".\"reading_1\" SET UNLOGGED;\n",
                "-- unchanged: public.site: the partitioned table public.reading, which is always logged, references it",
                "is part of a cycle",
                "COMMIT;\n",
            ],
        );
        assert_eq!(server.number(UNLOGGED), 0);

        let ran = rig.done(&unlog);
        assert_says(&ran.stderr, &["cycle", "drops it and adds it again", "public.site"]);
        let sequences = if release < 15 { "0 sequences" } else { "1 sequence" };
        assert_says(
            &ran.stdout,
            &[
                "public.\"Last one\"",
                "4 tables",
                sequences,
                "active: wal_level = ",
                "full_page_writes = on",
                "if the server crashes, unlogged tables are empty",
                "--back",
            ],
        );
        assert_eq!(server.number(UNLOGGED), if release < 15 { 4 } else { 5 });
        assert_says(&rig.done(&format!("{unlog} -q")).stdout, &["nothing to do", "unlogged already"]);

        let ran = rig.done(&format!("{unlog} --back"));
        assert_says(&ran.stdout, &["4 tables", "logged in"]);
        assert!(!ran.stdout.contains("crash"), "{}", ran.stdout);
        assert_eq!(server.number(UNLOGGED), 0);
        assert_eq!(server.number("SELECT count(*) FROM reading"), 1000);
    });
}

#[test]
fn wrong_requests() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute(SCHEMA);
    let unlog = format!("testdb unlog -d {}", server.url);
    for (arguments, says) in [
        ("dump.sql", "FILE"),
        ("--compress gzip", "--compress"),
        ("--output fast.sql", "--output"),
        ("--exclude-table missing", "missing"),
        ("--schema missing", "there is no schema \"missing\" in this database: check the name"),
        ("--lock-timeout 10", "unit"),
    ] {
        let ran = rig.run(&format!("{unlog} {arguments}"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_says(&ran.stderr, &[says]);
    }
    server.execute("CREATE PUBLICATION news FOR TABLE egg");
    let ran = rig.run(&unlog);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_says(&ran.stderr, &["public.egg", "news"]);
    assert_eq!(server.number(UNLOGGED), 0);
}

#[test]
fn a_lock_that_others_hold() {
    on_each_release(|rig, server, _| {
        let other = rig.connect(&server.url);
        rig.block_on(other.batch_execute("SET application_name = 'report'; BEGIN; SELECT FROM site, hen"))
            .unwrap();
        let ran = rig.run(&format!("testdb unlog --lock-timeout 100ms -d {}", server.url));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_says(
            &ran.stderr,
            &["public.hen", "from report", "idle in transaction", "pgrig changed nothing"],
        );
        drop(other);
        assert_eq!(server.number(UNLOGGED), 0);
    });
}

/// A pgrig that has changed all tables but one, and waits; with the session that keeps it waiting.
fn halfway(rig: &Rig, server: &Server<'_>) -> (Running, tokio_postgres::Client) {
    server.execute(GATE);
    let gate = rig.connect(&server.url);
    rig.block_on(gate.batch_execute("SELECT pg_advisory_lock(1)")).unwrap();
    let pgrig = rig.spawn(&format!("testdb unlog --lock-timeout 1h -d {}", server.url));
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    until("it waits", || (server.number(waiting) == 1).then_some(()));
    (pgrig, gate)
}

#[test]
fn interrupted_in_the_middle() {
    on_each_release(|rig, server, _| {
        let (pgrig, gate) = halfway(rig, server);
        pgrig.signal(Signal::SIGINT);
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(130), "{ran:?}");
        assert_says(&ran.stderr, &["rolled back, nothing was changed"]);
        drop(gate);
        assert_eq!(server.number(UNLOGGED), 0);
    });
}

#[test]
fn killed_in_the_middle() {
    on_each_release(|rig, server, _| {
        let before = "SELECT count(*) FROM pg_constraint WHERE contype = 'f'";
        let constraints = server.number(before);
        let (pgrig, gate) = halfway(rig, server);
        pgrig.signal(Signal::SIGKILL);
        assert_eq!(pgrig.end().code, None);
        rig.block_on(gate.batch_execute("SELECT pg_advisory_unlock(1)")).unwrap();
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgrig'";
        until("its sessions end", || (server.number(sessions) == 0).then_some(()));
        assert_eq!(server.number(UNLOGGED), 0);
        assert_eq!(server.number(before), constraints);
        // And it can be done again.
        rig.block_on(gate.batch_execute("DROP EVENT TRIGGER gate")).unwrap();
        rig.done(&format!("testdb unlog -d {}", server.url));
    });
}
