//! A run's progress: a picture on a terminal, plain lines elsewhere or with -P, nothing with -q.

#[cfg(feature = "live")]
mod draw;
#[cfg_attr(not(feature = "live"), allow(dead_code, reason = "only a picture shows it"))]
mod history;
mod lines;
#[cfg_attr(not(feature = "live"), path = "no_screen.rs")]
mod screen;

use std::sync::Mutex;

use tps::{Debugged, Moves, Observer, Request, Second};

use self::history::History;
use self::lines::Lines;
use self::screen::Screen;
use crate::app::printer::{Printer, ProgressStyle};

/// Default interval of plain lines, seconds.
const LINE_INTERVAL: u64 = 5;

/// Shows the progress of a run.
pub(crate) struct Live<'a> {
    printer: &'a Printer,
    view: Mutex<View>,
    idle: Mutex<IdlePeriod>,
}

/// A period without finished transactions.
struct IdlePeriod {
    lasts: f64,
    /// When the next line about it is due.
    told_at: f64,
}

impl IdlePeriod {
    const NONE: Self = Self { lasts: 0.0, told_at: 30.0 };

    /// Adds a second in which so many transactions ended. Returns a line if one is due; lines come
    /// at growing intervals.
    fn add(&mut self, length: f64, ended: u64) -> Option<String> {
        if ended > 0 {
            *self = Self::NONE;
            return None;
        }
        self.lasts += length;
        if self.lasts < self.told_at {
            return None;
        }
        self.told_at *= 2.0;
        Some(format!(
            "no transaction has ended for {:.0} s: the server does not answer, or the script waits in \\sleep",
            self.lasts
        ))
    }
}

/// The terminal, and the figures that it shows.
struct Picture {
    screen: Screen,
    history: History,
}

enum View {
    Nothing,
    Lines(Box<Lines>),
    Picture(Box<Picture>),
}

impl<'a> Live<'a> {
    /// The view for a run of this request; `every` is -P.
    pub(crate) fn new(request: &Request, every: Option<u64>, printer: &'a Printer) -> Self {
        let lines = || View::Lines(Box::new(Lines::new(every.unwrap_or(LINE_INTERVAL), request)));
        let view = match (printer.progress(), every) {
            (ProgressStyle::None, _) => View::Nothing,
            (ProgressStyle::Bar, None) => match Screen::open() {
                Some(screen) => View::Picture(Box::new(Picture { screen, history: History::new(request) })),
                None => lines(),
            },
            (ProgressStyle::Bar | ProgressStyle::Lines, _) => lines(),
        };
        Self { printer, view: Mutex::new(view), idle: Mutex::new(IdlePeriod::NONE) }
    }

    /// Prints a line, above the picture if there is one.
    pub(crate) fn tell(&self, text: &str) {
        match self.view.lock().as_deref_mut() {
            Ok(View::Picture(picture)) => {
                let Picture { screen, history } = &mut **picture;
                // If the terminal is gone there is nobody left to tell.
                let _ = screen.tell(text).and_then(|()| screen.draw(history));
            }
            _ => self.printer.say(text),
        }
    }
}

impl Observer for Live<'_> {
    fn second(&self, second: &Second) {
        let counts = &second.counts;
        let ended = counts.succeeded + counts.all_failed() + counts.skipped;
        let told = self.idle.lock().ok().and_then(|mut idle| idle.add(second.length, ended));
        if let Some(told) = told {
            self.tell(&told);
        }
        let Ok(mut view) = self.view.lock() else { return };
        match &mut *view {
            View::Nothing => {}
            View::Lines(lines) => {
                if let Some(line) = lines.add(second) {
                    self.printer.say(line);
                }
            }
            View::Picture(picture) => {
                let Picture { screen, history } = &mut **picture;
                history.add(second);
                let _ = screen.draw(history);
            }
        }
    }

    fn waiting(&self, parts: &[usize]) {
        let of = if parts.len() == 1 { "part" } else { "parts" };
        let numbers: Vec<String> = parts.iter().map(ToString::to_string).collect();
        self.tell(&format!("waiting for {of} {} of the run", numbers.join(", ")));
    }

    fn moved(&self, moves: &Moves) {
        let Moves { from, to, why, .. } = moves;
        self.tell(&format!("clients move from target {} to target {}: {why}", from + 1, to + 1));
    }

    fn debugged(&self, debugged: &Debugged) {
        let Debugged { client, at: (script, command), value } = debugged;
        self.tell(&format!("debug(client={client},script={script},command={command}): {value}"));
    }
}

impl Drop for Live<'_> {
    /// Leaves the last picture on the screen, without parts that are no longer true.
    fn drop(&mut self) {
        if let Ok(View::Picture(picture)) = self.view.get_mut() {
            let Picture { screen, history } = &mut **picture;
            history.is_over = true;
            let _ = screen.draw(history);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lull_is_told_sparsely() {
        let mut idle = IdlePeriod::NONE;
        let told = |idle: &mut IdlePeriod, seconds: u32, ended: u64| {
            (1..=seconds).filter(|_| idle.add(1.0, ended).is_some()).count()
        };
        assert_eq!(told(&mut idle, 29, 0), 0);
        assert_eq!(told(&mut idle, 1, 0), 1);
        assert_eq!(told(&mut idle, 90, 0), 2, "at 60 and at 120");
        assert_eq!(told(&mut idle, 1, 5), 0);
        assert_eq!(told(&mut idle, 30, 0), 1);
    }
}
