//! Starts a server from a directory, whatever state the directory is in.

use crate::account::Account;
use crate::diagnose::BAD_SETTING;
use crate::differences::start_command;
use crate::error::OnPath;
use crate::files::{create_dirs, poll, text};
use crate::lock::{InUse, Purpose};
use crate::pidfile::{self, PidFile};
use crate::postmaster::{Failure, Postmaster, RECOVERY_DEADLINE};
use crate::record::{Config, InstanceRecord, ServerRecord};
use crate::running::Running;
use crate::status::Live;
use crate::{
    Binaries, Error, Event, Events, Instance, Lifetime, Result, config_file, control, initdb, process, socket,
};
use nix::sys::signal::Signal;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) const DEFAULT_PORT: u16 = 5432;
pub(crate) const LOCALHOST: &str = "127.0.0.1";

/// Time to wait for a server that is starting or stopping although no process holds the lock.
const SETTLE: Duration = Duration::from_mins(1);
/// Time between two checks of it.
const LOOK: Duration = Duration::from_secs(1);
/// Time for the processes of a killed server to notice that; then again after each signal.
const LEFTOVERS: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_millis(10);
/// Attempts to start on a free port: another process may take the port before the server binds it.
const PORT_ATTEMPTS: u32 = 5;

/// See [`Instance::attach_or_start`] and [`Instance::start_detached`].
pub(crate) fn attach_or_start(instance: &Instance, lifetime: Lifetime, events: Events) -> Result<Running> {
    // Without the lock, so that those who share a server do not queue.
    if let Some(running) = attach(instance)? {
        return Ok(running);
    }
    let account = Account::of_data(&instance.data())?;
    instance.home.prepare(&account)?;
    let mode = if account.is_lent() { 0o711 } else { 0o700 };
    let purpose = match lifetime {
        Lifetime::Owned => Purpose::Owning,
        Lifetime::Detached => Purpose::Starting,
    };
    let lock = loop {
        create_dirs(&instance.dir, mode)?;
        instance.home.open(&instance.dir, &account)?;
        match InUse::acquire(&instance.dir, purpose, events) {
            // Removed while this process waited: its first start failed.
            Err(_) if !instance.dir.exists() => {}
            Err(Error::InUse { instance: name, pid, is_keeper, .. }) => {
                let start = start_command(&instance.spec, None);
                return Err(Error::InUse { instance: name, pid, is_keeper, start });
            }
            acquired => break acquired?,
        }
    };
    let is_new = !instance.data().exists();
    let begin = Instant::now();
    let (mut running, postmaster) = loop {
        if let Some(running) = settle(instance, events)? {
            return Ok(running);
        }
        match start(instance, lifetime, &account, &[], events) {
            Ok(started) => break started,
            Err(Failure::AlreadyRunning(_)) if begin.elapsed() < SETTLE => {}
            Err(failure) => return Err(refused(instance, failure.into_error(), is_new)),
        }
    };
    running.is_new = is_new;
    if lifetime == Lifetime::Owned {
        running.owned = Some((postmaster, lock));
    }
    // A detached server needs neither: it continues when they are dropped.
    Ok(running)
}

/// The error of a failed start. If a setting that the user gave is the cause, the request is wrong, and an instance that it
/// has created is removed.
fn refused(instance: &Instance, error: Error, is_new: bool) -> Error {
    let Error::Start { instance: name, cause, remedy, log, .. } = error else { return error };
    let by_request =
        remedy == BAD_SETTING && instance.spec.set.iter().any(|(name, _)| cause.contains(name.as_str()));
    if by_request && is_new {
        ServerRecord::remove(&instance.dir);
        if instance.remove_directory().is_ok() {
            return Error::Settings { cause };
        }
    }
    Error::Start { instance: name, cause, remedy, log, by_request }
}

