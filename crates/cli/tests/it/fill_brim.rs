//! Fills until a volume is full, or nearly so: real servers on small real file systems.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::support::victims::{Victim, killed_while_held};
use crate::support::{Ran, Rig, Running, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use testkit::{Mount, Need, does, fill_up, require, until_some as until};

/// A server that is content with little; later starts remember it.
const SMALL: &str = "--set shared_buffers=32MB --set max_wal_size=64MB --set min_wal_size=32MB";

/// Heap of a chunk where a limit ends the fill, with its keys and a little more, bytes.
const CHUNK: u64 = 21_000_000;

/// Free space that a server with so little WAL needs to continue: WAL segments and the files that checkpoints write.
const NEED: u64 = (64 << 20) + 16_000_000;

/// A second volume, where the server may keep files.
struct Elsewhere {
    /// Before its place, so that it is unmounted first.
    disk: Mount,
    place: TempDir,
}

impl Elsewhere {
    /// None where the test is skipped.
    fn tmpfs(megabytes: u32) -> Option<Self> {
        require(Need::Mounts).then(|| {
            let place = tempfile::tempdir().unwrap();
            Self { disk: Mount::tmpfs(place.path(), megabytes), place }
        })
    }

    /// A directory there that belongs to the server's account.
    fn directory(&self, rig: &Rig, name: &str) -> std::path::PathBuf {
        let path = self.place.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let owner = std::fs::metadata(data(rig)).unwrap().uid();
        std::os::unix::fs::chown(&path, Some(owner), None).unwrap();
        path
    }

    /// Moves the stopped server's WAL there.
    fn take_wal(&self, rig: &Rig) {
        let (from, to) = (data(rig).join("pg_wal"), self.place.path().join("pg_wal"));
        assert!(does("cp", &["-a", from.to_str().unwrap(), to.to_str().unwrap()]));
        std::fs::remove_dir_all(&from).unwrap();
        std::os::unix::fs::symlink(to, from).unwrap();
    }
}

fn data(rig: &Rig) -> std::path::PathBuf {
    rig.home.path().join("instances/default/data")
}

/// The events of a document's only trial, as programs read them.
fn events(document: &Value) -> Vec<&Value> {
    document["trials"][0]["events"].as_array().unwrap().iter().map(|event| &event["what"]).collect()
}

fn event<'a>(document: &'a Value, name: &str) -> &'a Value {
    let events = events(document);
    events.iter().find(|what| what["event"] == name).unwrap_or_else(|| panic!("no {name} in {events:#?}"))
}

/// Why the fill ended.
fn stopped(document: &Value) -> &Value {
    &event(document, "stopped")["reason"]
}

fn observed(document: &Value, name: &str) -> u64 {
    let value = crate::support::observed(document, name);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes and rows")]
    let whole = value as u64;
    whole
}

/// The accounts are those with the ids 1 to n, and the server is well: it can write checkpoints, and a
/// clean restart loses nothing. Returns n.
fn assert_sound(rig: &Rig) -> u64 {
    assert_sound_but_for(rig, false)
}

/// The same, but ids are missing among them if a note of the fill says so: the server found no room for a chunk, but
/// for another one.
fn assert_sound_but_for(rig: &Rig, gaps: bool) -> u64 {
    let rows = |server: &Server<'_>| -> u64 {
        let row = server.row("SELECT count(*), count(DISTINCT aid), max(aid)::bigint FROM pgbench_accounts");
        let [rows, ids, last]: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        assert_eq!((rows, gaps), (ids, last > rows), "the last id is {last}");
        rows.try_into().unwrap()
    };
    let server = rig.server(SMALL);
    server.execute("CHECKPOINT");
    let before = rows(&server);
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'";
    assert_eq!(server.number(left), 0, "nothing of pgrig's own is left");
    rig.done("server stop");
    let again = rows(&rig.server(SMALL));
    assert_eq!(before, again);
    rig.done("server stop");
    before
}

