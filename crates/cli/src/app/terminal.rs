//! The terminal's state: borrowed while something is drawn on it, and given back whatever happens.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// The state to restore, while something is drawn on the terminal.
static BORROWED: Mutex<Option<Borrowed>> = Mutex::new(None);

/// The terminal as it was.
struct Borrowed {
    /// None if what is typed comes from elsewhere.
    modes: Option<Termios>,
}

/// Whether a terminal can be drawn on: one that only takes plain lines says so by TERM.
pub(crate) fn can_draw() -> bool {
    std::env::var("TERM").is_ok_and(|name| !name.is_empty() && name != "dumb")
}

/// Turns the echo of input off. Ctrl-C remains a signal.
#[cfg_attr(not(feature = "live"), allow(dead_code, reason = "only a picture borrows it"))]
pub(crate) fn borrow() {
    let stdin = io::stdin();
    let modes = tcgetattr(stdin.as_fd()).ok();
    if let Some(mut quiet) = modes.clone() {
        quiet.local_flags.remove(LocalFlags::ECHO);
        let _ = tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &quiet);
    }
    if let Ok(mut borrowed) = BORROWED.lock() {
        *borrowed = Some(Borrowed { modes });
    }
}

/// The terminal as it was. May be called at any time, and more than once.
pub(crate) fn give_back() {
    let Ok(mut borrowed) = BORROWED.lock() else { return };
    if let Some(Borrowed { modes }) = borrowed.take() {
        if let Some(modes) = modes {
            let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &modes);
        }
        // Show the cursor.
        let _ = io::stderr().write_all(b"\x1b[?25h");
    }
}
