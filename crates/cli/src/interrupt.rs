//! Ctrl-C and its kin.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::printer::Printer;
use crate::terminal;

/// Resolves when the user, or whoever ends sessions, wants pgrig to stop, from now on. Asked a second time it
/// leaves at once: the server then ends too, or rolls back.
pub(crate) fn interrupted(printer: &Printer) -> impl Future<Output = ()> {
    interrupted_telling(|text| printer.say(text))
}

/// The same, told as the caller wants it.
pub(crate) fn interrupted_telling<T: Fn(&str)>(tell: T) -> impl Future<Output = ()> + use<T> {
    // Not only when it is first waited for: what is begun until then would be left behind.
    let caught = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    async move {
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
