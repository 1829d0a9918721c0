//! Changes of a `pgrig tps --matrix` that was interrupted or killed: who restores them, when, and what is left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{NEWEST, OLDEST, Ran, Rig, Running, Server};
use crate::tps_matrix::{SHORT, assert_put_back, assert_says, filled, journals, named, show};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::until_some as until;

/// Says nothing of changed settings; it has no instance of its own.
#[track_caller]
fn assert_nothing_to_restore(rig: &Rig) {
    let said = rig.done("server status").stderr;
    assert!(said.lines().all(|line| line.starts_with("no instance yet")), "{said}");
}

/// A matrix in the middle of its first trial, in which everything is changed.
fn in_the_middle(rig: &Rig, url: &str, arguments: &str) -> Running {
    in_the_middle_of(rig, url, arguments, |pgrig| pgrig)
}

/// Kills pgrig in the middle of a matrix on a named server.
fn kill_in_the_middle(rig: &Rig, server: &Server<'_>) {
    let pgrig = in_the_middle(rig, &server.url, &format!("--allow-dangerous-settings {}", named(server)));
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
}

fn in_the_middle_of(
    rig: &Rig,
    url: &str,
    arguments: &str,
    change: impl FnOnce(Command) -> Command,
) -> Running {
    let arguments = format!("tps --matrix durability=unlogged --set fsync=off -T 600 {arguments}");
    let before = journals(rig);
    let pgrig = Running::start(change(rig.command(&arguments)));
    until("a trial runs", || {
        rig.block_on(async {
            let client = crate::support::connect(url).await.ok()?;
            let query = "SELECT current_setting('fsync') = 'off' AND count(*) = 4 \
                         FROM pg_class WHERE relname LIKE 'pgbench%' AND relkind = 'r' AND relpersistence = 'u'";
            let is_changed: bool = client.query_one(query, &[]).await.ok()?.get(0);
            let transactions = "SELECT count(*) > 0 FROM pgbench_history";
            let runs = is_changed && client.query_one(transactions, &[]).await.ok()?.get::<_, bool>(0);
            runs.then_some(())
        })
    });
    assert_eq!(journals(rig), before + 1);
    pgrig
}

#[test]
fn an_interrupted_matrix_puts_everything_back() {
    for (version, signal) in [(NEWEST, Signal::SIGINT), (OLDEST, Signal::SIGTERM)] {
        let rig = Rig::new().of_others();
        let server = filled(&rig, version);
        let pgrig =
            in_the_middle(&rig, &server.url, &format!("--allow-dangerous-settings {}", named(&server)));
        pgrig.signal(signal);
        let ran = pgrig.end();
        assert_says(&ran, 130, &["interrupted in trial 1 of 3", "restoring settings and tables"]);
        assert!(ran.stdout.contains("durability=unlogged"), "finished cells are reported: {ran:#?}");
        assert_put_back(&rig, &server);
    }
}

/// Locks all files in a directory, as somebody else might.
fn lock_all(directory: &Path) -> Vec<fs::File> {
    let files = fs::read_dir(directory).unwrap().map(|entry| fs::File::open(entry.unwrap().path()).unwrap());
    files.inspect(|file| file.lock().unwrap()).collect()
}

#[test]
fn only_their_owner_can_open_journals_and_locks() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    let pgrig = in_the_middle(&rig, &server.url, &format!("--allow-dangerous-settings {}", named(&server)));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let journals = rig.home.path().join("journal");
    let in_use = Path::new(rig.status()["directory"].as_str().unwrap()).join("in-use.lock");
    assert_eq!((mode(&journals), mode(&in_use)), (0o700, 0o600));
    for file in fs::read_dir(&journals).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
    pgrig.signal(Signal::SIGINT);
    pgrig.end();
    assert_put_back(&rig, &server);
}

/// A pid means nothing in another pid namespace.
#[test]
fn a_matrix_in_a_container_is_left_alone() {
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    if !testkit::require(testkit::Need::Namespaces) {
        return;
    }
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    let named = named(&server);
    let contained = |pgrig: Command| {
        let mut inside = Command::new("unshare");
        inside.args(unshare).arg(pgrig.get_program()).args(pgrig.get_args());
        for (name, value) in pgrig.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    };
    let pgrig =
        in_the_middle_of(&rig, &server.url, &format!("--allow-dangerous-settings {named}"), contained);
    assert_nothing_to_restore(&rig);
    let ran = rig.done(&format!("tps -T 1 {named}"));
    assert_says(&ran, 0, &["is changing settings of this server"]);
    assert_eq!(show(&server, "fsync"), "off");
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    until("its lock is free", || {
        rig.done("server status").stderr.contains("in another container").then_some(())
    });
    let ran = rig.run(&format!("tps -T 1 {named}"));
    assert_says(&ran, 1, &["may still be running", "ALTER SYSTEM RESET \"fsync\";", "Then delete"]);
    assert_eq!(show(&server, "fsync"), "off");
}

