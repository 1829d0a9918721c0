//! `pgrig testdb new`, `list`, `keep`, `drop` and `serve` as their users see them.

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Rig, Server, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const SCHEMA: &str = "CREATE TABLE item (id int PRIMARY KEY, name text);\n\
                      COPY item FROM stdin;\n1\tone\n2\ttwo\n\\.\n";

/// The socket's directory of a server.
fn socket(server: &Server) -> String {
    let pairs = server.row("SELECT current_setting('unix_socket_directories')");
    pairs.get(0)
}

/// A rig whose instance runs for itself, and a script to make templates from.
struct Lending<'a> {
    rig: &'a Rig,
    server: Server<'a>,
    schema: PathBuf,
}

impl<'a> Lending<'a> {
    fn new(rig: &'a Rig, version: &str) -> Self {
        let server = rig.server(&format!("--set max_connections=300 --pg-version {version}"));
        let schema = rig.home.path().join("schema.sql");
        std::fs::write(&schema, SCHEMA).unwrap();
        Self { rig, server, schema }
    }

    /// `testdb new` for this process, which lives as long as the test.
    fn new_database(&self, arguments: &str) -> Value {
        let from = self.schema.display();
        let owner = std::process::id();
        let ran =
            self.rig.done(&format!("testdb new --from {from} --owner {owner} --format json {arguments}"));
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// The databases that `testdb list` tells, by state.
    fn list(&self, state: &str) -> BTreeSet<String> {
        let ran = self.rig.done("testdb list --json");
        let list: Value = serde_json::from_str(&ran.stdout).unwrap();
        let databases = list["databases"].as_array().unwrap().iter();
        let those = databases.filter(|database| database["state"] == state && database["own"] == true);
        those.map(name).collect()
    }

    /// Databases that the server has of pgrig's.
    fn there(&self) -> BTreeSet<String> {
        let rows = self.server.rows("SELECT datname::text FROM pg_database WHERE datname LIKE 'pgrig%'");
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn is_there(&self, name: &str) -> bool {
        self.there().contains(name)
    }

    fn gone(&self, name: &str) {
        until("the database is dropped", || (!self.is_there(name)).then_some(()));
    }

    /// How one of its databases is reached, as its superuser.
    fn url(&self, database: &str) -> String {
        format!("host={} port=5432 user=postgres dbname={database}", socket(&self.server))
    }

    /// What is in a database's table.
    fn items(&self, loan: &Value) -> i64 {
        let url = self.url(&name(loan));
        let client = self.rig.connect(&url);
        self.rig.block_on(client.query_one("SELECT count(*) FROM item", &[])).unwrap().get(0)
    }

    /// The keeper's process.
    fn keeper(&self) -> Pid {
        let directory = std::fs::read_dir(self.rig.home.path().join("testdb")).unwrap();
        let socket = directory.flatten().map(|entry| entry.path().join("socket")).find(|path| path.exists());
        let status = Http::Unix(socket.expect("a keeper listens")).get("/status");
        Pid::from_raw(i32::try_from(status.json()["pid"].as_i64().unwrap()).unwrap())
    }

    fn kill_keeper(&self) {
        let keeper = self.keeper();
        kill(keeper, Signal::SIGKILL).unwrap();
        until("the keeper is gone", || kill(keeper, None).is_err().then_some(()));
    }
}

impl Drop for Lending<'_> {
    /// A failed test leaves no keeper.
    fn drop(&mut self) {
        let _ = self.rig.run("testdb drop --all");
    }
}

fn name(loan: &Value) -> String {
    loan["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_shell_gets_a_database_that_goes_with_it() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let pgrig = env!("CARGO_BIN_EXE_pgrig");
    let schema = lending.schema.display();
    for shell in ["bash", "sh", "dash"] {
        for substitution in [
            format!("{pgrig} testdb new --from {schema}"),
            format!("cd / && {pgrig} testdb new --from {schema}"),
            format!("{pgrig} testdb new --from {schema} | cat"),
        ] {
            let script = format!(
                "eval $({substitution}); echo \"$PGDATABASE $DATABASE_URL $PGHOST $PGPORT $PGUSER\"; read line"
            );
            let mut command = rig.command("");
            let envs: Vec<_> =
                command.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
            command = Command::new(shell);
            for (key, value) in envs {
                match value {
                    Some(value) => command.env(key, value),
                    None => command.env_remove(key),
                };
            }
            let child = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let mut child = child.unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            let [database, url, host, _, "postgres"] = words.as_slice() else { panic!("{shell}: {line}") };
            assert!(url.starts_with("postgresql://postgres@/"), "{url}");
            assert!(Path::new(host).is_dir(), "{host}");
            assert!(lending.is_there(database), "{shell}: {substitution}: the shell still runs");
            child.kill().unwrap();
            child.wait().unwrap();
            lending.gone(database);
        }
    }
}

#[test]
fn templates_follow_their_file_and_are_made_once() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "13");
    let first = lending.new_database("");
    let second = lending.new_database("");
    assert_ne!(name(&first), name(&second));
    assert_eq!((lending.items(&first), lending.items(&second)), (2, 2));
    assert_eq!(lending.list("template").len(), 1);
    std::fs::write(&lending.schema, format!("{SCHEMA}INSERT INTO item VALUES (3, 'three');\n")).unwrap();
    let third = lending.new_database("");
    assert_eq!((lending.items(&first), lending.items(&third)), (2, 3));
    let unlogged = lending.new_database("--unlogged");
    assert_eq!(lending.items(&unlogged), 3);
    assert_eq!(lending.list("template").len(), 3);
    assert_eq!(lending.list("lent").len(), 4);

