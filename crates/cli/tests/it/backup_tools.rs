//! `pgrig backup rehearse` with other tools: pgBackRest, barman and WAL-G as the guide says, and tools that do not do what they claim.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use testkit::{Mount, Need, assert_says, fill_up, require, until};

use crate::backup::{assert_ends_by_signals_when, processes_of};
use crate::support::{Ran, Rig, Running};

/// A backup and a restore that work.
const BACKUP: &str = "pg_basebackup --checkpoint=fast --pgdata={backup}/base";
const RESTORE: &str = "cp -a {backup}/base/. {restore}";

/// A restore that names a time.
const TO_A_TIME: &str = "cp -a {backup}/base/. {restore}; : {time}";

const SCHEMA: &str = "CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 5000) i; ALTER TABLE t ADD PRIMARY KEY (i)";

/// Runs a rehearsal of these commands.
pub(crate) fn rehearsed(rig: &Rig, url: &str, more: &[&str]) -> Ran {
    let mut command = rig.command("backup rehearse --no-probe --trials 1 -d");
    Ran::from(command.arg(url).args(more).output().unwrap())
}

/// The same of one tool without a name.
fn of_tool(rig: &Rig, url: &str, backup: &str, restore: &str) -> Ran {
    rehearsed(rig, url, &["--tool-backup", backup, "--tool-restore", restore])
}

/// The commands of a script of the guide.
pub(crate) fn scripted(name: &str, more: &str) -> [String; 2] {
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
            "--network",
            "--json",
            json.to_str().unwrap(),
        ],
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // pgBackRest reads the server's files.
    assert_eq!(ran.stdout.matches("other path (").count(), 1, "{ran:#?}");
    assert_says(
        &ran.stdout,
        &[
            "base: pg_verifybackup; each logged table has the",
            "pgbackrest, barman: each logged table has the",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let size = |way: &str| document["figures"][way]["size"]["value"].as_f64().unwrap();
    let received = |way: &str| {
        let trial =
            document["trials"].as_array().unwrap().iter().find(|trial| trial["config"] == way).unwrap();
        let observed = trial["observations"].as_array().unwrap();
        observed.iter().find(|one| one["name"] == "network-received").unwrap()["value"].as_f64().unwrap()
    };
    assert!(received("pgbackrest") < 1e6 && received("barman") > size("barman") / 2.0, "{document}");
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
    assert_says(&ran.stdout, &["tool: each logged table has the same hash as in the original"]);
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
        (
            BACKUP,
            &format!("{RESTORE}; echo '16384 /fast' > {{restore}}/tablespace_map"),
            "the restored files have a tablespace_map",
        ),
        (
            BACKUP,
            &format!("{RESTORE}; printf another! | dd of={{restore}}/global/pg_control conv=notrunc"),
            "its restore command succeeded, but the restored files are those of another server",
        ),
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
        (&["--tool-backup", BACKUP, "--tool-restore", TO_A_TIME], "give the size and a load, too"),
        (&["--tool-backup", BACKUP], "another tool needs --tool-backup and --tool-restore"),
        (&["--tool-wal", BACKUP], "are for another tool: give --tool-backup"),
        (
            &["--tool-backup", BACKUP, "--tool-restore", TO_A_TIME, "--tool-wal", BACKUP],
            "--tool-wal stores the WAL of a load: give a load",
        ),
    ] {
        let ran = rehearsed(&rig, &server.url, more);
        assert_eq!(ran.code, Some(2), "{more:?}: {ran:#?}");
        assert_says(&ran.stderr, &[says]);
    }
}

/// Options of a tool that restores to a point in time.
fn to_a_time<'a>(name: &'a str, [backup, wal, restore]: [&'a str; 3]) -> [&'a str; 8] {
    ["--tool-name", name, "--tool-backup", backup, "--tool-wal", wal, "--tool-restore", restore]
}

/// The same of a script of the guide.
fn scripted_to_a_time(name: &str, data: &str) -> [String; 3] {
    let [backup, restore] = scripted(name, data);
    let wal = backup.replacen(" backup ", " wal ", 1);
    [backup, wal, format!("{restore} {{time}}")]
}

/// The command that rehearses recoveries of a small load.
fn recovering(rig: &Rig) -> Command {
    rig.command(
        "backup rehearse --size 60MB --up-to 10MB --pg-version 13 --trials 1 --load simple-update -R 200 -T 2 -c 2",
    )
}

fn recovered(rig: &Rig, more: &[&str]) -> Ran {
    Ran::from(recovering(rig).args(more).output().unwrap())
}

