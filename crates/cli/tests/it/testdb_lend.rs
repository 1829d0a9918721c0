//! `pgrig testdb new`, `list`, `keep` and `drop` as their users see them.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::Rig;
use crate::support::lending::{Lending, MAKING, SCHEMA, inherit, keeper_id, name, socket};
use serde_json::Value;
use testkit::until_some as until;

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
            let mut command = Command::new(shell);
            inherit(&mut command, &rig.command(""));
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
        let lease = copy();
        (lending.items(&lease) == 1).then_some(lease)
    });
    assert_ne!(name(&first), name(&changed));
    assert_eq!(lending.items(&first), 0);
    // The remedy for a template that is in use: then pgrig copies it all the same.
    lending.server.execute("ALTER DATABASE app ALLOW_CONNECTIONS false");
    rig.done("testdb drop --templates");
    assert_eq!(lending.items(&copy()), 1);
    let none = rig.run("testdb new --template nowhere");
    assert_eq!(none.code, Some(2), "{none:#?}");
    assert!(none.stderr.contains("no database nowhere"), "{none:#?}");
}

#[test]
fn the_keeper_s_own_database_is_not_copied() {
    let rig = Rig::new();
    let _lending = Lending::new(&rig, "18");
    let ran = rig.run("testdb new --template postgres");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("> postgres.sql, and --from postgres.sql"), "{ran:#?}");
}

/// pgrig loads a script that psql loads, even if VACUUM (ANALYZE), which has a search_path of its own, fails on its
/// index.
#[test]
fn an_index_on_a_function_that_relies_on_the_search_path_is_no_hindrance() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let schema = "CREATE TABLE k (a int);\nINSERT INTO k VALUES (1);\n\
        CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT max(a) FROM k); END';\n\
        CREATE TABLE item (id int);\nCREATE INDEX ON item (f(id));\nINSERT INTO item VALUES (1);\n";
    std::fs::write(&lending.schema, schema).unwrap();
    assert_eq!(lending.items(&lending.new_database("")), 1);
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
fn a_standby_is_refused() {
    let rig = Rig::new();
    // Its WAL has what a standby needs.
    let _server = rig.server("--profile stock");
    let data = rig.data();
    rig.done("server stop");
    std::fs::write(data.join("standby.signal"), "").unwrap();
    rig.done("server start");
    let ran = rig.run("testdb new");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("(a standby?), and therefore read-only: connect to its primary"), "{ran:#?}");
}

#[test]
fn only_what_is_lent_can_be_kept() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    lending.new_database("");
    for (state, names) in [("template", lending.list("template")), ("spare", until_some_spare(&lending))] {
        let spare = names.first().expect(state);
        let ran = rig.run(&format!("testdb keep {spare}"));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("is not lent"), "{state}: {ran:#?}");
    }
    let ran = rig.run("testdb keep postgres");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("not a pgrig database"), "{ran:#?}");
}

/// Standard error goes to logs that others read.
#[test]
fn keep_tells_no_password() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    lending.server.execute("CREATE ROLE maker LOGIN CREATEDB");
    let server = format!("-h {} -U maker", socket(&lending.server));
    let run = |arguments: &str| {
        let told = rig.command(arguments).env("PGPASSWORD", "hush:hush").output().unwrap();
        assert!(told.status.success(), "{told:?}");
        (String::from_utf8(told.stdout).unwrap(), String::from_utf8(told.stderr).unwrap())
    };
    let (url, _) = run(&format!("testdb new {server} --owner {} --format url", std::process::id()));
    assert!(url.starts_with("postgresql://maker:hush%3Ahush@/pgrig_testdb_"), "{url}");
    let name = url.split(['/', '?']).nth(3).unwrap();
    let (_, kept) = run(&format!("testdb keep {name} {server}"));
    assert!(kept.contains(&format!("postgresql://maker@/{name}?host=")) && !kept.contains("hush"), "{kept}");
    run(&format!("testdb drop --all {server}"));
}

fn until_some_spare(lending: &Lending<'_>) -> BTreeSet<String> {
    until("there are spares", || Some(lending.list("spare")).filter(|spares| !spares.is_empty()))
}

#[test]
fn only_pgrig_s_own_are_dropped() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let lease = lending.new_database("");
    for foreign in ["mine", "pgrig_testdb_012345_01234567", "pgrig_testdb_t_0123456789ab"] {
        lending.server.execute(&format!("CREATE DATABASE {foreign}"));
        let refused = rig.run(&format!("testdb drop {foreign}"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        assert!(refused.stderr.contains("not a pgrig database"), "{refused:#?}");
    }
    lending.server.execute("COMMENT ON DATABASE mine IS '{\"pgrig testdb\": 1}'");
    // Unfinished databases that their keeper could not drop.
    let unfinished = format!("pgrig_testdb_making_{}_00000001", keeper_id(&rig));
    let orphan = "pgrig_testdb_making_000000000000_00000001";
    lending.server.execute(&format!("CREATE DATABASE {orphan} {MAKING}"));
    rig.done("testdb drop --orphans");
    assert!(!lending.is_there(orphan));
    assert!(lending.is_there(&name(&lease)));
    lending.server.execute(&format!("CREATE DATABASE {unfinished} {MAKING}"));
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
    assert!(refused.stderr.contains("ALTER ROLE plain CREATEDB"), "{refused:#?}");
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
fn a_go_between_owns_nothing() {
    let rig = Rig::new();
    let lending = Lending::new(&rig, "18");
    let (pgrig, schema) = (env!("CARGO_BIN_EXE_pgrig"), lending.schema.display().to_string());
    let new = format!("{pgrig} testdb new --from {schema} --format url");
    for command in [new.clone(), format!("timeout 60 {new}"), format!("{new}; true")] {
        // As Python's shell=True and node's execSync do.
        let mut shell = Command::new("sh");
        inherit(&mut shell, &rig.command(""));
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
    let unknown = rig.run("testdb new --form schema.sql");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), "false\n"), "{unknown:?}");
    let url = rig.run("testdb new --form schema.sql --format url");
    assert_eq!((url.code, url.stdout.as_str()), (Some(2), ""), "{url:?}");
    for format in ["--format xml", "--format=xml", "--format shell --form schema.sql"] {
        let wrong = rig.run(&format!("testdb new {format}"));
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), "false\n"), "{wrong:?}");
    }
    let json = rig.run("testdb new --form schema.sql --format=json");
    assert_eq!((json.code, json.stdout.as_str()), (Some(2), ""), "{json:?}");
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
