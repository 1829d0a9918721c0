//! The keeper's process: in the foreground for `serve`, in the background for the other verbs.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use connect::ConnectError;
use jiff::Timestamp;
use pgserver::{LockFile, TELL_AFTER};
use testdb::lend::{
    CallError, Client, Ended, Endpoint, Keeper, KeeperConfig, LendRequest, Offer, Rules, listen,
};
use testdb::source::Source;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Builder;
use tokio::sync::Notify;

use crate::app::args::ServerChoice;
use crate::app::failure::{BadResult, Context, Failure, MachineFailure, Usage};
use crate::app::interrupt::{self, interrupted_telling};
use crate::app::output::{Existing, refuse_unwritable};
use crate::app::pooler;
use crate::app::printer::Printer;
use crate::app::target::{self, Chosen};
use crate::cmd::testdb::lend::args::ServeArgs;
use crate::cmd::testdb::lend::call::DBNAME_VARIABLE;
use crate::cmd::testdb::lend::place::KeeperPlace;
use crate::cmd::testdb::lend::{EMPTIED, absolute, list_text};

/// Interval of checks whether another keeper has ended.
const EVERY: Duration = Duration::from_millis(10);
const NO_LOCK: &str = "cannot lock the keeper's directory";

/// Runs a keeper until it is done or interrupted.
pub(crate) fn run(arguments: &ServeArgs, printer: &Printer) -> Result<(), Failure> {
    match arguments.background {
        Some(idle) => background(arguments, idle.0, printer),
        None => foreground(arguments, printer).map_err(|failure| of_port(failure, &arguments.server)),
    }
}

/// The error of a port on which no server listens, with the option for the port of the service.
fn of_port(failure: Failure, server: &ServerChoice) -> Failure {
    match (failure.error::<ConnectError>(), &server.address.port, &server.address.host) {
        (Some(error @ ConnectError::NoSocket { .. }), Some(port), None) => MachineFailure(format!(
            "{error}. -p is the port of the server; for the address of the service, give --listen 127.0.0.1:{port}"
        ))
        .into(),
        _ => failure,
    }
}

/// Runs in the background for other verbs.
fn background(arguments: &ServeArgs, idle: Duration, printer: &Printer) -> Result<(), Failure> {
    leave_the_caller();
    interrupt::listen(printer);
    let dbname = std::env::var(DBNAME_VARIABLE).ok();
    let server = ServerChoice { dbname, ..arguments.server.clone() };
    let place = KeeperPlace::of(&server)?;
    place.prepare()?;
    let lock = place.lock()?;
    if !lock.try_lock().context(NO_LOCK)? {
        // Another one was faster: it serves the caller as well.
        return Ok(());
    }
    let rules = Rules { idle: Some(idle), ..rules(arguments) };
    let work = Work { place, rules, offers: Vec::new(), public: None };
    work.run(printer).map(drop)
}

/// Runs in the foreground, with an endpoint for other clients.
fn foreground(arguments: &ServeArgs, printer: &Printer) -> Result<(), Failure> {
    let public = Public::parse(&arguments.listen, arguments.ready_file.clone())?;
    if let Some(file) = &arguments.ready_file {
        refuse_unwritable("--ready-file", file, Existing::Replaced)?;
    }
    if let Address::Unix(path) = &public.address {
        refuse_unwritable("--listen", path, Existing::Replaced)?;
    }
    for path in &arguments.from {
        Source::file(path)?.hash()?;
    }
    let place = KeeperPlace::of(&arguments.server)?;
    place.prepare()?;
    let _lock = take_over(&place, printer)?;
    let files = arguments.from.iter().map(|path| Ok(Offer::File(absolute(path)?, arguments.unlogged)));
    let mut offers = files.collect::<Result<Vec<_>, Failure>>()?;
    offers.extend(arguments.template.iter().cloned().map(Offer::Database));
    if arguments.unlogged {
        printer.say(EMPTIED);
    }
    let rules = Rules { idle: None, ..rules(arguments) };
    let work = Work { place, rules, offers, public: Some(public) };
    if work.run(printer)? { Err(BadResult::Ended.into()) } else { Ok(()) }
}

fn rules(arguments: &ServeArgs) -> Rules {
    let (pool, template_age) = (arguments.keeper.pool.into(), arguments.keeper.template_age.0);
    Rules { pool, template_age, ..Rules::default() }
}

