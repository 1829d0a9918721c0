//! A run's progress: a picture on a terminal, plain lines elsewhere or with -P, nothing with -q.

mod draw;
mod history;
mod lines;
mod screen;

use std::sync::Mutex;

use workload::tps::{Debugged, Observer, Request, Second};

use self::history::History;
use self::lines::Lines;
use self::screen::Screen;
use crate::printer::{Printer, ProgressStyle};

/// Seconds between plain lines where nobody said.
const LINE_INTERVAL: u64 = 5;

/// Shows what a run tells.
pub(super) struct Live<'a> {
    printer: &'a Printer,
    view: Mutex<View>,
}

enum View {
    Nothing,
    Lines(Lines),
    Picture { screen: Screen, history: History },
}

impl<'a> Live<'a> {
    /// For a run of this request; `every` is -P.
    pub(super) fn new(request: &Request, every: Option<u64>, printer: &'a Printer) -> Self {
        let lines = || View::Lines(Lines::new(every.unwrap_or(LINE_INTERVAL)));
        let view = match (printer.progress(), every) {
            (ProgressStyle::None, _) => View::Nothing,
            (ProgressStyle::Bar, None) => match Screen::open() {
                Some(screen) => View::Picture { screen, history: History::new(request) },
                None => lines(),
            },
            (ProgressStyle::Bar | ProgressStyle::Lines, _) => lines(),
        };
        Self { printer, view: Mutex::new(view) }
    }

    /// A line of its own, above the picture if there is one.
    pub(super) fn tell(&self, text: &str) {
        match self.view.lock().as_deref_mut() {
            Ok(View::Picture { screen, history }) => {
                // If the terminal is gone there is nobody left to tell.
                let _ = screen.tell(text).and_then(|()| screen.draw(history));
            }
            _ => self.printer.say(text),
        }
    }
}

impl Observer for Live<'_> {
    fn second(&self, second: &Second) {
        let Ok(mut view) = self.view.lock() else { return };
        match &mut *view {
            View::Nothing => {}
            View::Lines(lines) => {
                if let Some(line) = lines.add(second) {
                    self.printer.say(line);
                }
            }
            View::Picture { screen, history } => {
                history.add(second);
                let _ = screen.draw(history);
            }
        }
    }

    fn debugged(&self, debugged: &Debugged) {
        let Debugged { client, at: (script, command), value } = debugged;
        self.tell(&format!("debug(client={client},script={script},command={command}): {value}"));
    }
}

impl Drop for Live<'_> {
    /// The last picture stays, without what is no longer true of it.
    fn drop(&mut self) {
        if let Ok(View::Picture { screen, history }) = self.view.get_mut() {
            history.is_over = true;
            let _ = screen.draw(history);
        }
    }
}