#[test]
fn a_password_comes_from_the_verb_or_the_user_learns_how_to_give_it() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, &format!("{NEWEST} --tcp"));
    server.execute("CREATE ROLE plain LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO plain");
    let named = named(&server);
    kill_in_the_middle(&rig, &server);
    assert_eq!(rig.done("size --scale 1").stderr, "", "a verb without a server leaves journals alone");
    let ran = rig.done("server status");
    let remedy = "put the password into PGPASSWORD, and run pgrig server status";
    assert_says(&ran, 0, &["and did not restore it", "asks for a password", remedy, "Then delete"]);
    let password = server.url.split(['@', ':']).nth(2).unwrap();
    let ran = Ran::from(rig.command("server status").env("PGPASSWORD", password).output().unwrap());
    assert_says(&ran, 0, &["and did not restore it", "restored now: fsync = on"]);
    assert_put_back(&rig, &server);

    kill_in_the_middle(&rig, &server);
    let status = rig.status();
    let socket = format!("-h {} -p {} -d postgres", status["socket_dir"].as_str().unwrap(), status["port"]);
    let ran = rig.run(&format!("tps -T 1 -U plain {socket}"));
    assert_says(&ran, 1, &["and did not restore it", "did not restore them, so pgrig does not measure"]);
    assert_eq!(ran.stdout, "");
    let ran = rig.done(&format!("tps -T 1 {named}"));
    assert_says(&ran, 0, &["and did not restore it", "restored now: fsync = on"]);
    assert!(!ran.stderr.contains("NOT"), "{ran:#?}");
    assert_put_back(&rig, &server);
}

#[test]
fn tables_that_a_crash_emptied_are_named() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new().of_others();
        let server = filled(&rig, version);
        kill_in_the_middle(&rig, &server);
        let client = rig.connect(&server.url);
        let backend: i32 = rig.block_on(client.query_one("SELECT pg_backend_pid()", &[])).unwrap().get(0);
        kill(Pid::from_raw(backend), Signal::SIGKILL).unwrap();
        // The server may accept connections for a moment before it notices the crash: then the tables still have rows.
        until("the server is up again, without the rows", || {
            let rows = async {
                let connection = crate::support::connect(&server.url).await.ok()?;
                let row = connection.query_one("SELECT count(*) FROM pgbench_accounts", &[]).await.ok()?;
                (row.get::<_, i64>(0) == 0).then_some(())
            };
            rig.block_on(rows)
        });
        let ran = rig.done("server status");
        assert_says(&ran, 0, &["the server crashed while", "\"pgbench_accounts\"", "\"pgbench_branches\""]);
        let emptied = ran.stderr.lines().find(|line| line.contains("crashed")).unwrap();
        assert!(!emptied.contains("history"), "it was empty before: {emptied}");
        assert_put_back(&rig, &server);
    }
}

#[test]
fn a_matrix_that_gave_up_was_not_killed() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    let pgrig = in_the_middle(&rig, &server.url, &format!("--allow-dangerous-settings {}", named(&server)));
    // ALTER SYSTEM fails as long as this is there.
    let obstacle = rig.data().join("postgresql.auto.conf.tmp");
    fs::create_dir(&obstacle).unwrap();
    pgrig.signal(Signal::SIGINT);
    let ran = pgrig.end();
    assert_says(&ran, 130, &["pgrig could not restore the server", "ALTER SYSTEM cannot change fsync"]);
    let ran = rig.done("server status");
    assert_says(&ran, 0, &["and did not restore it", "pgrig server status"]);
    fs::remove_dir(obstacle).unwrap();
    let ran = rig.done("server status");
    let why = "and did not restore it";
    assert_says(&ran, 0, &[why, "(ALTER SYSTEM cannot change fsync", "restored now: fsync = on"]);
    for untrue in ["killed", "empty"] {
        assert!(!ran.stderr.contains(untrue), "{ran:#?}");
    }
    assert_put_back(&rig, &server);
}

