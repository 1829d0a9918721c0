//! Progress of a `blockio`. The server is not queried while a step runs, so the elapsed time is
//! shown, beside the time of the same step in the trial before.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use blockio::{Observer, Plan, Step};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use measure::human::latency;

use crate::app::printer::{Printer, ProgressStyle};

/// Shorter steps get no line of progress.
const LONG: Duration = Duration::from_secs(1);
/// Interval of the spinner.
const TICK: Duration = Duration::from_millis(200);

/// Tells which step of which trial runs.
pub(crate) struct BlockioProgress<'a> {
    printer: &'a Printer,
    schema: &'a str,
    trials: u16,
    current: Mutex<Option<Current>>,
    times: Mutex<StepTimes>,
}

/// Times of the steps so far.
#[derive(Default)]
struct StepTimes {
    /// Times of the steps of the trial before, in order.
    before: Vec<Duration>,
    /// Times of the steps of this trial.
    now: Vec<Duration>,
    trial: u16,
}

impl StepTimes {
    /// Begins a new trial.
    fn begin(&mut self, trial: u16) {
        if trial != self.trial {
            self.before = std::mem::take(&mut self.now);
            self.trial = trial;
        }
    }

    /// Expected time of the step that begins, and of all steps from it to the last of so many
    /// trials. None in the first trial.
    fn expected(&self, trials: u16) -> Option<(Duration, Duration)> {
        let rest = self.before.get(self.now.len()..)?;
        let step = *rest.first()?;
        let later: Duration = self.before.iter().sum();
        Some((step, rest.iter().sum::<Duration>() + later * u32::from(trials - self.trial)))
    }
}

/// The running step.
struct Current {
    text: String,
    started: Instant,
    spinner: Option<ProgressBar>,
}

impl<'a> BlockioProgress<'a> {
    pub(crate) fn new(plan: &'a Plan, printer: &'a Printer) -> Self {
        Self {
            printer,
            schema: &plan.schema,
            trials: plan.request.trials,
            current: Mutex::default(),
            times: Mutex::default(),
        }
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

fn spinner(text: &str, expected: Option<(Duration, Duration)>) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = BarStyle::with_template("{spinner} {prefix}: {elapsed}{msg}") {
        spinner.set_style(style);
    }
    spinner.set_prefix(text.to_owned());
    if let Some((step, all)) = expected {
        let all = HumanDuration(all);
        spinner.set_message(format!(" of about {}; all done in about {all}", latency(step.as_secs_f64())));
    }
    spinner.enable_steady_tick(TICK);
    spinner
}

impl Observer for BlockioProgress<'_> {
    fn step_started(&self, trial: u16, step: &Step) {
        let text = format!("trial {trial} of {}, {}", self.trials, step.title);
        let expected = self.times.lock().ok().and_then(|mut times| {
            times.begin(trial);
            times.expected(self.trials)
        });
        let spinner = (self.printer.progress() == ProgressStyle::Bar).then(|| spinner(&text, expected));
        if let Ok(mut current) = self.current.lock() {
            *current = Some(Current { text, started: Instant::now(), spinner });
        }
    }

    fn step_finished(&self) {
        let Some(Current { text, started, .. }) = self.take() else { return };
        let elapsed = started.elapsed();
        if let Ok(mut times) = self.times.lock() {
            times.now.push(elapsed);
        }
        if self.printer.progress() == ProgressStyle::Lines && elapsed >= LONG {
            self.printer.say(format!("{text}: {}", latency(elapsed.as_secs_f64())));
        }
    }

    fn left_behind(&self, why: &str) {
        self.take();
        self.printer.warn(format!(
            "the tables in schema {} are still there ({why}): the next pgrig blockio in this schema drops them",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_trial_before_took_is_expected_again() {
        let seconds = Duration::from_secs;
        let mut times = StepTimes::default();
        times.begin(1);
        assert_eq!(times.expected(3), None);
        times.now = vec![seconds(5), seconds(2)];
        times.begin(2);
        assert_eq!(times.expected(3), Some((seconds(5), seconds(14))));
        times.now.push(seconds(6));
        times.begin(2);
        assert_eq!(times.expected(3), Some((seconds(2), seconds(9))));
    }
}
