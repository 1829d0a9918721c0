//! Progress of a change of persistence: tables, bytes, time left.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use measure::human::bytes;
use testdb::unlog::{Object, ObjectKind, Observer, Step, UnlogPlan};

use crate::app::bar;
use crate::app::numbers::clock;
use crate::app::printer::{Printer, ProgressStyle};

/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// The time of each table.
pub(crate) type Times = Vec<(Object, Duration)>;

/// Shows which table is being rewritten.
pub(crate) struct UnlogProgress<'a> {
    printer: &'a Printer,
    plan: &'a UnlogPlan,
    tables: usize,
    total: u64,
    bar: ProgressBar,
    state: Mutex<ChangeProgress>,
}

struct ChangeProgress {
    began: Instant,
    step_began: Instant,
    last_line: Instant,
    /// Bytes of tables that have been changed.
    done: u64,
    times: Times,
    /// The process that was last reported as the holder of a lock.
    holder: String,
}

impl<'a> UnlogProgress<'a> {
    pub(crate) fn new(plan: &'a UnlogPlan, printer: &'a Printer) -> Self {
        let total = plan.bytes();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if printer.progress() == ProgressStyle::Bar {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
            bar.set_style(bar::style(""));
        }
        let now = Instant::now();
        let state = ChangeProgress {
            began: now,
            step_began: now,
            last_line: now,
            done: 0,
            times: Vec::new(),
            holder: String::new(),
        };
        let tables = plan.changes(ObjectKind::Table).count();
        Self { printer, plan, tables, total, bar, state: Mutex::new(state) }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(self) -> Times {
        self.bar.finish_and_clear();
        std::mem::take(&mut self.state().times)
    }

    fn state(&self) -> MutexGuard<'_, ChangeProgress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Progress, `public.orders, 3 of 12 tables, 1.2 of 4.0 GB, 7 s left`.
    fn describe(&self, state: &ChangeProgress, table: &Object) -> String {
        let (number, tables) = (state.times.len() + 1, self.tables);
        let amount = format!("{} of {}", bytes(state.done), bytes(self.total));
        let left = (state.done > 0).then(|| {
            let elapsed = state.began.elapsed().as_secs_f64();
            let left = elapsed * (self.total - state.done) as f64 / state.done as f64;
            format!(", {} left", clock(left))
        });
        format!("{table}, {number} of {tables} tables, {amount}{}", left.unwrap_or_default())
    }
}

impl Observer for UnlogProgress<'_> {
    fn begun(&self, step: &Step) {
        let mut state = self.state();
        state.step_began = Instant::now();
        let text = match step.changes(self.plan.direction) {
            Some((table, _)) if table.kind == ObjectKind::Table => self.describe(&state, table),
            Some(_) => "sequences".to_owned(),
            None => match step {
                Step::Lock(_) => "locking".to_owned(),
                _ => "foreign keys in cycles".to_owned(),
            },
        };
        self.bar.set_message(text.clone());
        if self.printer.progress() == ProgressStyle::Lines && state.last_line.elapsed() >= LINE_INTERVAL {
            state.last_line = Instant::now();
            self.printer.say(text);
        }
    }

    fn done(&self, step: &Step) {
        let mut state = self.state();
        if let Some((table, bytes)) = step.changes(self.plan.direction)
            && table.kind == ObjectKind::Table
        {
            state.done += bytes;
            let took = state.step_began.elapsed();
            state.times.push((table.clone(), took));
            self.bar.set_position(state.done);
        }
    }

    fn waiting_for_lock(&self, holder: &str) {
        let mut state = self.state();
        if state.holder != holder {
            holder.clone_into(&mut state.holder);
            self.bar.suspend(|| self.printer.say(format!("waiting for a lock that {holder} holds")));
        }
    }
}

impl Drop for UnlogProgress<'_> {
    /// Takes an unfinished bar off the screen before an error is printed.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
