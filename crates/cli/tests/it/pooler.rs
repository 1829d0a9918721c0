//! A pooler in front of the server: PgBouncer in each of its modes.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::support::Rig;
use testkit::until_some as until;

/// PgBouncer in front of the rig's server, ended with the test.
struct Bouncer {
    child: Child,
    port: u16,
}

impl Bouncer {
    fn start(rig: &Rig, socket_directory: &str, mode: &str, pool_size: u32) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = std::env::temp_dir().join(format!("pgrig-bouncer-{port}.ini"));
        let text = format!(
            "[databases]\n* = host={socket_directory} port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = {pool_size}\n\
             unix_socket_dir =\nignore_startup_parameters = extra_float_digits,options\n"
        );
        std::fs::write(&path, text).unwrap();
        // It refuses to run as root; the server's account reaches the socket.
        let owner = Command::new("stat").args(["-c", "%U"]).arg(rig.data()).output().unwrap();
        let owner = String::from_utf8(owner.stdout).unwrap();
        let child = Command::new("setpriv")
            .args(["--reuid", owner.trim(), "--clear-groups", "--pdeathsig", "KILL", "pgbouncer"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("PgBouncer listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        std::fs::remove_file(&path).unwrap();
        Self { child, port }
    }

    fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_a_pool_that_keeps_sessions_is_used() {
    if !testkit::require(testkit::Need::PgBouncer) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1");
    let socket: String = server.row("SHOW unix_socket_directories").get(0);
    for mode in ["transaction", "statement"] {
        let bouncer = Bouncer::start(&rig, &socket, mode, 20);
        for command in [
            "fill 5MB --drop",
            "fill 5MB --part 1/2",
            "micro 1+i --budget 1s",
            "blockio 10MB",
            "testdb new --keep",
        ] {
            let ran = rig.run(&format!("{command} -d {}", bouncer.url()));
            assert_eq!(ran.code, Some(2), "{mode} {command}: {ran:#?}");
            assert!(
                ran.stderr.contains("is a connection pooler in transaction or statement mode"),
                "{mode} {command}: {ran:#?}"
            );
            assert!(ran.stderr.contains("pool_mode = session"), "{mode} {command}: {ran:#?}");
        }
        // tps measures a pooler that the user names.
        if mode == "transaction" {
            let ran = rig.done(&format!("tps -S -n -c 2 -T 1 -d {}", bouncer.url()));
            assert!(ran.stderr.contains("the measured times include the pooler"), "{ran:#?}");
            // Parts see each other by locks of a session.
            let ran = rig.run(&format!("tps -S -n -T 1 --part 1/2 -d {}", bouncer.url()));
            assert_eq!(ran.code, Some(2), "{ran:#?}");
            assert!(ran.stderr.contains("the parts of a run cannot see each other"), "{ran:#?}");
        }
    }
    assert!(server.number("SELECT count(*) FROM pgbench_accounts") > 0, "nothing was dropped");
    for command in ["fill 5MB --drop --method copy --streams 2", "micro 1+i --budget 1s"] {
        // One each: PgBouncer 1.18 ends itself on some cancel requests ("bad client state").
        let bouncer = Bouncer::start(&rig, &socket, "session", 20);
        rig.done(&format!("{command} -d {}", bouncer.url()));
    }
    // A pool of one session for all cannot change it; nothing waits without end.
    let small = Bouncer::start(&rig, &socket, "transaction", 1);
    let ran = rig.run(&format!("micro 1+i --budget 1s -d {}", small.url()));
    assert!(ran.code.is_some(), "{ran:#?}");
}
