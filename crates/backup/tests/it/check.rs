//! Whole backups, and things that are not backups.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use backup::check::{CheckError, Outcome, Request, Verdict, check, plan};
use testkit::{CLIENTS_RELEASE, Need, assert_says, block_on, clients, require, until, until_async};

use crate::support::made::{Made, files};
use crate::support::server;

pub(crate) fn checked(path: &Path) -> Result<Outcome, CheckError> {
    checked_with(path, None)
}

pub(crate) fn checked_with(path: &Path, wal: Option<&Path>) -> Result<Outcome, CheckError> {
    let request = Request { path: path.to_owned(), wal: wal.map(Path::to_owned) };
    check(&plan(&request)?, &AtomicU64::new(0))
}

#[test]
fn an_undamaged_backup_of_each_kind_is_whole_or_shows_no_damage() {
    if require(Need::Clients) {
        assert_undamaged(&Made::new());
    }
}

/// They compress dumps by lz4 and zstd, too.
#[test]
fn an_undamaged_backup_of_newer_programs_is_whole_or_shows_no_damage() {
    if require(Need::Clients17) {
        assert_undamaged(&Made::by(Some(&clients()), CLIENTS_RELEASE));
    }
}

fn assert_undamaged(made: &Made) {
    for (name, path, is_covered) in made.all() {
        let found = checked(&path).unwrap();
        let expected = if is_covered { Verdict::Whole } else { Verdict::NoDamageFound };
        assert_eq!(found.verdict(), expected, "{name}: {found:#?}");
        assert!(found.server.is_some(), "{name}: {found:#?}");
        if name.starts_with("base") || name == "one.tar" {
            assert!(found.wal >= 16 << 20, "{name}: {found:#?}");
            // Files with WAL are read twice.
            let size: u64 = if path.is_dir() {
                files(&path).iter().map(|(_, size)| size).sum()
            } else {
                path.metadata().unwrap().len()
            };
            assert_eq!(found.bytes, size, "{name}");
        } else {
            assert_eq!((found.tables, found.rows), (Some(5), Some(9001)), "{name}: {found:#?}");
        }
        if ["custom", "none", "tar", "directory", "plain", "cluster"]
            .iter()
            .any(|kind| name.starts_with(kind))
        {
            assert_eq!(found.large_objects, 5, "{name}");
        }
        if name == "base" {
            let verified = std::process::Command::new(made.programs.join("pg_verifybackup"))
                .args(["--no-parse-wal", "--quiet"])
                .arg(&path)
                .status();
            assert!(verified.unwrap().success());
        }
    }
}

/// pg_basebackup --pgdata=- writes it at the end of the tar file.
#[test]
fn a_manifest_within_the_tar_file_of_a_directory_is_used() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let directory = made.path("stored");
    fs::create_dir(&directory).unwrap();
    let tar = directory.join("base.tar");
    let mut command = made.command("pg_basebackup");
    command.args(["--pgdata=-", "--format=tar", "--wal-method=fetch", "--checkpoint=fast"]);
    assert!(command.stdout(File::create(&tar).unwrap()).status().unwrap().success());
    let found = checked(&directory).unwrap();
    assert_eq!(found.verdict(), Verdict::Whole, "{found:#?}");
    let whole = fs::read(&tar).unwrap();
    let mut flipped = whole.clone();
    let table = whole.len() / 4;
    flipped[table] ^= 1;
    fs::write(&tar, flipped).unwrap();
    assert_eq!(checked(&directory).unwrap().verdict(), Verdict::Damaged);
    fs::write(&tar, &whole[..table]).unwrap();
    let found = checked(&directory).unwrap();
    let cut: Vec<_> = found.damages.iter().filter(|damage| damage.to_string().contains("cut off")).collect();
    assert_eq!(cut.len(), 1, "{found:#?}");
}