    rig.done("testdb drop --templates");
    assert!(lending.list("template").is_empty() && lending.list("spare").is_empty());
    assert_eq!(lending.list("lent").len(), 4);
    let empty = rig.done(&format!("testdb new --owner {} --format url", std::process::id()));
    assert!(empty.stdout.starts_with("postgresql://"), "{empty:#?}");
}

#[test]
fn a_database_of_the_server_is_copied_and_copied_anew_when_it_changes() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    lending.server.execute("CREATE DATABASE app");
    let app = lending.url("app");
    // A session that lingers would be in the way.
    let sql = |sql: &str| {
        rig.block_on(async {
            let (client, connection) = tokio_postgres::connect(&app, tokio_postgres::NoTls).await.unwrap();
            let session = tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap();
            drop(client);
            session.await.unwrap().unwrap();
        });
    };
    sql("CREATE TABLE item (id int)");
    let copy = || {
        let ran =
            rig.done(&format!("testdb new --template app --owner {} --format json", std::process::id()));
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let first = copy();
    sql("INSERT INTO item VALUES (1)");
    let changed = until("the change is seen", || {
        let loan = copy();
        (lending.items(&loan) == 1).then_some(loan)
    });
    assert_ne!(name(&first), name(&changed));
    assert_eq!(lending.items(&first), 0);
    let none = rig.run("testdb new --template nowhere");
    assert_eq!(none.code, Some(2), "{none:#?}");
    assert!(none.stderr.contains("no database nowhere"), "{none:#?}");
}

#[test]
fn a_killed_owner_leaves_nothing_and_what_is_kept_stays() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let from = lending.schema.display();
    let new = |more: &str| {
        let ran = rig.done(&format!("testdb new --from {from} --owner {} --format json {more}", owner.id()));
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let (dropped, kept_later, kept) = (new(""), new(""), new("--keep"));
    let listed = rig.done("testdb list");
    assert!(listed.stdout.contains("sleep 1000") && listed.stdout.contains("fsync on"), "{}", listed.stdout);
    rig.done(&format!("testdb keep {}", name(&kept_later)));
    owner.kill().unwrap();
    owner.wait().unwrap();
    lending.gone(&name(&dropped));
    let both = BTreeSet::from([name(&kept_later), name(&kept)]);
    assert_eq!(lending.list("kept"), both);
    assert!(lending.list("lent").is_empty());
    rig.done(&format!("testdb drop {}", name(&kept)));
    assert!(!lending.is_there(&name(&kept)), "drop returns when it is gone");

    let brief = lending.new_database("--for 1s");
    lending.gone(&name(&brief));
}

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
        // What a keeper leaves that is killed while it makes something; another keeper's is not touched.
        let keeper = keeper_id(&rig);
        let half = format!("pgrig_testdb_making_{keeper}_00000001");
        let foreign = "pgrig_testdb_making_000000000000_00000001";
        lending.server.execute(&format!("CREATE DATABASE {half}"));
        // And one that is killed while it drops something, as servers since 2023 leave it.
        lending.server.execute(&format!(
            "UPDATE pg_database SET datconnlimit = -2 WHERE datname = '{}'",
            name(&half_dropped)
        ));
        lending.server.execute(&format!("CREATE DATABASE {foreign}"));

        assert_eq!(lending.list("lent"), BTreeSet::from([name(&living)]));
        assert_eq!(lending.list("kept"), BTreeSet::from([name(&kept)]));
        assert_eq!(lending.list("spare"), spares, "they are adopted");
        assert_eq!(lending.list("template").len(), 1);
        lending.gone(&half);
        lending.gone(&name(&half_dropped));
        lending.gone(&name(&dead));
        assert!(lending.is_there(foreign));
        let next = lending.new_database("");
        assert!(spares.contains(&name(&next)), "a spare is handed out, and no other");
        assert_eq!(lending.items(&next), 2);
        lending.server.execute(&format!("DROP DATABASE {foreign}"));
    }
}

