//! Servers that do not answer: a port that says nothing, a server in recovery, a peer that goes silent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Rig, Running, Server};
use nix::sys::signal::Signal;
use testkit::until_some as until;
use tokio_postgres::error::SqlState;

/// Accepts connections and never says a word, until the test ends.
fn silent_port() -> (TcpListener, u16) {
    // The kernel accepts connections for a listening socket.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// One command of each verb that needs a server.
const VERBS: [&str; 10] = [
    "fill 5MB",
    "fill 5MB --streams 2 --chunk 1MB --method copy",
    "tps -T 1",
    "tps -T 1 --matrix clients=1,2",
    "micro random()",
    "blockio 0.1GB",
    "ddl -c VACUUM",
    "testdb unlog",
    "testdb bench --trials 1 -- true",
    "testdb list",
];

#[test]
fn a_port_that_says_nothing_is_given_up() {
    let rig = Rig::new();
    let (_listener, port) = silent_port();
    let at = format!("-h 127.0.0.1 -p {port} -U nobody -d nowhere");
    let running: Vec<(&str, Running)> = VERBS
        .into_iter()
        .map(|verb| {
            let (name, rest) = verb.split_once(' ').unwrap();
            let command = match name {
                // Its action comes before the server's options.
                "testdb" => {
                    let (action, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                    format!("testdb {action} {at} {rest}")
                }
                _ => format!("{name} {at} {rest}"),
            };
            (verb, rig.spawn(&command))
        })
        .collect();
    for (verb, mut pgrig) in running {
        until(verb, || pgrig.has_ended().then_some(()));
        let ran = pgrig.end();
        assert_eq!(ran.code, Some(1), "{verb}: {ran:#?}");
        assert!(ran.stderr.contains("within 10 s (connect_timeout)"), "{verb}: {ran:#?}");
    }
}

#[test]
fn a_server_in_recovery_is_waited_for() {
    let rig = Rig::new();
    let data = {
        // Archive recovery does not take WAL of wal_level = minimal.
        let server = rig.server("--set wal_level=replica");
        // It recovers until somebody makes the file, and says so to every client that connects.
        server.execute("ALTER SYSTEM SET restore_command = 'until test -e go; do sleep 0.1; done; false'");
        // Nor does it take queries until it has recovered.
        server.execute("ALTER SYSTEM SET hot_standby = off");
        rig.data()
    };
    let url = rig.url();
    rig.done("server stop");
    let directory = std::fs::metadata(&data).unwrap();
    let put = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        let path = data.join(name);
        std::fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(directory.uid()), Some(directory.gid())).unwrap();
    };
    put("recovery.signal");
    let server = rig.spawn("server start");
    until("the server recovers", || {
        let error = rig.block_on(crate::support::connect(&url)).err()?;
        (*error.code()? == SqlState::CANNOT_CONNECT_NOW).then_some(())
    });
    let told = rig.home.path().join("told");
    let mut command = rig.command("fill 5MB --method copy -d");
    command.arg(&url).stderr(std::fs::File::create(&told).unwrap());
    let pgrig = Running::start_quietly(command);
    until("pgrig says that it waits", || {
        std::fs::read_to_string(&told).unwrap().contains("for the server to be ready").then_some(())
    });
    put("go");
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(0), "{}", std::fs::read_to_string(&told).unwrap());
    let ran = server.end();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

/// A way to the server through this process, which can be frozen: what is sent then waits, also on new
/// connections, until it goes on.
struct Proxy {
    port: u16,
    is_frozen: Arc<AtomicBool>,
}

impl Proxy {
    fn to(server: &Server) -> Self {
        let port = server.row("SELECT current_setting('port')::int").get::<_, i32>(0);
        let server = format!("127.0.0.1:{port}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_frozen = Arc::new(AtomicBool::new(false));
        let frozen = Arc::clone(&is_frozen);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let frozen = Arc::clone(&frozen);
                    std::thread::spawn(move || pass_on(from, to, &frozen));
                }
            }
        });
        Self { port, is_frozen }
    }

    fn freeze(&self, is_frozen: bool) {
        self.is_frozen.store(is_frozen, Ordering::SeqCst);
    }

    /// The connection URI by way of it.
    fn url(&self, server: &Server) -> String {
        let (before, after) = server.url.split_once("127.0.0.1:").unwrap();
        let (_, database) = after.split_once('/').unwrap();
        format!("{before}127.0.0.1:{}/{database}", self.port)
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_frozen: &AtomicBool) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        while is_frozen.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Sessions of pgrig's for which the server does something that matches.
fn at_work(server: &Server, condition: &str) -> i64 {
    server.number(&format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgrig%' AND state = 'active' AND {condition}"
    ))
}

