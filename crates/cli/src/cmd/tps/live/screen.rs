//! A part of the terminal that is drawn on.

use std::io::{self, IsTerminal, Stderr, Write};

use ratatui::backend::CrosstermBackend;
use ratatui::text::Text;
use ratatui::widgets::{Paragraph, Widget};
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::app::terminal::{borrow, can_draw, give_back, is_drawn_on, is_silent, shows_charts};
use crate::cmd::tps::live::draw::{HEIGHT, Palette, draw};
use crate::cmd::tps::live::history::History;

/// Some lines of the terminal below earlier output. The last drawing stays there.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    palette: Palette,
}

impl Screen {
    /// Prepares the terminal; none if it cannot be drawn on.
    pub(crate) fn open() -> Option<Self> {
        // The terminal is asked where the cursor is, on standard output: that must not end up in a file.
        if !io::stdout().is_terminal() || !can_draw() || !shows_charts() {
            return None;
        }
        borrow();
        let options = TerminalOptions { viewport: Viewport::Inline(HEIGHT) };
        // Some terminals do not answer the question for the cursor.
        let Ok(terminal) = Terminal::with_options(CrosstermBackend::new(io::stderr()), options) else {
            is_silent();
            give_back();
            return None;
        };
        is_drawn_on();
        Some(Self { terminal, palette: Palette { is_coloured: console::colors_enabled_stderr() } })
    }

    pub(crate) fn draw(&mut self, history: &History) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, history, self.palette))?;
        Ok(())
    }

    /// Prints text above the view.
    pub(crate) fn tell(&mut self, text: &str) -> io::Result<()> {
        let text = Text::raw(text.to_owned());
        let height = u16::try_from(text.lines.len()).unwrap_or(u16::MAX);
        self.terminal.insert_before(height, |buffer| Paragraph::new(text).render(buffer.area, buffer))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Later output goes below the view.
        let area = self.terminal.get_frame().area();
        let _ = self.terminal.set_cursor_position((0, area.bottom().saturating_sub(1)));
        give_back();
        let _ = writeln!(io::stderr());
    }
}
