//! Keepers of `pgrig testdb`: killed, restarted, in a container, and each with a server of its own.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::Rig;
use crate::support::lending::{Lending, MAKING, SCHEMA, inherit, keeper_id, kill_keeper, name, socket};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::until_some as until;

#[test]
fn a_killed_keeper_s_successor_knows_all_and_sweeps_the_rest() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let lending = Lending::new(&rig, version);
        let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
        let living = lending.new_database("");
        let half_dropped = lending.new_database("");
        let from = lending.schema.display();
        let dead = rig.done(&format!("testdb new --from {from} --owner {} --format json", owner.id()));
        let dead: Value = serde_json::from_str(&dead.stdout).unwrap();
        let kept = lending.new_database("--keep");
        let spares =
            until("the pool is full", || Some(lending.list("spare")).filter(|spares| spares.len() == 4));
        lending.kill_keeper();
        owner.kill().unwrap();
        owner.wait().unwrap();
        // The unfinished database of a keeper that was killed; that of another keeper is not touched.
        let keeper = keeper_id(&rig);
        let half = format!("pgrig_testdb_making_{keeper}_00000001");
        let foreign = "pgrig_testdb_making_000000000000_00000001";
        lending.server.execute(&format!("CREATE DATABASE {half} {MAKING}"));
        // Somebody else's has that name without pgrig's mark.
        let mine = format!("pgrig_testdb_making_{keeper}_00000002");
        lending.server.execute(&format!("CREATE DATABASE {mine}"));
        // And one that is killed while it drops something, as servers since 2023 leave it.
        lending.server.execute(&format!(
            "UPDATE pg_database SET datconnlimit = -2 WHERE datname = '{}'",
            name(&half_dropped)
        ));
        lending.server.execute(&format!("CREATE DATABASE {foreign} {MAKING}"));

        assert_eq!(lending.list("lent"), BTreeSet::from([name(&living)]));
        assert_eq!(lending.list("kept"), BTreeSet::from([name(&kept)]));
        assert_eq!(lending.list("spare"), spares, "they are adopted");
        assert_eq!(lending.list("template").len(), 1);
        lending.gone(&half);
        lending.gone(&name(&half_dropped));
        lending.gone(&name(&dead));
        assert!(lending.is_there(foreign) && lending.is_there(&mine));
        lending.server.execute(&format!("DROP DATABASE {mine}"));
        let listed = rig.done("testdb list").stdout;
        let unfinished = listed.lines().find(|line| line.starts_with(foreign)).unwrap();
        assert!(unfinished.contains("making of another keeper"), "{listed}");
        assert!(!unfinished.contains(" s "), "nobody knows its age: {listed}");
        let next = lending.new_database("");
        assert!(spares.contains(&name(&next)), "a spare is handed out, and no other");
        assert_eq!(lending.items(&next), 2);
        lending.server.execute(&format!("DROP DATABASE {foreign}"));
    }
}

/// The server continues with the statement of a killed keeper, and nobody would know its outcome.
#[test]
fn what_a_killed_keeper_began_is_given_up() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let lending = Lending::new(&rig, version);
        lending.new_database("");
        until("the pool is full", || (lending.list("spare").len() == 4).then_some(()));
        let template = lending.list("template").pop_first().unwrap();
        // A copy has to wait for the session that changes the template's comment.
        let client = rig.connect(&lending.url("postgres"));
        let sql = |sql: &str| rig.block_on(client.batch_execute(sql)).unwrap();
        sql(&format!("BEGIN; COMMENT ON DATABASE {template} IS 'changed'"));
        // Or nobody could drop it if the test fails.
        sql("SET LOCAL idle_in_transaction_session_timeout = '1min'");
        lending.new_database("");
        let copies = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'CREATE DATABASE%' AND wait_event_type = \
                      'Lock'";
        let copying: i32 =
            until("a copy is being made", || lending.server.rows(copies).first().map(|row| row.get(0)));
        lending.kill_keeper();
        rig.done("testdb list");
        let left = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {copying}");
        let left = lending.server.number(&left);
        sql("ROLLBACK");
        assert_eq!(left, 0);
        until("the pool is full", || (lending.list("spare").len() == 4).then_some(()));
        assert!(lending.list("making").is_empty());
    }
}

