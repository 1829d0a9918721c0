//! Panics of pgrig. A panic in any thread or task ends the run as Ctrl-C does, so that everything
//! is cleaned up, and is reported in one line.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::process::ExitCode;
use std::sync::OnceLock;

use tokio::sync::Notify;

use crate::app::terminal;
use crate::app::version::VERSION;

/// The first panic: its message and place. Later ones are its consequences.
static FIRST: OnceLock<String> = OnceLock::new();
/// Wakes the tasks that wait in [`noticed`].
static NOTICE: Notify = Notify::const_new();

/// Runs pgrig. If anything panics, prints one line instead of a backtrace (RUST_BACKTRACE adds that), and fails.
pub(crate) fn guarded(run: impl FnOnce() -> ExitCode) -> ExitCode {
    let backtrace = std::env::var_os("RUST_BACKTRACE").map(|_| take_hook());
    set_hook(Box::new(move |panic| {
        terminal::give_back();
        let _ = FIRST.set(described(panic));
        NOTICE.notify_waiters();
        if let Some(hook) = &backtrace {
            hook(panic);
        }
    }));
    let ended = catch_unwind(AssertUnwindSafe(run));
    match (first(), ended) {
        (None, Ok(status)) => status,
        (None, Err(payload)) => reported(message(&*payload)),
        (Some(fault), _) => reported(fault),
    }
}

/// The first panic, if there was one; it is the cause of other errors.
pub(crate) fn first() -> Option<&'static str> {
    FIRST.get().map(String::as_str)
}

/// Resolves when something has panicked.
pub(crate) async fn noticed() {
    let notified = NOTICE.notified();
    if first().is_none() {
        notified.await;
    }
}

fn reported(fault: &str) -> ExitCode {
    let text = format!(
        "error: pgrig {VERSION} stopped because of a bug: {fault}. Report this text and the command\n"
    );
    // If standard error is gone there is nobody left to tell.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    ExitCode::FAILURE
}

fn described(panic: &PanicHookInfo<'_>) -> String {
    let place =
        panic.location().map_or_else(String::new, |place| format!(" ({}:{})", place.file(), place.line()));
    // One line, whatever the message has.
    format!("{}{place}", message(panic.payload()).split_whitespace().collect::<Vec<_>>().join(" "))
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it panicked without a message")
}