#[test]
fn pgbackrest_and_barman_recover_to_a_point_in_time() {
    if ![Need::Clients, Need::PgBackRest, Need::Barman].map(require).iter().all(|is_met| *is_met) {
        return;
    }
    let rig = Rig::new();
    let [first, second] =
        [scripted_to_a_time("rehearse-pgbackrest", "{data}"), scripted_to_a_time("rehearse-barman", "")];
    let [first, second] = [&first, &second].map(|commands| commands.each_ref().map(String::as_str));
    let json = rig.home.path().join("run.json");
    let mut more = [to_a_time("pgbackrest", first), to_a_time("barman", second)].concat();
    more.extend(["--json", json.to_str().unwrap()]);
    let ran = recovered(&rig, &more);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(
        &ran.stdout,
        &[
            "pgbackrest, barman: each logged table has the hash of the target time; all rows committed before that time are present",
            "pgbackrest: with the WAL of a day of the load",
            "barman: with the WAL of a day of the load",
        ],
    );
    let document: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    for way in ["pgbackrest", "barman"] {
        let trials = document["trials"].as_array().unwrap();
        let trial = trials.iter().find(|trial| trial["config"] == way).unwrap();
        let observed = trial["observations"].as_array().unwrap();
        let value = |figure: &str| {
            observed.iter().find(|one| one["name"] == figure).unwrap()["value"].as_f64().unwrap()
        };
        assert!(value("base-size") > 1e6 && value("wal-size") > 1e4 && value("replayed") > 1e5, "{document}");
    }
    assert!(!rig.home.path().join("backup").exists());
}

/// A substitute for WAL-G, with the commands and the names of files of its documentation.
const WAL_G: &str = r#"#!/bin/sh
set -eu
bases=$WALG_FILE_PREFIX/basebackups_005
wal=$WALG_FILE_PREFIX/wal_005
case $1 in
backup-push)
    test -f "$2/PG_VERSION"
    pg_basebackup --checkpoint=fast --wal-method=none --pgdata="$bases/new"
    first=$(sed -n 's/^START WAL LOCATION.*(file \([0-9A-F]*\)).*/\1/p' "$bases/new/backup_label")
    mv "$bases/new" "$bases/base_$first"
    echo '{}' >"$bases/base_${first}_backup_stop_sentinel.json"
    ;;
wal-push)
    test "$WALG_UPLOAD_CONCURRENCY" = 1
    mkdir -p "$wal"
    cp "$2" "$wal/${2##*/}.lz4"
    ;;
backup-fetch)
    test "$3" = LATEST
    cp -a "$bases"/base_????????????????????????/. "$2"
    ;;
wal-fetch)
    test "$WALG_DOWNLOAD_CONCURRENCY" = 1
    cp "$wal/$2.lz4" "$3"
    ;;
*) exit 2 ;;
esac
"#;

/// Runs a command for which WAL-G is the substitute.
fn with_wal_g(rig: &Rig, mut command: Command) -> Ran {
    let bin = rig.home.path().join("programs");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("wal-g");
    fs::write(&program, WAL_G).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    Ran::from(command.output().unwrap())
}

#[test]
fn the_script_of_wal_g_calls_its_documented_commands() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    server.execute(SCHEMA);
    let [backup, restore] = scripted("rehearse-wal-g", "{data}");
    let mut command = rig.command("backup rehearse --no-probe --trials 1 --tool-name wal-g -d");
    command.args([server.url.as_str(), "--tool-backup", &backup, "--tool-restore", &restore]);
    let ran = with_wal_g(&rig, command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stdout, &["wal-g: each logged table has the same hash as in the original"]);
    let commands = scripted_to_a_time("rehearse-wal-g", "{data}");
    let mut command = recovering(&rig);
    command.args(to_a_time("wal-g", commands.each_ref().map(String::as_str)));
    let ran = with_wal_g(&rig, command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(&ran.stdout, &["wal-g: each logged table has the hash of the target time"]);
}