/// As from a container of the same image: its locks are on another file system, and all names are the same.
#[test]
fn two_keepers_of_one_id_do_not_share_a_server() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let lease = lending.new_database("");
    elsewhere(&rig, || {
        let refused = rig.run("testdb list");
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        for said in ["another keeper with this id", "PGRIG_HOME", "through a Unix socket since 20"] {
            assert!(refused.stderr.contains(said), "{refused:#?}");
        }
    });
    assert_eq!(lending.list("lent"), BTreeSet::from([name(&lease)]));
}

/// In a container, process IDs of owners outside name no process.
#[test]
fn a_container_of_the_same_image_has_a_keeper_of_its_own() {
    let unshare = ["--pid", "--fork", "--mount-proc"];
    if !testkit::require(testkit::Need::Namespaces) {
        return;
    }
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    lending.server.execute("CREATE ROLE maker LOGIN CREATEDB");
    // By a name that means the same in a container: it cannot tell whether pgrig's own server runs.
    let server = format!("-h {} -U maker", socket(&lending.server));
    let lease = rig.done(&format!("testdb new {server} --owner {} --format json", std::process::id()));
    let lease = name(&serde_json::from_str(&lease.stdout).unwrap());
    let listed = |json: &[u8]| {
        let list: Value = serde_json::from_slice(json).unwrap_or_else(|error| panic!("{error}"));
        let mut databases = list["databases"].as_array().unwrap().clone().into_iter();
        databases.find(|database| name(database) == lease).expect("it is still there")
    };
    elsewhere(&rig, || {
        let pgrig = rig.command(&format!("testdb list --json {server}"));
        let mut inside = Command::new("unshare");
        inside.args(unshare).arg(pgrig.get_program()).args(pgrig.get_args());
        inherit(&mut inside, &pgrig);
        // The keeper that it starts ends with the container.
        let told = inside.output().unwrap();
        assert!(told.status.success(), "{told:?}");
        assert_eq!(listed(&told.stdout)["own"], false);
    });
    let own = listed(rig.done(&format!("testdb list --json {server}")).stdout.as_bytes());
    assert_eq!((&own["own"], &own["state"]), (&true.into(), &"lent".into()), "{own:#}");
    rig.done(&format!("testdb drop --all {server}"));
}

/// Where the running keeper's lock and socket cannot be seen.
fn elsewhere(rig: &Rig, act: impl FnOnce()) {
    let (here, there) = (rig.home.path().join("testdb"), rig.home.path().join("other"));
    std::fs::rename(&here, &there).unwrap();
    act();
    // A keeper that was refused there may still be about to end, and removes its own files.
    until("what was there is gone", || {
        let _ = std::fs::remove_dir_all(&here);
        (!here.exists()).then_some(())
    });
    std::fs::rename(&there, &here).unwrap();
}

/// Unlogged tables are empty then, those of the templates too.
#[test]
fn after_a_crash_of_the_server_templates_are_made_again() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let lending = Lending::new(&rig, version);
        let lease = lending.new_database("--unlogged");
        assert_eq!(lending.items(&lease), 2);
        let keeper = lending.keeper();
        // That it is lent was not waited for: a crash at once would make the server forget it.
        lending.server.execute("CHECKPOINT");
        let checkpointer: i32 =
            lending.server.row("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'").get(0);
        kill(Pid::from_raw(checkpointer), Signal::SIGKILL).unwrap();
        until("the keeper is gone", || kill(keeper, None).is_err().then_some(()));
        until("the server is back", || (rig.run("testdb list").code == Some(0)).then_some(()));
        assert_eq!(lending.items(&lease), 0, "a lent one stays as the crash left it");
        let fresh = lending.new_database("--unlogged");
        assert_eq!(lending.items(&fresh), 2, "not a copy of what the crash emptied");
        assert_eq!(lending.list("lent"), BTreeSet::from([name(&lease), name(&fresh)]));
    }
}