#[test]
fn the_server_that_a_verb_names_is_restored_first() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    rig.done("server start --instance other --pg-version 18 --set shared_buffers=64MB");
    let other = rig.done("server url --instance other").stdout.trim().to_owned();
    rig.done(&format!("fill --scale 1 --foreign-keys -d {other}"));
    let urls = [server.url.clone(), other];
    for named in &urls {
        let running: Vec<Running> = urls
            .iter()
            .map(|url| in_the_middle(&rig, url, &format!("--allow-dangerous-settings -d {url}")))
            .collect();
        let killed: Vec<_> = running.iter().map(Running::pid).collect();
        for pgrig in running {
            pgrig.signal(Signal::SIGKILL);
            pgrig.end();
        }
        let ran = rig.done(&format!("blockio 10MB --explain -d {named}"));
        let place = |url: &String| {
            let killed = killed[urls.iter().position(|known| known == url).unwrap()];
            ran.stderr.find(&format!("pgrig process {killed} changed")).unwrap()
        };
        assert!(urls.iter().all(|url| place(named) <= place(url)), "{named}: {ran:#?}");
        assert_eq!(journals(&rig), 0);
    }
    rig.done("server destroy --instance other");
}

#[test]
fn a_server_that_is_restarted_meanwhile_is_restored() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    let pgrig = in_the_middle(&rig, &server.url, &format!("--allow-dangerous-settings {}", named(&server)));
    rig.done("server stop");
    rig.done("server start --set shared_buffers=128MB");
    let ran = pgrig.end();
    assert_says(&ran, 1, &["restoring settings and tables"]);
    assert!(!ran.stderr.contains("NOT"), "{ran:#?}");
    assert_put_back(&rig, &server);
}

#[test]
fn after_a_kill_the_next_verb_puts_everything_back_on_a_named_server() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new().of_others();
        let server = filled(&rig, version);
        kill_in_the_middle(&rig, &server);
        assert_eq!(show(&server, "fsync"), "off");
        let _locks = lock_all(&rig.home.path().join("journal"));
        let next = format!("blockio 10MB --explain {}", named(&server));
        let both = [(); 2].map(|()| rig.spawn(&next)).map(Running::end);
        assert!(both.iter().all(|ran| !ran.stderr.contains("NOT")), "{both:#?}");
        let ran = both.iter().max_by_key(|ran| ran.stderr.len()).unwrap();
        assert_says(ran, 0, &["and did not restore it", "fsync = on", "\"pgbench_history\" logged"]);
        assert!(!ran.stderr.contains("empty"), "nothing crashed: {ran:#?}");
        assert_put_back(&rig, &server);
        assert_nothing_to_restore(&rig);
    }
}

#[test]
fn after_a_kill_the_next_start_puts_everything_back_on_its_own_server() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        rig.done(&format!("fill --scale 1 --foreign-keys {version}"));
        let pgrig = in_the_middle(&rig, &rig.url(), "");
        pgrig.signal(Signal::SIGKILL);
        pgrig.end();
        let ran = rig.done(&format!("tps --matrix clients=1 {SHORT}"));
        assert_says(&ran, 0, &["changed pgrig's own server", "fsync = on"]);
        let server = rig.server("");
        assert_put_back(&rig, &server);
        assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 100_000);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_told_with_the_statements_to_type() {
    let rig = Rig::new().of_others();
    let server = filled(&rig, NEWEST);
    let postmaster = Pid::from_raw(i32::try_from(rig.status()["pid"].as_i64().unwrap()).unwrap());
    let pgrig = in_the_middle(&rig, &server.url, &format!("--allow-dangerous-settings {}", named(&server)));
    pgrig.signal(Signal::SIGKILL);
    pgrig.end();
    // Not by a verb of pgrig's: that would put everything back.
    kill(postmaster, Signal::SIGINT).unwrap();
    until("the server is gone", || kill(postmaster, None).is_err().then_some(()));
    let ran = rig.done("server status");
    let alter = "ALTER SYSTEM RESET \"fsync\"; SELECT pg_reload_conf();";
    let table = "ALTER TABLE \"public\".\"pgbench_accounts\" SET LOGGED;";
    assert_says(&ran, 0, &["and did not restore it", alter, table, "Then delete"]);
    // Any verb that finds the server again puts it back.
    let server = rig.server("");
    rig.done("server status");
    assert_put_back(&rig, &server);
}
