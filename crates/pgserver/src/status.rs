//! The status of an instance, from outside. Serialised, it is the output of `--json`.

use crate::files::disk_usage;
use crate::pidfile::PidFile;
use crate::record::{InstanceRecord, ServerRecord};
use crate::{Error, Profile, Result, Version, lock, process};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The end of a server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifetime {
    /// It ends with the pgrig process that started it.
    Owned,
    /// It runs until it is stopped.
    Detached,
}

/// An instance as it is at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The instance's name.
    pub instance: String,
    /// Its directory; the data is in `data` below it.
    pub directory: PathBuf,
    /// The server's log.
    pub log: PathBuf,
    /// Whether there is data, and whether a server runs.
    #[serde(flatten)]
    pub state: InstanceState,
}

impl Status {
    /// The error of a command that needs the instance now; none if no other pgrig process owns its server.
    pub fn in_use(&self) -> Option<Error> {
        let InstanceState::Running(server) = &self.state else { return None };
        server.owner_pid.map(|pid| lock::refusal(self.instance.clone(), pid))
    }
}

/// Whether there is an instance and whether it runs; tagged `state` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum InstanceState {
    /// There is no data directory.
    NotCreated,
    /// There is data and no server.
    Stopped {
        /// Version of the binaries that ran it last; None if its record is lost.
        version: Option<Version>,
        /// The profile with which it starts by default.
        profile: Profile,
        /// The user's settings with which it starts by default.
        set: Vec<(String, String)>,
        /// Bytes that the data directory takes on disk.
        data_bytes: u64,
    },
    /// There is a server.
    Running(ServerStatus),
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// The postmaster's process id.
    pub pid: u32,
    /// Its start, in seconds since 1970.
    pub since_unix_seconds: Option<i64>,
    /// Whether it accepts connections (it may still be starting or already be stopping).
    pub ready: bool,
    /// None if it was started by other means than pgrig.
    pub version: Option<Version>,
    /// Its profile; none if its record is lost.
    pub profile: Option<Profile>,
    /// Names and values of the settings that the user gave with `--set`.
    pub set: Vec<(String, String)>,
    /// The directory of its Unix socket.
    pub socket_dir: Option<PathBuf>,
    /// Its port, which also names the socket.
    pub port: Option<u16>,
    /// Whether it listens on 127.0.0.1.
    pub tcp: bool,
    /// Bytes that the data directory takes on disk.
    pub data_bytes: u64,
    /// Whether the server ends with its owner or stays.
    pub lifetime: Lifetime,
    /// The live pgrig process that owns it.
    pub owner_pid: Option<u32>,
}

/// A server that runs on the instance's data directory, started by any process.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) pidfile: PidFile,
    /// pgrig's record, if pgrig started this server.
    pub(crate) record: Option<ServerRecord>,
}

impl Live {
    pub(crate) fn find(instance: &Path) -> Option<Self> {
        let data = instance.join("data");
        let pidfile = PidFile::read(&data).filter(|file| process::serves(file.pid, &data))?;
        let ours = |record: &ServerRecord| record.pid.is_none_or(|pid| pid == pidfile.pid);
        let record = ServerRecord::read(instance).filter(ours);
        Some(Self { pidfile, record })
    }

    /// When it ends. A server that somebody started by hand counts as detached, so that pgrig does
    /// not stop it.
    pub(crate) fn lifetime(&self) -> Lifetime {
        self.record.as_ref().map_or(Lifetime::Detached, |record| record.lifetime)
    }
}

pub(crate) fn status(instance: &Path) -> Result<Status> {
    Ok(Status {
        instance: crate::files::name_of(instance),
        directory: instance.to_owned(),
        log: instance.join("log"),
        state: state(instance)?,
    })
}

fn state(instance: &Path) -> Result<InstanceState> {
    let data = instance.join("data");
    if !data.join("PG_VERSION").is_file() {
        return Ok(InstanceState::NotCreated);
    }
    let data_bytes = disk_usage(&data);
    let Some(live) = Live::find(instance) else {
        let config = InstanceRecord::read(instance)?.map(|record| record.config);
        return Ok(InstanceState::Stopped {
            version: config.as_ref().map(|config| config.version.clone()),
            profile: config.as_ref().map(|c| c.profile).unwrap_or_default(),
            set: config.map(|config| config.set).unwrap_or_default(),
            data_bytes,
        });
    };
    let lifetime = live.lifetime();
    let owner = lock::holder(instance).filter(|_| lifetime == Lifetime::Owned);
    let config = live.record.map(|record| record.config);
    Ok(InstanceState::Running(ServerStatus {
        pid: live.pidfile.pid,
        since_unix_seconds: live.pidfile.since,
        ready: live.pidfile.is_ready(),
        version: config.as_ref().map(|config| config.version.clone()),
        profile: config.as_ref().map(|config| config.profile),
        tcp: config.as_ref().is_some_and(|config| config.tcp),
        set: config.map(|config| config.set).unwrap_or_default(),
        socket_dir: live.pidfile.socket_dir,
        port: live.pidfile.port,
        data_bytes,
        lifetime,
        owner_pid: owner.map(|holder| holder.pid),
    }))
}