/// See [`Instance::restart`].
pub(crate) fn restart(
    instance: &Instance,
    running: &mut Running,
    set: &[(String, String)],
    events: Events,
) -> Result<()> {
    let Some(lock) = running.end(events)? else {
        return Err(Error::Shared { instance: instance.name().to_owned() });
    };
    let account = Account::of_data(&instance.data())?;
    let begin = |set| start(instance, Lifetime::Owned, &account, set, events).map_err(Failure::into_error);
    let (started, failed) = match begin(set) {
        Ok(started) => (started, None),
        Err(error) => (begin(&[])?, Some(error)),
    };
    let (mut fresh, postmaster) = started;
    fresh.owned = Some((postmaster, lock));
    fresh.doomed = running.doomed.take();
    *running = fresh;
    failed.map_or(Ok(()), Err)
}

/// To be called with the lock held. If a server runs, waits until it is ready to attach to; if its
/// pgrig was killed, ends it first.
fn settle(instance: &Instance, events: Events) -> Result<Option<Running>> {
    let Some(live) = Live::find(&instance.dir) else {
        return Ok(None);
    };
    if live.lifetime() == Lifetime::Owned {
        instance.end_orphan(live.pidfile.pid, events)?;
        return Ok(None);
    }
    let begin = Instant::now();
    let mut told = false;
    while let Some(live) = instance.settle(LOOK).filter(|live| !live.pidfile.is_ready()) {
        // Its starter was killed, or would still hold the lock.
        let recovers = live.pidfile.is_starting() && !control::is_shut_down(&instance.data());
        let patience = if recovers { RECOVERY_DEADLINE } else { SETTLE };
        let pid = live.pidfile.pid;
        if begin.elapsed() > patience {
            return Err(Error::Start {
                instance: instance.name().to_owned(),
                cause: format!("its server (process {pid}) is still starting or stopping"),
                remedy: format!("wait for it, or stop it (pgrig server stop --instance {})", instance.name()),
                log: instance.log_path(),
                by_request: false,
            });
        }
        if recovers && !told {
            told = true;
            events(Event::Recovering(format!(
                "waiting for crash recovery of server process {pid}, which a killed pgrig started"
            )));
        }
    }
    attach(instance)
}

/// A running server that outlives the process that started it; None if there is none.
pub(crate) fn attach(instance: &Instance) -> Result<Option<Running>> {
    let usable = |live: &Live| live.lifetime() == Lifetime::Detached && live.pidfile.is_ready();
    let Some(live) = Live::find(&instance.dir).filter(usable) else {
        return Ok(None);
    };
    let connection = instance.connection_of(&live)?;
    let (config, settings) = match live.record {
        Some(record) => (record.config, record.settings),
        None => (instance.config_by_hand()?, Vec::new()),
    };
    instance.check_same(&config)?;
    Ok(Some(Running {
        dir: instance.dir.clone(),
        pid: live.pidfile.pid,
        connection,
        settings,
        config,
        is_new: false,
        owned: None,
        doomed: None,
    }))
}

/// Starts a server. To be called with the lock held and no server running. `set` is added to its
/// settings for this start only.
fn start(
    instance: &Instance,
    lifetime: Lifetime,
    account: &Account,
    set: &[(String, String)],
    events: Events,
) -> Result<(Running, Postmaster), Failure> {
    clear_leftovers(&instance.dir, events)?;
    instance.check_version()?;
    instance.refuse_lost_data()?;
    let (binaries, source) = instance.binaries(events)?;
    if binaries.dir().starts_with(instance.home.server_root()) {
        instance.home.open(binaries.dir(), account)?;
    }
    binaries.check_reachable(account)?;
    if !instance.data().exists() {
        events(Event::Initialising {
            instance: instance.name().to_owned(),
            version: binaries.version().to_string(),
        });
        initdb::create(&instance.dir, &binaries, account)?;
    }
    let mut config = instance.config(&binaries, source)?;
    config.set.extend_from_slice(set);
    events(Event::Starting { instance: instance.name().to_owned(), version: binaries.version().to_string() });
    let begin = Instant::now();
    let mut attempts = 0;
    let (postmaster, record) = loop {
        attempts += 1;
        choose_port(&mut config, attempts)?;
        match try_start(instance, &binaries, account, lifetime, &config, events) {
            Ok(started) => break started,
            Err(Failure::SharedMemory(_)) if begin.elapsed() < 3 * LEFTOVERS => {
                std::thread::sleep(EVERY);
            }
            Err(Failure::Port(_)) if config.tcp && attempts < PORT_ATTEMPTS => {}
            Err(Failure::FileExists(_, file)) if remove_rolled_back(&instance.data(), &file)? => {
                events(Event::Recovering(format!(
                    "removed {}, an empty file of an unlogged table whose creation was rolled back: recovery \
                     creates it again",
                    file.display()
                )));
            }
            Err(failure) => return Err(failure),
        }
    };
    remember(instance, lifetime, &record.config)?;
    let running = running(instance, record)?;
    Ok((running, postmaster))
}