#[test]
fn wal_that_is_kept_elsewhere_is_found_there() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    let archive = made.path("archive");
    fs::create_dir(&archive).unwrap();
    for entry in fs::read_dir(base.join("pg_wal")).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::rename(entry.path(), archive.join(entry.file_name())).unwrap();
    }
    let found = checked(&base).unwrap();
    assert_eq!(found.verdict(), Verdict::Damaged);
    assert_says(&found.damages[0].to_string(), &["pg_wal: segment 0000000100000000", "--wal-directory DIR"]);
    let found = checked_with(&base, Some(&archive)).unwrap();
    assert_eq!(found.verdict(), Verdict::Whole, "{found:#?}");
    // An archive_command may compress each segment.
    let packed = made.path("packed");
    fs::create_dir(&packed).unwrap();
    let says = |said: &[&str]| {
        let found = checked_with(&base, Some(&packed)).unwrap();
        assert_eq!(found.verdict(), Verdict::Damaged, "{found:#?}");
        assert_says(&found.damages[0].to_string(), said);
    };
    says(&["/packed does not have it either: name the directory that does"]);
    for (segment, _) in files(&archive) {
        let name = format!("{}.gz", segment.file_name().unwrap().to_str().unwrap());
        fs::write(packed.join(name), "").unwrap();
    }
    says(&["/packed has 0000000100000000", ".gz, which is compressed or encrypted: restore it"]);
    let dump = made.make("dump", "pg_dump --format=custom --file=FILE postgres");
    assert_says(
        &checked_with(&dump, Some(&archive)).unwrap_err().to_string(),
        &["leave out --wal-directory"],
    );

    // Without a manifest, or without checksums, it may still be restored. The label names the first segment.
    fs::remove_file(base.join("backup_manifest")).unwrap();
    assert_eq!(checked_with(&base, Some(&archive)).unwrap().verdict(), Verdict::NoDamageFound);
    let found = checked(&base).unwrap();
    assert_eq!(found.verdict(), Verdict::Damaged, "{found:#?}");
    assert_says(
        &found.damages[0].to_string(),
        &["pg_wal: segment 0000000100000000", "with which a restore begins"],
    );
    fs::write(base.join("backup_manifest.tmp"), "").unwrap();
    assert_eq!(checked(&base).unwrap().verdict(), Verdict::Damaged);
    fs::write(base.join("postmaster.pid"), "").unwrap();
    assert!(matches!(checked(&base), Err(CheckError::DataDirectory { .. })));
    let none = made.make("none", "pg_basebackup --pgdata=FILE --checkpoint=fast --manifest-checksums=NONE");
    let found = checked(&none).unwrap();
    assert_eq!(found.verdict(), Verdict::NoDamageFound);
    assert_says(&found.gaps[0].part, &["files without a checksum"]);
    // Changed by pg_basebackup --write-recovery-conf or ALTER SYSTEM: a restore uses it as it is.
    fs::write(none.join("postgresql.auto.conf"), "work_mem = 1MB").unwrap();
    assert_eq!(checked(&none).unwrap().verdict(), Verdict::NoDamageFound);
    fs::remove_file(none.join("postgresql.auto.conf")).unwrap();
    let found = checked(&none).unwrap();
    assert_says(&found.damages[0].to_string(), &["postgresql.auto.conf: it is missing"]);
    fs::write(none.join("postgresql.auto.conf"), "").unwrap();
    fs::remove_dir(none.join("pg_notify")).unwrap();
    assert_says(&checked(&none).unwrap().damages[0].to_string(), &["pg_notify: the directory is missing"]);
}

/// Each file has the checksum of the manifest: a file that ends with its own CRC32C has the same CRC32C in each version.
#[test]
fn files_that_belong_to_another_backup_or_directory_are_noticed() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let backup = "pg_basebackup --pgdata=FILE --checkpoint=fast";
    let earlier = made.make("earlier", backup);
    block_on(async {
        let connection = made.server.connect("postgres").await;
        connection.client.batch_execute("VACUUM FULL pg_class").await.unwrap();
        connection.close().await;
    });
    let later = made.make("later", backup);
    let says = |backup: &Path, file: &str, of: &Path, said: &str| {
        let own = fs::read(backup.join(file)).unwrap();
        assert_ne!(fs::copy(of, backup.join(file)).unwrap(), 0);
        let found = checked(backup).unwrap();
        assert_eq!(found.verdict(), Verdict::Damaged, "{file}: {found:#?}");
        assert_says(&found.damages[0].to_string(), &[file, said]);
        fs::write(backup.join(file), own).unwrap();
        assert_eq!(checked(backup).unwrap().verdict(), Verdict::Whole);
    };
    let control = "global/pg_control";
    says(&later, control, &earlier.join(control), "it belongs to an earlier backup");
    says(&earlier, control, &later.join(control), "it belongs to a later backup");
    let maps: Vec<String> = files(&later)
        .into_iter()
        .map(|(path, _)| path.strip_prefix(&later).unwrap().display().to_string())
        .filter(|path| path.starts_with("base/") && path.ends_with("pg_filenode.map"))
        .collect();
    let read = |backup: &Path, map: &String| fs::read(backup.join(map)).unwrap();
    let changed = maps.iter().find(|map| read(&earlier, map) != read(&later, map)).unwrap();
    says(&later, changed, &earlier.join(changed), "which is not in its directory");
    says(&later, changed, &later.join("global/pg_filenode.map"), "which is not in its directory");

    // WAL that is missing may replace the map.
    let wal = tempfile::tempdir().unwrap();
    for segment in fs::read_dir(later.join("pg_wal")).unwrap().map(|entry| entry.unwrap()) {
        if segment.file_type().unwrap().is_file() {
            fs::copy(segment.path(), wal.path().join(segment.file_name())).unwrap();
            fs::remove_file(segment.path()).unwrap();
        }
    }
    fs::copy(earlier.join(changed), later.join(changed)).unwrap();
    let found = checked(&later).unwrap();
    assert_eq!(found.verdict(), Verdict::Damaged, "{found:#?}");
    assert!(found.damages.iter().all(|damage| damage.to_string().contains("pg_wal")), "{found:#?}");
    assert!(found.gaps.iter().any(|gap| gap.part.contains(changed.as_str())), "{found:#?}");
    let found = checked_with(&later, Some(wal.path())).unwrap();
    assert_says(&found.damages[0].to_string(), &[changed, "which is not in its directory"]);
}

