//! The original is lost during the rehearsal. The session of the snapshot ends: dumps have no result, and base backups have one. Or the server
//! ends, or one with data that pgrig has made: what was measured before keeps its result.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use backup::{DataSize, Observer, Plan, Request, Shape, Site, SizesRequest, SizesSite, Trial, Way, Witness};
use pgserver::Home;
use testkit::{Need, Server, assert_says, block_on, does, require, templates, until};

use crate::support::{assert_nothing_is_left, programs_with, rehearsed_by, server, ways};

const RELEASE: u16 = 13;
/// Stops or restarts the server after a number of trials, and keeps what it hears of ways that are cut short.
struct Stopper {
    server: Server,
    after: usize,
    done: usize,
    starts_again: bool,
    cut_short: Vec<(String, usize)>,
}

impl Observer for Stopper {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, _: &str) {}
    fn begins(&mut self, _: &Way, _: u32, _: Option<DataSize>) {}

    fn done(&mut self, _: &Trial, _: Duration) {
        self.done += 1;
        if self.done != self.after {
            return;
        }
        if self.starts_again {
            self.server.restart_with(&[]);
        } else {
            self.server.stop();
        }
    }

    fn cut_short(&mut self, way: &Way, trials: usize, _: &str) {
        self.cut_short.push((way.to_string(), trials));
    }

    fn failed(&mut self, way: &Way, why: &str) {
        panic!("{way}: {why}");
    }
}

/// Rehearses three ways, each twice, while the observer stops the server.
fn rehearsed(after: usize, starts_again: bool) -> (backup::Outcome, Vec<(String, usize)>) {
    let server = server(RELEASE);
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 500) i");
    let home = Home::at(server.home()).unwrap().with_postgresql_cache(&templates());
    let target = server.target("postgres");
    let version_num = u32::from(RELEASE) * 10_000;
    let site =
        Site { target: &target, version_num, home: &home, pg_bin: None, data: None, own: false, cores: 2 };
    let names = ["custom:none", "base", "plain:none"];
    let request = Request { ways: ways(&names), trials: 2, bin: None, probe: false, network: true };
    let mut stopper = Stopper { server, after, done: 0, starts_again, cut_short: Vec::new() };
    let rehearsed = backup::rehearse(&site, &request, &mut stopper, std::future::pending());
    let outcome = block_on(Box::pin(rehearsed)).unwrap();
    assert_nothing_is_left(home.root());
    (outcome, stopper.cut_short)
}