/// A keeper that has ended for want of work is as good as dead for others.
#[test]
fn orphans_of_another_home_are_dropped_and_what_is_kept_there_stays() {
    let (rig, other) = (Rig::new(), Rig::new());
    let lending = Lending::new(&rig, "18");
    let server = format!("-h {} -U postgres", socket(&lending.server));
    let new = |more: &str| {
        let lease =
            other.done(&format!("testdb new {server} --owner {} --format json {more}", std::process::id()));
        name(&serde_json::from_str(&lease.stdout).unwrap())
    };
    let (lent, kept) = (new(""), new("--keep"));
    rig.done("testdb drop --orphans");
    assert!(lending.is_there(&lent), "its keeper runs");
    kill_keeper(&other);
    let kept = BTreeSet::from([kept]);
    // The server may go on with a copy for a moment, whose session then still stands for the keeper.
    until("all others are dropped", || {
        rig.done("testdb drop --orphans");
        (!lending.is_there(&lent) && lending.there().len() <= 1).then_some(())
    });
    assert_eq!(lending.there(), kept);
}

#[test]
fn two_servers_have_a_keeper_each() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let from = lending.schema.display();
    rig.done("server start --instance other --pg-version 13 --set shared_buffers=64MB");
    let url = rig.done("server url --instance other").stdout;
    let owner = std::process::id();
    let one = lending.new_database("");
    let other = rig.done(&format!("testdb new --instance other --from {from} --owner {owner} --format json"));
    let other: Value = serde_json::from_str(&other.stdout).unwrap();
    let client = rig.connect(url.trim());
    let there = |name: &str| {
        let query = "SELECT count(*) FROM pg_database WHERE datname = $1";
        rig.block_on(client.query_one(query, &[&name])).unwrap().get::<_, i64>(0)
    };
    assert_eq!((there(&name(&one)), there(&name(&other))), (0, 1));
    rig.done("testdb drop --all --instance other");
    assert!(lending.is_there(&name(&one)));
    rig.done("server destroy --instance other");
}

#[test]
fn a_server_that_runs_for_the_keeper_alone_outlives_its_loans_no_longer() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    std::fs::write(&schema, SCHEMA).unwrap();
    let owner = std::process::id();
    let new = format!(
        "testdb new --set shared_buffers=64MB --from {} --owner {owner} --format url",
        schema.display()
    );
    let url = rig.done(&new).stdout;
    let client = rig.connect(url.trim());
    let row = rig.block_on(client.query_one("SELECT count(*) FROM item", &[])).unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
    let refused = rig.run("testdb serve");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("has lent"), "{refused:#?}");
    for other in ["fill 1MB", "server psql", "server start", "server stop"] {
        let refused = rig.run(other);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        for said in [
            "the keeper of pgrig testdb (process ",
            "run pgrig testdb drop --all, ",
            "run pgrig server start before pgrig testdb new",
        ] {
            assert!(refused.stderr.contains(said), "{other}: {refused:#?}");
        }
    }
    // The next command can use the instance.
    for command in ["testdb drop --all", "testdb list", "testdb drop --templates"] {
        rig.done(command);
        assert_eq!(rig.status()["state"], "stopped", "{command}");
        rig.done("server stop");
    }
}

#[test]
fn a_keeper_s_server_is_not_taken_for_another() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    lending.new_database("--pg-version 18");
    for (other, said) in
        [("--pg-version 13", "18"), ("--profile dangerous", "profile"), ("--set work_mem=1MB", "work_mem")]
    {
        let ran = rig.run(&format!("testdb new {other}"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
        assert_eq!(ran.stdout, "false\n");
    }
}
