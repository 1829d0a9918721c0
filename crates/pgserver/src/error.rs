use crate::Major;
use failure::{Class, Classified};
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error, its object, and the remedy. `Display` is meant for the user as it is; it never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a major version that can be fetched.
    #[error(
        "there is no PostgreSQL {0:?} to download: give --pg-version 13 to 18, or --pg-bin DIR with an installed PostgreSQL 13 or later"
    )]
    UnknownMajor(String),
    /// The instance's name is malformed.
    #[error("{0:?} is not an instance name; give 1 to 32 of a-z, 0-9, _ and -")]
    InvalidName(String),
    /// A setting's name or value is malformed, or the server does not know the name.
    #[error("setting {name:?}: {problem}; give --set name=value, with a name as in pg_settings")]
    InvalidSetting {
        /// The name from the options.
        name: String,
        /// Why the setting is not possible.
        problem: String,
    },
    /// A setting that pgrig itself must control.
    #[error("pgrig itself sets {name}, and --set cannot change it; {remedy}")]
    ReservedSetting {
        /// The name from the options.
        name: String,
        /// The alternative to the setting.
        remedy: &'static str,
    },
    /// No such profile.
    #[error("{0:?} is not a profile; give stock, bulk or dangerous")]
    UnknownProfile(String),
    /// The home directory cannot be determined or used.
    #[error("{0}; set PGRIG_HOME to an absolute path that you can write to")]
    Home(String),
    /// No account for the server to run under.
    #[error(
        "PostgreSQL refuses to run as root, and this machine has neither an account \"postgres\" nor an account \"nobody\": create one (useradd --system postgres)"
    )]
    NoAccount,
    /// The account of the server cannot get at something that pgrig does not own.
    #[error("account {account}, under which the server runs, cannot {access} {path}; {remedy}")]
    AccountCannot {
        /// The account's name.
        account: String,
        /// `execute`, `enter` …
        access: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// The remedy, as an imperative.
        remedy: String,
    },
    /// The binaries could not be fetched.
    #[error("pgrig cannot download PostgreSQL {}: {cause}; {}", release(version), fetch_remedy(system.as_ref()))]
    Fetch {
        /// For instance `18.6.0`.
        version: String,
        /// Why the download failed.
        cause: String,
        /// A system installation to use instead: its bin directory and version.
        system: Option<(PathBuf, String)>,
    },
    /// The binaries are not there, and downloading is off.
    #[error(
        "PostgreSQL {} is not installed, and PGRIG_FETCH=never forbids downloading it: unset PGRIG_FETCH, or bring the \
         archive from another machine (pgrig server fetch --from FILE){}",
        release(version),
        system.as_ref().map_or_else(String::new, |(bin, version)| format!(
            ", or use the installed PostgreSQL {version}: --pg-bin {}",
            crate::files::shell_quoted(bin)
        ))
    )]
    FetchOff {
        /// For instance `18.6.0`.
        version: String,
        /// A system installation to use instead, where a command can: its bin directory and version.
        system: Option<(PathBuf, String)>,
    },
    /// Programs of the archives cannot run on this machine.
    #[error(
        "the PostgreSQL that pgrig downloads needs glibc or musl, and this machine has no loader for its programs ({loader}): \
         install PostgreSQL, and give its directory to commands that start a server: --pg-bin DIR"
    )]
    NoLibc {
        /// The loader that is missing.
        loader: PathBuf,
    },
    /// There is no archive of this version for this machine.
    #[error(
        "there is no archive of PostgreSQL {version} for {machine}: give another --pg-version, or install PostgreSQL, \
         and give its directory to commands that start a server: --pg-bin DIR"
    )]
    NoArchive {
        /// For instance `18.6.0`.
        version: String,
        /// For instance `musl on aarch64`.
        machine: String,
    },
    /// A value of PGRIG_FETCH that means nothing.
    #[error("PGRIG_FETCH is {0:?}: set it to never, to forbid downloads, or unset it")]
    FetchValue(String),
    /// A file is not an archive of PostgreSQL that this pgrig can install.
    #[error("cannot install PostgreSQL from {path}: {problem}; give a file like {}", crate::archive::file_name(Major::NEWEST.pinned()))]
    NotAnArchive {
        /// Path of the file.
        path: PathBuf,
        /// Why it cannot be installed.
        problem: String,
    },
    /// Other homes may use the downloaded versions, too.
    #[error(
        "other PGRIG_HOME directories may use {path} (PGRIG_POSTGRESQL_CACHE), too: delete versions there by hand"
    )]
    SharedCache {
        /// The directory of the versions.
        path: PathBuf,
    },
    /// Another process downloads a version.
    #[error("{holder} is downloading PostgreSQL: try again when it is done")]
    Downloading {
        /// The process that downloads, in words.
        holder: String,
    },
    /// A directory given or found is no PostgreSQL installation.
    #[error(
        "--pg-bin {path}: {problem}; give the directory of postgres and initdb, version {} or later",
        Major::OLDEST
    )]
    NotAnInstallation {
        /// The directory of --pg-bin.
        path: PathBuf,
        /// File or directory that is missing.
        problem: String,
    },
    /// Asked for one version, given binaries of another.
    #[error(
        "--pg-version is {asked}, but {path} holds PostgreSQL {found}; leave out --pg-version or --pg-bin"
    )]
    VersionConflict {
        /// The major version asked for.
        asked: u16,
        /// The version found.
        found: String,
        /// Directory of the installation.
        path: PathBuf,
    },
    /// The instance's data was made by another major version.
    #[error(
        "instance {instance} was made by PostgreSQL {found} and cannot be opened by {asked}; {}, use another instance (--instance OTHER), or delete this one with its data (pgrig server destroy --instance {instance})",
        if *.by_programs { "leave out --pg-bin".to_owned() } else { format!("use --pg-version {found}") }
    )]
    WrongVersion {
        /// Name of the instance.
        instance: String,
        /// Major version of the data directory.
        found: u16,
        /// Major version asked for.
        asked: u16,
        /// Whether --pg-bin names programs of that version.
        by_programs: bool,
    },
    /// Another live pgrig process owns the instance.
    #[error("{}", in_use(instance, *pid, *is_keeper, start))]
    InUse {
        /// Name of the instance.
        instance: String,
        /// The process that holds it.
        pid: u32,
        /// Whether that process is the keeper of `pgrig testdb` in the background.
        is_keeper: bool,
        /// The command that starts the server so that several commands can use it.
        start: String,
    },
    /// Another process has held the lock for longer than any start takes, and has not written its
    /// name into the lock file.
    #[error("{holder} holds the lock {path} and does not release it: end that process")]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process, in words.
        holder: String,
    },
    /// A running server has other properties than asked for.
    #[error(
        "instance {instance} {difference}; stop it first (pgrig server stop --instance \
         {instance}), or {}. So that several commands can use it, start it again with {start}",
        if *.is_given { "leave out the option" } else { "use another instance (--instance OTHER)" }
    )]
    RunsDifferently {
        /// Name of the instance.
        instance: String,
        /// The property that differs, as a predicate of the instance.
        difference: String,
        /// Whether an option of the user's asked for it.
        is_given: bool,
        /// The command that starts it with the properties that are asked for.
        start: String,
    },
    /// Other commands use the running server, so it cannot be restarted.
    #[error(
        "other commands use instance {instance}, so pgrig does not restart it: run pgrig server stop --instance \
         {instance} first"
    )]
    Shared {
        /// Name of the instance.
        instance: String,
    },
    /// A server that pgrig did not start runs on the data directory.
    #[error(
        "process {pid} is a server that pgrig did not start, on the data directory of instance {instance}: stop it \
         first (pgrig server stop --instance {instance})"
    )]
    Foreign {
        /// Name of the instance.
        instance: String,
        /// Process ID of the postmaster.
        pid: u32,
    },
    /// The operation needs a running server.
    #[error("instance {instance} is not running: run pgrig server start --instance {instance}")]
    NotRunning {
        /// Name of the instance.
        instance: String,
    },
    /// The instance does not exist.
    #[error("instance {instance} does not exist; pgrig server status lists the instances")]
    NotCreated {
        /// Name of the instance.
        instance: String,
    },
    /// The instance was used before, and its data directory is not there.
    #[error(
        "instance {instance} has no data directory any more: {data} (PostgreSQL {version}) is missing. Put the directory \
         back, for example mount its volume; or delete the instance: run pgrig server destroy --instance {instance}"
    )]
    NoData {
        /// Name of the instance.
        instance: String,
        /// The version that the data directory had.
        version: String,
        /// Path of the data directory.
        data: PathBuf,
    },
    /// The program initdb failed.
    #[error("initdb for instance {instance} failed: {cause}; {remedy}")]
    Initdb {
        /// Name of the instance.
        instance: String,
        /// Its own words.
        cause: String,
        /// The remedy, as an imperative.
        remedy: String,
    },
    /// The server did not come up.
    #[error("instance {instance} did not start: {cause}; {remedy} (log: {log})")]
    Start {
        /// Name of the instance.
        instance: String,
        /// The error from the log, in one line.
        cause: String,
        /// The remedy, as an imperative.
        remedy: String,
        /// The whole log.
        log: PathBuf,
        /// Whether a setting that the user gave is the cause.
        by_request: bool,
    },
    /// A setting that the user gave is wrong; no instance was created with it.
    #[error("--set: {cause}; correct that setting. No instance was created")]
    Settings {
        /// The error from the log, in one line.
        cause: String,
    },
    /// The server ended by itself.
    #[error("the server of instance {instance} ended by itself ({how}): {cause}; {remedy} (log: {log})")]
    Died {
        /// Name of the instance.
        instance: String,
        /// Exit status or signal.
        how: String,
        /// Last lines of the log.
        cause: String,
        /// The remedy, for the server's instance.
        remedy: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The server does not stop.
    #[error("the server of instance {instance} (process {pid}) does not stop: run kill -QUIT {pid}")]
    Stop {
        /// Name of the instance.
        instance: String,
        /// Process ID of the postmaster.
        pid: u32,
    },
    /// The socket directory in /tmp is somebody else's.
    #[error(
        "{path} is not a private directory of the server's account ({problem}); remove it, or set PGRIG_HOME to a shorter \
         path (pgrig uses /tmp for sockets only if that path is too long)"
    )]
    SocketDirectory {
        /// Path of the directory.
        path: PathBuf,
        /// The property that makes it unsafe.
        problem: String,
    },
    /// A file of pgrig's own is damaged.
    #[error("cannot read {path}: {problem}; correct it or delete it")]
    Record {
        /// Path of the file.
        path: PathBuf,
        /// The parser's message.
        problem: String,
    },
    /// A later pgrig wrote a file of pgrig's own.
    #[error(
        "a newer pgrig wrote {path} (format {found}; this pgrig knows {known}): use that pgrig, or set PGRIG_HOME to another \
         directory"
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Version of its format.
        found: u32,
        /// The newest format that this pgrig knows.
        known: u32,
    },
    /// A program lies on a file system that is mounted noexec.
    #[error(
        "cannot run {program}: the file system {mount} is mounted noexec; remount it (mount -o remount,exec {mount}), set PGRIG_HOME to a directory on another file system, or use an installed PostgreSQL (--pg-bin DIR)"
    )]
    NoExec {
        /// Path of the program.
        program: PathBuf,
        /// Mount point of the file system.
        mount: PathBuf,
    },
    /// The system refused to run a program.
    #[error("cannot run {program}: {source}{}", if source.kind() == io::ErrorKind::PermissionDenied { "; check \
                                                                                                       the file's \
                                                                                                       mode, \
                                                                                                       SELinux \
                                                                                                       and \
                                                                                                       AppArmor, \
                                                                                                       or use an \
                                                                                                       installed \
                                                                                                       PostgreSQL \
                                                                                                       (--pg-bin \
                                                                                                       DIR)" } else { "" })]
    Run {
        /// Path of the program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused an operation on a file or a process.
    #[error("cannot {action} {path}: {source}{}", io_remedy(action, source))]
    Io {
        /// A verb: `create`, `write` …
        action: &'static str,
        /// Path of the file, or the process.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Classified for Error {
    fn class(&self) -> Class {
        match self {
            Self::UnknownMajor(_)
            | Self::InvalidName(_)
            | Self::InvalidSetting { .. }
            | Self::ReservedSetting { .. }
            | Self::UnknownProfile(_)
            | Self::Home(_)
            | Self::FetchValue(_)
            | Self::Settings { .. }
            | Self::Start { by_request: true, .. }
            | Self::NotAnInstallation { .. }
            | Self::NotAnArchive { .. }
            | Self::VersionConflict { .. }
            | Self::WrongVersion { .. }
            | Self::InUse { .. }
            | Self::RunsDifferently { .. }
            | Self::Shared { .. }
            | Self::Foreign { .. }
            | Self::NotRunning { .. }
            | Self::SharedCache { .. }
            | Self::Newer { .. }
            | Self::NotCreated { .. } => Class::Request,
            Self::NoAccount
            | Self::AccountCannot { .. }
            | Self::Fetch { .. }
            | Self::FetchOff { .. }
            | Self::NoLibc { .. }
            | Self::NoArchive { .. }
            | Self::Locked { .. }
            | Self::Downloading { .. }
            | Self::NoData { .. }
            | Self::Initdb { .. }
            | Self::Start { by_request: false, .. }
            | Self::Died { .. }
            | Self::Stop { .. }
            | Self::SocketDirectory { .. }
            | Self::Record { .. }
            | Self::NoExec { .. }
            | Self::Run { .. }
            | Self::Io { .. } => Class::Machine,
        }
    }
}

impl Error {
    /// The same, for a command that installs a version and so cannot use an installed one.
    pub(crate) fn without_system(self) -> Self {
        match self {
            Self::FetchOff { version, .. } => Self::FetchOff { version, system: None },
            error => error,
        }
    }
}

/// Says which operation on which file failed.
pub(crate) trait OnPath<T> {
    /// `action` is a verb: "cannot {action} {path}: …".
    fn on(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T, E: Into<io::Error>> OnPath<T> for std::result::Result<T, E> {
    fn on(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source: source.into() })
    }
}

/// The version of PostgreSQL in an archive's version, whose third number counts archives: `18.6` of `18.6.0`.
fn release(version: &str) -> &str {
    version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at])
}

