//! A server among several hosts of a URI: the client programs reach the one that pgrig has reached.

use std::net::TcpListener;

use backup::{Request, Site, Witness};
use pgserver::{Home, Spec};
use testkit::{Need, Server, block_on, require, spec, target, templates};

use crate::support::{Unwatched, assert_nothing_is_left, ways};

const RELEASE: u16 = 13;

/// A server that is reached by TCP, with a superuser.
fn server() -> Server {
    let settings = [("wal_level", "replica"), ("max_wal_senders", "4"), ("autovacuum", "off")];
    let server = Server::start(Spec { tcp: Some(true), ..spec(RELEASE, &settings) });
    server.sql("CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'a secret'");
    server
}

/// The first port is closed. The second server accepts sessions, but no writes, and has no tables.
#[test]
fn programs_reach_the_server_that_pgrig_has_reached() {
    if !require(Need::Clients) {
        return;
    }
    let (other, server) = (server(), server());
    other.sql("ALTER ROLE keeper SET default_transaction_read_only = on");
    server.sql("CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 5000) i");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!(
        "postgresql://keeper:a%20secret@127.0.0.1:{closed},localhost:{},localhost:{}/postgres\
         ?target_session_attrs=read-write&application_name=keeping&options=-c%20work_mem%3D7MB&connect_timeout=5",
        other.port(),
        server.port()
    );
    let target = target(&uri, &[]).unwrap();
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let version_num = u32::from(RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request = Request {
        ways: ways(&["custom:none", "directory:none,jobs=2", "base"]),
        trials: 1,
        bin: None,
        probe: false,
        network: true,
    };
    let never = std::future::pending();
    let outcome = block_on(Box::pin(backup::rehearse(&site, &request, &mut Unwatched, never))).unwrap();
    assert_nothing_is_left(home.root());
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!(outcome.trials.len(), 3);
    for trial in &outcome.trials {
        let witness = if trial.way.is_base() { Witness::Unchanged } else { Witness::SameSnapshot };
        assert_eq!((trial.verified.witness, trial.verified.rows), (witness, 5000), "{trial:#?}");
        assert!(trial.network.is_some(), "{}: {:#?}", trial.way, outcome.notes);
    }
}
