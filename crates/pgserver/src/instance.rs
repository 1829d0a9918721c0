//! A named PostgreSQL of pgrig's own.

use crate::files::{name_of, poll};
use crate::initdb::password;
use crate::launch;
use crate::lock::{InUse, Purpose};
use crate::record::{Config, InstanceRecord, ServerRecord, Source};
use crate::running::{Connection, Running, Tcp};
use crate::status::{Live, Status, status};
use crate::{
    Binaries, Error, Event, Events, Home, Lifetime, Major, Profile, Result, Version, fetch, postmaster,
    process, profile, socket,
};
use crate::{account::Account, error::OnPath};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The requested properties of an instance. `None` and empty mean: as it is, or the default if it is not there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// 1 to 32 of `a-z`, `0-9`, `_` and `-`; by default `default`.
    pub name: String,
    /// The version to fetch; by default the newest.
    pub version: Option<Major>,
    /// An installed PostgreSQL instead of a fetched one.
    pub pg_bin: Option<PathBuf>,
    /// By default [`Profile::Bulk`].
    pub profile: Option<Profile>,
    /// Settings on top of the profile's, later ones win. If there are any, they replace all that
    /// `start_detached` was given before.
    pub set: Vec<(String, String)>,
    /// Listen on 127.0.0.1 too, on a free port; by default not.
    pub tcp: Option<bool>,
    /// Properties that the caller chose, and not the user: `profile`, or names of settings.
    pub defaults: Vec<&'static str>,
}

/// The programs that an instance runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Programs {
    /// They run on this machine.
    Run(Binaries),
    /// They are not there yet.
    Missing {
        /// Version of the programs.
        version: Version,
        /// Whether the next start downloads them.
        is_downloaded: bool,
    },
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            version: None,
            pg_bin: None,
            profile: None,
            set: Vec::new(),
            tcp: None,
            defaults: Vec::new(),
        }
    }
}

/// An instance and the properties that are asked for. Creating this value locks and starts nothing.
#[derive(Debug, Clone)]
pub struct Instance {
    pub(crate) home: Home,
    pub(crate) spec: Spec,
    pub(crate) dir: PathBuf,
}

