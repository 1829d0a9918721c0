//! Where things are, and where they cannot be: no network, closed directories, full disks.

use crate::support::{Rig, small, sql, stock};
use pgserver::{Binaries, Home, Instance, InstanceState, Spec};
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::{Mount, Need, require};

#[test]
fn without_a_network_an_installed_postgresql_is_offered() {
    let mut rig = Rig::new();
    rig.cache = rig.dir.path().join("nothing-here");
    let mut other = rig.process_with("owned", &Spec::default(), &[("PGRIG_FETCH", "never")]);
    let message = other.error();
    assert!(message.contains("PostgreSQL 18.6 is not installed, and PGRIG_FETCH=never"), "{message}");
    match Binaries::system().first() {
        Some(found) => {
            let offer = format!("--pg-bin {}", found.dir().display());
            assert!(message.contains(&offer), "{message}");
        }
        None => assert!(message.contains("--pg-bin DIR"), "{message}"),
    }
    assert!(!rig.cache.exists());
}

#[test]
fn what_a_killed_unpacking_left_does_not_count() {
    let rig = Rig::new();
    let own = rig.home.server_root().join("postgresql");
    fs::create_dir_all(own.join(".unpacking-dead/postgresql/bin")).unwrap();
    testkit::open_to_all(rig.home.server_root());
    testkit::open_to_all(&own);
    let home = Home::at(rig.home.root()).unwrap();
    let instance = Instance::open(&home, stock()).unwrap();
    instance.attach_or_start(&|_| ()).unwrap().stop().unwrap();
    assert!(!own.join(".unpacking-dead").exists());
}

#[test]
fn a_closed_home_is_opened_and_nothing_above_it() {
    if !require(Need::Root) {
        return;
    }
    let mode = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    // As `mktemp -d` makes it.
    let closed = || {
        let only_ours = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let mut builder = tempfile::Builder::new();
        builder.permissions(only_ours).tempdir().unwrap()
    };
    let dir = closed();
    let start = |home: &Home| {
        let home = home.clone().with_postgresql_cache(&testkit::cache());
        let instance = Instance::open(&home, stock()).unwrap();
        let running = instance.attach_or_start(&|_| ()).unwrap();
        sql(running.connection(), "SELECT 1");
        running.data_dir()
    };
    let home = Home::at(dir.path()).unwrap();
    assert_eq!(home.relocated(), None);
    assert!(start(&home).starts_with(dir.path()));
    assert_eq!(mode(dir.path()), 0o711);

    // Now it is the parent that is closed, and not ours.
    let dir = closed();
    let home = Home::at(&dir.path().join("home")).unwrap();
    let elsewhere = home.relocated().unwrap().to_owned();
    let data = start(&home);
    assert!(data.starts_with(&elsewhere), "{data:?}");
    assert_eq!(mode(dir.path()), 0o700);
    // The same place each time.
    let again = Home::at(&dir.path().join("home")).unwrap();
    assert_eq!(again.relocated(), Some(&*elsewhere));
    fs::remove_dir_all(elsewhere).unwrap();
}

#[test]
fn a_full_disk_explains_itself() {
    if !require(Need::Mounts) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    testkit::open_to_all(dir.path());
    let disk = Mount::tmpfs_with(dir.path(), 100, "mode=711,exec");
    let home = Home::at(&disk.path().join("home")).unwrap();
    let home = home.with_postgresql_cache(&testkit::cache());
    let spec = Spec { set: small(), ..Spec::default() };
    let instance = Instance::open(&home, spec).unwrap();
    let start = || instance.attach_or_start(&|_| ());
    let explained = |message: &str| {
        assert!(message.contains("No space left"), "{message}");
        assert!(message.contains("free some space"), "{message}");
    };
    // Too small for initdb.
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![0; 80 << 20]).unwrap();
    explained(&start().unwrap_err().to_string());
    assert_eq!(instance.status().unwrap().state, InstanceState::NotCreated);
    fs::remove_file(&filler).unwrap();
    start().unwrap().stop().unwrap();
    // To the brim, then with ever more room: whatever fails first is explained.
    let failed = [0, 4, 8, 16, 32, 64].into_iter().filter(|kilobytes| {
        let mut full = fs::File::create(&filler).unwrap();
        let _ = std::io::copy(&mut std::io::repeat(0), &mut full);
        let length = full.metadata().unwrap().len();
        full.set_len(length - (kilobytes << 10)).unwrap();
        let failed = start().err();
        if let Some(error) = &failed {
            explained(&error.to_string());
        }
        failed.is_some()
    });
    assert!(failed.count() > 0);
    fs::remove_file(&filler).unwrap();
    start().unwrap().stop().unwrap();
}

#[test]
fn a_file_system_that_runs_no_programs_is_named() {
    if !require(Need::Mounts) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    testkit::open_to_all(dir.path());
    let disk = Mount::tmpfs_with(dir.path(), 300, "mode=711,noexec");
    // The first process fetches them.
    Rig::new().start(stock()).stop().unwrap();
    let version = "18.6.0";
    let home = Home::at(&disk.path().join("home")).unwrap();
    let cache = home.postgresql_dir();
    fs::create_dir_all(&cache).unwrap();
    testkit::open_to_all(home.root());
    testkit::open_to_all(&cache);
    let copied = Command::new("cp").arg("-r").arg(testkit::cache().join(version)).arg(&cache).status();
    assert!(copied.unwrap().success());
    let remedies = |message: &str| {
        let cause = format!("the file system {} is mounted noexec", disk.path().display());
        assert!(message.contains(&cause), "{message}");
    };
    let instance = Instance::open(&home, stock()).unwrap();
    let message = instance.attach_or_start(&|_| ()).unwrap_err().to_string();
    remedies(&message);
    assert!(message.contains("PGRIG_HOME") && message.contains("remount"), "{message}");
    let spec = Spec { pg_bin: Some(cache.join(version)), ..Spec::default() };
    remedies(&Instance::open(&home, spec).unwrap_err().to_string());
}
