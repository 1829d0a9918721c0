//! The CPU time of servers.

use std::thread::available_parallelism;

use backup::{Outcome, Shape, Trial};
use pgserver::Spec;
use testkit::{Need, Server, assert_says, block_on, require, spec, target};

use crate::support::{rehearsed, server};

/// Seconds by which the readings of the server's time may be farther apart than the start and the end of the client programs.
const APART: f64 = 0.5;
const BYTES: u64 = 12_000_000;

fn of<'a>(outcome: &'a Outcome, way: &str) -> &'a Trial {
    let is_largest = |trial: &&Trial| trial.at.is_none_or(|at| at.is_largest);
    let mut trials = outcome.trials.iter().filter(is_largest);
    trials.find(|trial| trial.way.to_string() == way).unwrap_or_else(|| panic!("{way}: {outcome:#?}"))
}

/// No server uses more than all processors all the time.
fn assert_possible(outcome: &Outcome) {
    assert!(outcome.failed.is_empty() && !outcome.trials.is_empty(), "{outcome:#?}");
    let cores = available_parallelism().unwrap().get() as f64;
    for trial in &outcome.trials {
        let restore = trial.restore_server_cpu.unwrap();
        let steps = [(trial.backup, trial.backup_server_cpu), (trial.restore, Some(restore))];
        for (seconds, cpu) in steps {
            let is_possible = |cpu: f64| cpu >= 0.0 && cpu <= (seconds + APART) * cores;
            assert!(cpu.is_none_or(is_possible), "{trial:#?}");
        }
        assert_eq!(trial.document().value("restore-server-cpu"), Some(restore));
        assert_eq!(trial.document().value("backup-server-cpu"), trial.backup_server_cpu);
    }
}

#[test]
fn servers_of_a_forecast_are_measured_in_backup_and_restore() {
    if !require(Need::Clients) {
        return;
    }
    let rehearsed = crate::sizes::rehearsed(Shape::pgbench(), BYTES, &["plain", "base"], &[]);
    let outcome = block_on(rehearsed);
    assert_possible(&outcome);
    assert!(outcome.trials.iter().all(|trial| trial.backup_server_cpu.is_some()), "{outcome:#?}");
    let plain = of(&outcome, "plain:none");
    assert!(plain.restore_server_cpu > Some(0.0), "{plain:#?}");
    assert!(plain.backup_server_cpu > Some(0.0), "{plain:#?}");
}

#[test]
fn a_server_that_was_there_is_measured_if_it_runs_on_this_machine() {
    if !require(Need::Clients) {
        return;
    }
    let server = server(13);
    block_on(async {
        let connection = server.connect("postgres").await;
        let make = "CREATE TABLE a (id int PRIMARY KEY, t text); \
                    INSERT INTO a SELECT i, md5(i::text) FROM generate_series(1, 200000) i";
        connection.client.batch_execute(make).await.unwrap();
        let outcome = rehearsed(&server, &server.target("postgres"), &["custom:none", "base"]).await.unwrap();
        assert_possible(&outcome);
        assert!(outcome.trials.iter().all(|trial| trial.backup_server_cpu.is_some()), "{outcome:#?}");
        assert!(outcome.notes.is_empty(), "{outcome:#?}");
        let custom = of(&outcome, "custom:none");
        assert!(custom.restore_server_cpu > Some(0.0) && custom.backup_server_cpu > Some(0.0), "{custom:#?}");
        connection.close().await;
    });
}

/// By TCP, nothing proves that the server's processes are those of this machine.
#[test]
fn the_time_of_a_server_whose_place_is_unknown_is_not_known() {
    if !require(Need::Clients) {
        return;
    }
    let server = Server::start(Spec { tcp: Some(true), ..spec(13, &[("autovacuum", "off")]) });
    server.sql("CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'a secret'; CREATE TABLE a AS SELECT 1 AS i");
    let uri = format!("postgresql://keeper:a%20secret@localhost:{}/postgres", server.port());
    let outcome = block_on(rehearsed(&server, &target(&uri, &[]).unwrap(), &["custom:none"])).unwrap();
    assert_possible(&outcome);
    assert!(outcome.trials.iter().all(|trial| trial.backup_server_cpu.is_none()), "{outcome:#?}");
    assert_says(&outcome.notes.join("\n"), &["the CPU time of the server during the backups is not known"]);
}