impl Instance {
    /// Only validates names, settings and `pg_bin`, and checks that an existing data directory has
    /// the version asked for.
    ///
    /// # Errors
    /// If any of these is wrong.
    pub fn open(home: &Home, spec: Spec) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        if spec.name.is_empty() || spec.name.len() > 32 || !spec.name.chars().all(allowed) {
            return Err(Error::InvalidName(spec.name));
        }
        for (name, value) in &spec.set {
            profile::validate(name, value)?;
        }
        let instance = Self { home: home.clone(), dir: home.instances_dir().join(&spec.name), spec };
        instance.check_version()?;
        Ok(instance)
    }

    /// The instances that exist, by name.
    ///
    /// # Errors
    /// If the directory that holds them cannot be read.
    pub fn list(home: &Home) -> Result<Vec<Self>> {
        let parent = home.instances_dir();
        if !parent.exists() {
            return Ok(Vec::new());
        }
        let mut names: Vec<String> = fs::read_dir(&parent)
            .on("read", &parent)?
            .flatten()
            .filter(|entry| entry.path().join("data").is_dir())
            .map(|entry| name_of(&entry.path()))
            .collect();
        names.sort();
        let specs = names.into_iter().map(|name| Spec { name, ..Spec::default() });
        // A directory with an odd name is none of ours.
        Ok(specs.filter_map(|spec| Self::open(home, spec).ok()).collect())
    }

    /// The instance whose detached server has this process as a session, and that server; none if
    /// there is none.
    ///
    /// # Errors
    /// If the directory that holds the instances, or the instance's record, cannot be read.
    pub fn serving(home: &Home, session: u32) -> Result<Option<(Self, Running)>> {
        let Some(parent) = process::parent(session) else { return Ok(None) };
        for instance in Self::list(home)? {
            if Live::find(&instance.dir).is_some_and(|live| live.pidfile.pid == parent) {
                return Ok(launch::attach(&instance)?.map(|running| (instance, running)));
            }
        }
        Ok(None)
    }

    /// Name of the instance.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Whether pgrig has started it before, even if its data directory is no longer there.
    pub fn is_recorded(&self) -> bool {
        InstanceRecord::exists(&self.dir)
    }

    /// The server's log, whether it exists or not.
    pub fn log_path(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Uses the server if a detached one runs; otherwise starts one that ends with this process.
    /// The properties of the spec apply only to this server; for those that it leaves open, the
    /// last `start_detached` counts. Fetches PostgreSQL and creates the data directory if
    /// necessary.
    ///
    /// # Errors
    /// [`Error::InUse`] if another pgrig process owns it, [`Error::RunsDifferently`] if it runs with
    /// other settings than asked for, and whatever can fail on the way to a running server.
    pub fn attach_or_start(&self, events: Events) -> Result<Running> {
        launch::attach_or_start(self, Lifetime::Owned, events)
    }

    /// Starts a server that outlives this process, or attaches to the one that runs; the instance
    /// keeps the version, profile and settings of the spec.
    ///
    /// # Errors
    /// As for [`Instance::attach_or_start`].
    pub fn start_detached(&self, events: Events) -> Result<Running> {
        launch::attach_or_start(self, Lifetime::Detached, events)
    }

    /// Restarts the server, which this process must have started, with these settings in addition
    /// to its own, for this start only. No other process can take the instance meanwhile. If the
    /// server does not start with them, it is started without.
    ///
    /// # Errors
    /// [`Error::Shared`] if other processes share the server, [`Error::ReservedSetting`]
    /// and the like for settings that users may not set; otherwise the reason for which it did not
    /// start.
    pub fn restart(&self, running: &mut Running, set: &[(String, String)], events: Events) -> Result<()> {
        for (name, value) in set {
            profile::validate(name, value)?;
        }
        launch::restart(self, running, set, events)
    }

    /// The status. Reads files only.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn status(&self) -> Result<Status> {
        status(&self.dir)
    }

    /// Checks that the server, if one runs, has the properties that the spec asks for. Starts
    /// nothing.
    ///
    /// # Errors
    /// [`Error::RunsDifferently`].
    pub fn check_running(&self) -> Result<()> {
        match Live::find(&self.dir).and_then(|live| live.record) {
            Some(record) => self.check_same(&record.config),
            None => Ok(()),
        }
    }

    /// Connection parameters of its running server.
    ///
    /// # Errors
    /// [`Error::NotRunning`].
    pub fn connection(&self) -> Result<Connection> {
        let live =
            Live::find(&self.dir).ok_or_else(|| Error::NotRunning { instance: self.spec.name.clone() })?;
        self.connection_of(&live)
    }

    /// Connection parameters of its server even while it does not run: a connection then fails and reaches no other
    /// server.
    ///
    /// # Errors
    /// If the account that would run it cannot be found.
    pub fn resting_connection(&self) -> Result<Connection> {
        let account = Account::of_data(&self.data())?;
        let socket_dir = socket::directory(&self.dir, &account);
        let port = launch::DEFAULT_PORT;
        Ok(Connection { socket_dir, port, user: "postgres", database: "postgres", tcp: None })
    }

    /// Stops a detached server, fast; false if none runs.
    ///
    /// # Errors
    /// [`Error::InUse`] if it belongs to a live pgrig process, [`Error::Stop`] if it does not end.
    pub fn stop(&self, events: Events) -> Result<bool> {
        if !self.dir.is_dir() {
            return Ok(false);
        }
        let _lock = InUse::acquire(&self.dir, Purpose::Stopping, events)?;
        self.stop_locked(events)
    }

    /// Stops its server and deletes all that belongs to the instance, data included.
    ///
    /// # Errors
    /// [`Error::NotCreated`], [`Error::InUse`] if it belongs to a live pgrig process, or if something
    /// cannot be deleted.
    pub fn destroy(&self, events: Events) -> Result<()> {
        if !self.dir.is_dir() {
            return Err(Error::NotCreated { instance: self.spec.name.clone() });
        }
        let _lock = InUse::acquire(&self.dir, Purpose::Stopping, events)?;
        self.stop_locked(events)?;
        self.remove_directory()
    }

    /// Removes the directory with all data. To be called with the lock held, and without a server.
    pub(crate) fn remove_directory(&self) -> Result<()> {
        let account = Account::of_data(&self.data())?;
        let socket = socket::directory(&self.dir, &account);
        // Renamed first, so that what is half deleted is no instance. The dot makes it no valid name.
        let doomed = self.home.instances_dir().join(format!(".{}", self.name()));
        let _ = fs::remove_dir_all(&doomed);
        fs::rename(&self.dir, &doomed).on("delete", &self.dir)?;
        fs::remove_dir_all(&doomed).on("delete", &doomed)?;
        if socket.exists() && socket::prepare(&socket, &account).is_ok() {
            fs::remove_dir_all(&socket).on("delete", &socket)?;
        }
        Ok(())
    }

    fn stop_locked(&self, events: Events) -> Result<bool> {
        let live = Live::find(&self.dir);
        if let Some(live) = &live {
            let (pid, data) = (live.pidfile.pid, self.data());
            let gone = || process::has_ended(pid, &data);
            postmaster::stop(&self.dir, pid, gone, events)?;
        }
        launch::clear_leftovers(&self.dir, events)?;
        ServerRecord::remove(&self.dir);
        Ok(live.is_some())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Refuses to make a data directory for an instance that had one.
    pub(crate) fn refuse_lost_data(&self) -> Result<()> {
        match InstanceRecord::read(&self.dir)? {
            Some(record) if !self.data().exists() => Err(Error::NoData {
                instance: self.spec.name.clone(),
                version: record.config.version.to_string(),
                data: self.data(),
            }),
            _ => Ok(()),
        }
    }

    /// The major version that made the data directory, if there is one.
    fn data_major(&self) -> Option<u16> {
        let text = fs::read_to_string(self.data().join("PG_VERSION")).ok()?;
        text.trim().parse().ok()
    }

    pub(crate) fn check_version(&self) -> Result<()> {
        let mut asked = self.spec.version.map(Major::number);
        if let Some(dir) = &self.spec.pg_bin {
            let binaries = Binaries::installed(dir)?;
            let found = binaries.version();
            if let Some(asked) = asked.filter(|asked| *asked != found.major()) {
                return Err(Error::VersionConflict { asked, found: found.to_string(), path: dir.clone() });
            }
            asked = Some(found.major());
        }
        match (asked, self.data_major()) {
            (Some(asked), Some(found)) if asked != found => {
                let by_programs = self.spec.pg_bin.is_some();
                Err(Error::WrongVersion { instance: self.spec.name.clone(), found, asked, by_programs })
            }
            _ => Ok(()),
        }
    }

    /// Source of the binaries that it runs with.
    fn source(&self) -> Result<Source> {
        let stored = InstanceRecord::read(&self.dir)?.map(|record| record.config);
        let major = self.spec.version.map(Major::number).or(self.data_major());
        let stored = stored
            .filter(|config| major.is_none_or(|major| config.version.major() == major))
            .map(|config| config.binaries);
        Ok(match (&self.spec.pg_bin, stored) {
            (Some(dir), _) => Source::Installed(dir.clone()),
            (None, Some(source)) => source,
            (None, None) => Source::Fetched(major.unwrap_or(Major::default().number())),
        })
    }

    /// The programs that it runs with, if they exist. Runs `postgres --version`, and downloads
    /// nothing.
    ///
    /// # Errors
    /// If they exist but do not run, or if they cannot be obtained.
    pub fn programs(&self) -> Result<Programs> {
        let dir = match self.source()? {
            Source::Installed(dir) => dir,
            Source::Fetched(number) => {
                let major = major_of(number)?;
                let dir = self.home.version_dir(major);
                if !dir.is_dir() {
                    let version = Version::of_pinned(major);
                    return Ok(Programs::Missing { version, is_downloaded: self.home.may_fetch() });
                }
                dir
            }
        };
        Ok(Programs::Run(Binaries::installed(&dir)?))
    }

    /// The binaries that it runs with, fetched if necessary.
    pub(crate) fn binaries(&self, events: Events) -> Result<(Binaries, Source)> {
        let source = self.source()?;
        match source {
            Source::Installed(dir) => {
                let binaries = Binaries::installed(&dir)?;
                let dir = binaries.dir().to_owned();
                Ok((binaries, Source::Installed(dir)))
            }
            Source::Fetched(number) => Ok((fetch::fetched(&self.home, major_of(number)?, events)?, source)),
        }
    }

    /// The configuration to run: as requested, else as stored, else the default.
    pub(crate) fn config(&self, binaries: &Binaries, source: Source) -> Result<Config> {
        let stored = InstanceRecord::read(&self.dir)?.map(|record| record.config);
        let stored = stored.as_ref();
        let spec = &self.spec;
        Ok(Config {
            version: binaries.version().clone(),
            binaries: source,
            profile: spec.profile.or(stored.map(|config| config.profile)).unwrap_or_default(),
            set: if spec.set.is_empty() {
                stored.map(|config| config.set.clone()).unwrap_or_default()
            } else {
                spec.set.clone()
            },
            tcp: spec.tcp.or(stored.map(|config| config.tcp)).unwrap_or(false),
            port: stored.filter(|config| config.tcp).map_or(0, |config| config.port),
        })
    }

    /// The configuration of a server that was started by other means than pgrig: the best guess.
    pub(crate) fn config_by_hand(&self) -> Result<Config> {
        if let Some(record) = InstanceRecord::read(&self.dir)? {
            return Ok(record.config);
        }
        let major = self.data_major().unwrap_or(0).to_string();
        let version = Version::try_from(major).expect("a number is a version");
        Ok(Config::default_for(version))
    }

    pub(crate) fn connection_of(&self, live: &Live) -> Result<Connection> {
        let account = Account::of_data(&self.data())?;
        let config = live.record.as_ref().map(|record| &record.config);
        let port = live.pidfile.port.or(config.map(|config| config.port)).unwrap_or(launch::DEFAULT_PORT);
        let own_dir = || socket::directory(&self.dir, &account);
        Ok(Connection {
            socket_dir: live.pidfile.socket_dir.clone().unwrap_or_else(own_dir),
            port,
            user: "postgres",
            database: "postgres",
            tcp: config.filter(|config| config.tcp).map(|_| Tcp {
                host: launch::LOCALHOST,
                port,
                password: password(&self.dir).unwrap_or_default(),
            }),
        })
    }

    /// Waits until a server that is starting or stopping has done so; None if it is gone.
    pub(crate) fn settle(&self, patience: Duration) -> Option<Live> {
        let every = Duration::from_millis(2);
        let settled = || match Live::find(&self.dir) {
            None => Some(None),
            Some(live) if live.pidfile.is_ready() => Some(Some(live)),
            Some(_) => None,
        };
        poll(patience, every, settled).unwrap_or_else(|| Live::find(&self.dir))
    }

    /// Ends the server of a pgrig that was killed. On Linux the kernel has already sent it a
    /// signal.
    pub(crate) fn end_orphan(&self, pid: u32, events: Events) -> Result<()> {
        events(Event::Recovering(format!(
            "the server (process {pid}) of a pgrig that was killed is still stopping"
        )));
        let data: &Path = &self.data();
        postmaster::stop(&self.dir, pid, || process::has_ended(pid, data), events)
    }
}

/// The major version of downloaded binaries.
pub(crate) fn major_of(number: u16) -> Result<Major> {
    Major::from_number(number).ok_or_else(|| Error::UnknownMajor(number.to_string()))
}
