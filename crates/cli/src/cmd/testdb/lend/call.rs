//! Sends requests of a verb to the keeper, and starts the keeper if it does not run.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::pin::{Pin, pin};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pgserver::{Instance, TELL_AFTER};
use testdb::lend::{CallError, Client};
use tokio::runtime::{Builder, Runtime};

use crate::app::args::{ServerAddress, ServerChoice};
use crate::app::failure::{Context, Failure, MachineFailure, Usage};
use crate::app::interrupt::was_asked;
use crate::app::printer::Printer;
use crate::app::target::spec;
use crate::cmd::testdb::lend::args::KeeperArgs;
use crate::cmd::testdb::lend::place::KeeperPlace;

/// Interval of checks whether the keeper answers.
const EVERY: Duration = Duration::from_millis(3);
/// Time without an answer of the keeper after which a line says so.
const TELL_SILENCE: Duration = Duration::from_secs(30);
/// Most keepers in a row that may end before they answer.
const KEEPERS: u32 = 10;
/// Environment variable that passes `-d` to the keeper. An argument could be read by other users,
/// and may contain a password.
pub(crate) const DBNAME_VARIABLE: &str = "PGRIG_TESTDB_DBNAME";

/// Calls the keeper of one server.
pub(crate) struct KeeperClient<'a> {
    place: KeeperPlace,
    keeper: Option<&'a KeeperArgs>,
    idle: Duration,
    printer: &'a Printer,
    runtime: Runtime,
    /// Whether this command has started a keeper.
    has_started: Cell<bool>,
}

impl<'a> KeeperClient<'a> {
    /// `idle` is the time after which a started keeper ends without work.
    pub(crate) fn new(
        server: &ServerChoice,
        keeper: Option<&'a KeeperArgs>,
        idle: Duration,
        printer: &'a Printer,
    ) -> Result<Self, Failure> {
        let place = KeeperPlace::of(server)?;
        // A keeper that runs already has its server.
        if server.address.embedded.asks_for_more_than_a_name() {
            Instance::open(&place.home, spec(&server.address.embedded))?.check_running()?;
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { place, keeper, idle, printer, runtime, has_started: Cell::new(false) })
    }

    /// Sends a request to the keeper; to the next one if that ends meanwhile, but not endlessly.
    pub(crate) fn call<T>(
        &self,
        ask: &impl AsyncFn(&mut Client) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let mut ended = EndedKeepers::default();
        loop {
            let answer = self.runtime.block_on(async {
                match Client::connect(&self.place.socket()).await {
                    Ok(mut client) => {
                        let keeper = client.keeper();
                        let asked = pin!(ask(&mut client));
                        Some((keeper, self.answered(keeper, asked).await))
                    }
                    Err(_) => None,
                }
            });
            match answer {
                None => self.start()?,
                Some((keeper, Err(error @ CallError::Gone(_)))) => {
                    if ended.count(keeper) >= KEEPERS {
                        let log = self.place.log();
                        let told =
                            format!("the keeper ended {KEEPERS} times: read its log {}", log.display());
                        return Err(error).context(told);
                    }
                    // A keeper that is ending answers until it has dropped the lent databases.
                    std::thread::sleep(EVERY);
                }
                Some((_, answer)) => return Ok(answer?),
            }
        }
    }

    /// Ends the keeper, and with it the server that the keeper has started, if this command has started it and nothing is lent: the next
    /// command can use the instance.
    pub(crate) fn retire(&self) -> Result<(), Failure> {
        if !self.has_started.get() {
            return Ok(());
        }
        let retired = self.runtime.block_on(async {
            let mut client = Client::connect(&self.place.socket()).await.ok()?;
            let status =
                client.status().await.ok().filter(|status| status.owns_server && status.lent == 0)?;
            // If another command has asked for a database meanwhile, the keeper refuses.
            client.retire().await.ok().and_then(|()| i32::try_from(status.pid).ok())
        });
        retired.map_or(Ok(()), |keeper| self.wait_for_end(keeper))
    }

    /// Waits until a keeper that is ending has ended, so that the next command can use its server.
    pub(crate) fn wait_for_end(&self, keeper: i32) -> Result<(), Failure> {
        let lock = self.place.lock()?;
        let is_holder = || lock.holder().is_some_and(|pid| i32::try_from(pid) == Ok(keeper));
        let begin = Instant::now();
        let mut told = false;
        while !was_asked() && is_holder() {
            if begin.elapsed() > TELL_AFTER && !told {
                told = true;
                self.printer.say(format!("waiting for the keeper to end: {}", lock.holder_text()));
            }
            std::thread::sleep(EVERY);
        }
        Ok(())
    }

    /// Waits for the answer. Prints a line at growing intervals if that takes long.
    async fn answered<T>(&self, keeper: i32, mut asked: Pin<&mut impl Future<Output = T>>) -> T {
        let (began, mut next) = (Instant::now(), TELL_SILENCE);
        loop {
            match tokio::time::timeout(next, &mut asked).await {
                Ok(answer) => return answer,
                Err(_) => self.printer.say(format!(
                    "waiting {} s for the keeper (process {keeper}); its log: {}",
                    began.elapsed().as_secs(),
                    self.place.log().display()
                )),
            }
            next = began.elapsed();
        }
    }

