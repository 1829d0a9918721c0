//! Ctrl-C and its kin.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::printer::Printer;
use crate::terminal;

/// Resolves when the user, or whoever ends sessions, wants pgrig to stop. Asked a second time it
/// leaves at once: the server then ends too, or rolls back.
pub(crate) async fn interrupted(printer: &Printer) {
    interrupted_telling(|text| printer.say(text)).await;
}

/// The same, told as the caller wants it.
pub(crate) async fn interrupted_telling(tell: impl Fn(&str)) {
    let caught = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let [Ok(interrupt), Ok(terminate), Ok(hangup)] = caught else {
        // Without handlers the signals end pgrig at once.
        return std::future::pending().await;
    };
    let mut signals = Signals { interrupt, terminate, hangup };
    signals.next().await;
    tell("interrupted: cancelling what runs (once more leaves at once)");
    tokio::spawn(async move {
        signals.next().await;
        terminal::give_back();
        let left = "error: left at once; what is there was not looked at\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), left.as_bytes());
        #[expect(clippy::exit, reason = "the user insists")]
        std::process::exit(130);
    });
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
