//! Handles Ctrl-C and similar signals in a thread of its own.
//!
//! A verb that has to clean up waits for [`interrupted`] beside its work. Other work that
//! [`block_on`] does is dropped at the first signal, and its statements in the server are
//! cancelled. If the server does not answer, pgrig exits after two seconds, unless it is stopping a server of its own or
//! deleting its files; at a second signal, half a second after the first or later, it exits at once.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

use pgserver::Home;
use server::interruption::GRACE;
use server::settings::{Journal, JournalState};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::app::failure::BadResult;
use crate::app::printer::Printer;
use crate::app::recovery::journals;
use crate::app::{fault, terminal};

/// Line printed at the first signal.
const TOLD: &str = "interrupted: cancelling the running statements (Ctrl-C again ends pgrig at once)";
/// Time without an answer of the server after which pgrig exits.
const SILENCE: Duration = Duration::from_millis(1800);
/// Signals within this time after the first one repeat it: `timeout` sends SIGTERM to its command, and then to the process group.
const REPEATED: Duration = Duration::from_millis(500);
/// Interval of checks for that time.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time for cancel requests to be sent before pgrig exits at once.
const LAST_CANCEL: Duration = Duration::from_millis(300);
/// Time for background tasks to end with the runtime: e.g. resolving a host name may take longer.
const SHUTDOWN: Duration = Duration::from_millis(100);
/// Silence of the server after which a line names the statement that pgrig waits for.
const TELL_SILENCE: Duration = Duration::from_secs(30);
/// Interval of checks for that time.
const LISTEN_INTERVAL: Duration = Duration::from_secs(1);

static STARTED: Once = Once::new();
static ASKED: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));
/// Number of futures of [`interrupted`] that are being awaited.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
/// Number of [`block_on`] calls in progress.
static WORK: AtomicUsize = AtomicUsize::new(0);
/// Whether a future of [`interrupted`] was awaited when the first signal came.
static IS_HEARD: AtomicBool = AtomicBool::new(false);