/// A server starts without it, and may lose changes.
#[test]
fn a_label_that_is_missing_is_noticed_without_a_manifest_if_the_server_was_running() {
    if !require(Need::Clients) {
        return;
    }
    let mut made = Made::new();
    let base = made.make("base", "pg_basebackup --pgdata=FILE --checkpoint=fast --no-manifest");
    fs::remove_file(base.join("backup_label")).unwrap();
    let found = checked(&base).unwrap();
    assert_eq!(found.damages.len(), 1, "{found:#?}");
    assert_says(
        &found.damages[0].to_string(),
        &["backup_label: it is missing", "copy it from the backup again"],
    );
    let data = made.server.data_dir();
    made.server.stop();
    let found = checked(&data).unwrap();
    assert_eq!(found.verdict(), Verdict::NoDamageFound, "{found:#?}");
}

/// From PostgreSQL 18 on, servers have checksums by default.
#[test]
fn pages_are_proved_by_their_checksums_without_a_manifest() {
    let mut server = server(18);
    server.sql("CREATE TABLE t AS SELECT i, md5(i::text) AS v FROM generate_series(1, 2000) i");
    let file: String = block_on(async {
        let connection = server.connect("postgres").await;
        let file = connection.client.query_one("SELECT pg_relation_filepath('t')", &[]).await.unwrap().get(0);
        connection.close().await;
        file
    });
    let data = server.data_dir();
    server.stop();
    let found = checked(&data).unwrap();
    assert_eq!(found.verdict(), Verdict::NoDamageFound, "{found:#?}");
    let mut bytes = fs::read(data.join(&file)).unwrap();
    bytes[2 * 8192 + 8000] ^= 1;
    fs::write(data.join(&file), bytes).unwrap();
    let found = checked(&data).unwrap();
    assert_eq!(found.damages.len(), 1, "{found:#?}");
    let said = format!("{file}, byte 16384: the checksum of the page that begins there is wrong");
    assert_eq!(found.damages[0].to_string(), said);
}

/// The server refuses them, too.
#[test]
fn files_with_a_sum_of_their_own_are_proved_without_a_manifest() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    for (name, option) in [("none", "--no-manifest"), ("sizes", "--manifest-checksums=NONE")] {
        let base = made.make(name, &format!("pg_basebackup --pgdata=FILE --checkpoint=fast {option}"));
        let found = checked(&base).unwrap();
        assert_eq!(found.verdict(), Verdict::NoDamageFound, "{found:#?}");
        // Nothing tells which segments of WAL a restore needs, so none is called another one.
        assert!(!found.gaps.iter().any(|gap| gap.part.contains("in pg_wal beside")), "{found:#?}");
        for (file, place) in [
            ("global/pg_control", 40),
            ("global/pg_filenode.map", 8),
            ("pg_logical/replorigin_checkpoint", 5),
        ] {
            let whole = fs::read(base.join(file)).unwrap();
            let mut flipped = whole.clone();
            flipped[place] ^= 1;
            fs::write(base.join(file), flipped).unwrap();
            let found = checked(&base).unwrap();
            assert_eq!(found.damages.len(), 1, "{found:#?}");
            assert_says(
                &found.damages[0].to_string(),
                &[file, "the checksum in it is not that of its bytes"],
            );
            fs::write(base.join(file), whole).unwrap();
        }
    }
}

