//! Ctrl-C and its kin: one thread hears the signals, whatever the others do.
//!
//! A verb that has something to tidy up asks [`interrupted`] beside its work. All other work that [`block_on`] does
//! is dropped at the first signal, and what it runs in the server is cancelled. If the server stays silent, pgrig
//! leaves after two seconds; at a second signal it leaves at once.

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

use crate::app::failure::Unhappy;
use crate::app::printer::Printer;
use crate::app::recovery::journals;
use crate::app::{fault, terminal};

/// Line printed at the first signal.
const TOLD: &str = "interrupted: cancelling the running statements (Ctrl-C again ends pgrig at once)";
/// Silence of the server after which pgrig leaves.
const SILENCE: Duration = Duration::from_millis(1800);
/// Between two looks at that.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// For cancel requests to go out before pgrig leaves at once.
const LAST_CANCEL: Duration = Duration::from_millis(300);
/// For what runs in the background to end with the runtime: a look-up of a host's name may take longer.
const SHUTDOWN: Duration = Duration::from_millis(100);
/// Silence of the server after which a line names the statement that pgrig waits for.
const TELL_SILENCE: Duration = Duration::from_secs(30);
/// Between two looks at that.
const LISTEN_INTERVAL: Duration = Duration::from_secs(1);

static STARTED: Once = Once::new();
static ASKED: LazyLock<watch::Sender<bool>> = LazyLock::new(|| watch::Sender::new(false));
/// Futures of [`interrupted`] that are waited for.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
/// Work that [`block_on`] does.
static WORK: AtomicUsize = AtomicUsize::new(0);
/// Whether somebody listened when the first signal came.
static IS_HEARD: AtomicBool = AtomicBool::new(false);

/// Counts as long as it lives.
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

/// Hears signals from now on. Without the thread they end pgrig at once.
pub(crate) fn listen(printer: &Printer) {
    STARTED.call_once(|| {
        let quiet = printer.is_quiet();
        let hear = move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(hear(quiet));
        };
        // The process goes on without, if there can be none.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(hear);
    });
}

/// Whether the user wants pgrig to stop.
pub(crate) fn was_asked() -> bool {
    *ASKED.borrow()
}

/// Resolves when a run has to stop, as verbs' crates take it.
pub(crate) type Interrupt<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Resolves when the user, or whoever ends sessions, wants pgrig to stop, or when something panics. From its first poll on,
/// whoever waits for it sees to what is to be done then.
pub(crate) fn interrupted(printer: &Printer) -> Interrupt<'_> {
    Box::pin(interrupted_telling(|text| printer.say(text)))
}

/// The same, told as the caller wants it.
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

/// Does the work, unless the user stops it where it does not listen itself. Nothing of it goes on in the server
/// afterwards.
///
/// # Errors
/// [`Unhappy::Stopped`], or the work's own.
pub(crate) fn block_on<T, E: From<Unhappy>>(
    runtime: Runtime,
    printer: &Printer,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let _work = Counted::new(&WORK);
    let result = runtime.block_on(async {
        let mut work = Box::pin(work);
        tokio::select! {
            result = &mut work => {
                // Of what was given up on the way, the server may still run something.
                connect::stop_everything(time_left().min(Duration::from_secs(1))).await;
                result
            }
            () = unheard() => {
                printer.say(TOLD);
                // The work stands still, so that nothing new begins, until what it began has ended.
                connect::stop_everything(time_left()).await;
                Err(Unhappy::Stopped.into())
            }
        }
    });
    runtime.shutdown_timeout(SHUTDOWN);
    result
}

/// Resolves when the user wants pgrig to stop and nobody listened.
async fn unheard() {
    asked().await;
    if IS_HEARD.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
}

/// For what was cancelled to end.
fn time_left() -> Duration {
    GRACE.saturating_sub(FIRST_SIGNAL.get().map_or(Duration::ZERO, Instant::elapsed))
}

static FIRST_SIGNAL: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();

/// The thread's work.
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
        () = signals.next() => {
            let _ = tokio::time::timeout(LAST_CANCEL, connect::cancel_everything()).await;
            leave("error: ended at once; the state of the server was not checked");
        }
        () = silence() => leave("error: ended, because the server does not answer"),
    }
}

/// Resolves when no server has answered for a while: neither to a session nor to whoever knocks.
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
        if heard.elapsed().min(connect::silent_for()) > SILENCE {
            return;
        }
    }
}

/// Tells what is waited for when a server has been silent for long, again after twice the time. Never resolves.
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
}

/// Leaves, whatever is under way.
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

/// Whether a journal of this process is open.
fn has_changed_settings() -> bool {
    let found = Home::locate().ok().and_then(|home| Journal::all(&journals(&home)).ok());
    found
        .into_iter()
        .flatten()
        .any(|found| matches!(found, JournalState::Live(record) if record.pid == std::process::id()))
}