/// Counts a value up as long as it lives.
struct Counted(&'static AtomicUsize);

impl Counted {
    fn new(counter: &'static AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Handles signals from now on. Without this thread, signals end pgrig at once.
pub(crate) fn listen(printer: &Printer) {
    STARTED.call_once(|| {
        let quiet = printer.is_quiet();
        let hear = move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(hear(quiet));
        };
        // Without this thread the process continues, and Ctrl-C ends it at once.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
    });
}

/// Whether the user has asked pgrig to stop.
pub(crate) fn was_asked() -> bool {
    *ASKED.borrow()
}

/// A future that resolves when a run has to stop, in the form that the verbs' crates take.
pub(crate) type Interrupt<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Resolves when a signal asks pgrig to stop, or when something panics. Once it has been polled,
/// the caller is responsible for stopping the work.
pub(crate) fn interrupted(printer: &Printer) -> Interrupt<'_> {
    Box::pin(interrupted_telling(move |text| tell(printer, text)))
}

/// Prints a line in the place of one that shows progress.
fn tell(printer: &Printer, text: &str) {
    if !printer.is_quiet() {
        Printer::interject(text);
    }
}

/// As [`interrupted`], with the caller's way to show the message.
pub(crate) async fn interrupted_telling(tell: impl Fn(&str)) {
    let _listener = Counted::new(&LISTENERS);
    tokio::select! {
        () = asked() => tell(TOLD),
        // In another thread or task, without which the work might never end.
        () = fault::noticed() => {}
    }
}

async fn asked() {
    // The sender lives as long as the process.
    let _ = ASKED.subscribe().wait_for(|asked| *asked).await;
}

/// Does the work, unless the user stops it while it does not wait for [`interrupted`]. Its
/// statements in the server are ended then.
///
/// # Errors
/// [`BadResult::Stopped`], or the error of the work.
pub(crate) fn block_on<T, E: From<BadResult>>(
    runtime: Runtime,
    printer: &Printer,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let _work = Counted::new(&WORK);
    let result = runtime.block_on(async {
        let mut work = Box::pin(work);
        tokio::select! {
            result = &mut work => {
                // The server may still run statements of work that was given up.
                connect::stop_everything(time_left().min(Duration::from_secs(1))).await;
                result
            }
            () = unheard() => {
                tell(printer, TOLD);
                // The work is not polled, so that it begins nothing new until its statements have ended.
                connect::stop_everything(time_left()).await;
                Err(BadResult::Stopped.into())
            }
        }
    });
    runtime.shutdown_timeout(SHUTDOWN);
    result
}

/// Resolves when the user wants pgrig to stop and no future of [`interrupted`] is awaited.
async fn unheard() {
    asked().await;
    if IS_HEARD.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

/// Time that is left for cancelled work to end.
fn time_left() -> Duration {
    GRACE.saturating_sub(FIRST_SIGNAL.get().map_or(Duration::ZERO, Instant::elapsed))
}

static FIRST_SIGNAL: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

/// The work of the signal thread.
async fn hear(quiet: bool) {
    let caught = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let [Ok(interrupt), Ok(terminate), Ok(hangup)] = caught else { return };
    let mut signals = Signals { interrupt, terminate, hangup };
    tokio::select! {
        () = signals.next() => {}
        () = tell_silences(quiet) => {}
    }
    let _ = FIRST_SIGNAL.set(Instant::now());
    let is_heard = LISTENERS.load(Ordering::SeqCst) > 0;
    IS_HEARD.store(is_heard, Ordering::SeqCst);
    if !is_heard && WORK.load(Ordering::SeqCst) == 0 {
        leave("interrupted");
    }
    ASKED.send_replace(true);
    tokio::select! {
        () = signals.second() => {
            let _ = tokio::time::timeout(LAST_CANCEL, connect::cancel_everything()).await;
            leave(
                "error: pgrig ended at once, and may have left settings, tables or databases on the server: pgrig server status restores \
                 settings and tables; the next run of the same verb on this server drops databases",
            );
        }
        () = silence() => leave(
            "error: pgrig ended, because the server does not answer, and may have left settings, tables or databases there: when the \
             server answers again, pgrig server status restores settings and tables, and the next run of the same verb drops databases",
        ),
    }
}

/// Resolves when servers have not answered for a while, neither on a session nor on a new
/// connection, although pgrig ends none of them.
async fn silence() {
    let mut heard = Instant::now();
    let mut knocking = Box::pin(connect::answers(SILENCE));
    loop {
        tokio::select! {
            is_there = &mut knocking => {
                if is_there {
                    heard = Instant::now();
                }
                tokio::time::sleep(LOOK_INTERVAL).await;
                knocking = Box::pin(connect::answers(SILENCE));
            }
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
        }
        if connect::is_ending() {
            heard = Instant::now();
        }
        if heard.elapsed().min(connect::silent_for()) > SILENCE {
            return;
        }
    }
}

/// Prints the statement that pgrig waits for when a server has been silent for long, and again each time the
/// silence has doubled. Never resolves.
async fn tell_silences(quiet: bool) {
    let mut next = TELL_SILENCE;
    loop {
        tokio::time::sleep(LISTEN_INTERVAL).await;
        let silences = connect::silences();
        let Some(longest) = silences.first().filter(|longest| longest.lasts >= TELL_SILENCE) else {
            next = TELL_SILENCE;
            continue;
        };
        if longest.lasts >= next && !quiet {
            let seconds = longest.lasts.as_secs();
            let others = silences.iter().skip(1).filter(|silence| silence.lasts >= TELL_SILENCE).count();
            let others = match others {
                0 => String::new(),
                1 => " (and 1 other session)".to_owned(),
                others => format!(" (and {others} other sessions)"),
            };
            let statement = &longest.statement;
            Printer::interject(&format!(
                "waiting {seconds} s for the server's answer to: {statement}{others}"
            ));
        }
        while longest.lasts >= next {
            next *= 2;
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }

    /// Resolves at the next signal that does not repeat the first one.
    async fn second(&mut self) {
        loop {
            self.next().await;
            if FIRST_SIGNAL.get().is_none_or(|first| first.elapsed() >= REPEATED) {
                return;
            }
        }
    }
}

/// Exits at once.
fn leave(text: &str) -> ! {
    terminal::give_back();
    Printer::interject(text);
    if has_changed_settings() {
        Printer::interject(
            "settings of the server are still changed: the next pgrig command that uses a server restores them",
        );
    }
    #[expect(clippy::exit, reason = "the user insists")]
    std::process::exit(130);
}

/// Whether this process has an open journal.
fn has_changed_settings() -> bool {
    let found = Home::locate().ok().and_then(|home| Journal::all(&journals(&home)).ok());
    found
        .into_iter()
        .flatten()
        .any(|found| matches!(found, JournalState::Live(record) if record.pid == std::process::id()))
}