/// A map that the WAL of the backup replaces need not fit the files.
#[test]
fn a_map_that_wal_replaces_is_no_damage() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let rewrite = |condition: &str| {
        block_on(async {
            let connection = made.server.connect("postgres").await;
            until_async(condition, async || {
                condition.is_empty() || connection.client.query_one(condition, &[]).await.unwrap().get(0)
            })
            .await;
            connection.client.batch_execute("VACUUM FULL pg_class").await.unwrap();
            connection.close().await;
        });
    };
    let earlier = made.make("earlier", "pg_basebackup --pgdata=FILE --checkpoint=fast");
    rewrite("");
    let later = made.path("later");
    let mut slow = made.command("pg_basebackup");
    slow.args(["--checkpoint=fast", "--max-rate=3M", "--pgdata"]).arg(&later);
    let mut slow = slow.spawn().unwrap();
    rewrite("SELECT count(*) > 0 FROM pg_stat_progress_basebackup WHERE phase = 'streaming database files'");
    assert!(slow.wait().unwrap().success());
    let whole = checked(&later).unwrap();
    assert_eq!(whole.damages.len(), 0, "{whole:#?}");
    let maps =
        files(&later).into_iter().map(|(path, _)| path).filter(|path| path.ends_with("pg_filenode.map"));
    for map in maps {
        fs::copy(earlier.join(map.strip_prefix(&later).unwrap()), &map).unwrap();
    }
    let found = checked(&later).unwrap();
    assert_eq!(found.verdict(), Verdict::NoDamageFound, "{found:#?}");
    assert_says(&found.gaps[0].part, &["pg_filenode.map", "unless the WAL of the backup replaces it"]);
}

/// The file of replication origins ends with its own CRC32C, too.
#[test]
fn origins_are_proved_by_another_checksum() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    block_on(async {
        let connection = made.server.connect("postgres").await;
        let sql = "SELECT pg_replication_origin_create('elsewhere'); \
                   SELECT pg_replication_origin_advance('elsewhere', '0/1000000'); CHECKPOINT";
        connection.client.batch_execute(sql).await.unwrap();
        connection.close().await;
    });
    let backup = |name: &str, options: &str| {
        checked(&made.make(name, &format!("pg_basebackup --pgdata=FILE --checkpoint=fast {options}")))
            .unwrap()
    };
    let open = backup("open", "");
    assert_eq!(open.verdict(), Verdict::NoDamageFound, "{open:#?}");
    assert_says(&open.gaps[0].part, &["pg_logical/replorigin_checkpoint"]);
    let proved = backup("proved", "--manifest-checksums=SHA256");
    assert_eq!(proved.verdict(), Verdict::Whole, "{proved:#?}");
}

/// They are not counted, so a dump with them must not look empty.
#[test]
fn a_dump_with_rows_as_insert_says_so() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    for format in ["plain", "custom", "tar"] {
        let path = made.make(format, &format!("pg_dump --inserts --format={format} --file=FILE postgres"));
        let found = checked(&path).unwrap();
        assert_eq!(found.verdict(), Verdict::NoDamageFound, "{format}: {found:#?}");
        assert_eq!((found.has_inserts, found.rows, found.large_objects), (true, Some(0), 5), "{format}");
    }
}

/// psql leaves out the statement after it, without an error.
#[test]
fn a_byte_that_is_not_text_in_a_comment_is_noticed() {
    if !require(Need::Clients) {
        return;
    }
    let made = Made::new();
    let dump = made.make("dump.sql", "pg_dump --file=FILE postgres");
    let mut text = fs::read(&dump).unwrap();
    let ends = b"--\n\nCREATE TABLE";
    let at = text.windows(ends.len()).position(|window| window == ends).unwrap();
    text[at + 2] = 0;
    fs::write(&dump, text).unwrap();
    let found = checked(&dump).unwrap();
    assert_eq!(found.verdict(), Verdict::Damaged, "{found:#?}");
    assert_says(&found.damages[0].to_string(), &["a comment has a byte that is not text"]);
}