fn keys(rig: &Rig) -> i64 {
    let count = rig
        .server(SMALL)
        .number("SELECT count(*) FROM pg_index WHERE indisprimary AND indrelid::regclass::text ~ '^pgbench'");
    rig.done("server stop");
    count
}

/// Data and WAL on the volume that fills up.
fn fills(mount: fn(&Path) -> Mount, options: &str, keyed: bool) {
    let Some(rig) = Rig::on_disk(mount) else { return };
    let marks = "--mark 95%,50%,70%,30%";
    let document = rig.document(&format!("fill --brim {marks} {SMALL} {options}"));
    assert_eq!(document["status"], "done");
    let free = rig.disk.as_ref().unwrap().free();
    assert!(free >= NEED, "{free} are free: too little for the server");

    let reason = stopped(&document);
    assert_eq!((&reason["name"], &reason["volume"]), (&"brim-reached".into(), &"heap".into()));
    let [at, kept] = ["free", "kept"].map(|name| reason[name].as_u64().unwrap());
    let owed = observed(&document, "index");
    let streams = document["plan"]["streams"].as_u64().unwrap();
    assert!(at < kept + owed + CHUNK * streams, "{at} were free, {kept} kept, {owed} for keys");

    let marks: Vec<&Value> = events(&document)
        .iter()
        .filter(|what| what["event"] == "mark-crossed")
        .map(|what| &what["mark"]["used"])
        .collect();
    assert!(marks.len() >= 2 && marks.is_sorted_by_key(|mark| mark.as_u64()), "{marks:?}");
    let mut once = marks.clone();
    once.dedup();
    assert_eq!(once, marks);

    assert_eq!(observed(&document, "rows"), assert_sound(&rig));
    assert_eq!(keys(&rig), if keyed { 3 } else { 0 });
}

#[test]
fn logged_and_whole() {
    fills(|home| Mount::tmpfs(home, 260), "--pg-version 18", true);
}

#[test]
fn unlogged_and_whole_on_the_oldest_version() {
    fills(|home| Mount::ext4(home, 280), "--pg-version 13 --unlogged", true);
}

#[test]
fn logged_rows_alone_by_two_streams_on_the_oldest_version() {
    fills(|home| Mount::tmpfs(home, 260), "--pg-version 13 --data-only --streams 2", false);
}

#[test]
fn unlogged_rows_alone_by_two_streams() {
    fills(|home| Mount::ext4(home, 280), "--pg-version 18 --unlogged --data-only --streams 2", false);
}

/// Reading, vacuum and checkpoints at the brim: none of them crashes the server, whatever WAL hint bits cost. With
/// so much of the table in shared_buffers checkpoints are slower than WAL grows.
fn stays_readable(volume: fn(&Path) -> Mount, buffers: &str, server: &str, fill: &str) {
    let server =
        format!("--set shared_buffers={buffers} --set max_wal_size=64MB --set min_wal_size=32MB {server}");
    let Some(rig) = Rig::on_disk(volume) else { return };
    let document = rig.document(&format!("fill --brim --data-only {fill} {server}"));
    assert_eq!(stopped(&document)["name"], "brim-reached");
    let server = rig.server(&server);
    let rows = observed(&document, "rows");
    for reading in ["", "VACUUM", "CHECKPOINT", "VACUUM (FREEZE, ANALYZE)"] {
        if !reading.is_empty() {
            server.execute(reading);
        }
        assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts").unsigned_abs(), rows, "{reading}");
    }
    drop(server);
    rig.done("server stop");
    let gaps = document["notes"].to_string().contains("are missing: their chunk did not fit");
    assert_eq!(rows, assert_sound_but_for(&rig, gaps));
}

#[test]
fn logged_rows_can_be_read_with_checksums() {
    stays_readable(|home| Mount::ext4(home, 868), "400MB", "--pg-version 18 --profile stock", "");
}

#[test]
fn logged_rows_of_hash_partitions_can_be_read_where_hints_are_logged_on_the_oldest_version() {
    let server = "--pg-version 13 --profile stock --set wal_log_hints=on";
    stays_readable(|home| Mount::ext4(home, 500), "200MB", server, "--partitions 3 --streams 2");
}