/// Ends the session that holds the snapshot, and waits until it is gone.
const SCRIPT: &str = "
ask() { \"$REAL/psql\" --no-psqlrc --quiet --tuples-only --no-align --command=\"$1\"; }
case \" $*\" in *\" --snapshot=\"*)
ask \"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'\" >&2
while [ \"$(ask \"SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'\")\" != 0 ]; do :; done
;; esac
exec \"$REAL/pg_dump\" \"$@\"
";

#[test]
fn a_lost_snapshot_is_named_with_the_remedy_and_other_ways_go_on() {
    if !require(Need::Clients) {
        return;
    }
    let (server, directory) = (server(RELEASE), testkit::directory());
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 500) i");
    let bin = programs_with(directory.path(), RELEASE, "pg_dump", SCRIPT);
    let target = server.target("postgres");
    let names = ["custom:none", "plain:none", "base"];
    let outcome = block_on(rehearsed_by(Some(bin), &server, &target, &names)).unwrap();
    assert_eq!(outcome.failed.len(), 2, "{outcome:#?}");
    for (way, why) in &outcome.failed {
        assert!(!way.is_base(), "{outcome:#?}");
        assert_says(why, &["the session that holds the snapshot of all dumps has ended", "run pgrig again"]);
    }
    let [trial] = &outcome.trials[..] else { panic!("{outcome:#?}") };
    assert_eq!((trial.verified.witness, trial.verified.rows), (Witness::Unchanged, 500));
}

#[test]
fn a_way_that_was_measured_before_the_server_ended_keeps_its_result() {
    if !require(Need::Clients) {
        return;
    }
    let (outcome, heard) = rehearsed(1, false);
    assert!(outcome.is_lost, "{outcome:#?}");
    let [trial] = &outcome.trials[..] else { panic!("{outcome:#?}") };
    assert_eq!((trial.way.to_string().as_str(), trial.verified.rows), ("custom:none", 500));
    let [(way, why)] = &outcome.cut_short[..] else { panic!("{outcome:#?}") };
    assert_eq!(way.to_string(), "custom:none");
    assert_says(why, &["pgrig cannot connect to the database any more", "once the server is up"]);
    let failed: Vec<String> = outcome.failed.iter().map(|(way, _)| way.to_string()).collect();
    assert_eq!(failed, ["base", "plain:none"]);
    for (_, why) in &outcome.failed {
        assert_says(why, &["it was not measured, because pgrig cannot connect to the database any more"]);
    }
    let heard: Vec<(&str, usize)> = heard.iter().map(|(way, trials)| (way.as_str(), *trials)).collect();
    assert_eq!(heard, [("base", 0), ("plain:none", 0), ("custom:none", 1)]);
}

/// The snapshot of the dumps is gone; base backups go on.
#[test]
fn dumps_that_were_measured_before_a_restart_keep_their_results() {
    if !require(Need::Clients) {
        return;
    }
    let (outcome, _) = rehearsed(2, true);
    assert!(!outcome.is_lost, "{outcome:#?}");
    let trials: Vec<String> = outcome.trials.iter().map(|trial| trial.way.to_string()).collect();
    assert_eq!(trials, ["custom:none", "base", "base"]);
    let [(way, why)] = &outcome.cut_short[..] else { panic!("{outcome:#?}") };
    assert_eq!(way.to_string(), "custom:none");
    assert_says(why, &["the session that holds the snapshot of all dumps has ended"]);
    let [(way, why)] = &outcome.failed[..] else { panic!("{outcome:#?}") };
    assert_eq!(way.to_string(), "plain:none");
    assert_says(why, &["it was not measured, because the session that holds the snapshot"]);
}

/// Ends the server with the largest data after a number of trials, and keeps what it hears of ways that are cut short.
struct Ender {
    pid_file: PathBuf,
    after: usize,
    done: usize,
    cut_short: Vec<(String, usize)>,
}

impl Observer for Ender {
    fn planned(&mut self, _: &Plan) {}
    fn stage(&mut self, _: &str) {}
    fn begins(&mut self, _: &Way, _: u32, _: Option<DataSize>) {}

    fn done(&mut self, _: &Trial, _: Duration) {
        self.done += 1;
        if self.done == self.after {
            let lines = fs::read_to_string(&self.pid_file).unwrap();
            assert!(does("kill", &["-QUIT", lines.lines().next().unwrap()]));
            until("the server has ended", || !self.pid_file.exists());
        }
    }

    fn cut_short(&mut self, way: &Way, trials: usize, _: &str) {
        self.cut_short.push((way.to_string(), trials));
    }

    fn failed(&mut self, way: &Way, why: &str) {
        panic!("{way}: {why}");
    }
}

/// Rehearses two ways at three sizes, each twice, while the observer ends the server of the largest.
fn rehearsed_sizes(after: usize) -> (backup::Outcome, Vec<(String, usize)>) {
    let directory = testkit::directory();
    let home = Home::at(directory.path()).unwrap().with_postgresql_cache(&templates());
    let own = home.twin(&home.root().join("backup")).unwrap();
    let pid_file = own.server_root().join("instances/size-3/data/postmaster.pid");
    let site =
        SizesSite { home: &home, pg_bin: None, major: Some(RELEASE), set: &[], cores: 2, pgrig: "test" };
    let asked = SizesRequest {
        request: Request {
            ways: ways(&["custom:none", "base"]),
            trials: 2,
            bin: None,
            probe: false,
            network: true,
        },
        shape: Shape::pgbench(),
        size: 120_000_000,
        up_to: 12_000_000,
        price: None,
        rto: None,
        changes: 0.05,
        load: None,
    };
    let mut ender = Ender { pid_file, after, done: 0, cut_short: Vec::new() };
    let rehearsed = backup::rehearse_sizes(&site, &asked, &mut ender, std::future::pending());
    let outcome = block_on(Box::pin(rehearsed)).unwrap();
    assert_nothing_is_left(home.root());
    (outcome, ender.cut_short)
}

#[test]
fn trials_from_before_the_end_of_a_server_with_data_are_kept() {
    if !require(Need::Clients) {
        return;
    }
    // The first trial of the largest data fails; or each size was measured once.
    for (after, trials, kept, forecasts) in [(1, 4, [2, 2], 0), (6, 9, [4, 5], 2)] {
        let (outcome, heard) = rehearsed_sizes(after);
        assert!(outcome.is_lost && outcome.failed.is_empty(), "{outcome:#?}");
        assert_eq!((outcome.trials.len(), outcome.forecasts.len()), (trials, forecasts), "{outcome:#?}");
        let heard: Vec<(&str, usize)> = heard.iter().map(|(way, trials)| (way.as_str(), *trials)).collect();
        assert_eq!(heard, [("custom:none", kept[0]), ("base", kept[1])]);
        let gone = "pgrig cannot connect to the database of 12.0 MB that it has filled any more";
        for (_, why) in &outcome.cut_short {
            assert_says(why, &[gone, "run pgrig again"]);
        }
        assert_eq!(outcome.cut_short.len(), 2, "{outcome:#?}");
        let no_forecast = outcome.unmeasured.iter().any(|text| text.starts_with("there is no forecast for "));
        assert_eq!(no_forecast, forecasts == 0, "{outcome:#?}");
    }
}
