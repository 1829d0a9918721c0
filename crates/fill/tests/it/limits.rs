//! Limits on real small file systems, and beside real servers.

use failure::Classified;
use std::sync::Mutex;
use std::time::Duration;

use connect::Connection;
use fill::limits::{
    Admission, AdmissionControl, ChunkSpace, Event, EventKind, Limits, LimitsError, Mark, Owed, Percent,
    SpaceLimit, SpaceRule, StopReason, VolumeMonitor, WalFacts, WalUse,
};
use pgserver::{Major, Profile, Spec};
use server::volume::{Volume, Volumes};
use testkit::{DEADLINE, Mount, Need, Server, block_on as run, require, until_some_async};

const MB: u64 = 1_000_000;

/// As a server would see it whose tables are on this mount and all else is not.
fn volume_monitor(mount: &Mount) -> VolumeMonitor {
    let heap = Volume::of(mount.path()).unwrap();
    let data = Volume::of(mount.path().parent().unwrap()).unwrap();
    let volumes = Volumes { wal: None, temporary: None, data, index: heap.clone(), heap };
    let rule = SpaceRule::new(&volumes, &WalFacts::default(), WalUse::Little);
    VolumeMonitor::new(&volumes, rule)
}

#[test]
fn streams_fill_to_the_brim_together_and_go_on_when_the_volume_grows() {
    Mount::on_each(64, |mount| {
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
            if matches!(event.what, EventKind::WaitingForSpace { .. }) {
                waiting.notify_one();
            }
            events.lock().unwrap().push(event.clone());
        };
        let volume = Volume::of(mount.path()).unwrap();
        let control =
            AdmissionControl::new(limits, Some(volume_monitor(mount)), Owed::default(), &tell).unwrap();
        control.begin().unwrap();
        let stream = async |name: &str| {
            for number in 0.. {
                let admission = control.before_chunk(chunk).await.unwrap();
                let Admission::Go(ticket) = admission else { panic!("{admission:?}") };
                // The file system's own blocks are not the chunk's.
                mount.take(&format!("{name}{number}"), chunk.heap - 64_000);
                // Others come in between.
                tokio::task::yield_now().await;
                assert!(volume.space().unwrap().free >= reserve);
                control.chunk_done(ticket);
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
        let names: Vec<String> = control
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
        assert_eq!(*events.lock().unwrap(), control.events());
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
        let refused = AdmissionControl::new(limits, None, Owed::default(), &|_| ()).err().unwrap();
        assert!(refused.is_usage() && refused.to_string().contains(flag), "{refused}");
    }
    let brim = limits(SpaceLimit::Brim { reserve: 0 }, vec![]);
    assert!(brim.warning(None).is_some_and(|text| text.contains("PANIC")));
    assert_eq!(Limits::default().warning(None), None);
    AdmissionControl::new(brim, None, Owed::default(), &|_| ()).unwrap();
}

#[test]
fn a_volume_that_is_full_already_is_refused_and_none_is_left_to_the_clock() {
    Mount::on_each(16, |mount| {
        let chunk = ChunkSpace { heap: 100 * MB, ..ChunkSpace::default() };
        let control =
            AdmissionControl::new(Limits::default(), Some(volume_monitor(mount)), Owed::default(), &|_| ());
        let refused = control.unwrap().refuse_full(chunk, 0).unwrap_err();
        assert!(matches!(refused, LimitsError::NoRoom { needed, .. } if needed == chunk.heap), "{refused}");
        let over = Limits { duration: Some(Duration::ZERO), ..Limits::default() };
        let chunk = ChunkSpace { heap: MB, ..ChunkSpace::default() };
        let control =
            AdmissionControl::new(over, Some(volume_monitor(mount)), Owed::default(), &|_| ()).unwrap();
        let admission = run(control.before_chunk(chunk)).unwrap();
        assert_eq!(admission, Admission::Stop(StopReason::Duration { seconds: 0.0 }));
    });
}

/// A server with PostgreSQL's own defaults but for these.
fn stock(release: u16, set: &[(&str, &str)]) -> Spec {
    let set = set.iter().chain(&[("shared_buffers", "16MB")]);
    Spec {
        version: Major::from_number(release),
        profile: Some(Profile::Stock),
        set: set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Spec::default()
    }
}

#[test]
fn what_holds_wal_back_is_seen() {
    for release in [13, 18] {
        let failing = [("archive_mode", "on"), ("archive_command", "false")];
        let server = Server::start(stock(release, &failing));
        run(async {
            let client = &server.connect("postgres").await.client;
            let facts = WalFacts::ask(client).await.unwrap();
            let stock = WalFacts { segment_size: 16 << 20, max_wal_size: 1 << 30, ..WalFacts::default() };
            assert_eq!(facts, stock);
            let volumes = Volumes::of(client, &server.data_dir(), None, None).await.unwrap().unwrap();
            let kept = |facts: &WalFacts, wal| {
                let mut volume_monitor = VolumeMonitor::new(&volumes, SpaceRule::new(&volumes, facts, wal));
                (
                    volume_monitor.kept(&Limits::default()).unwrap(),
                    Limits::default().warning(Some(&volume_monitor)),
                )
            };
            let (few, _) = kept(&facts, WalUse::Little);
            let (logged, warning) = kept(&facts, WalUse::Full);
            assert!((1_200 * MB..1_500 * MB).contains(&logged.bytes), "{logged:?}");
            assert_eq!(warning, None);

            let hold = "SELECT pg_create_physical_replication_slot('gone', true), pg_switch_wal()";
            client.batch_execute(&format!("{hold}; SELECT pg_switch_wal()")).await.unwrap();
            let facts = until_some_async("archiving fails", async || {
                Some(WalFacts::ask(client).await.unwrap()).filter(|facts| facts.archiving_fails)
            })
            .await;
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
    if !require(Need::Mounts) {
        return;
    }
    let rows = 61_000;
    let chunk = ChunkSpace { heap: rows / 61 * 8192, wal: rows * 160, ..ChunkSpace::default() };
    for (release, table, wal) in [
        (13, "CREATE UNLOGGED TABLE t (id bigint, filler char(84))", WalUse::Little),
        (18, "CREATE TABLE t (id bigint, filler char(84))", WalUse::Full),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mount = Mount::tmpfs(directory.path(), 350);
        let small = [("max_wal_size", "64MB"), ("min_wal_size", "32MB"), ("autovacuum", "off")];
        let server = Server::start_in(mount.path(), stock(release, &small));
        run(async {
            let streams = [server.connect("postgres").await, server.connect("postgres").await];
            let client = &streams[0].client;
            client.batch_execute(table).await.unwrap();
            let volumes = Volumes::of(client, &server.data_dir(), None, None).await.unwrap().unwrap();
            assert!(volumes.heap.is_same_as(&Volume::of(mount.path()).unwrap()));
            let facts = WalFacts::ask(client).await.unwrap();
            let volume_monitor = VolumeMonitor::new(&volumes, SpaceRule::new(&volumes, &facts, wal));
            let limits = Limits { space: SpaceLimit::Brim { reserve: 0 }, ..Limits::default() };
            let control =
                AdmissionControl::new(limits, Some(volume_monitor), Owed::default(), &|_| ()).unwrap();
            let load = format!("INSERT INTO t SELECT id, '' FROM generate_series(1, {rows}) AS g (id)");
            let fill = async |stream: &Connection| {
                let mut chunks = 0;
                loop {
                    match control.before_chunk(chunk).await.unwrap() {
                        Admission::Go(ticket) => {
                            stream.client.batch_execute(&load).await.unwrap();
                            control.chunk_done(ticket);
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