/// Waits until pgrig is at work there.
fn until_at_work(server: &Server, mut pgrig: Running, condition: &str) -> Running {
    let is_at_work = until(condition, || {
        let is_at_work = at_work(server, condition) > 0;
        (is_at_work || pgrig.has_ended()).then_some(is_at_work)
    });
    assert!(is_at_work, "it ended before: {condition}: {:#?}", pgrig.end());
    pgrig
}

const SLEEPS: &str = "wait_event = 'PgSleep'";
const WAITS: &str = "wait_event_type = 'Lock'";

#[test]
fn a_signal_cancels_what_runs_in_the_server() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE own (id int PRIMARY KEY, name text)");
    let slow = rig.home.path().join("slow.sql");
    std::fs::write(&slow, "SELECT pg_sleep(600);\n").unwrap();
    let slow = slow.to_str().unwrap();
    let holder = rig.connect(&server.url);
    let endless = "query LIKE 'DO %'";
    let sleep = "SELECT pg_sleep(600)";
    let cases: [(&str, &[&str], &str); 8] = [
        ("micro", &["--ddl", "CREATE TABLE {table} AS SELECT pg_sleep(600)::text"], SLEEPS),
        ("micro", &["random()", "--setup", sleep], SLEEPS),
        ("micro", &["random()", "--setup", "DO $$ BEGIN LOOP END LOOP; END $$"], endless),
        ("micro", &["random()", "--budget", "1s", "--teardown", sleep], SLEEPS),
        ("micro", &["--statement", sleep, "--anyway"], SLEEPS),
        ("fill", &["--table", "own", "--rows", "10"], WAITS),
        ("testdb unlog", &[], WAITS),
        ("testdb new", &["--from", slow], SLEEPS),
    ];
    for (verb, arguments, condition) in cases {
        if condition == WAITS {
            rig.block_on(holder.batch_execute("BEGIN; LOCK TABLE own")).unwrap();
        }
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let mut command = rig.command(verb);
            command.args(arguments);
            if verb != "testdb new" {
                command.args(["-d", &server.url]);
            }
            let mut pgrig = until_at_work(&server, Running::start(command), condition);
            pgrig.signal(signal);
            until(&format!("{verb} {arguments:?} ends"), || pgrig.has_ended().then_some(()));
            let ran = pgrig.end();
            assert_eq!(ran.code, Some(130), "{verb} {arguments:?}: {ran:#?}");
            assert!(ran.stderr.contains("interrupted"), "{verb} {arguments:?}: {ran:#?}");
            until("nothing runs any more", || (at_work(&server, condition) == 0).then_some(()));
        }
        if condition == WAITS {
            rig.block_on(holder.batch_execute("ROLLBACK")).unwrap();
        }
    }
    rig.done("testdb drop --all");
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'";
    assert_eq!(server.number(left), 0);
}

/// Verbs, and when they are in the middle.
const IN_THE_MIDDLE: [(&str, &str); 9] = [
    ("fill 2GB --schema one --method copy --streams 1", "query LIKE 'COPY%'"),
    ("fill 2GB --schema two --method copy --streams 2 --chunk 1MB --unlogged", "query LIKE 'COPY%'"),
    ("micro random() --budget 100s", "query LIKE '%generate_series%'"),
    ("blockio 1GB --schema three", "query LIKE '%INSERT%' OR query LIKE '%CREATE TABLE%'"),
    ("tps -T 100 -f SCRIPT", "query LIKE 'SELECT pg_sleep%'"),
    ("tps -T 100 -f SCRIPT --matrix clients=1,2", "query LIKE 'SELECT pg_sleep%'"),
    ("testdb bench --trials 5 --tps SCRIPT --variants normal", "query LIKE 'SELECT pg_sleep%'"),
    ("ddl COST --schema-file SCHEMA", SLEEPS),
    ("ddl STALL --schema-file SCHEMA", SLEEPS),
];

