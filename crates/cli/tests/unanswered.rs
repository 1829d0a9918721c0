//! Servers that do not answer: a port that says nothing, a server in recovery, a peer that goes silent.

mod common;

use std::net::TcpListener;

use common::{Rig, Running, until};

/// Accepts connections and never says a word, until the test ends.
fn silent_port() -> (TcpListener, u16) {
    // The kernel accepts for whoever listens.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// One command of each verb that needs a server.
const VERBS: [&str; 9] = [
    "fill 5MB",
    "fill 5MB --streams 2 --chunk 1MB --method copy",
    "tps -T 1",
    "tps -T 1 --matrix clients=1,2",
    "micro random()",
    "blockio 0.1GB",
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
        // It recovers until somebody makes the file, and says so to whoever connects.
        server.execute("ALTER SYSTEM SET restore_command = 'until test -e go; do sleep 0.1; done; false'");
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
        let error = rig.block_on(common::connect(&url)).err()?;
        (error.code()?.code() == "57P03").then_some(())
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
    assert_eq!(server.end().code, Some(0));
}
