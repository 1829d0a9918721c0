//! A `blockio`'s progress: the server is asked nothing while a step runs, so it is the time that goes by.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use measure::human::latency;
use workload::blockio::{Observer, Plan, Step};

use crate::printer::{Printer, ProgressStyle};

/// Steps that take less have no plain line.
const LONG: Duration = Duration::from_secs(1);
/// Between turns of the spinner.
const TICK: Duration = Duration::from_millis(200);

/// Tells which step of which trial runs.
pub(super) struct BlockioProgress<'a> {
    printer: &'a Printer,
    schema: &'a str,
    trials: u16,
    current: Mutex<Option<Current>>,
}

/// The step that runs.
struct Current {
    text: String,
    started: Instant,
    spinner: Option<ProgressBar>,
}

impl<'a> BlockioProgress<'a> {
    pub(super) fn new(plan: &'a Plan, printer: &'a Printer) -> Self {
        Self { printer, schema: &plan.schema, trials: plan.request.trials, current: Mutex::default() }
    }

    /// Takes the step off the screen.
    fn take(&self) -> Option<Current> {
        let current = self.current.lock().ok()?.take()?;
        if let Some(spinner) = &current.spinner {
            spinner.finish_and_clear();
        }
        Some(current)
    }
}

fn spinner(text: &str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = BarStyle::with_template("{spinner} {msg}: {elapsed}") {
        spinner.set_style(style);
    }
    spinner.set_message(text.to_owned());
    spinner.enable_steady_tick(TICK);
    spinner
}

impl Observer for BlockioProgress<'_> {
    fn step_started(&self, trial: u16, step: &Step) {
        let text = format!("trial {trial} of {}, {}", self.trials, step.title);
        let spinner = (self.printer.progress() == ProgressStyle::Bar).then(|| spinner(&text));
        if let Ok(mut current) = self.current.lock() {
            *current = Some(Current { text, started: Instant::now(), spinner });
        }
    }

    fn step_finished(&self) {
        let Some(Current { text, started, .. }) = self.take() else { return };
        let elapsed = started.elapsed();
        if self.printer.progress() == ProgressStyle::Lines && elapsed >= LONG {
            self.printer.say(format!("{text}: {}", latency(elapsed.as_secs_f64())));
        }
    }

    fn left_behind(&self, why: &str) {
        self.take();
        self.printer.warn(format!(
            "what was made in schema {} is still there ({why}): the next pgrig blockio there drops it",
            self.schema
        ));
    }
}

impl Drop for BlockioProgress<'_> {
    /// Takes the spinner of an unfinished step off the screen before an error is printed.
    fn drop(&mut self) {
        self.take();
    }
}
