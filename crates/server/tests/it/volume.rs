//! Volumes: real small file systems, and those of a real server.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use server::volume::{Volume, Volumes};
use testkit::{Mount, Need, Server, block_on as run, require, spec, told};

const MB: u64 = 1_000_000;

/// Size, used, free and percent as df has them.
fn df(path: &Path) -> (u64, u64, u64, f64) {
    let output = told("df", &["-B1", "--output=size,used,avail,pcent", path.to_str().unwrap()]);
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
    Mount::on_each(64, |mount| {
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
    Mount::on_each(16, |mount| {
        let inside = Volume::of(mount.path()).unwrap();
        let outside = Volume::of(mount.path().parent().unwrap()).unwrap();
        fs::create_dir(mount.path().join("below")).unwrap();
        assert!(inside.is_same_as(&Volume::of(&mount.path().join("below")).unwrap()));
        assert!(!inside.is_same_as(&outside));
    });
}

/// A directory that the server may have for a tablespace.
fn own_directory(server: &Server, parent: &Path) -> PathBuf {
    let directory = parent.join("tablespace");
    fs::create_dir(&directory).unwrap();
    let owner = fs::metadata(server.data_dir()).unwrap().uid();
    std::os::unix::fs::chown(&directory, Some(owner), None).unwrap();
    directory
}

#[test]
fn the_servers_volumes_and_tablespaces_are_found() {
    if !require(Need::Mounts) {
        return;
    }
    let server = Server::start(spec(18, &[]));
    let data = server.data_dir();
    run(async {
        let client = &server.connect("postgres").await.client;
        let volumes = Volumes::of(client, &data, None, None).await.unwrap().unwrap();
        let wal = volumes.wal.unwrap();
        assert!(wal.is_same_as(&volumes.data) && volumes.heap.is_same_as(&volumes.data));
        assert!(wal.directory().ends_with("pg_wal") && volumes.heap.directory().ends_with("base"));

        let directory = tempfile::tempdir().unwrap();
        let mount = Mount::tmpfs(directory.path(), 32);
        let elsewhere = own_directory(&server, mount.path());
        let create = format!("CREATE TABLESPACE \"else where\" LOCATION '{}'", elsewhere.display());
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