/// Leaves the caller's session, and closes its pipes: a reader of a pipe waits for all processes
/// that have it open.
fn leave_the_caller() {
    // It fails for the leader of a session, which has a session of its own.
    let _ = nix::unistd::setsid();
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // Nothing is open yet that this program opened, but the directory just read.
        let _ = nix::unistd::close(descriptor);
    }
}

/// Takes the lock. A keeper in the background ends for that.
fn take_over(place: &KeeperPlace, printer: &Printer) -> Result<LockFile, Failure> {
    let lock = place.lock()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let tell = Instant::now() + TELL_AFTER;
    let mut told = false;
    let mut waiting = || {
        if !std::mem::replace(&mut told, true) {
            printer.say(format!("waiting for the keeper to end: {}", lock.holder_text()));
        }
    };
    loop {
        if lock.try_lock().context(NO_LOCK)? {
            return Ok(lock);
        }
        let retired = runtime.block_on(async {
            let mut ask = pin!(async {
                match Client::connect(&place.socket()).await {
                    Ok(mut client) => client.retire().await,
                    // It is starting or ending.
                    Err(_) => Ok(()),
                }
            });
            if let Ok(retired) = tokio::time::timeout_at(tell.into(), &mut ask).await {
                return retired;
            }
            waiting();
            ask.await
        });
        match retired {
            Ok(()) | Err(CallError::Gone(_)) => std::thread::sleep(EVERY),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Addresses of the keeper for others.
struct Public {
    address: Address,
    ready_file: Option<PathBuf>,
}

enum Address {
    Tcp(String),
    Unix(PathBuf),
}

impl Public {
    fn parse(text: &str, ready_file: Option<PathBuf>) -> Result<Self, Failure> {
        let address = match text.strip_prefix("unix:") {
            Some("") => return Err(Usage("--listen unix:PATH needs a path".to_owned()).into()),
            Some(path) => Address::Unix(std::path::absolute(path)?),
            None => Address::Tcp(text.to_owned()),
        };
        Ok(Self { address, ready_file })
    }

    async fn open(&self) -> Result<(Endpoint, String), Failure> {
        match &self.address {
            Address::Tcp(text) => {
                let shape = || {
                    let port = text.parse::<u16>().unwrap_or_default();
                    Usage(format!(
                        "--listen {text}: give ADDRESS:PORT, for example 127.0.0.1:{port}, or unix:PATH"
                    ))
                };
                let (host, port) = text.rsplit_once(':').ok_or_else(shape)?;
                let port: u16 = port.parse().map_err(|_| shape())?;
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let addresses: Vec<_> =
                    tokio::net::lookup_host((host, port)).await.map_err(|_| shape())?.collect();
                if addresses.iter().any(|address| !address.ip().is_loopback()) {
                    let other = format!(
                        "other machines can reach --listen {text} and drop databases: use 127.0.0.1, and ssh -L \
                         for other machines"
                    );
                    return Err(Usage(other).into());
                }
                let listener = TcpListener::bind(addresses.as_slice()).await;
                let listener = listener.with_context(|| {
                    format!("cannot listen on {text} (if the port is taken, give another --listen)")
                })?;
                let url = format!("http://{}", listener.local_addr()?);
                Ok((Endpoint::Tcp(listener), url))
            }
            Address::Unix(path) => {
                let listener = fresh_socket(path)?;
                Ok((Endpoint::Unix(listener), format!("unix:{}", path.display())))
            }
        }
    }
}

/// Listens on a socket, replacing one that a dead process may have left.
fn fresh_socket(path: &Path) -> Result<UnixListener, Failure> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(Usage(format!(
            "another process already listens on {}: end that process, or give another path",
            path.display()
        ))
        .into());
    }
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| {
        use std::os::unix::fs::FileTypeExt;
        meta.file_type().is_socket()
    });
    if is_socket {
        fs::remove_file(path).with_context(|| format!("cannot delete {}", path.display()))?;
    }
    listen(path).with_context(|| format!("cannot listen on {}", path.display()))
}

/// The work of a keeper's process, with the lock held: from the start of its server to the end.
struct Work {
    place: KeeperPlace,
    rules: Rules,
    offers: Vec<Offer>,
    public: Option<Public>,
}

impl Work {
    /// Runs the keeper. Returns whether it was interrupted.
    fn run(self, printer: &Printer) -> Result<bool, Failure> {
        // The server first, outside the runtime: starting it blocks.
        let chosen = target::choose(&self.place.server, &self.place.home, printer)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // The sessions of unfinished work end before the server is stopped.
        let result = interrupt::block_on(runtime, printer, self.keep(&chosen, printer));
        let released = chosen.release(printer);
        let interrupted = result?;
        released?;
        Ok(interrupted)
    }