fn in_use(instance: &str, pid: u32, is_keeper: bool, start: &str) -> String {
    if !is_keeper {
        return format!(
            "pgrig process {pid} uses instance {instance}, and stops the instance when the process ends. Wait for that \
             process, or use another instance (--instance OTHER). To run several commands at the same time, run {start} \
             before the first of them"
        );
    }
    let named = if instance == "default" { String::new() } else { format!(" --instance {instance}") };
    format!(
        "the keeper of pgrig testdb (process {pid}) uses instance {instance}: run pgrig testdb drop --all{named}, which \
         drops all databases of pgrig testdb and ends the keeper; or wait: the keeper ends ten minutes after its last \
         request, if no database is lent. To use both, run pgrig server start{named} before pgrig testdb new"
    )
}

fn io_remedy(action: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if action == "create directory" => {
            "; set PGRIG_HOME to a path that you can write to"
        }
        io::ErrorKind::StorageFull => "; free some space on that disk, or set PGRIG_HOME to another one",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; set PGRIG_HOME to a path that you can write to"
        }
        _ => "",
    }
}

fn fetch_remedy(system: Option<&(PathBuf, String)>) -> String {
    let network = "check the network and the proxy (HTTPS_PROXY), bring the archive from another machine (pgrig server fetch --from FILE)";
    match system {
        Some((bin, version)) => format!(
            "{network}, or let commands that start a server use the installed PostgreSQL {version}: --pg-bin {}",
            crate::files::shell_quoted(bin)
        ),
        None => format!(
            "{network}, or install PostgreSQL, and give its directory to commands that start a server: --pg-bin DIR"
        ),
    }
}