#[test]
fn a_recovery_that_lacks_wal_or_passes_its_target_has_no_result() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    // pgrig's slot keeps the segments in pg_wal until the end of the input.
    let store = "cat >/dev/null; mkdir {backup}/wal; cp {data}/pg_wal/0000* {backup}/wal/";
    let restore = "cp -a {backup}/base/. {restore}; cp {backup}/wal/* {restore}/pg_wal/; : {time}";
    let ran = recovered(&rig, &to_a_time("copy", [BACKUP, store, restore]));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_says(
        &ran.stdout,
        &[
            "copy: each logged table has the hash of the target time",
            "none is present",
            "as the tool stores it), which is replayed in",
            "copy, restore: the tool also fetches the WAL of a day",
        ],
    );
    for (store, restore, says) in [
        // The WAL ends before the target time.
        (
            store,
            "cp -a {backup}/base/. {restore}; : {time}",
            "recovery ended before configured recovery target was reached",
        ),
        ("true {backup}", restore, "its WAL command ended before the end of the load: it printed nothing"),
        (
            "cat >/dev/null; echo full >&2; exit 5; : {backup}",
            restore,
            "its WAL command failed: it ended with exit status 5: full",
        ),
        (store, "exit 6; : {backup} {restore} {time}", "its restore failed: it ended with exit status 6"),
    ] {
        let ran = recovered(&rig, &to_a_time("copy", [BACKUP, store, restore]));
        assert_eq!(ran.code, Some(1), "{store} / {restore}: {ran:#?}");
        assert_says(&ran.stderr, &["copy has no result: ", says]);
        assert!(!rig.home.path().join("backup").exists());
    }
    let sized = ["--size", "60MB", "--tool-backup", BACKUP, "--tool-restore", TO_A_TIME];
    for (more, says) in [
        (&[][..], "a --tool-restore with {time} replays the WAL of a load"),
        (&["--load", "simple-update", "-R", "5"], "also give --tool-wal COMMAND"),
    ] {
        let mut command = rig.command("backup rehearse");
        command.args(sized).args(more);
        let ran = Ran::from(command.output().unwrap());
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

/// A command can have secrets under any name, so none is in the document.
#[test]
fn the_commands_of_a_tool_are_in_no_document() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock --set autovacuum=off");
    let json = rig.home.path().join("run.json");
    let backup = format!("AWS_SECRET_ACCESS_KEY=k3y {BACKUP}");
    let restore = format!("--tool-restore=AWS_SECRET_ACCESS_KEY=k3y {RESTORE}");
    let ran =
        rehearsed(&rig, &server.url, &["--tool-backup", &backup, &restore, "--json", json.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let document = fs::read_to_string(json).unwrap();
    assert!(!document.contains("k3y"), "{document}");
    assert_says(&document, &["--tool-restore=***"]);
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

/// Names of the files in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn a_disk_without_room_prevents_or_ends_a_step_and_nothing_is_left() {
    if ![Need::Clients, Need::Mounts].map(require).iter().all(|is_met| *is_met) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("--pg-version 13 --profile stock");
    server.execute(SCHEMA);
    let own = rig.home.path().join("backup");
    fs::create_dir(&own).unwrap();
    {
        // It holds the scratch server, and little more.
        let _disk = Mount::tmpfs(&own, 110);
        let ran = of_tool(&rig, &server.url, BACKUP, RESTORE);
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert_says(&ran.stderr, &["the backup by tool needs about", "free some space, or set PGRIG_HOME"]);
        assert_eq!(names(&own), [""; 0]);
    }
    let _disk = Mount::tmpfs(&own, 600);
    let told = rig.home.path().join("told");
    let backup = "dd if=/dev/zero of={backup}/a bs=1M count=8; echo begun >{backup}/b; tail -f {backup}/b";
    let mut command = rig.command("backup rehearse --no-probe --trials 1 -d");
    command.arg(&server.url).args(["--tool-backup", backup, "--tool-restore", RESTORE]);
    command.stderr(fs::File::create(&told).unwrap());
    let running = Running::start_quietly(command);
    until("the tool has begun", || {
        processes_of(own.to_str().unwrap()).iter().any(|line| line.starts_with("tail"))
    });
    let place = own.join(&names(&own)[0]).join("work");
    fill_up(&own.join("filler"));
    let ran = running.end();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let said = fs::read_to_string(&told).unwrap();
    assert_says(&said, &["the backup by tool was ended, because", "free: free some space"]);
    until("its processes end", || processes_of(own.to_str().unwrap()).is_empty());
    assert_eq!(names(&own), ["filler"]);
    fill_up(&own.join("more"));
    let ran = of_tool(&rig, &server.url, BACKUP, RESTORE);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_says(
        &ran.stderr,
        &["the start of a scratch server needs about", "free some space, or set PGRIG_HOME"],
    );
    fs::remove_file(own.join("more")).unwrap();
    // As if a killed run had left it.
    fs::create_dir_all(&place).unwrap();
    fs::rename(own.join("filler"), place.join("backup")).unwrap();
    let ran = of_tool(&rig, &server.url, BACKUP, RESTORE);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert_eq!(names(&own), [""; 0]);
    assert_eq!(server.number("SELECT count(*) FROM t"), 5000);
}
