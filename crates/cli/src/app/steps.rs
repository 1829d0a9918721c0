//! Steps of work whose end nothing foretells. If a stage lasts, its present step is shown with the time so far.
//!
//! On a terminal, the step has a line below all others, which goes at the end of the stage. Elsewhere a line is printed from
//! time to time. A thread shows the step, because the work may block all others.

use std::fmt::Display;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::app::bar;
use crate::app::numbers::clock;
use crate::app::printer::{Printer, ProgressStyle};

/// Time of a stage after which its step is shown on a terminal.
const SOON: Duration = Duration::from_secs(1);
/// Time between two drawings.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// Least time between two lines, where no line can be drawn again.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the stages of a piece of work, and their steps, until it is dropped.
pub(crate) struct ShownSteps<'a> {
    printer: &'a Printer,
    present: Arc<Mutex<Present>>,
    /// The thread ends once this is dropped.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The present stage and step.
struct Present {
    /// Name of the work, before its steps; empty if its stages have lines.
    name: &'static str,
    style: ProgressStyle,
    /// Begin of the stage; none if nothing is to be shown.
    begun: Option<Instant>,
    step: String,
    bar: Option<ProgressBar>,
    /// Time of the last line.
    last_line: Instant,
    /// Time of the stage at the line that told of the step; none if no line has.
    told_at: Option<Duration>,
}

impl<'a> ShownSteps<'a> {
    /// Shows nothing yet. `name` stands before the steps of work that has no stages.
    pub(crate) fn new(printer: &'a Printer, name: &'static str) -> Self {
        let style = printer.progress();
        let present = Arc::new(Mutex::new(Present::new(name, style)));
        let (running, ended) = channel();
        let mut thread = None;
        if style != ProgressStyle::None {
            let present = Arc::clone(&present);
            let show = move || {
                while ended.recv_timeout(DRAW_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    locked(&present).show();
                }
            };
            // Without this thread, stages have their lines nevertheless.
            thread = Builder::new().name("steps".to_owned()).spawn(show).ok();
        }
        Self { printer, present, running: Some(running), thread }
    }

    /// A stage begins, with a line.
    pub(crate) fn stage(&self, text: impl Display) {
        let mut present = locked(&self.present);
        present.clear();
        self.printer.say(text);
        present.begun = Some(Instant::now());
    }

    /// A step of the stage begins: a phrase.
    pub(crate) fn step(&self, text: &str) {
        let mut present = locked(&self.present);
        if present.step != text {
            present.begun.get_or_insert_with(Instant::now);
            text.clone_into(&mut present.step);
            present.told_at = None;
        }
    }

    /// The stage has ended.
    pub(crate) fn clear(&self) {
        locked(&self.present).clear();
    }

    /// Prints a line of progress above the present step.
    pub(crate) fn say(&self, text: impl Display) {
        locked(&self.present).above(|| self.printer.say(text));
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: impl Display) {
        locked(&self.present).above(|| self.printer.warn(text));
    }
}

impl Drop for ShownSteps<'_> {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // If it has panicked, it shows nothing more.
            let _ = thread.join();
        }
        self.clear();
    }
}

fn locked(present: &Mutex<Present>) -> MutexGuard<'_, Present> {
    present.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Present {
    fn new(name: &'static str, style: ProgressStyle) -> Self {
        let last_line = Instant::now();
        Self { name, style, begun: None, step: String::new(), bar: None, last_line, told_at: None }
    }

    /// Ends the stage, and takes its line off the screen.
    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        *self = Self::new(self.name, self.style);
    }

    /// Prints above the line that is drawn.
    fn above(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn show(&mut self) {
        let Some(begun) = self.begun else { return };
        let so_far = begun.elapsed();
        match self.style {
            ProgressStyle::Bar if so_far >= SOON => self.draw(so_far),
            ProgressStyle::Lines => {
                if let Some(line) = self.line(so_far) {
                    Printer::interject(&line);
                }
            }
            ProgressStyle::Bar | ProgressStyle::None => {}
        }
    }

    fn draw(&mut self, so_far: Duration) {
        let (name, text) = (self.name, self.text(so_far));
        let bar = self.bar.get_or_insert_with(|| {
            let drawn = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            drawn.set_style(bar::style_without_end(if name.is_empty() { "  " } else { "{prefix:12} " }));
            drawn.set_prefix(name);
            drawn
        });
        bar.set_message(text);
    }

    /// The line that is due: of a step of which none has told, or that has doubled the time of its stage since.
    fn line(&mut self, so_far: Duration) -> Option<String> {
        let is_known = self.told_at.is_some_and(|told_at| so_far < told_at * 2);
        if self.step.is_empty() || is_known || self.last_line.elapsed() < LINE_INTERVAL {
            return None;
        }
        (self.last_line, self.told_at) = (Instant::now(), Some(so_far));
        let text = self.text(so_far);
        Some(if self.name.is_empty() { format!("  {text}") } else { format!("{}: {text}", self.name) })
    }

    fn text(&self, so_far: Duration) -> String {
        let time = clock(so_far.as_secs_f64());
        if self.step.is_empty() { format!("{time} so far") } else { format!("{}, {time} so far", self.step) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_step_has_a_line_if_it_lasts_and_another_once_its_time_has_doubled() {
        let mut present = Present::new("plan", ProgressStyle::Lines);
        assert_eq!(present.line(seconds(6)), None);
        "reading".clone_into(&mut present.step);
        // The last line was a moment ago.
        assert_eq!(present.line(seconds(6)), None);
        let long_ago = Instant::now().checked_sub(LINE_INTERVAL).unwrap();
        present.last_line = long_ago;
        assert_eq!(present.line(seconds(6)).as_deref(), Some("plan: reading, 6 s so far"));
        present.last_line = long_ago;
        assert_eq!(present.line(seconds(11)), None);
        assert_eq!(present.line(seconds(12)).as_deref(), Some("plan: reading, 12 s so far"));
        present.clear();
        assert!(present.begun.is_none() && present.step.is_empty());
    }

    #[test]
    fn a_step_of_a_stage_stands_below_the_line_of_the_stage() {
        let mut present = Present::new("", ProgressStyle::Lines);
        assert_eq!(present.text(seconds(2)), "2 s so far");
        "table a, 1 of 2".clone_into(&mut present.step);
        present.last_line = Instant::now().checked_sub(LINE_INTERVAL).unwrap();
        assert_eq!(present.line(seconds(6)).as_deref(), Some("  table a, 1 of 2, 6 s so far"));
    }
}