/// The only keeper's.
fn keeper_id(rig: &Rig) -> String {
    let mut entries = std::fs::read_dir(rig.home.path().join("testdb")).unwrap().flatten();
    entries.next().unwrap().file_name().into_string().unwrap()
}

#[test]
fn two_hundred_at_once_get_one_each() {
    for version in ["13", "18"] {
        let rig = Rig::new();
        let lending = Lending::new(&rig, version);
        // By a hundred programs, all of which want the keeper and the template to be made, and by a hundred requests.
        let command = format!(
            "testdb new --from {} --owner {} --format json",
            lending.schema.display(),
            std::process::id()
        );
        let programs: Vec<_> = (0..100).map(|_| rig.spawn(&command)).collect();
        let mut names: Vec<String> = programs
            .into_iter()
            .map(|program| {
                let ran = program.end();
                assert_eq!(ran.code, Some(0), "{ran:#?}");
                name(&serde_json::from_str(&ran.stdout).unwrap())
            })
            .collect();
        let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
        let by_http: Vec<String> = std::thread::scope(|scope| {
            let ask = || {
                let answer = service.http().post("/databases", "{}");
                assert_eq!(answer.status, 201, "{answer:?}");
                name(&answer.json())
            };
            let asking: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        names.extend(by_http);
        let different: BTreeSet<String> = names.iter().cloned().collect();
        assert_eq!(different.len(), 200, "none is shared");
        assert_eq!(lending.list("lent"), different, "none is lost");
        assert_eq!(lending.list("template").len(), 1, "made once");
        service.interrupt();
        let left = lending.there();
        assert!(left.is_disjoint(&different), "Ctrl-C drops what is lent");
        rig.done("testdb drop --all");
        assert!(lending.there().is_empty(), "no trace");
    }
}

#[test]
fn only_pgrig_s_own_are_dropped() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let loan = lending.new_database("");
    for foreign in ["mine", "pgrig_testdb_012345_01234567", "pgrig_testdb_t_0123456789ab"] {
        lending.server.execute(&format!("CREATE DATABASE {foreign}"));
        let refused = rig.run(&format!("testdb drop {foreign}"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains("no database of pgrig's"), "{refused:#?}");
    }
    lending.server.execute("COMMENT ON DATABASE mine IS '{\"pgrig testdb\": 1}'");
    rig.done("testdb drop --orphans");
    assert!(lending.is_there(&name(&loan)));
    rig.done("testdb drop --all");
    let left = ["pgrig_testdb_012345_01234567", "pgrig_testdb_t_0123456789ab"].map(str::to_owned);
    assert_eq!(lending.there(), BTreeSet::from(left));
    assert_eq!(lending.server.number("SELECT count(*) FROM pg_database WHERE datname = 'mine'"), 1);
}

#[test]
fn a_role_that_may_not_make_databases_is_told_so_and_createdb_is_enough() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    lending.server.execute("CREATE ROLE plain LOGIN; CREATE ROLE maker LOGIN CREATEDB");
    let server = format!("-h {}", socket(&lending.server));
    let refused = rig.run(&format!("testdb new {server} -U plain"));
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("ALTER ROLE \"plain\" CREATEDB"), "{refused:#?}");
    let from = lending.schema.display();
    let owner = std::process::id();
    let made = rig.done(&format!("testdb new {server} -U maker --from {from} --owner {owner} --format json"));
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(made["user"], "maker");
    assert_eq!(lending.items(&made), 2);
    assert_eq!(
        lending
            .server
            .row(&format!(
                "SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = '{}'",
                name(&made)
            ))
            .get::<_, String>(0),
        "maker"
    );
    rig.done(&format!("testdb drop --all {server} -U maker"));
    assert!(lending.there().is_empty());
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
    assert!(refused.stderr.contains("are lent by keeper process"), "{refused:#?}");
    rig.done("testdb drop --all");
    until("the server stops with its keeper", || (rig.status()["state"] == "stopped").then_some(()));
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

#[test]
fn a_go_between_owns_nothing() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let (pgrig, schema) = (env!("CARGO_BIN_EXE_pgrig"), lending.schema.display().to_string());
    let new = format!("{pgrig} testdb new --from {schema} --format url");
    for command in [new.clone(), format!("timeout 60 {new}"), format!("{new}; true")] {
        // As Python's shell=True and node's execSync do.
        let mut shell = Command::new("sh");
        for (name, value) in rig.command("").get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let told = shell.args(["-c", &command]).output().unwrap();
        assert!(told.status.success(), "{told:?}");
        let ran = rig.done("testdb list --json");
        let list: Value = serde_json::from_str(&ran.stdout).unwrap();
        let lent = list["databases"].as_array().unwrap().iter().find(|database| database["state"] == "lent");
        assert_eq!(lent.unwrap()["owner"]["pid"], std::process::id(), "{command}: {}", ran.stdout);
        rig.done(&format!("testdb drop {}", name(lent.unwrap())));
    }
}

