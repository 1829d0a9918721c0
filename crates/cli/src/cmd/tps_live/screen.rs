//! The terminal: borrowed for a few lines, and given back whatever happens.

use std::io::{self, IsTerminal, Stderr, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, Once};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use ratatui::backend::CrosstermBackend;
use ratatui::text::Text;
use ratatui::widgets::{Paragraph, Widget};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::draw::{HEIGHT, Palette, draw};
use super::history::History;

/// How to give the terminal back, while something is drawn on it.
static BORROWED: Mutex<Option<Borrowed>> = Mutex::new(None);

/// The terminal as it was.
struct Borrowed {
    /// None if what is typed comes from elsewhere.
    modes: Option<Termios>,
}

/// Some lines of the terminal, below what was printed before. What was drawn last stays there.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    palette: Palette,
}

impl Screen {
    /// Borrows the terminal; none if it cannot be drawn on.
    pub(super) fn open() -> Option<Self> {
        // The terminal is asked where the cursor is, on standard output: that must not end up in a file.
        if !io::stdout().is_terminal() {
            return None;
        }
        borrow();
        let options = TerminalOptions { viewport: Viewport::Inline(HEIGHT) };
        // What is no real terminal may not answer.
        let Ok(terminal) = Terminal::with_options(CrosstermBackend::new(io::stderr()), options) else {
            give_back();
            return None;
        };
        Some(Self { terminal, palette: Palette { is_coloured: console::colors_enabled_stderr() } })
    }

    pub(super) fn draw(&mut self, history: &History) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, history, self.palette))?;
        Ok(())
    }

    /// Prints text above what is drawn.
    pub(super) fn tell(&mut self, text: &str) -> io::Result<()> {
        let text = Text::raw(text.to_owned());
        let height = u16::try_from(text.lines.len()).unwrap_or(u16::MAX);
        self.terminal.insert_before(height, |buffer| Paragraph::new(text).render(buffer.area, buffer))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // What is printed next goes below.
        let area = self.terminal.get_frame().area();
        let _ = self.terminal.set_cursor_position((0, area.bottom().saturating_sub(1)));
        give_back();
        let _ = writeln!(io::stderr());
    }
}

/// What is typed is not shown meanwhile. Ctrl-C remains a signal.
fn borrow() {
    let stdin = io::stdin();
    let modes = tcgetattr(stdin.as_fd()).ok();
    if let Some(mut quiet) = modes.clone() {
        quiet.local_flags.remove(LocalFlags::ECHO);
        let _ = tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &quiet);
    }
    if let Ok(mut borrowed) = BORROWED.lock() {
        *borrowed = Some(Borrowed { modes });
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
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
