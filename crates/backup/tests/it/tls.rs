//! Client programs on a server that accepts TCP only with TLS: they verify its certificate, also through the relay.

use std::fs;
use std::path::Path;

use backup::{Outcome, Request, Site, Witness};
use pgserver::{Home, Spec};
use testkit::tls::TlsServer;
use testkit::{Need, Server, block_on, require, spec, target, templates};

use crate::support::{Unwatched, assert_nothing_is_left, programs_with, ways};

const RELEASE: u16 = 13;
const SETTINGS: [(&str, &str); 4] =
    [("wal_level", "replica"), ("max_wal_senders", "6"), ("autovacuum", "off"), ("log_connections", "on")];
const ROLES: &str =
    "SET password_encryption = 'scram-sha-256'; CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'a secret'";
const HBA: &str = "local all all trust\n\
                   local replication all trust\n\
                   hostssl all keeper 127.0.0.1/32 scram-sha-256\n\
                   hostssl replication keeper 127.0.0.1/32 scram-sha-256\n\
                   hostssl all keeper ::1/128 scram-sha-256\n\
                   hostssl replication keeper ::1/128 scram-sha-256\n";

fn server() -> TlsServer {
    let server = Server::start(Spec { tcp: Some(true), ..spec(RELEASE, &SETTINGS) });
    server.sql(ROLES);
    server.sql("CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 5000) i");
    TlsServer::on(server, HBA)
}

/// Rehearses these ways once, by TCP. pg_dump gets this variable, too.
fn rehearsed(tls: &TlsServer, names: &[&str], (variable, value): (&str, &str)) -> Outcome {
    let server = &tls.server;
    let root = tls.file("root.crt").display().to_string().replace('%', "%25").replace('/', "%2F");
    let uri = format!(
        "postgresql://keeper:a%20secret@localhost:{}/postgres?sslmode=verify-full&sslrootcert={root}",
        server.port()
    );
    let target = target(&uri, &[]).unwrap();
    let directory = testkit::directory();
    let script = format!("{variable}='{value}'\nexport {variable}\nexec \"$REAL/pg_dump\" \"$@\"\n");
    let bin = programs_with(directory.path(), RELEASE, "pg_dump", &script);
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let version_num = u32::from(RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let request = Request { ways: ways(names), trials: 1, bin: Some(bin), probe: false, network: true };
    let never = std::future::pending();
    let outcome = block_on(Box::pin(backup::rehearse(&site, &request, &mut Unwatched, never))).unwrap();
    assert_nothing_is_left(home.root());
    outcome
}

/// The lines of the server's log about sessions of the role.
fn sessions(log: &Path) -> Vec<String> {
    let log = fs::read_to_string(log).unwrap();
    let of_role = log.lines().filter(|line| line.contains("connection authorized: user=keeper"));
    of_role.map(str::to_owned).collect()
}

#[test]
fn programs_verify_the_certificate_and_use_tls() {
    if !require(Need::Clients) {
        return;
    }
    let tls = server();
    let names = ["plain:none", "custom:none", "directory:none,jobs=2", "base", "base-tar:none"];
    // In the log, the name tells pg_dump from pgrig.
    let outcome = rehearsed(&tls, &names, ("PGAPPNAME", "of_pg_dump"));
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
    assert_eq!(outcome.trials.len(), names.len());
    for trial in &outcome.trials {
        let witness = if trial.way.is_base() { Witness::Unchanged } else { Witness::SameSnapshot };
        assert_eq!((trial.verified.witness, trial.verified.rows), (witness, 5000), "{trial:#?}");
        assert!(trial.network.is_some(), "{}: {:#?}", trial.way, outcome.notes);
    }
    let sessions = sessions(&tls.server.running().log_path());
    let number = |words: &str| sessions.iter().filter(|line| line.contains(words)).count();
    assert_eq!(number("SSL enabled"), sessions.len(), "{sessions:#?}");
    // Each backup is made twice, the second time through the relay. pg_dump has one session, and with two jobs three; pg_basebackup has two.
    assert!(number("application_name=of_pg_dump") >= 10, "{sessions:#?}");
    assert!(number("replication connection authorized") >= 8, "{sessions:#?}");
}

#[test]
fn programs_refuse_a_certificate_of_another_authority() {
    if !require(Need::Clients) {
        return;
    }
    let tls = server();
    let stranger = tls.file("stranger.crt").display().to_string();
    let outcome = rehearsed(&tls, &["custom", "base"], ("PGSSLROOTCERT", &stranger));
    let [(way, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert!(!way.is_base() && why.contains("certificate verify failed"), "{why}");
    assert_eq!(outcome.trials.len(), 1);
}