#[test]
fn logged_rows_can_be_read_where_hints_are_not_logged() {
    let server = "--pg-version 13 --profile stock --set wal_log_hints=off";
    stays_readable(|home| Mount::ext4(home, 868), "400MB", server, "");
}

#[test]
fn unlogged_rows_can_be_read_with_checksums() {
    stays_readable(|home| Mount::ext4(home, 500), "200MB", "--pg-version 18 --profile stock", "--unlogged");
}

#[test]
fn partitions_by_hash_end_at_the_same_id() {
    let Some(rig) = Rig::on_disk(|home| Mount::ext4(home, 280)) else { return };
    for (limit, streams) in [("--brim", 1), ("--brim", 3), ("--for 300ms", 2)] {
        let fill =
            format!("fill {limit} --drop --data-only --unlogged --partitions 3 --streams {streams} {SMALL}");
        let document = rig.document(&fill);
        // Its ids are 1 to n.
        assert_eq!(observed(&document, "rows"), assert_sound(&rig), "{fill}");
    }
}

#[test]
fn marks_that_later_steps_cross_are_announced_once() {
    let Some(rig) = Rig::on_small_disk(1000) else { return };
    let table = format!("--drop --rows 2000000 --unlogged --set min_wal_size=64MB {SMALL}");
    rig.done(&format!("fill --data-only --chunk 16MB {table}"));
    let loaded = rig.disk.as_ref().unwrap().free();
    // Keys take 45 MB.
    let between = loaded - 25_000_000;
    let document = rig.document(&format!("fill --mark {between}B {table}"));
    let marks = events(&document).iter().filter(|what| what["event"] == "mark-crossed").count();
    assert_eq!(marks, 1, "{:#?}", events(&document));
}

#[test]
fn other_limits() {
    let Some(rig) = Rig::on_small_disk(350) else { return };
    let free = || rig.disk.as_ref().unwrap().free();
    for flag in ["--brim --reserve", "--until-free"] {
        let document = rig.document(&format!("fill {flag} 150MB --drop {SMALL} --unlogged"));
        let reason = stopped(&document);
        assert_eq!((&reason["because"], &reason["kept"]), (&"as asked".into(), &150_000_000.into()));
        assert!((150_000_000..150_000_000 + 2 * CHUNK).contains(&free()), "{flag}: {} free", free());
        assert_eq!(observed(&document, "rows"), assert_sound(&rig));
    }
    let ran = rig.done("fill --until-free 1MB --drop --data-only --unlogged");
    assert!(ran.stdout.contains("must stay free (for 4 WAL segments"), "the server needs more: {ran:#?}");
    assert!(free() >= NEED);

    let document = rig.document("fill --for 100ms --drop --unlogged");
    assert_eq!(stopped(&document)["name"], "duration");
    assert_eq!(observed(&document, "rows"), assert_sound(&rig));
    let full = rig.run("fill --brim --reserve 1GB --drop --no-resume --schema other");
    assert_eq!(full.code, Some(2), "{full:#?}");
    assert!(full.stderr.contains("no room for the first chunk"), "{full:#?}");
}