#[test]
fn whatever_is_not_a_backup_is_refused_with_the_remedy() {
    let directory = testkit::directory();
    let path = |name: &str| directory.path().join(name);
    let says = |path: &Path, parts: &[&str]| assert_says(&checked(path).unwrap_err().to_string(), parts);

    says(&path("missing"), &["cannot read", "check the path"]);
    nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    says(&path("fifo"), &["is a FIFO", "pgrig backup check - <"]);
    says(Path::new("/dev/zero"), &["is a device"]);
    fs::create_dir(path("other")).unwrap();
    says(&path("other"), &["neither toc.dat", "backup_manifest"]);
    fs::create_dir(path("packed")).unwrap();
    for name in ["packed/backup_manifest", "packed/base.tar.xz"] {
        fs::write(path(name), "").unwrap();
    }
    says(&path("packed"), &["packed/base.tar.xz is compressed or encrypted", "for example with xz -d"]);
    symlink(path("loop"), path("loop")).unwrap();
    says(&path("loop"), &["cannot read", "symbolic links"]);
    fs::write(path("text.sql"), "CREATE TABLE t (i int);\n").unwrap();
    says(&path("text.sql"), &["is not a backup that pgrig knows", "xz -dc"]);
    fs::write(path("new.dump"), b"PGDMP\x01\x2a\x00\x04\x08\x01").unwrap();
    says(&path("new.dump"), &["format version 1.42", "update pgrig"]);
    let mut other = tar::Builder::new(File::create(path("other.tar")).unwrap());
    let mut header = tar::Header::new_ustar();
    header.set_size(4);
    other.append_data(&mut header, "a/file", &b"text"[..]).unwrap();
    other.finish().unwrap();
    says(&path("other.tar"), &["is a tar file, but not one of pg_dump"]);

    for (name, content) in [
        ("empty.dump", &b""[..]),
        ("cut.dump", b"PGD"),
        ("cut.sql.gz", b"\x1f\x8b\x08\x00"),
        ("wrong.gz", b"xx"),
    ] {
        fs::write(path(name), content).unwrap();
        assert_eq!(checked(&path(name)).unwrap().verdict(), Verdict::Damaged, "{name}");
    }
    // A table of contents whose lengths promise gigabytes takes no memory for them.
    let mut huge = b"PGDMP\x01\x0e\x00\x04\x08\x01".to_vec();
    huge.extend([0; 8 * 5]);
    huge.extend([0, 0xff, 0xff, 0xff, 0x3f]);
    fs::write(path("huge.dump"), huge).unwrap();
    assert_eq!(checked(&path("huge.dump")).unwrap().verdict(), Verdict::Damaged);
    // Links within a base backup do not lead out of it, apart from those to files.
    let base = path("links");
    fs::create_dir_all(base.join("pg_tblspc")).unwrap();
    fs::write(base.join("PG_VERSION"), "18\n").unwrap();
    symlink(&base, base.join("around")).unwrap();
    symlink(base.join("pg_tblspc/1"), base.join("pg_tblspc/1")).unwrap();
    symlink(path("text.sql"), base.join("server.crt")).unwrap();
    symlink(path("missing"), base.join("log")).unwrap();
    symlink(path("other"), base.join("pg_stat")).unwrap();
    let found = checked(&base).unwrap();
    let (damages, gaps) = (format!("{:?}", found.damages), format!("{:?}", found.gaps));
    assert_says(&damages, &["leads nowhere"]);
    assert_says(&gaps, &["around: pgrig does not follow this link", "log: pgrig does not follow this link"]);
    assert!(!damages.contains("server.crt") && !gaps.contains("server.crt"), "{found:#?}");
    let absent = ["around", "\"log\"", "\"pg_stat\""];
    assert!(
        absent.iter().all(|name| !damages.contains(name)) && damages.contains("\"pg_notify\""),
        "{found:#?}"
    );
}

#[test]
fn a_file_that_grows_meanwhile_has_no_verdict() {
    let directory = testkit::directory();
    let path = directory.path().join("growing.sql");
    let line = "-- a comment\n".repeat(1000);
    fs::write(&path, format!("--\n-- PostgreSQL database dump\n--\n{}", line.repeat(400))).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(&path).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                file.write_all(b"--\n").unwrap();
                std::thread::yield_now();
            }
        });
        until("a check sees the change", || matches!(checked(&path), Err(CheckError::Changed { .. })));
        is_over.store(true, Ordering::Relaxed);
    });
}