#[test]
fn a_signal_ends_pgrig_though_its_peer_has_gone_silent() {
    let rig = Rig::new();
    let server = rig.server("--tcp --set wal_level=replica");
    let file = |name: &str, text: &str| {
        let path = rig.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let script = file("sleep.sql", "SELECT pg_sleep(0.05);\n");
    let schema = file("schema.sql", "CREATE TABLE t (id int PRIMARY KEY);\n");
    // Each sleeps in one of the copies in which ddl runs it.
    let sleeping = |copy: &str| {
        let sleep = format!("IF current_database() LIKE 'pgrig%{copy}' THEN PERFORM pg_sleep(600); END IF");
        file(&format!("{copy}.sql"), &format!("DO $$ BEGIN {sleep}; END $$;\n"))
    };
    let (cost, stall, one) = (sleeping("cost"), sleeping("stall"), file("one.sql", "SELECT 1;\n"));
    server.execute("CREATE SCHEMA one; CREATE SCHEMA two; CREATE SCHEMA three");
    for (verb, condition) in IN_THE_MIDDLE {
        for signals in [1, 2] {
            let proxy = Proxy::to(&server);
            let names = [("SCRIPT", &script), ("COST", &cost), ("STALL", &stall), ("SCHEMA", &schema)];
            let verb = names.iter().fold(verb.to_owned(), |verb, (name, file)| verb.replace(name, file));
            let option = if verb.starts_with("ddl") { "--scratch" } else { "-d" };
            let pgrig = rig.spawn(&format!("{verb} {option} {}", proxy.url(&server)));
            let mut pgrig = until_at_work(&server, pgrig, &format!("({condition})"));
            proxy.freeze(true);
            (0..signals).for_each(|_| pgrig.signal(Signal::SIGINT));
            until(&format!("{verb} ends"), || pgrig.has_ended().then_some(()));
            let ran = pgrig.end();
            assert_eq!(ran.code, Some(130), "{verb}: {ran:#?}");
            proxy.freeze(false);
            if verb.starts_with("ddl") {
                // The statement sleeps on: the server does not look at its client. The next run ends it.
                let leads = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgrig_ddl%'";
                until("the leading session ends", || (server.number(leads) == 0).then_some(()));
                rig.done(&format!(
                    "ddl {one} --schema-file {schema} --quick --rows 1 --scratch {}",
                    server.url
                ));
            }
            until("its sessions end", || (at_work(&server, "true") == 0).then_some(()));
        }
    }
}

#[test]
fn a_peer_that_is_silent_for_long_is_waited_for_and_named() {
    let rig = Rig::new();
    let server = rig.server("--tcp");
    let proxy = Proxy::to(&server);
    let told = rig.home.path().join("told");
    let arguments = format!("fill 300MB --method copy --streams 1 -d {}", proxy.url(&server));
    let pgrig = rig.spawn_telling(&arguments, &told);
    let mut pgrig = until_at_work(&server, pgrig, "query LIKE 'COPY%pgbench_accounts%'");
    proxy.freeze(true);
    until("pgrig says what it waits for", || {
        assert!(!pgrig.has_ended(), "{}", std::fs::read_to_string(&told).unwrap());
        std::fs::read_to_string(&told).unwrap().contains("s for the server's answer to: ").then_some(())
    });
    proxy.freeze(false);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(0), "{}", std::fs::read_to_string(&told).unwrap());
}

#[test]
fn a_capture_ends_when_its_peer_has_gone_silent() {
    let rig = Rig::new();
    let server = rig.server("--tcp");
    server.execute("CREATE TABLE read_by_capture AS SELECT generate_series(1, 1000) AS n; ANALYZE");
    let holder = rig.connect(&server.url);
    rig.block_on(holder.batch_execute("BEGIN; LOCK TABLE read_by_capture")).unwrap();
    let proxy = Proxy::to(&server);
    let pgrig = rig.spawn(&format!("model capture --timeout 1s -o - -d {}", proxy.url(&server)));
    let mut pgrig = until_at_work(&server, pgrig, WAITS);
    proxy.freeze(true);
    until("it ends", || pgrig.has_ended().then_some(()));
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("no answer for") && ran.stderr.contains("--timeout"), "{ran:#?}");
    assert!(ran.stdout.is_empty(), "{ran:#?}");
}
