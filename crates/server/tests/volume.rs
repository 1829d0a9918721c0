//! Volumes and limits on real small file systems, and beside real servers.
//!
//! Only root can mount; who cannot is told what was passed over.

#![allow(clippy::print_stderr, reason = "says what is skipped")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use connect::{Connection, Target};
use fill::limits::{
    Admission, ChunkSpace, Event, Governor, Limits, LimitsError, Mark, Owed, Percent, Sight, SpaceLimit,
    SpaceRule, StopReason, WalFacts, WalUse, What,
};
use pgserver::{Home, Instance, Major, Profile, Running, Spec};
use server::volume::{Volume, Volumes};

const MB: u64 = 1_000_000;

/// Nothing here takes this long unless it never ends.
const DEADLINE: Duration = Duration::from_mins(2);

/// Runs a test's async part.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// A file system of its own, unmounted in the end.
struct Mount {
    place: tempfile::TempDir,
    image: Option<PathBuf>,
}

impl Mount {
    fn tmpfs(megabytes: u64) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted = does("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", text(place.path())]);
        mounted.then_some(Self { place, image: None })
    }

    /// In a file; with blocks that are reserved for root, as is usual.
    fn ext4(megabytes: u64) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().with_extension("ext4");
        fs::File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        let made = does("mkfs.ext4", &["-q", "-m", "5", text(&image)])
            && does("mount", &["-o", "loop", text(&image), text(place.path())]);
        let mount = Self { place, image: Some(image) };
        if made {
            return Some(mount);
        }
        None
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn grow(&self, megabytes: u64) {
        let Some(image) = &self.image else {
            let size = format!("remount,size={megabytes}m");
            assert!(does("mount", &["-o", &size, text(self.path())]));
            return;
        };
        fs::File::options().write(true).open(image).unwrap().set_len(megabytes << 20).unwrap();
        let device = told("findmnt", &["-n", "-o", "SOURCE", text(self.path())]);
        assert!(does("losetup", &["-c", device.trim()]));
        if does("resize2fs", &[device.trim()]) {
            return;
        }
        // Some sandboxes do not let a mounted one be resized (CAP_SYS_RESOURCE).
        assert!(does("umount", &[text(self.path())]));
        assert!(does("e2fsck", &["-f", "-p", text(image)]));
        assert!(does("resize2fs", &[text(image)]));
        assert!(does("mount", &["-o", "loop", text(image), text(self.path())]));
    }

    fn take(&self, name: &str, bytes: u64) {
        fs::write(self.path().join(name), vec![1; usize::try_from(bytes).unwrap()]).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        does("umount", &[text(self.path())]);
        if let Some(image) = &self.image {
            let _ = fs::remove_file(image);
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn does(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn told(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// `body` on each kind of file system that can be had here.
fn on_each(megabytes: u64, body: impl Fn(&Mount)) {
    for (kind, mount) in [("tmpfs", Mount::tmpfs(megabytes)), ("ext4", Mount::ext4(megabytes))] {
        match mount {
            Some(mount) => body(&mount),
            None => eprintln!("skipped on {kind}: it cannot be mounted here"),
        }
    }
}

/// Size, used, free and percent as df has them.
fn df(path: &Path) -> (u64, u64, u64, f64) {
    let output = told("df", &["-B1", "--output=size,used,avail,pcent", text(path)]);
    let fields: Vec<&str> = output.lines().nth(1).unwrap().split_whitespace().collect();
    let number = |field: usize| fields[field].parse().unwrap();
    (number(0), number(1), number(2), fields[3].trim_end_matches('%').parse().unwrap())
}

fn agrees_with_df(volume: &Volume) {
    let space = volume.space().unwrap();
    let (size, used, free, percent) = df(volume.directory());
    assert_eq!((space.size, space.used, space.free), (size, used, free));
    assert!((space.used_percent().ceil() - percent).abs() < 0.5, "{} {percent}", space.used_percent());
}

#[test]
fn sizes_are_those_of_df_and_follow_the_volume() {
    on_each(64, |mount| {
        let below = mount.path().join("below");
        fs::create_dir(&below).unwrap();
        let volume = Volume::of(&below).unwrap();
        assert_eq!(Path::new(volume.mount()), mount.path().canonicalize().unwrap());
        assert!(["tmpfs", "ext4"].contains(&volume.file_system()), "{}", volume.file_system());
        agrees_with_df(&volume);
        let before = volume.space().unwrap();
        mount.take("some", 20 * MB);
        agrees_with_df(&volume);
        let after = volume.space().unwrap();
        assert!(before.free - after.free >= 20 * MB, "at once, written to disk or not: {before:?} {after:?}");
        mount.grow(128);
        agrees_with_df(&volume);
        assert!(volume.space().unwrap().size > before.size * 3 / 2);
    });
}

#[test]
fn one_file_system_is_one_volume() {
    on_each(16, |mount| {
        let inside = Volume::of(mount.path()).unwrap();
        let outside = Volume::of(mount.path().parent().unwrap()).unwrap();
        fs::create_dir(mount.path().join("below")).unwrap();
        assert!(inside.is_same_as(&Volume::of(&mount.path().join("below")).unwrap()));
        assert!(!inside.is_same_as(&outside));
    });
}

/// As a server would see it whose tables are on this mount and all else is not.
fn sight(mount: &Mount) -> Sight {
    let heap = Volume::of(mount.path()).unwrap();
    let data = Volume::of(mount.path().parent().unwrap()).unwrap();
    let volumes = Volumes { wal: None, temporary: None, data, index: heap.clone(), heap };
    let rule = SpaceRule::new(&volumes, &WalFacts::default(), WalUse::Little);
    Sight::new(&volumes, rule)
}

#[test]
fn streams_fill_to_the_brim_together_and_go_on_when_the_volume_grows() {
    on_each(64, |mount| {
        let chunk = ChunkSpace { heap: 3 * MB, ..ChunkSpace::default() };
        let reserve = 5 * MB;
        let limits = Limits {
            space: SpaceLimit::Brim { reserve },
            marks: [50, 80].into_iter().filter_map(Percent::new).map(Mark::Used).collect(),
            wait_for_space: Some(DEADLINE),
            ..Limits::default()
        };
        let events = Mutex::new(Vec::new());
        let waiting = tokio::sync::Notify::new();
        let tell = |event: &Event| {
            if matches!(event.what, What::WaitingForSpace { .. }) {
                waiting.notify_one();
            }
            events.lock().unwrap().push(event.clone());
        };
        let volume = Volume::of(mount.path()).unwrap();
        let governor = Governor::new(limits, Some(sight(mount)), Owed::default(), &tell).unwrap();
        governor.begin().unwrap();
        let stream = async |name: &str| {
            for number in 0.. {
                let admission = governor.before_chunk(chunk).await.unwrap();
                let Admission::Go(ticket) = admission else { panic!("{admission:?}") };
                // The file system's own blocks are not the chunk's.
                mount.take(&format!("{name}{number}"), chunk.heap - 64_000);
                // Others come in between.
                tokio::task::yield_now().await;
                assert!(volume.space().unwrap().free >= reserve);
                governor.chunk_done(ticket);
            }
        };
        let growing = async {
            waiting.notified().await;
            let free = volume.space().unwrap().free;
            assert!((reserve..reserve + chunk.heap).contains(&free), "{free} are free");
            mount.grow(96);
            waiting.notified().await;
        };
        run(async {
            tokio::time::timeout(DEADLINE, async {
                tokio::select! {
                    _ = futures_util::future::join3(stream("a"), stream("b"), stream("c")) => unreachable!(),
                    () = growing => (),
                }
            })
            .await
            .unwrap();
        });
        let names: Vec<String> = governor
            .events()
            .iter()
            .map(|event| serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned())
            .collect();
        let grown = [
            ["waiting-for-space", "volume-grew", "space-came-back", "waiting-for-space"].as_slice(),
            // The new size brought the volume below 80 %, which is told once only.
            &["mark-crossed", "mark-crossed"],
        ];
        for expected in grown {
            let found: Vec<&String> = names.iter().filter(|name| expected.contains(&name.as_str())).collect();
            assert_eq!(found, expected, "{names:?}");
        }
        assert_eq!(*events.lock().unwrap(), governor.events());
    });
}

#[test]
fn what_needs_sight_is_refused_without() {
    let limits = |space, marks| Limits { space, marks, ..Limits::default() };
    let mark = vec![Mark::Free(MB)];
    for (limits, flag) in [
        (limits(SpaceLimit::UntilFree(MB), vec![]), "--until-free"),
        (limits(SpaceLimit::Brim { reserve: MB }, vec![]), "--reserve"),
        (limits(SpaceLimit::MustFit, mark), "--mark"),
    ] {
        let refused = Governor::new(limits, None, Owed::default(), &|_| ()).err().unwrap();
        assert!(refused.is_usage() && refused.to_string().contains(flag), "{refused}");
    }
    let brim = limits(SpaceLimit::Brim { reserve: 0 }, vec![]);
    assert!(brim.warning(None).is_some_and(|text| text.contains("PANIC")));
    assert_eq!(Limits::default().warning(None), None);
    Governor::new(brim, None, Owed::default(), &|_| ()).unwrap();
}

#[test]
fn a_volume_that_is_full_already_is_refused_and_none_is_left_to_the_clock() {
    on_each(16, |mount| {
        let chunk = ChunkSpace { heap: 100 * MB, ..ChunkSpace::default() };
        let governor = Governor::new(Limits::default(), Some(sight(mount)), Owed::default(), &|_| ());
        let refused = governor.unwrap().refuse_full(chunk, 0).unwrap_err();
        assert!(matches!(refused, LimitsError::NoRoom { needed, .. } if needed == chunk.heap), "{refused}");
        let over = Limits { duration: Some(Duration::ZERO), ..Limits::default() };
        let chunk = ChunkSpace { heap: MB, ..ChunkSpace::default() };
        let governor = Governor::new(over, Some(sight(mount)), Owed::default(), &|_| ()).unwrap();
        let admission = run(governor.before_chunk(chunk)).unwrap();
        assert_eq!(admission, Admission::Stop(StopReason::Duration { seconds: 0.0 }));
    });
}

/// A server of this release.
struct Server {
    running: Running,
}

impl Server {
    fn start(home: &Path, release: u16, set: &[(&str, &str)]) -> Self {
        let cache = Home::locate().unwrap().postgresql_dir();
        let pgrig_home = Home::at(home).unwrap().with_postgresql_cache(&cache);
        let set = set.iter().chain(&[("shared_buffers", "16MB")]);
        let spec = Spec {
            version: Major::from_number(release),
            profile: Some(Profile::Stock),
            set: set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Spec::default()
        };
        let running = Instance::open(&pgrig_home, spec).unwrap().attach_or_start(&|_| ()).unwrap();
        Self { running }
    }

    async fn connect(&self) -> Connection {
        let at = self.running.connection();
        let target = Target::embedded(&at.socket_dir, at.port, at.user, at.database);
        target.connect().await.unwrap()
    }

    /// A directory that the server may have for a tablespace.
    fn own_directory(&self, parent: &Path) -> PathBuf {
        let directory = parent.join("tablespace");
        fs::create_dir(&directory).unwrap();
        let owner = fs::metadata(self.running.data_dir()).unwrap().uid();
        std::os::unix::fs::chown(&directory, Some(owner), None).unwrap();
        directory
    }
}

#[test]
fn the_servers_volumes_and_tablespaces_are_found() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), 18, &[]);
    let data = server.running.data_dir();
    run(async {
        let client = &server.connect().await.client;
        let volumes = Volumes::of(client, &data, None, None).await.unwrap().unwrap();
        let wal = volumes.wal.unwrap();
        assert!(wal.is_same_as(&volumes.data) && volumes.heap.is_same_as(&volumes.data));
        assert!(wal.directory().ends_with("pg_wal") && volumes.heap.directory().ends_with("base"));

        let Some(mount) = Mount::tmpfs(32) else {
            eprintln!("tablespaces skipped: nothing can be mounted here");
            return;
        };
        let elsewhere = server.own_directory(mount.path());
        let create = format!("CREATE TABLESPACE \"else where\" LOCATION '{}'", text(&elsewhere));
        client.batch_execute(&create).await.unwrap();
        let named = Volumes::of(client, &data, Some("else where"), None).await.unwrap().unwrap();
        assert!(named.heap.is_same_as(&Volume::of(mount.path()).unwrap()));
        assert!(!named.heap.is_same_as(&named.data) && named.temporary.unwrap().is_same_as(&named.data));

        let session =
            "SET default_tablespace = 'else where'; SET temp_tablespaces = \"else where\", pg_default";
        client.batch_execute(session).await.unwrap();
        let by_default = Volumes::of(client, &data, None, None).await.unwrap().unwrap();
        assert!(by_default.heap.is_same_as(&named.heap));
        assert!(by_default.temporary.unwrap().is_same_as(&named.heap));
        client.batch_execute("DROP TABLESPACE \"else where\"").await.unwrap();
    });
}

#[test]
fn what_holds_wal_back_is_seen() {
    for release in [13, 18] {
        let home = tempfile::tempdir().unwrap();
        let failing = [("archive_mode", "on"), ("archive_command", "false")];
        let server = Server::start(home.path(), release, &failing);
        run(async {
            let client = &server.connect().await.client;
            let facts = WalFacts::ask(client).await.unwrap();
            let stock = WalFacts { segment_size: 16 << 20, max_wal_size: 1 << 30, ..WalFacts::default() };
            assert_eq!(facts, stock);
            let volumes = Volumes::of(client, &server.running.data_dir(), None, None).await.unwrap().unwrap();
            let kept = |facts: &WalFacts, wal| {
                let mut sight = Sight::new(&volumes, SpaceRule::new(&volumes, facts, wal));
                (sight.kept(&Limits::default()).unwrap(), Limits::default().warning(Some(&sight)))
            };
            let (few, _) = kept(&facts, WalUse::Little);
            let (logged, warning) = kept(&facts, WalUse::Full);
            assert!((1_200 * MB..1_500 * MB).contains(&logged.bytes), "{logged:?}");
            assert_eq!(warning, None);

            let hold = "SELECT pg_create_physical_replication_slot('gone', true), pg_switch_wal()";
            client.batch_execute(&format!("{hold}; SELECT pg_switch_wal()")).await.unwrap();
            let started = std::time::Instant::now();
            let facts = loop {
                let facts = WalFacts::ask(client).await.unwrap();
                if facts.archiving_fails {
                    break facts;
                }
                assert!(started.elapsed() < DEADLINE, "waited in vain for archiving to fail");
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            assert_eq!(facts.idle_slots, ["gone"]);
            let (stays, warning) = kept(&facts, WalUse::Full);
            assert_eq!(stays.bytes, few.bytes);
            assert!(warning.is_some_and(|text| text.contains("archiving fails")));
        });
    }
}

/// Two streams, each chunk a transaction, data and WAL on the volume that fills up.
#[test]
fn a_server_that_was_filled_to_the_brim_goes_on() {
    let rows = 61_000;
    let chunk = ChunkSpace { heap: rows / 61 * 8192, wal: rows * 160, ..ChunkSpace::default() };
    for (release, table, wal) in [
        (13, "CREATE UNLOGGED TABLE t (id bigint, filler char(84))", WalUse::Little),
        (18, "CREATE TABLE t (id bigint, filler char(84))", WalUse::Full),
    ] {
        let Some(mount) = Mount::tmpfs(350) else {
            eprintln!("skipped: nothing can be mounted here");
            return;
        };
        fs::set_permissions(mount.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let small = [("max_wal_size", "64MB"), ("min_wal_size", "32MB"), ("autovacuum", "off")];
        let server = Server::start(mount.path(), release, &small);
        run(async {
            let streams = [server.connect().await, server.connect().await];
            let client = &streams[0].client;
            client.batch_execute(table).await.unwrap();
            let volumes = Volumes::of(client, &server.running.data_dir(), None, None).await.unwrap().unwrap();
            assert!(volumes.heap.is_same_as(&Volume::of(mount.path()).unwrap()));
            let facts = WalFacts::ask(client).await.unwrap();
            let sight = Sight::new(&volumes, SpaceRule::new(&volumes, &facts, wal));
            let limits = Limits { space: SpaceLimit::Brim { reserve: 0 }, ..Limits::default() };
            let governor = Governor::new(limits, Some(sight), Owed::default(), &|_| ()).unwrap();
            let load = format!("INSERT INTO t SELECT id, '' FROM generate_series(1, {rows}) AS g (id)");
            let fill = async |stream: &Connection| {
                let mut chunks = 0;
                loop {
                    match governor.before_chunk(chunk).await.unwrap() {
                        Admission::Go(ticket) => {
                            stream.client.batch_execute(&load).await.unwrap();
                            governor.chunk_done(ticket);
                            chunks += 1;
                        }
                        Admission::Stop(StopReason::BrimReached { .. }) => return chunks,
                        Admission::Stop(other) => panic!("{other}"),
                    }
                }
            };
            let (one, other) = tokio::join!(fill(&streams[0]), fill(&streams[1]));
            let free = volumes.heap.space().unwrap().free;
            assert!(free > 64 << 20, "{free} are free");
            for what in ["CHECKPOINT", "VACUUM t", "CHECKPOINT"] {
                client.batch_execute(what).await.unwrap();
            }
            let count: i64 = client.query_one_scalar("SELECT count(*) FROM t", &[]).await.unwrap();
            assert!(one + other > 1, "{one} and {other} chunks, {free} are free");
            assert_eq!(u64::try_from(count).unwrap(), (one + other) * rows);
        });
    }
}
