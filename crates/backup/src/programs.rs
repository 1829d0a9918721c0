//! The client programs: pg_dump, pg_restore, psql, pg_basebackup, pg_verifybackup.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pgserver::Major;
use serde::Serialize;

use crate::error::{BackupError, Instead};
use crate::way::Method;

/// Debian's script in PATH that chooses among the installed versions.
const WRAPPER: &str = "pg_wrapper";
/// Programs that every rehearsal needs.
const NEEDED: [&str; 3] = ["pg_dump", "pg_restore", "psql"];

/// Client programs of one version.
#[derive(Clone, Debug, Serialize)]
pub struct Programs {
    /// Their directory.
    pub dir: PathBuf,
    /// Their major version.
    pub major: u16,
    /// Their version as they print it.
    pub version: String,
    /// Methods of compression that they were built without.
    pub lacks: Vec<&'static str>,
}

/// The first version whose pg_dump compresses in other ways than gzip.
pub(crate) const ALL_METHODS: u16 = 16;
/// Methods without which programs may be built.
const OPTIONAL: [Method; 2] = [Method::Lz4, Method::Zstd];
/// A connection that fails at once.
const NOWHERE: &str = "host=/nonexistent connect_timeout=1";

impl Programs {
    /// Those of `bin`; else those of PATH, if they are not older than the server; else those of distributions' directories.
    ///
    /// # Errors
    /// If there are none of at least the server's major version.
    pub fn find(bin: Option<&Path>, server: u16) -> Result<Self, BackupError> {
        if let Some(dir) = bin {
            let dir = if dir.join("bin/pg_dump").is_file() { dir.join("bin") } else { dir.to_owned() };
            let found = Self::of(&dir).map_err(|problem| BackupError::Bin { path: dir, problem })?;
            return if found.major >= server { Ok(found) } else { Err(found.too_old(server)) };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_real = |dir: &PathBuf| {
            let found = dir.join("pg_dump").canonicalize();
            found.is_ok_and(|found| !found.ends_with(WRAPPER))
        };
        let first = std::env::split_paths(&path).find(is_real).and_then(|dir| Self::of(&dir).ok());
        if let Some(found) = first.as_ref().filter(|found| found.major >= server) {
            return Ok(found.clone());
        }
        let mut installed = installed();
        installed.sort_by_key(|found| found.major);
        match installed.iter().find(|found| found.major >= server) {
            Some(found) => Ok(found.clone()),
            None => match first.or(installed.pop()) {
                Some(old) => Err(old.too_old(server)),
                None => Err(BackupError::NoPrograms { server }),
            },
        }
    }

    fn of(dir: &Path) -> Result<Self, String> {
        for program in NEEDED {
            if !dir.join(program).is_file() {
                return Err(format!("it has no {program}"));
            }
        }
        let program = dir.join("pg_dump");
        let output = Command::new(&program).arg("--version").env("LC_ALL", "C").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("pg_dump does not run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let version = version.ok_or_else(|| format!("pg_dump --version says {:?}", text.trim()))?.to_owned();
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        let major = digits.parse().map_err(|_| format!("pg_dump has the version {version}"))?;
        let dir = dir.canonicalize().map_err(|error| error.to_string())?;
        let lacks = OPTIONAL.into_iter().filter(|method| major >= ALL_METHODS && lacks(&program, *method));
        let lacks = lacks.map(Method::name).collect();
        Ok(Self { dir, major, version, lacks })
    }

    fn too_old(&self, server: u16) -> BackupError {
        let instead = Major::from_number(self.major).map(|major| Instead::Instance(major.number()));
        BackupError::TooOld { path: self.dir.clone(), version: self.version.clone(), server, instead }
    }

    /// Path of a program in the directory; it need not exist (see [`Self::has`]).
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether they include this program.
    pub fn has(&self, name: &str) -> bool {
        self.program(name).is_file()
    }

    /// Their directory, if it also holds a server of this major version.
    pub(crate) fn server(&self, major: u16) -> Option<&Path> {
        (self.major == major && self.has("postgres") && self.has("initdb")).then_some(&*self.dir)
    }
}

/// Whether pg_dump was built without the method: it says so before it connects.
fn lacks(pg_dump: &Path, method: Method) -> bool {
    let mut command = Command::new(pg_dump);
    command
        .arg(format!("--compress={}", method.name()))
        .arg(format!("--dbname={NOWHERE}"))
        .arg("--file=/dev/null");
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    output
        .is_ok_and(|output| String::from_utf8_lossy(&output.stderr).contains("does not support compression"))
}

/// The programs in the directories of distributions.
fn installed() -> Vec<Programs> {
    let below = |parent: &str| {
        fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"))
    };
    let named = |dir: &PathBuf| {
        dir.parent()
            .and_then(Path::file_name)
            .is_some_and(|name| name.to_string_lossy().starts_with("pgsql-"))
    };
    let dirs = below("/usr/lib/postgresql").chain(below("/usr").filter(named));
    dirs.filter_map(|dir| Programs::of(&dir).ok()).collect()
}

/// Whether PATH has this program.
pub(crate) fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}
