//! `pgrig tps` that is interrupted, or whose server goes away: the result so far is kept.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use testkit::until_some as until;

use crate::support::{Ran, Rig, Running, Server};
use crate::tps::{assert_sound, filled, number, saved, script};

/// Runs until transactions do.
fn caught_at_work(rig: &Rig, server: &Server, arguments: &str) -> Running {
    server.execute("CREATE TABLE worked (n int)");
    let work = script(rig, "work.sql", "INSERT INTO worked VALUES (1);\n");
    let mut pgrig = rig.spawn(&format!("tps -c 2 -f {} {arguments}", work.display()));
    until("transactions run", || {
        assert!(!pgrig.has_ended(), "it was over before");
        (server.number("SELECT count(*) FROM worked") > 10).then_some(())
    });
    pgrig
}

fn assert_interrupted(signal: Signal) {
    let rig = Rig::new();
    let server = rig.server("");
    let pgrig = caught_at_work(&rig, &server, "-T 1h");
    pgrig.signal(signal);
    let Ran { code, stdout, stderr } = pgrig.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stdout.contains(" tps: "), "{stdout}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    let document = saved(&rig);
    assert_eq!(document["status"], "interrupted");
    assert_sound(&document);
    assert!(number(&document, "succeeded") > 0);
    // The reported number is that of the committed transactions, except for those that the interruption cut short.
    let there = server.number("SELECT count(*) FROM worked").cast_unsigned();
    assert!(there.abs_diff(number(&document, "succeeded")) <= 2, "{there} {document:#}");
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT%'";
    until("its sessions have ended", || (server.number(sessions) == 0).then_some(()));
}

#[test]
fn an_interrupted_trial_leaves_those_before_it() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE TABLE worked (n int)");
    // The third trial sleeps.
    let text = "INSERT INTO worked VALUES (1);\n\
                SELECT CASE WHEN count(*) > 20 THEN 3600 ELSE 0 END AS n FROM worked \\gset\n\
                SELECT pg_sleep(:n);\n";
    let work = script(&rig, "work.sql", text);
    let pgrig = rig.spawn(&format!("tps -t 10 --trials 3 -f {}", work.display()));
    until("the third trial is at work", || (server.number("SELECT count(*) FROM worked") > 20).then_some(()));
    pgrig.signal(Signal::SIGINT);
    let Ran { code, stdout, stderr } = pgrig.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stdout.contains(" tps: 20 transactions in "), "{stdout}");
    assert!(stderr.contains("trial 3 of 3 is not complete and is left out"), "{stderr}");
    let document = saved(&rig);
    assert_eq!(document["status"], "interrupted");
    assert_eq!(document["trials"].as_array().unwrap().len(), 2);
    assert_sound(&document);
    assert_eq!(number(&document, "succeeded"), 10);
}

#[test]
fn an_interrupted_run_tells_what_was_measured() {
    assert_interrupted(Signal::SIGINT);
    assert_interrupted(Signal::SIGTERM);
}

#[test]
fn a_lost_server_is_exit_status_1_and_results_so_far() {
    let rig = Rig::new();
    let server = rig.server("");
    let pgrig = caught_at_work(&rig, &server, "-T 1h");
    let postmaster = fs::read_to_string(rig.data().join("postmaster.pid")).unwrap();
    let postmaster = postmaster.lines().next().unwrap().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(postmaster), Signal::SIGQUIT).unwrap();
    let Ran { code, stdout, stderr } = pgrig.end();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stdout.contains(" tps: "), "{stdout}");
    assert!(stderr.contains("work.sql:1"), "{stderr}");
    let document = saved(&rig);
    assert_eq!(document["status"], "failed");
    assert_sound(&document);
    assert_eq!(number(&document, "lost-clients"), 2);
    assert!(number(&document, "succeeded") > 0);
}

/// The times of 10^9 transactions would take minutes to draw one by one.
#[test]
fn the_highest_rate_ends_in_time() {
    let rig = Rig::new();
    let _server = filled(&rig, "");
    for options in ["", "-L 5"] {
        let begun = Instant::now();
        let document = rig.document(&format!("tps -n -S -R 1000000000 -T 1 {options}"));
        assert!(begun.elapsed() < Duration::from_mins(1), "{options}: {:?}", begun.elapsed());
        let skipped = number(&document, "skipped");
        assert!((890_000_000..=1_000_000_000).contains(&skipped), "{skipped}");
    }
}

#[test]
fn nothing_measured_is_said_to_be_nothing() {
    let rig = Rig::new();
    let _server = filled(&rig, "");
    let ran = rig.done("tps -S -R 0.000001 -T 1");
    assert!(ran.stdout.contains("nothing was measured: no transaction was due"), "{ran:#?}");
    let told = rig.home.path().join("told");
    let pgrig = rig.spawn_telling("tps -S -c 2 --ramp 1h -P 1", &told);
    until("clients begin", || fs::read_to_string(&told).unwrap().contains("s, ramp: ").then_some(()));
    pgrig.signal(Signal::SIGINT);
    let ran = pgrig.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.stdout.contains("nothing was measured: the run was interrupted"), "{ran:#?}");
    assert_eq!(saved(&rig)["status"], "interrupted");
}