#[test]
fn tables_on_a_volume_of_their_own() {
    let Some(small) = Elsewhere::tmpfs(150) else { return };
    let rig = Rig::new();
    let server = rig.server(SMALL);
    let place = small.directory(&rig, "tablespace");
    server.execute(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    // The keys go where the server's tablespaces are by default.
    let document = rig.document("fill --brim --tablespace small");
    assert_eq!(stopped(&document)["kept"], 0, "neither WAL nor checkpoints are there");
    assert!(small.disk.free() < 2 * CHUNK, "{} are free", small.disk.free());
    assert!(observed(&document, "index") > 10_000_000);
    let rows = observed(&document, "rows");

    small.disk.grow(250);
    let more = rig.document("fill --append --brim");
    assert_eq!(stopped(&more)["volume"], "heap", "that of the tables that are there");
    assert!(small.disk.free() < 2 * CHUNK, "{} are free", small.disk.free());
    rig.done("server stop");
    assert_eq!(rows + observed(&more, "rows"), assert_sound(&rig));
}

#[test]
fn wal_on_a_volume_of_its_own() {
    let Some(small) = Elsewhere::tmpfs(200) else { return };
    let Some(rig) = Rig::on_small_disk(300) else { return };
    rig.done(&format!("server start {SMALL}"));
    rig.done("server stop");
    small.take_wal(&rig);
    let document = rig.document(&format!("fill --brim {SMALL} --set wal_level=replica"));
    assert_eq!(stopped(&document)["because"], "for checkpoints");
    let free = rig.disk.as_ref().unwrap().free();
    assert!((16_000_000..16_000_000 + 3 * CHUNK).contains(&free), "{free} are free");
    assert!(observed(&document, "wal") > 200 << 20, "more than would fit");
    assert_eq!(observed(&document, "rows"), assert_sound(&rig));

    let refused = rig.run("fill --brim --drop --set max_wal_size=1GB");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("the WAL's volume has "), "{refused:#?}");
}

/// Somebody who takes all that is left while the server holds still in the middle of a chunk.
fn take_all(rig: &Rig, command: &str) -> Ran {
    let pgrig = rig.spawn(command);
    let url = rig.url();
    let copying = "SELECT pid FROM pg_stat_progress_copy \
                    WHERE tuples_processed > 20000 AND EXISTS (SELECT FROM pgrig_chunks_pgbench_accounts)";
    let backend = until("a chunk is there, and rows of another", || {
        rig.block_on(async {
            let client = crate::support::connect(&url).await.ok()?;
            let row = client.query_opt(copying, &[]).await.ok()??;
            Some(Pid::from_raw(row.get(0)))
        })
    });
    kill(backend, Signal::SIGSTOP).unwrap();
    fill_up(&hog(rig));
    kill(backend, Signal::SIGCONT).unwrap();
    pgrig.end()
}

fn hog(rig: &Rig) -> std::path::PathBuf {
    rig.home.path().join("hog")
}

#[test]
fn a_disk_that_somebody_else_fills_ends_it_well() {
    for wal_apart in [false, true] {
        let Some(small) = Elsewhere::tmpfs(200) else { return };
        let Some(rig) = Rig::on_small_disk(300) else { return };
        // Logged tables need WAL, which is only safe elsewhere.
        let tables = if wal_apart { "--logged" } else { "--unlogged" };
        rig.done(&format!("server start {SMALL}"));
        rig.done("server stop");
        if wal_apart {
            small.take_wal(&rig);
        }
        let fill = format!("fill --brim --data-only --streams 1 --chunk 25MB {tables} {SMALL}");
        let ran = take_all(&rig, &fill);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.stdout.contains("the server reports disk full (53100)"), "{ran:#?}");
        assert!(ran.stderr.contains("rolled-back transactions left"), "{ran:#?}");
        let rows = assert_sound(&rig);
        assert!(
            ran.stdout.contains(&format!("{} accounts", measure::human::grouped(rows))),
            "{rows}: {ran:#?}"
        );
    }
}