#[test]
fn a_failure_fails_in_eval_too() {
    let rig = Rig::new();
    let ran = rig.run("testdb new --from nowhere.sql");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), "false\n"), "{ran:?}");
    let serve = rig.run("testdb serve --from nowhere.sql");
    assert_eq!((serve.code, serve.stdout.as_str()), (Some(2), ""), "{serve:?}");
    assert!(serve.stderr.contains("nowhere.sql"), "{serve:?}");
}

#[test]
fn what_cannot_be_loaded_says_where_and_leaves_nothing() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    std::fs::write(&lending.schema, format!("{SCHEMA}SELECT 1 / 0;\n")).unwrap();
    let from = lending.schema.display();
    let failed = rig.run(&format!("testdb new --from {from}"));
    assert_eq!(failed.code, Some(2), "{failed:#?}");
    assert!(failed.stderr.contains("line 6") && failed.stderr.contains("22012"), "{failed:#?}");
    assert_eq!(failed.stdout, "false\n", "eval must fail: {failed:#?}");
    until("nothing is left of it", || lending.there().is_empty().then_some(()));
    let missing = rig.run("testdb new --from nowhere.sql");
    assert_eq!(missing.code, Some(2), "{missing:#?}");
    assert!(missing.stderr.contains("nowhere.sql"), "{missing:#?}");
}

#[test]
fn serve_lends_keeps_renews_and_takes_back() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let from = lending.schema.display();
    let before = lending.new_database("");
    let ready = rig.home.path().join("ready");
    let service = Service::start(&rig, &format!("--from {from} --ready-file {}", ready.display()));
    assert_eq!(std::fs::read_to_string(&ready).unwrap().trim(), service.url);
    let http = service.http();
    assert_eq!(lending.list("lent"), BTreeSet::from([name(&before)]), "it took over from the keeper before");

    let loan = http.get("/database?for=2").json();
    assert_eq!(lending.items(&loan), 2);
    let renewed = http.post(&format!("/databases/{}/renew", name(&loan)), "{\"for\": 3600}");
    assert!(renewed.json()["expires"].as_i64() > loan["expires"].as_i64(), "{renewed:?}");
    let url = http.get("/database?format=url");
    assert!(url.body.starts_with("postgresql://postgres@/pgrig_testdb_"), "{url:?}");
    let kept = http.get("/database").json();
    assert_eq!(http.post(&format!("/databases/{}/keep", name(&kept)), "").status, 200);
    assert_eq!(http.request("DELETE", &format!("/databases/{}?wait", name(&loan)), &[], "").status, 204);
    assert!(!lending.is_there(&name(&loan)));
    assert_eq!(http.request("DELETE", &format!("/databases/{}", name(&loan)), &[], "").status, 404);
    assert_eq!(http.request("DELETE", "/databases/postgres", &[], "").status, 404);

    let status = http.get("/status").json();
    assert_eq!((&status["kept"], &status["templates"]), (&1.into(), &1.into()), "{status:#}");
    let shown: Vec<&str> =
        status["settings"].as_array().unwrap().iter().map(|it| it[0].as_str().unwrap()).collect();
    for setting in ["fsync", "synchronous_commit", "full_page_writes", "wal_level"] {
        assert!(shown.contains(&setting), "{status:#}");
    }
    until("the list is what is there", || {
        let listed = http.get("/databases").json();
        let listed: BTreeSet<String> = listed["databases"].as_array().unwrap().iter().map(name).collect();
        (listed == lending.there()).then_some(())
    });

    let second = rig.run("testdb serve");
    assert_eq!(second.code, Some(2), "{second:#?}");
    assert!(second.stderr.contains(&service.url), "{second:#?}");
    service.interrupt();
    assert_eq!(lending.list("kept"), BTreeSet::from([name(&kept)]));
    assert!(lending.list("lent").is_empty() && lending.list("spare").is_empty());
    assert_eq!(lending.list("template").len(), 1);
}

