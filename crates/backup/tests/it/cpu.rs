//! The CPU time of servers.

use std::thread::available_parallelism;

use backup::{Outcome, Shape, Trial};
use testkit::{Need, block_on, require};

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
fn of_a_server_that_was_there_only_the_restored_one_is_measured() {
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
        assert!(outcome.trials.iter().all(|trial| trial.backup_server_cpu.is_none()), "{outcome:#?}");
        let custom = of(&outcome, "custom:none");
        assert!(custom.restore_server_cpu > Some(0.0), "{custom:#?}");
        connection.close().await;
    });
}