    /// Starts a keeper, and returns when one answers (perhaps one that another process started).
    fn start(&self) -> Result<(), Failure> {
        self.place.prepare()?;
        let mut starting: Option<Starting> = None;
        let begin = Instant::now();
        let mut told = false;
        loop {
            if self.runtime.block_on(Client::connect(&self.place.socket())).is_ok() {
                return Ok(());
            }
            if let Some(started) = &mut starting {
                if let Some(ended) = started.look(self.printer)? {
                    started.must_be_well(ended)?;
                    starting = None;
                }
            } else {
                let lock = self.place.lock()?;
                if !lock.is_held().context("cannot read the keeper's lock")? {
                    starting = Some(self.spawn()?);
                    self.has_started.set(true);
                } else if begin.elapsed() > TELL_AFTER && !told {
                    // Another one is starting or ending.
                    told = true;
                    self.printer.say(format!("waiting for the keeper: {}", lock.holder_text()));
                }
            }
            std::thread::sleep(EVERY);
        }
    }

    /// Starts this program as a keeper, in a process of its own.
    fn spawn(&self) -> Result<Starting, Failure> {
        let path = self.place.log();
        let open = || File::options().create(true).append(true).read(true).open(&path);
        let mut log = open().with_context(|| format!("cannot write to {}", path.display()))?;
        log.seek(SeekFrom::End(0))?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(program);
        command.args(["testdb", "serve", "--background", &format!("{}s", self.idle.as_secs())]);
        if let Some(KeeperArgs { pool, template_age }) = self.keeper {
            command.args(["--pool", &pool.to_string()]);
            command.args(["--template-age", &format!("{}s", template_age.0.as_secs().max(1))]);
        }
        command.args(server_arguments(&self.place.server)?);
        match &self.place.server.dbname {
            Some(dbname) => command.env(DBNAME_VARIABLE, dbname),
            None => command.env_remove(DBNAME_VARIABLE),
        };
        if self.place.server.address.embedded.any() {
            // They would name another server.
            for name in ["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"] {
                command.env_remove(name);
            }
        }
        // The keeper does not inherit the caller's output: a reader of that would wait for the keeper's end.
        command.stdin(Stdio::null()).stdout(open()?).stderr(open()?).current_dir("/");
        let child = command.spawn().context("cannot start the keeper")?;
        Ok(Starting { child, log, news: Vec::new() })
    }
}

/// Keepers that have ended before they answered.
#[derive(Default)]
struct EndedKeepers {
    last: Option<i32>,
    keepers: u32,
}

impl EndedKeepers {
    /// Counts a keeper by its process ID. Returns the number of different ones in a row.
    fn count(&mut self, keeper: i32) -> u32 {
        if self.last.replace(keeper) != Some(keeper) {
            self.keepers += 1;
        }
        self.keepers
    }
}

/// A keeper that was started and does not answer yet.
struct Starting {
    child: Child,
    log: File,
    /// Output that has not been passed on yet.
    news: Vec<u8>,
}

impl Starting {
    /// Passes its output on. Returns its exit status if it has ended.
    fn look(&mut self, printer: &Printer) -> Result<Option<ExitStatus>, Failure> {
        let ended = self.child.try_wait()?;
        self.log.read_to_end(&mut self.news)?;
        // The command that asked reports the error itself, once.
        while let Some(end) = self.news.iter().position(|byte| *byte == b'\n')
            && !self.news.starts_with(b"error:")
        {
            let line: Vec<u8> = self.news.drain(..=end).collect();
            printer.say(String::from_utf8_lossy(&line).trim_end());
        }
        Ok(ended)
    }

    /// Checks how it ended. It ends successfully if another keeper was there before.
    fn must_be_well(&self, ended: ExitStatus) -> Result<(), Failure> {
        if ended.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.news);
        let said = text.trim().trim_start_matches("error:").trim().to_owned();
        let said =
            if said.is_empty() { format!("the keeper ended before it answered: {ended}") } else { said };
        match ended.code() {
            Some(2) => Err(Usage(said).into()),
            _ => Err(MachineFailure(said).into()),
        }
    }
}

/// The arguments that name the server, for the keeper. `-d` is passed in the environment.
fn server_arguments(choice: &ServerChoice) -> Result<Vec<String>, Failure> {
    let ServerAddress { host, port, username, embedded } = &choice.address;
    let mut arguments = Vec::new();
    let mut give = |option: &str, value: Option<String>| {
        arguments.extend(value.map(|value| format!("{option}={value}")));
    };
    give("--host", host.clone());
    give("--port", port.clone());
    give("--username", username.clone());
    give("--instance", embedded.instance.clone());
    give("--pg-version", embedded.pg_version.map(|version| version.number().to_string()));
    let pg_bin = embedded.pg_bin.as_ref().map(std::path::absolute).transpose()?;
    give("--pg-bin", pg_bin.map(|path| path.to_string_lossy().into_owned()));
    give("--profile", embedded.profile.map(|profile| profile.to_string()));
    for (name, value) in &embedded.set {
        give("--set", Some(format!("{name}={value}")));
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_may_take_its_time_to_end() {
        let mut ended = EndedKeepers::default();
        let counts = [1, 1, 1, 2, 2, 3].map(|keeper| ended.count(keeper));
        assert_eq!(counts, [1, 1, 1, 2, 2, 3]);
    }
}