/// Removes a file that makes crash recovery fail, and returns whether it did.
///
/// A rollback of CREATE UNLOGGED TABLE deletes the init fork at once, and keeps the empty main fork
/// until the next checkpoint (mdunlinkfork, md.c). If the server is killed in between, WAL replay
/// creates the init fork again, and recovery fails at every start, when it copies the init fork
/// over the main fork (ResetUnloggedRelationsInDbspaceDir, reinit.c). Recovery would write nothing
/// else into that file, so an empty one can be removed.
fn remove_rolled_back(data: &Path, file: &Path) -> Result<bool> {
    let path = data.join(file);
    let mut init = path.clone().into_os_string();
    init.push("_init");
    let is_empty = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == 0);
    if !is_empty || !Path::new(&init).exists() {
        return Ok(false);
    }
    fs::remove_file(&path).on("delete", &path)?;
    Ok(true)
}

/// Writes the configuration, starts the server, and waits until it is ready.
fn try_start(
    instance: &Instance,
    binaries: &Binaries,
    account: &Account,
    lifetime: Lifetime,
    config: &Config,
    events: Events,
) -> Result<(Postmaster, ServerRecord), Failure> {
    let socket_dir = socket::directory(&instance.dir, account);
    socket::prepare(&socket_dir, account)?;
    let settings = settings(config, lifetime, &instance.data(), &socket_dir)?;
    config_file::write(&instance.data(), &settings, account)?;
    let mut record =
        ServerRecord { lifetime, starter: std::process::id(), pid: None, config: config.clone(), settings };
    let before = ServerRecord::read(&instance.dir);
    // Before the server is there: should we be killed in between, the next pgrig knows whose it is.
    record.write(&instance.dir)?;
    let mut postmaster = Postmaster::spawn(&instance.dir, binaries, account, lifetime)?;
    record.pid = Some(postmaster.pid());
    let written = record.write(&instance.dir);
    if let Err(error) = written {
        postmaster.stop(&instance.dir, events)?;
        return Err(error.into());
    }
    let ready = postmaster.wait_ready(&instance.dir, events);
    if let (Err(Failure::AlreadyRunning(_)), Some(before)) = (&ready, before) {
        // It is that other server's record that holds.
        before.write(&instance.dir)?;
    }
    ready.map(|()| (postmaster, record))
}

/// The settings of the profile, those of the user, and those that make the server reachable.
fn settings(
    config: &Config,
    lifetime: Lifetime,
    data: &Path,
    socket_dir: &Path,
) -> Result<Vec<(String, String)>> {
    let listen = if config.tcp { LOCALHOST } else { "" };
    let mut settings = config.profile.settings(data);
    settings.extend(config.set.iter().cloned());
    let own = [
        ("listen_addresses", listen.to_owned()),
        ("port", config.port.to_string()),
        ("unix_socket_directories", socket::list_element(text(socket_dir)?)),
    ];
    settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
    if lifetime == Lifetime::Owned {
        // The kernel's SIGINT at our death must end it. From 15 on, a postmaster that gets one between a
        // crash of its child and the redo that follows waits for ever for its idle checkpointer.
        settings.push(("restart_after_crash".to_owned(), "off".to_owned()));
    }
    Ok(config_file::effective(settings))
}

