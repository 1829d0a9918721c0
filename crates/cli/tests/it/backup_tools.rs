//! `pgrig backup rehearse` with other tools: pgBackRest and barman as the guide says, and tools that do not do what they claim.

use std::fs;
use std::path::Path;

use testkit::{Need, assert_says, require};

use crate::backup::{assert_ends_by_signals_when, processes_of};
use crate::support::{Ran, Rig, Running};

/// A backup and a restore that work.
const BACKUP: &str = "pg_basebackup --checkpoint=fast --pgdata={backup}/base";
const RESTORE: &str = "cp -a {backup}/base/. {restore}";

const SCHEMA: &str = "CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 5000) i; ALTER TABLE t ADD PRIMARY KEY (i)";

/// Runs a rehearsal of these commands.
fn rehearsed(rig: &Rig, url: &str, more: &[&str]) -> Ran {
    let mut command = rig.command("backup rehearse --no-probe --trials 1 -d");
    Ran::from(command.arg(url).args(more).output().unwrap())
}

/// The same of one tool without a name.
fn of_tool(rig: &Rig, url: &str, backup: &str, restore: &str) -> Ran {
    rehearsed(rig, url, &["--tool-backup", backup, "--tool-restore", restore])
}

/// The commands of a script of the guide.
fn scripted(name: &str, more: &str) -> [String; 2] {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name);
    let script = script.canonicalize().unwrap().display().to_string();
    [format!("{script} backup {{backup}} {more}"), format!("{script} restore {{backup}} {{restore}}")]
}

