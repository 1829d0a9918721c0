//! Changes the terminal's modes while something is drawn on it, and always restores them.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// The modes to restore, while something is drawn on the terminal.
static SAVED_MODES: Mutex<Option<SavedModes>> = Mutex::new(None);

/// Whether the terminal did not answer a query.
static SILENT: AtomicBool = AtomicBool::new(false);

/// The terminal's modes before the change.
struct SavedModes {
    /// None if standard input is not the terminal.
    modes: Option<Termios>,
    /// Whether the cursor may be hidden.
    is_drawn_on: bool,
}

/// Whether pgrig can draw on a terminal. One that only takes plain lines says so by TERM, or does not answer a query.
pub(crate) fn can_draw() -> bool {
    !SILENT.load(Ordering::Relaxed)
        && std::env::var("TERM").is_ok_and(|name| !name.is_empty() && name != "dumb")
}

/// Whether the locale has the characters of charts: UTF-8, or no locale is set, as in many containers.
#[cfg_attr(not(feature = "live"), allow(dead_code, reason = "only a picture has these characters"))]
pub(crate) fn shows_charts() -> bool {
    is_utf8(|name| std::env::var(name).ok())
}

/// As setlocale(3) reads the variables: the first one that is not empty counts.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = names.filter_map(variable).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Records that the terminal did not answer a query: it gets plain lines from now on.
#[cfg_attr(not(feature = "live"), allow(dead_code, reason = "only a picture asks the terminal"))]
pub(crate) fn is_silent() {
    SILENT.store(true, Ordering::Relaxed);
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
    if let Ok(mut saved) = SAVED_MODES.lock() {
        *saved = Some(SavedModes { modes, is_drawn_on: false });
    }
}

/// Records that pgrig has drawn on the terminal whose modes are saved.
#[cfg_attr(not(feature = "live"), allow(dead_code, reason = "only a picture is drawn"))]
pub(crate) fn is_drawn_on() {
    if let Ok(mut saved) = SAVED_MODES.lock()
        && let Some(saved) = saved.as_mut()
    {
        saved.is_drawn_on = true;
    }
}

/// Restores the terminal. May be called at any time, and more than once.
pub(crate) fn give_back() {
    let Ok(mut saved) = SAVED_MODES.lock() else { return };
    if let Some(SavedModes { modes, is_drawn_on }) = saved.take() {
        if let Some(modes) = modes {
            let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &modes);
        }
        if is_drawn_on {
            // Show the cursor.
            let _ = io::stderr().write_all(b"\x1b[?25h");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_need_a_locale_with_their_characters() {
        let with = |set: &[(&str, &str)]| {
            is_utf8(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(with(&[]) && with(&[("LANG", "C.UTF-8")]) && with(&[("LC_ALL", ""), ("LANG", "de_DE.utf8")]));
        assert!(!with(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]) && !with(&[("LC_CTYPE", "POSIX")]));
    }
}