    async fn keep(&self, chosen: &Chosen, printer: &Printer) -> Result<bool, Failure> {
        if chosen.target.is_embedded() {
            // Whether it runs with the settings that it was given.
            chosen.connect(printer).await?.close().await;
        } else {
            // A server that is not ready is waited for. What else may be wrong, the keeper says.
            let target = chosen.target.clone().with_database("postgres");
            if let Ok(connection) = target.connect_when_ready(&log).await {
                pooler::refuse(&target, &connection, false, printer).await?;
                connection.close().await;
            }
        }
        chosen.target.warnings().iter().for_each(|warning| printer.warn(warning));
        let public = match &self.public {
            Some(public) => Some(public.open().await?),
            None => None,
        };
        let (endpoint, url) = public.unzip();
        let config = KeeperConfig {
            target: chosen.target.clone(),
            keeper: self.place.keeper.clone(),
            rules: self.rules.clone(),
            owns_server: chosen.stopped_instance().is_some(),
            serves: url.clone(),
            offers: self.offers.clone(),
            log: Arc::new(log),
        };
        let keeper = Keeper::open(config).await?;
        let socket = self.place.socket();
        let mut endpoints = vec![Endpoint::Unix(fresh_socket(&socket)?)];
        endpoints.extend(endpoint);
        if url.is_some() {
            printer.say(list_text::settings(&keeper.settings().await?));
        }
        let (interrupted, failed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (noticed, ends) = (Arc::clone(&interrupted), Arc::clone(&failed));
        let interrupt = interrupted_telling(|_| log("shutting down: dropping the lent databases"));
        let stop = async move {
            tokio::select! {
                () = interrupt => noticed.notify_one(),
                () = ends.notified() => {}
            }
        };
        let mut running = pin!(keeper.run(endpoints, Box::pin(stop)));
        let readied = tokio::select! {
            ended = &mut running => Err(ended),
            readied = self.make_ready(&socket, url.as_deref()) => Ok(readied),
        };
        let (ended, readied) = match readied {
            Err(ended) => (ended, Ok(())),
            Ok(readied) => {
                if readied.is_err() {
                    failed.notify_one();
                }
                (running.await, readied)
            }
        };
        self.remove_files(&socket);
        let told = tokio::time::timeout(Duration::ZERO, interrupted.notified()).await.is_ok();
        log(match ended? {
            Ended::Done => "ended",
            Ended::Retired => "ended, because another command of pgrig asked for it",
        });
        readied.map(|()| told)
    }

    /// Removes the files before the lock is released, because the next keeper creates its own.
    fn remove_files(&self, socket: &Path) {
        let _ = fs::remove_file(socket);
        if let Some(Public { address: Address::Unix(path), .. }) = &self.public {
            let _ = fs::remove_file(path);
        }
        if let Some(file) = self.public.as_ref().and_then(|public| public.ready_file.as_ref()) {
            let _ = fs::remove_file(file);
        }
    }

    /// Lends a copy of each offer once before the address is printed, to check the offer and to
    /// make its template.
    async fn make_ready(&self, socket: &Path, url: Option<&str>) -> Result<(), Failure> {
        for offer in &self.offers {
            let (from, template, unlogged) = match offer {
                Offer::File(path, unlogged) => (Some(path.clone()), None, *unlogged),
                Offer::Database(name) => (None, Some(name.clone()), false),
            };
            let mut client = Client::connect(socket).await?;
            let lease =
                client.lend(&LendRequest { from, template, unlogged, ..LendRequest::default() }).await?;
            client.drop(&lease.name).await?;
        }
        url.map_or(Ok(()), |url| self.tell_ready(url))
    }

    /// Prints the address on standard output, and writes it to a file, which appears complete.
    fn tell_ready(&self, url: &str) -> Result<(), Failure> {
        if let Some(file) = self.public.as_ref().and_then(|public| public.ready_file.as_ref()) {
            let partial = file.with_extension("partial");
            let written = fs::write(&partial, format!("{url}\n")).and_then(|()| fs::rename(&partial, file));
            written.with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(Printer::json(url)?)
    }
}

/// Prints a line with the time.
fn log(text: &str) {
    let now = Timestamp::now();
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{now:.0} {text}\n").as_bytes());
}