/// Chooses the port. Without TCP it is only a part of the socket's name. With TCP, the last port is
/// used again if it is free.
fn choose_port(config: &mut Config, attempt: u32) -> Result<()> {
    if !config.tcp {
        config.port = DEFAULT_PORT;
        return Ok(());
    }
    let again = if attempt == 1 { config.port } else { 0 };
    let port = TcpListener::bind((LOCALHOST, again))
        .or_else(|_| TcpListener::bind((LOCALHOST, 0)))
        .and_then(|listener| listener.local_addr());
    config.port = port.on("find a free port on", Path::new(LOCALHOST))?.port();
    Ok(())
}

/// Records a detached start. An owned server is not recorded; only the instance's existence is.
fn remember(instance: &Instance, lifetime: Lifetime, config: &Config) -> Result<()> {
    let stored = InstanceRecord::read(&instance.dir)?.map(|record| record.config);
    let remembered = match (lifetime, stored) {
        (Lifetime::Detached, _) => config.clone(),
        (Lifetime::Owned, Some(stored)) if stored.binaries == config.binaries => {
            Config { version: config.version.clone(), ..stored }
        }
        (Lifetime::Owned, Some(stored)) => stored,
        (Lifetime::Owned, None) => Config {
            version: config.version.clone(),
            binaries: config.binaries.clone(),
            ..Config::default_for(config.version.clone())
        },
    };
    InstanceRecord::write(&instance.dir, &remembered)
}

fn running(instance: &Instance, record: ServerRecord) -> Result<Running> {
    let pidfile = PidFile::read(&instance.data())
        .ok_or_else(|| Error::NotRunning { instance: instance.name().to_owned() })?;
    let live = Live { pidfile, record: Some(record.clone()) };
    Ok(Running {
        dir: instance.dir.clone(),
        pid: live.pidfile.pid,
        connection: instance.connection_of(&live)?,
        settings: record.settings,
        config: record.config,
        is_new: false,
        owned: None,
        doomed: None,
    })
}

/// Removes the remains of a killed server: processes, its pid file, its socket. To be called with
/// the lock held.
pub(crate) fn clear_leftovers(dir: &Path, events: Events) -> Result<()> {
    let data = dir.join("data");
    let path = pidfile::path(&data);
    if !path.exists() {
        return Ok(());
    }
    if let Some(file) = PidFile::read(&data).filter(|file| process::serves(file.pid, &data)) {
        // Not ours to remove: it was started by hand a moment ago.
        return Err(Error::Foreign { instance: crate::files::name_of(dir), pid: file.pid });
    }
    end_processes(dir, &data, events)?;
    let what = match PidFile::read(&data) {
        Some(file) if process::exists(file.pid) => {
            format!("names process {}, which is not a server of this instance", file.pid)
        }
        Some(file) => format!("names process {}, which has ended", file.pid),
        None => "is damaged".to_owned(),
    };
    events(Event::Recovering(format!("postmaster.pid {what}: removed")));
    let socket_dir = socket::directory(dir, &Account::of_data(&data)?);
    for entry in fs::read_dir(socket_dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".s.PGSQL.") {
            // The server replaces them, unless their lock file names a live process.
            let _ = fs::remove_file(entry.path());
        }
    }
    fs::remove_file(&path).on("delete", &path)
}

/// Ends server processes that remain. Backends end by themselves when their postmaster is gone,
/// unless they are busy.
fn end_processes(dir: &Path, data: &Path, events: Events) -> Result<()> {
    for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
        let left = process::all_on(data);
        if left.is_empty() {
            return Ok(());
        }
        let many = match left.len() {
            1 => "1 process".to_owned(),
            many => format!("{many} processes"),
        };
        events(Event::Recovering(match signal {
            None => format!("waiting for {many} of a killed server to end"),
            Some(signal) => format!("ending {many} of a killed server ({signal})"),
        }));
        for pid in &left {
            if let Some(signal) = signal {
                process::signal(*pid, signal);
            }
        }
        let gone = || process::all_on(data).is_empty().then_some(());
        if poll(LEFTOVERS, EVERY, gone).is_some() {
            return Ok(());
        }
    }
    Err(Error::Stop {
        instance: crate::files::name_of(dir),
        pid: process::all_on(data).first().copied().unwrap_or(0),
    })
}
