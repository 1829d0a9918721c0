//! A `blockio`'s progress: the server is asked nothing while a step runs, so it is the time that goes by.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use workload::blockio::{Observer, Plan, Step};

use crate::printer::{Printer, ProgressStyle};

/// Between plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Between turns of the spinner.
const TICK: Duration = Duration::from_millis(200);

/// Tells which step of which trial runs.
pub(super) struct BlockioProgress<'a> {
    printer: &'a Printer,
    schema: &'a str,
    trials: u16,
    last_line: Mutex<Option<Instant>>,
    spinner: Mutex<Option<ProgressBar>>,
}

impl<'a> BlockioProgress<'a> {
    pub(super) fn new(plan: &'a Plan, printer: &'a Printer) -> Self {
        let trials = plan.request.trials;
        Self { printer, schema: &plan.schema, trials, last_line: Mutex::default(), spinner: Mutex::default() }
    }

    /// Whether the last plain line was long enough ago.
    fn is_time(&self) -> bool {
        let Ok(mut last) = self.last_line.lock() else { return false };
        let is_time = last.is_none_or(|last| last.elapsed() >= LINE_INTERVAL);
        if is_time {
            *last = Some(Instant::now());
        }
        is_time
    }

    fn clear(&self) {
        if let Ok(mut spinner) = self.spinner.lock()
            && let Some(spinner) = spinner.take()
        {
            spinner.finish_and_clear();
        }
    }
}

impl Observer for BlockioProgress<'_> {
    fn step_started(&self, trial: u16, step: &Step) {
        let text = format!("trial {trial} of {}, {}", self.trials, step.title);
        match self.printer.progress() {
            ProgressStyle::Lines if self.is_time() => self.printer.say(text),
            ProgressStyle::None | ProgressStyle::Lines => {}
            ProgressStyle::Bar => {
                let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                if let Ok(style) = BarStyle::with_template("{spinner} {msg}: {elapsed}") {
                    spinner.set_style(style);
                }
                spinner.set_message(text);
                spinner.enable_steady_tick(TICK);
                if let Ok(mut slot) = self.spinner.lock() {
                    *slot = Some(spinner);
                }
            }
        }
    }

    fn step_finished(&self) {
        self.clear();
    }

    fn left_behind(&self, why: &str) {
        self.clear();
        self.printer.warn(format!(
            "what was made in schema {} is still there ({why}): the next pgrig blockio there drops it",
            self.schema
        ));
    }
}

impl Drop for BlockioProgress<'_> {
    /// Takes the spinner of an unfinished step off the screen before an error is printed.
    fn drop(&mut self) {
        self.clear();
    }
}
