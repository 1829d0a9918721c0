//! `pgrig ddl` that is interrupted or killed, or loses its server, while it times the migration, and while readers and writers
//! use the tables.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::until_some as until;

use crate::support::{Rig, Running, Server};

/// The copies in which the migration is timed, and in which readers and writers use the tables.
const COPIES: [&str; 2] = ["cost", "stall"];

/// Starts pgrig with a migration that sleeps in one of the copies alone, and waits until it does.
fn asleep(rig: &Rig, server: &Server, copy: &str) -> Running {
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let schema = file("schema.sql", "CREATE TABLE t (id int PRIMARY KEY);");
    let sleep = format!("IF current_database() LIKE 'pgrig%{copy}' THEN PERFORM pg_sleep(600); END IF");
    let migration =
        file("migration.sql", &format!("ALTER TABLE t ADD a int;\nDO $$ BEGIN {sleep}; END $$;\n"));
    // With --quick, the migration is timed in the copy in which pgrig looks at it.
    let effort = if copy == "stall" { "--quick" } else { "" };
    let mut command = rig.command(&format!("ddl {effort} --rows 100"));
    command.args([&migration, "--schema-file", &schema, "--scratch", &server.url]);
    let mut pgrig = Running::start(command);
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let is_asleep = until("the migration sleeps", || {
        let is_asleep = server.number(sleeping) > 0;
        (is_asleep || pgrig.has_ended()).then_some(is_asleep)
    });
    assert!(is_asleep, "{copy}: {:#?}", pgrig.end());
    pgrig
}

fn databases(server: &Server) -> i64 {
    server.number("SELECT count(*) FROM pg_database WHERE datname LIKE 'pgrig%'")
}

fn sessions(server: &Server) -> i64 {
    server.number("SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'pgrig%'")
}

/// The next command on the server drops what is left.
fn next(rig: &Rig, server: &Server) {
    let mut command = rig.command("ddl --quick --rows 1");
    let schema = rig.home.path().join("schema.sql");
    command.args(["-c", "SELECT 1", "--scratch", &server.url, "--schema-file"]).arg(schema);
    let ran = Running::start(command).end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!((databases(server), sessions(server)), (0, 0));
}

#[test]
fn a_signal_leaves_no_database() {
    let rig = Rig::new();
    let server = rig.server("--set wal_level=replica");
    for copy in COPIES {
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let pgrig = asleep(&rig, &server, copy);
            pgrig.signal(signal);
            let ran = pgrig.end();
            assert_eq!(ran.code, Some(130), "{copy}: {ran:#?}");
            assert_eq!(databases(&server), 0, "{copy}: {ran:#?}");
            until("its sessions end", || (sessions(&server) == 0).then_some(()));
        }
    }
}

/// `timeout` sends its signal to pgrig and to the process group.
#[test]
fn a_repeated_signal_leaves_no_database() {
    let rig = Rig::new();
    let server = rig.server("--set wal_level=replica");
    let pgrig = asleep(&rig, &server, COPIES[0]);
    for _ in 0..3 {
        pgrig.signal(Signal::SIGTERM);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert_eq!(databases(&server), 0, "{ran:#?}");
}

/// The server does not notice that pgrig was killed while it carries out a statement.
#[test]
fn the_next_run_drops_what_a_killed_one_left_at_work() {
    let rig = Rig::new();
    let server = rig.server("--set wal_level=replica");
    for copy in COPIES {
        let pgrig = asleep(&rig, &server, copy);
        pgrig.signal(Signal::SIGKILL);
        pgrig.end();
        assert!(databases(&server) > 0 && sessions(&server) > 0);
        // The session that shows that the run lives has nothing to do.
        let lives = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgrig_ddl%'";
        until("the server sees that the run has ended", || (server.number(lives) == 0).then_some(()));
        next(&rig, &server);
    }
}

/// A process that cannot write WAL ends the whole server, and the others lose their connections.
#[test]
fn wal_that_fills_the_disk_is_named_with_the_remedy() {
    let Some(rig) = Rig::on_disk(|home| testkit::Mount::tmpfs(home, 200)) else { return };
    let schema = rig.home.path().join("schema.sql");
    fs::write(&schema, "CREATE TABLE t (id int PRIMARY KEY);").unwrap();
    let wal = "SELECT count(pg_logical_emit_message(true, 'x', repeat(md5(i::text), 30000))) FROM generate_series(1, 300) i";
    let run = || {
        let mut command = rig.command("ddl --quick --rows 10 --up-to 1MB --set max_wal_size=10GB");
        command.args(["-c", wal, "--schema-file"]).arg(&schema);
        Running::start(command).end()
    };
    let ran = run();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for said in ["ended by itself", "No space left on device", "pgrig server destroy --instance ddl"] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
    assert!(!ran.stderr.contains("repeat your command"), "{ran:#?}");
    // The next start needs space for the WAL.
    let again = run();
    assert_ne!(again.code, Some(0), "{again:#?}");
    assert!(again.stderr.contains("pgrig server destroy --instance ddl"), "{again:#?}");
    let ran = rig.run("server destroy --instance ddl");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_killed_server_ends_the_run() {
    for copy in COPIES {
        let rig = Rig::new();
        let server = rig.server("--set wal_level=replica");
        let pgrig = asleep(&rig, &server, copy);
        let pid = rig.status()["pid"].as_i64().unwrap();
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(1), "{copy}: {ran:#?}");
        assert!(ran.stderr.contains("error: "), "{copy}: {ran:#?}");
        let server = rig.server("--set wal_level=replica");
        next(&rig, &server);
    }
}