#[test]
fn pgbackrest_and_barman_are_rehearsed_as_the_guide_says() {
    if ![Need::Clients, Need::PgBackRest, Need::Barman].map(require).iter().all(|is_met| *is_met) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    server.execute(SCHEMA);
    let [[first, second], [third, fourth]] =
        [scripted("rehearse-pgbackrest", "{data}"), scripted("rehearse-barman", "")];
    let json = rig.home.path().join("run.json");
    let ran = rehearsed(
        &rig,
        &server.url,
        &[
            "--way",
            "base",
            "--tool-name",
            "pgbackrest",
            "--tool-backup",
            &first,
            "--tool-restore",
            &second,
            "--tool-name",
            "barman",
            "--tool-backup",
            &third,
            "--tool-restore",
            &fourth,
            "--json",
            json.to_str().unwrap(),
        ],
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(
        &ran.stdout,
        &[
            "base: pg_verifybackup; the hash of each logged table",
            "pgbackrest, barman: the hash of each logged table",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let size = |way: &str| document["figures"][way]["size"]["value"].as_f64().unwrap();
    // pgBackRest compresses; barman does not.
    assert!(size("pgbackrest") < size("base") / 2.0 && size("barman") > size("base") / 2.0, "{document}");
    assert_eq!(server.number("SELECT count(*) FROM pg_replication_slots"), 0);
}

#[test]
fn a_tool_that_does_not_do_what_it_claims_has_no_result() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    server.execute(SCHEMA);
    let old = rig.home.path().join("it's old");
    let make = format!("{BACKUP} && cp -a {{backup}}/base \"{}\"", old.display());
    let ran = of_tool(&rig, &server.url, &make, RESTORE);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stdout, &["tool: the hash of each logged table is the original's"]);
    server.execute("INSERT INTO t VALUES (0, 'new')");
    let older = format!("cp -a \"{}\"/. {{restore}}; : {{backup}}", old.display());
    for (backup, restore, says) in [
        ("true {backup}", RESTORE, "there are no data in the directory {backup}"),
        (BACKUP, "true {backup} {restore}", "no file PG_VERSION"),
        (
            "echo told; echo 'no vault' >&2; exit 3; : {backup}",
            RESTORE,
            "it ended with exit status 3: told; no vault",
        ),
        (
            BACKUP,
            "exit 4; : {backup} {restore}",
            "its restore failed: it ended with exit status 4: it printed nothing",
        ),
        (BACKUP, "rmdir {restore}; ln -s {data} {restore}; : {backup}", "or is a symbolic link"),
        (BACKUP, "cp -al {backup}/base/. {restore}", "is a hard link"),
        (
            "pg_basebackup --wal-method=none --checkpoint=fast --pgdata={backup}/base",
            RESTORE,
            "its restore failed: ",
        ),
        (BACKUP, &older, "are those of an older backup: they end at 0/"),
        (BACKUP, &format!("{RESTORE}; rm {{restore}}/global/pg_control"), "its restore failed: "),
    ] {
        let ran = of_tool(&rig, &server.url, backup, restore);
        assert_eq!(ran.code, Some(1), "{backup} / {restore}: {ran:#?}");
        assert_says(&ran.stderr, &["tool has no result: ", says]);
        assert!(!ran.stdout.contains("tool"), "{ran:#?}");
        assert!(!rig.home.path().join("backup").exists());
    }
    assert_eq!(server.number("SELECT count(*) FROM t"), 5001);

    for (more, says) in [
        (&["--tool-backup", "b {repo}", "--tool-restore", RESTORE][..], "unknown placeholder {repo}"),
        (&["--tool-backup", BACKUP, "--tool-restore", "r {backup}"], "does not have {restore}"),
        (&["--tool-backup", BACKUP, "--tool-restore", "r '{restore}' {backup}"], "within quotes"),
        (&["--tool-name", "base", "--tool-backup", BACKUP, "--tool-restore", RESTORE], "uses for a --way"),
        (
            &["--tool-backup", BACKUP, "--tool-backup", BACKUP, "--tool-restore", RESTORE],
            "there are 2 --tool-backup and 1 --tool-restore",
        ),
    ] {
        let ran = rehearsed(&rig, &server.url, more);
        assert_eq!(ran.code, Some(2), "{more:?}: {ran:#?}");
        assert_says(&ran.stderr, &[says]);
    }
}

/// The commands get it as PGPASSWORD. It is neither in an argument nor in the document.
#[test]
fn a_password_is_in_no_argument_and_in_no_document() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    let url = server.url.replacen("postgres@", "postgres:s3cret@", 1);
    assert_ne!(url, server.url);
    let [seen, json] = ["seen", "run.json"].map(|name| rig.home.path().join(name));
    let backup = format!(
        "test \"$PGPASSWORD\" && echo {{url}} \"$PGRIG_URL\" >'{}' && psql --command 'SELECT 1' && {BACKUP}",
        seen.display()
    );
    let ran = rehearsed(
        &rig,
        &url,
        &["--tool-backup", &backup, "--tool-restore", RESTORE, "--json", json.to_str().unwrap()],
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = fs::read_to_string(json).unwrap();
    for text in [&fs::read_to_string(seen).unwrap(), &document, &ran.stdout, &ran.stderr] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn an_interrupted_or_killed_rehearsal_ends_all_processes_of_the_tool() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock");
    let own = rig.home.path().join("backup");
    // The first process ignores SIGTERM; both name the directory.
    let sleeps = "tail -f {backup}/a";
    let backup = format!("touch {{backup}}/a; (trap '' TERM; {sleeps}) & {sleeps}");
    let start = |told: &Path| {
        let mut command = rig.command("backup rehearse --no-probe --trials 1 -d");
        command.arg(&server.url).args(["--tool-backup", &backup, "--tool-restore", RESTORE]);
        command.stderr(fs::File::create(told).unwrap());
        Running::start_quietly(command)
    };
    assert_ends_by_signals_when(&rig, start, |_| {
        let all = processes_of(own.to_str().unwrap());
        all.iter().filter(|line| line.starts_with("tail")).count() == 2
    });
    // A process that a tool leaves behind ends with the tool.
    let ran = of_tool(
        &rig,
        &server.url,
        &format!("touch {{backup}}/a; {BACKUP}; tail -f {{backup}}/a & true"),
        RESTORE,
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(processes_of(own.to_str().unwrap()).is_empty());
}