#[test]
fn a_disk_that_somebody_else_fills_fails_what_has_to_fit() {
    let Some(rig) = Rig::on_small_disk(300) else { return };
    let fill = format!("fill 120MB --streams 1 --chunk 30MB --unlogged --data-only {SMALL}");
    let ran = take_all(&rig, &fill);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for said in
        ["disk full (53100)", "--wait-for-space", "--brim", "To complete the fill, repeat the command"]
    {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
    std::fs::remove_file(hog(&rig)).unwrap();
    let document = rig.document(&fill);
    assert!(observed(&document, "heap").abs_diff(120_000_000) < 1_200_000);
    assert_sound(&rig);
}

#[test]
fn keys_that_find_no_room_say_what_is_there() {
    let Some(rig) = Rig::on_small_disk(260) else { return };
    let server = rig.server(SMALL);
    server.execute(
        "CREATE FUNCTION full_disk() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF current_query() LIKE '%ADD PRIMARY KEY%' THEN \
             RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100'; END IF; END $$; \
         CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION full_disk()",
    );
    let ran = rig.run("fill --brim --unlogged");
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for said in ["primary-keys failed", "Free some space", "State: public.pgbench_accounts has"] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
    // There is no room for rows any more, or hardly any, but keys are owed.
    server.execute("DROP EVENT TRIGGER full_disk");
    let document = rig.document("fill --brim --unlogged");
    assert!(observed(&document, "rows") < 300_000);
    rig.done("server stop");
    assert_sound(&rig);
    assert_eq!(keys(&rig), 3);
}

/// A fill that waits for space; what it tells goes to the file.
fn waiting(rig: &Rig, command: &str) -> (Running, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let pgrig = rig.spawn_telling(command, file.path());
    until_told(&file, "waiting up to 600 s", 1);
    (pgrig, file)
}

fn until_told(file: &tempfile::NamedTempFile, text: &str, times: usize) {
    until(text, || {
        let told = std::fs::read_to_string(file.path()).unwrap();
        (told.matches(text).count() >= times).then_some(())
    });
}

#[test]
fn a_volume_that_grows_is_waited_for_and_an_interrupt_ends_the_wait() {
    let Some(rig) = Rig::on_small_disk(250) else { return };
    let disk = rig.disk.as_ref().unwrap();
    let fill = format!("fill --brim --unlogged {SMALL}");
    let (pgrig, told) = waiting(&rig, &format!("{fill} --wait-for-space --mark 50%,80%"));
    disk.grow(350);
    until_told(&told, "space is free again", 1);
    until_told(&told, "waiting up to 600 s", 2);
    pgrig.signal(Signal::SIGINT);
    let interrupted = pgrig.end();
    assert_eq!(interrupted.code, Some(130), "{interrupted:#?}");

    let runs = std::fs::read_dir(rig.home.path().join("runs")).unwrap();
    let path = runs.map(|entry| entry.unwrap().path()).max().unwrap();
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(document["status"], "interrupted");
    let waits = ["waiting-for-space", "volume-grew", "space-came-back"];
    let names: Vec<&str> = events(&document).iter().map(|what| what["event"].as_str().unwrap()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| waits.contains(name)).collect();
    assert_eq!(names, [waits[0], waits[1], waits[2], waits[0]]);
    assert!(event(&document, "space-came-back")["gained"].as_u64().unwrap() > 50_000_000);

    disk.grow(400);
    let document = rig.document(&fill);
    let there: u64 = observed(&document, "rows");
    let rows = assert_sound(&rig);
    assert!(there > 0 && there < rows, "it went on: {there} of {rows}");
    assert_eq!(keys(&rig), 3);
}

#[test]
fn what_was_killed_goes_on_and_more_is_added_on_a_larger_volume() {
    for version in [13, 18] {
        let Some(rig) = Rig::on_small_disk(300) else { return };
        let disk = rig.disk.as_ref().unwrap();
        let fill = format!("fill --brim --streams 2 --pg-version {version} {SMALL}");
        let (pgrig, url) = (rig.spawn(&fill), rig.url());
        killed_while_held(pgrig, &rig, &url, "pgrig_chunks_pgbench_accounts", Victim::Pgrig, 1);
        let document = rig.document(&fill);
        assert_eq!(stopped(&document)["name"], "brim-reached");
        assert!(disk.free() < NEED + 4 * CHUNK, "{} are free", disk.free());
        let rows = assert_sound(&rig);
        assert_eq!(keys(&rig), 3);

        disk.grow(380);
        let document = rig.document(&format!("fill --append --brim --pg-version {version} {SMALL}"));
        let more = observed(&document, "rows");
        assert!(disk.free() < NEED + 2 * CHUNK, "{} are free", disk.free());
        assert!(more > 100_000);
        assert_eq!(rows + more, assert_sound(&rig));
    }
}
