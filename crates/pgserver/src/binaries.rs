//! A PostgreSQL installation: fetched by pgrig or found on the machine.

use crate::account::Account;
use crate::diagnose::noexec_mount;
use crate::files::canonical;
use crate::{Error, Major, Result, Version};
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs of one PostgreSQL installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    version: Version,
}

impl Binaries {
    /// An installation whose `postgres` and `initdb` are in `dir` or in `dir/bin`. Runs
    /// `postgres --version`.
    ///
    /// # Errors
    /// If either program is missing, does not run, or is older than 13.
    pub fn installed(dir: &Path) -> Result<Self> {
        let bin = dir.join("bin");
        let dir = if bin.join("postgres").is_file() { canonical(&bin) } else { canonical(dir) };
        let unfit = |problem: String| Error::NotAnInstallation { path: dir.clone(), problem };
        if !dir.is_dir() {
            return Err(unfit("there is no such directory".to_owned()));
        }
        for program in ["postgres", "initdb"] {
            if !dir.join(program).is_file() {
                return Err(unfit(format!("it has no {program}")));
            }
        }
        let version = ask_version(&dir.join("postgres")).map_err(&unfit)?;
        if version.major() < Major::OLDEST.number() {
            return Err(unfit(format!("version {version} is too old")));
        }
        Ok(Self { dir, version })
    }

    /// Binaries that pgrig unpacked itself. No program is run to find their version.
    pub(crate) fn fetched(dir: &Path, version: Version) -> Self {
        Self { dir: dir.join("bin"), version }
    }

    /// The installations found on this machine, newest first: through PATH (`pg_config --bindir`,
    /// `postgres`) and in the places that distributions use.
    pub fn system() -> Vec<Self> {
        let mut dirs = on_path();
        for (parent, prefix, suffix) in [
            ("/usr/lib/postgresql", "", "bin"),
            ("/usr", "pgsql-", "bin"),
            ("/usr/local", "pgsql", "bin"),
            ("/opt/homebrew/opt", "postgresql@", "bin"),
        ] {
            let named = |entry: &fs::DirEntry| {
                let name = entry.file_name();
                name.to_str().is_some_and(|name| name.starts_with(prefix))
            };
            let entries = fs::read_dir(parent).into_iter().flatten().flatten();
            dirs.extend(entries.filter(named).map(|e| e.path().join(suffix)));
        }
        let mut found: Vec<Self> = dirs.iter().filter_map(|dir| Self::installed(dir).ok()).collect();
        found.sort_by(|a, b| (b.version.key(), &a.dir).cmp(&(a.version.key(), &b.dir)));
        found.dedup();
        found
    }

    /// The directory with the programs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Version of the programs.
    pub fn version(&self) -> &Version {
        &self.version
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Checks that the server's account can run them. pgrig does not change permissions outside of
    /// its home.
    pub(crate) fn check_reachable(&self, account: &Account) -> Result<()> {
        match account.barrier(&self.program("postgres")) {
            None => Ok(()),
            Some(path) => Err(Error::AccountCannot {
                account: account.name().to_owned(),
                access: "execute",
                path,
                remedy: "use binaries that it can execute (--pg-bin DIR), or give it access".to_owned(),
            }),
        }
    }
}

fn ask_version(postgres: &Path) -> Result<Version, String> {
    let output =
        Command::new(postgres).arg("--version").env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(
            |error| match noexec_mount(postgres) {
                Some(mount) if error.kind() == ErrorKind::PermissionDenied => {
                    format!("the file system {} is mounted noexec", mount.display())
                }
                _ => format!("postgres does not run: {error}"),
            },
        )?;
    let text = String::from_utf8_lossy(&output.stdout);
    Version::from_output(&text).ok_or_else(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr.lines().next().unwrap_or(&text);
        format!("postgres --version says {said:?}")
    })
}

fn on_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = env::split_paths(&path)
        .filter_map(|dir| dir.join("postgres").canonicalize().ok())
        .filter_map(|postgres| postgres.parent().map(Path::to_owned))
        .collect();
    let asked = Command::new("pg_config").arg("--bindir").output();
    if let Ok(output) = asked {
        let dir = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !dir.is_empty() {
            dirs.push(PathBuf::from(dir));
        }
    }
    dirs
}
