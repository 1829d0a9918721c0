//! Changes the terminal's modes while something is drawn on it, and always restores them.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// The modes to restore, while something is drawn on the terminal.
static BORROWED: Mutex<Option<Borrowed>> = Mutex::new(None);

/// The terminal's modes before the change.
struct Borrowed {
    /// None if standard input is not the terminal.
    modes: Option<Termios>,
}

/// Whether the terminal can be drawn on: TERM says if it only takes plain lines.
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

/// Restores the terminal. May be called at any time, and more than once.
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