#[test]
fn serve_is_for_nobody_s_web_page_and_offers_over_tcp_what_it_was_told_to() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let other = rig.home.path().join("other.sql");
    std::fs::write(&other, SCHEMA).unwrap();
    let socket = rig.home.path().join("lend.sock");
    let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
    let http = service.http();
    for (header, value) in
        [("Host", "evil.example"), ("Origin", "http://localhost"), ("Sec-Fetch-Site", "cross-site")]
    {
        let answer = http.request("GET", "/database", &[(header, value)], "");
        assert_eq!(answer.status, 403, "{header}: {answer:?}");
    }
    for (method, path, body, status) in [
        ("GET", format!("/database?from={}", other.display()), "", 403),
        ("GET", "/database?template=postgres".to_owned(), "", 403),
        ("DELETE", "/databases?which=all".to_owned(), "", 403),
        ("POST", "/retire".to_owned(), "", 403),
        ("POST", "/databases".to_owned(), "{\"form\": 1}", 400),
        ("POST", "/databases".to_owned(), "{\"owner\": 4000000000}", 422),
        ("PUT", "/databases".to_owned(), "", 405),
        ("GET", "/nowhere".to_owned(), "", 404),
    ] {
        let answer = http.request(method, &path, &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let refusal = answer.json();
        assert!(refusal["error"].is_string() && refusal["remedy"].is_string(), "{refusal}");
    }
    assert!(lending.list("lent").is_empty());
    service.interrupt();

    let service = Service::start(&rig, &format!("--listen unix:{}", socket.display()));
    assert_eq!(service.url, format!("unix:{}", socket.display()));
    let loan = service.http().get(&format!("/database?from={}", other.display()));
    assert_eq!(lending.items(&loan.json()), 2);
    service.interrupt();
    assert!(!socket.exists());

    let refused = rig.run("testdb serve --listen 0.0.0.0:0");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
}

/// pytest and node's test runner, each with many tests at a time.
#[test]
fn suites_of_other_languages_run_in_parallel() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdb_clients");
    let service = Service::start(&rig, &format!("--from {}", lending.schema.display()));
    let suites: [(&str, &[&str], &str); 2] = [
        (
            "python3",
            &["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_items.py"],
            "apt-get install python3-pytest",
        ),
        ("node", &["--test", "items.test.mjs"], "apt-get install nodejs (18 or later)"),
    ];
    for (program, arguments, remedy) in suites {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&clients).env("PGRIG_TESTDB_URL", &service.url);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}; {remedy}"));
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("No module named pytest"), "{text}; {remedy}");
        assert!(output.status.success(), "{program}: {text}");
    }
    until("all was given back", || lending.list("lent").is_empty().then_some(()));
    assert_eq!(lending.list("kept").len(), 2, "the failed test of each suite kept its database");
    service.interrupt();
}

/// `pgrig testdb serve`, ended with the test.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(rig: &Rig, arguments: &str) -> Self {
        let mut command = rig.command(&format!("testdb serve {arguments}"));
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        if url.is_empty() {
            let output = child.wait_with_output().unwrap();
            panic!("it did not start: {}", String::from_utf8_lossy(&output.stderr));
        }
        Self { child, url: url.trim().to_owned() }
    }

    fn http(&self) -> Http {
        match self.url.strip_prefix("unix:") {
            Some(path) => Http::Unix(path.into()),
            None => Http::Tcp(self.url.strip_prefix("http://").unwrap().to_owned()),
        }
    }

    /// Ctrl-C.
    fn interrupt(mut self) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whoever speaks HTTP/1.1: what is sent is what stands here.
enum Http {
    Tcp(String),
    Unix(PathBuf),
}

#[derive(Debug)]
struct Answer {
    status: u16,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http {
    fn get(&self, path: &str) -> Answer {
        let answer = self.request("GET", path, &[], "");
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path, &[], body)
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = if headers.iter().any(|(name, _)| *name == "Host") { "" } else { "Host: localhost\r\n" };
        let more: String =
            headers.iter().fold(String::new(), |text, (name, value)| text + &format!("{name}: {value}\r\n"));
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{more}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut answer = String::new();
        match self {
            Self::Tcp(at) => exchange(TcpStream::connect(at).unwrap(), &request, &mut answer),
            Self::Unix(path) => {
                exchange(std::os::unix::net::UnixStream::connect(path).unwrap(), &request, &mut answer);
            }
        }
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, body: body.to_owned() }
    }
}

fn exchange(mut stream: impl Read + Write, request: &str, answer: &mut String) {
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(answer).unwrap();
}
