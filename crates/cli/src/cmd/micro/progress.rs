//! Progress of a `micro`: rounds so far, and remaining time. It is drawn between rounds, never
//! during one.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use measure::human::counted;
use micro::RunProgress;

use crate::app::bar;
use crate::app::printer::{Printer, ProgressStyle};

/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of rounds.
pub(crate) struct RoundsProgress<'a> {
    what: &'static str,
    printer: &'a Printer,
    bar: Option<ProgressBar>,
    told: Instant,
}

impl<'a> RoundsProgress<'a> {
    pub(crate) fn new(what: &'static str, printer: &'a Printer) -> Self {
        Self { what, printer, bar: None, told: Instant::now() }
    }

    pub(crate) fn show(&mut self, progress: RunProgress) {
        let left = progress.budget.saturating_sub(progress.elapsed).as_secs_f64();
        let text = format!("{}, at most {left:.0} s left", counted(progress.rounds as u64, "round"));
        match self.printer.progress() {
            ProgressStyle::Bar => {
                let bar = self.bar.get_or_insert_with(|| bar(self.what, progress.budget));
                bar.set_position(u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX));
                bar.set_message(text);
            }
            ProgressStyle::Lines if self.told.elapsed() >= LINE_INTERVAL => {
                self.told = Instant::now();
                self.printer.say(format!("{}: {text}", self.what));
            }
            ProgressStyle::Lines | ProgressStyle::None => {}
        }
    }
}

fn bar(what: &'static str, budget: Duration) -> ProgressBar {
    let length = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(4));
    bar.set_style(bar::style("{prefix:12} "));
    bar.set_prefix(what);
    bar
}

impl Drop for RoundsProgress<'_> {
    /// Takes the bar off the screen before results or an error are printed.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
