//! pgrig's records of an instance, `instance.json`, and of its running server, `server.json`.

use crate::error::OnPath;
use crate::files::{replace, sync};
use crate::{Error, Lifetime, Profile, Result, Version};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The configuration that an instance runs with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) version: Version,
    pub(crate) binaries: Source,
    pub(crate) profile: Profile,
    /// The user's settings, in order.
    pub(crate) set: Vec<(String, String)>,
    pub(crate) tcp: bool,
    /// Port of the last detached server; with TCP it is used again if it is free. 0 means any port.
    pub(crate) port: u16,
}

/// Source of the binaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The pinned ones of this major version.
    Fetched(u16),
    /// Binaries that are installed in this directory.
    Installed(PathBuf),
}

/// The format of `instance.json` that this pgrig writes.
const FORMAT_VERSION: u32 = 1;

/// The part of each of pgrig's own files that no later version changes.
#[derive(Deserialize)]
struct Format {
    format_version: u32,
}

/// `instance.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceRecord {
    format_version: u32,
    pub(crate) config: Config,
}

/// `server.json`: describes the server that was started last. postmaster.pid tells whether it still
/// runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerRecord {
    pub(crate) lifetime: Lifetime,
    /// The pgrig process that started it.
    pub(crate) starter: u32,
    /// None until the server process is started: the record then counts for whatever server runs.
    pub(crate) pid: Option<u32>,
    pub(crate) config: Config,
    /// Settings in pgrig.conf.
    pub(crate) settings: Vec<(String, String)>,
}

impl Config {
    /// The default configuration of an instance.
    pub(crate) fn default_for(version: Version) -> Self {
        Self {
            binaries: Source::Fetched(version.major()),
            version,
            profile: Profile::default(),
            set: Vec::new(),
            tcp: false,
            port: 0,
        }
    }
}

impl InstanceRecord {
    fn path(dir: &Path) -> PathBuf {
        dir.join("instance.json")
    }

    pub(crate) fn exists(dir: &Path) -> bool {
        Self::path(dir).exists()
    }

    pub(crate) fn read(dir: &Path) -> Result<Option<Self>> {
        let path = Self::path(dir);
        refuse_newer(&path, FORMAT_VERSION)?;
        read(&path)
    }

    /// Writes the record durably.
    pub(crate) fn write(dir: &Path, config: &Config) -> Result<()> {
        let record = Self { format_version: FORMAT_VERSION, config: config.clone() };
        if Self::read(dir).ok().flatten().as_ref() == Some(&record) {
            return Ok(());
        }
        let path = Self::path(dir);
        write(&path, &record)?;
        sync(&path)
    }
}

impl ServerRecord {
    /// Reads the record; none if it is damaged. A server without a record counts as started by
    /// hand.
    pub(crate) fn read(dir: &Path) -> Option<Self> {
        read(&dir.join("server.json")).ok().flatten()
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        write(&dir.join("server.json"), self)
    }

    pub(crate) fn remove(dir: &Path) {
        // If it stays, it matches no running process.
        let _ = fs::remove_file(dir.join("server.json"));
    }
}

/// Refuses a file of a later pgrig, whose other fields may mean something else. A file that does not exist is of no pgrig.
pub(crate) fn refuse_newer(path: &Path, known: u32) -> Result<()> {
    let found = read::<Format>(path)?.map_or(known, |format| format.format_version);
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.on("read", path)?,
    };
    let parsed = serde_json::from_slice(&text)
        .map_err(|error| Error::Record { path: path.to_owned(), problem: error.to_string() });
    parsed.map(Some)
}

fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::Record { path: path.to_owned(), problem: error.to_string() })?;
    text.push(b'\n');
    replace(path, &text, 0o644, None)
}
