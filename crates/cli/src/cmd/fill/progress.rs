//! A fill's progress: a bar on a terminal, a line every few seconds elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fill::limits::{Event, RemainingSpace};
use fill::{InitStep, Observer, Plan, ProbePoint};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use measure::human::{bytes, count, grouped, latency};

use crate::app::bar;
use crate::app::numbers::clock;
use crate::app::printer::{Printer, ProgressStyle};
use crate::app::steps::ShownSteps;

/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Length of a bar for progress that is known only as a fraction.
const PARTS: u64 = 1000;

/// Shows the progress of a fill.
pub(crate) struct FillProgress<'a> {
    printer: &'a Printer,
    style: ProgressStyle,
    /// Rows in all; none if only a limit ends the fill.
    rows: Option<u64>,
    /// Time after which the fill ends; none without such a limit.
    duration: Option<Duration>,
    /// Distance to the point at which a lack of space ends the fill: at first, and now.
    remaining: Mutex<Option<(RemainingSpace, RemainingSpace)>>,
    /// Share of the size that a table has reached, 0 to 1; none without a size.
    grown: Option<Mutex<f64>>,
    bytes_per_row: f64,
    sent: AtomicU64,
    /// Rows that an interrupted run has loaded.
    before: u64,
    events: Mutex<Vec<measure::Event>>,
    current: Mutex<Option<Current>>,
    /// The table, if it is one of several.
    table: Option<OfSeveral>,
}

/// A table among others.
#[derive(Clone, Debug)]
pub(crate) struct OfSeveral {
    /// Its name and the number of tables.
    pub(crate) name: String,
    /// Its place among them.
    pub(crate) place: usize,
    pub(crate) all: Arc<AllTables>,
}

/// Several tables that are filled, some of them at once.
#[derive(Debug)]
pub(crate) struct AllTables {
    /// Start of the first table.
    pub(crate) started: Instant,
    /// Share of all bytes that each table has.
    pub(crate) shares: Vec<f64>,
    /// Share of each table that is filled.
    pub(crate) filled: Mutex<Vec<f64>>,
    /// Their bars, one below the other.
    pub(crate) bars: MultiProgress,
}

impl OfSeveral {
    /// Progress of all tables with the remaining time, if this share of the present table is
    /// filled.
    fn whole(&self, filled: f64) -> String {
        let Ok(mut of_all) = self.all.filled.lock() else { return String::new() };
        of_all[self.place] = filled.clamp(0.0, 1.0);
        let sum: f64 = of_all.iter().zip(&self.all.shares).map(|(filled, share)| filled * share).sum();
        let fraction = sum.clamp(0.0, 1.0);
        let elapsed = self.all.started.elapsed().as_secs_f64();
        if fraction < 0.01 {
            return String::new();
        }
        format!("; all {:.0} %, {} left", fraction * 100.0, clock(elapsed / fraction - elapsed))
    }
}

/// The step being drawn.
struct Current {
    name: &'static str,
    bar: ProgressBar,
    started: Instant,
    last_line: Instant,
    /// The wait that was last printed; empty if none.
    wait: String,
}

/// Bytes of heap of a row.
fn bytes_per_row(plan: &Plan) -> f64 {
    plan.predicted.sizes.heap as f64 / plan.predicted_rows() as f64
}

impl<'a> FillProgress<'a> {
    pub(crate) fn new(plan: &Plan, duration: Option<Duration>, printer: &'a Printer) -> Self {
        let mut progress = Self::without_rows(printer);
        progress.rows = plan.rows().map(|rows| match plan.shares() {
            // About its share of the rows that are left.
            Some((own, all)) => {
                let left = rows.saturating_sub(plan.rows_done());
                plan.rows_done()
                    + u64::try_from(u128::from(left) * u128::from(own) / u128::from(all.max(1)))
                        .unwrap_or(left)
            }
            None => rows,
        });
        progress.duration = duration;
        progress.grown = plan.until_size.map(|_| Mutex::new(0.0));
        progress.bytes_per_row = bytes_per_row(plan);
        progress.sent = plan.rows_done().into();
        progress.before = plan.rows_done();
        progress
    }

    /// Progress of a table among others. `plan` is none for a step that loads no rows.
    pub(crate) fn of_several(plan: Option<&Plan>, table: OfSeveral, printer: &'a Printer) -> Self {
        let mut progress =
            plan.map_or_else(|| Self::without_rows(printer), |plan| Self::new(plan, None, printer));
        progress.table = Some(table);
        progress
    }

    fn without_rows(printer: &'a Printer) -> Self {
        Self {
            printer,
            style: printer.progress(),
            rows: None,
            duration: None,
            remaining: Mutex::new(None),
            grown: None,
            bytes_per_row: 0.0,
            sent: 0.into(),
            before: 0,
            events: Mutex::default(),
            current: Mutex::new(None),
            table: None,
        }
    }

    /// The step with its table, for people.
    fn prefix(&self, step: &str) -> String {
        self.table.as_ref().map_or_else(|| step.to_owned(), |table| format!("{}: {step}", table.name))
    }

    /// Events of limits and marks so far.
    pub(crate) fn events(&self) -> Vec<measure::Event> {
        self.events.lock().map_or(Vec::new(), |events| events.clone())
    }

    /// Prints a line, above the bar if there is one.
    fn tell(&self, text: &str) {
        match self.current.lock() {
            Ok(current) => match current.as_ref() {
                Some(current) => current.bar.suspend(|| self.printer.say(text)),
                None => self.printer.say(text),
            },
            Err(_) => self.printer.say(text),
        }
    }

    /// Progress of a fill without a known end, in [`PARTS`], by the nearest limit; and the free
    /// space, if it is known.
    fn open_ended(&self, elapsed: Duration) -> (Option<u64>, Option<u64>) {
        let remaining = self.remaining.lock().ok().and_then(|remaining| *remaining);
        let by_space = remaining.map(|(first, now)| 1.0 - now.to_go as f64 / first.to_go.max(1) as f64);
        let by_size = self.grown.as_ref().and_then(|grown| grown.lock().ok().map(|grown| *grown));
        let by_space = by_space.filter(|_| by_size.is_none());
        let by_time = self.duration.map(|duration| elapsed.as_secs_f64() / duration.as_secs_f64());
        let fraction = [by_size, by_space, by_time].into_iter().flatten().reduce(f64::max);
        (fraction.map(parts), remaining.map(|(_, now)| now.free))
    }

    fn is_at(&self, step: InitStep) -> bool {
        self.current.lock().is_ok_and(|current| current.as_ref().is_some_and(|at| at.name == title(step)))
    }

    fn update(&self, position: impl Fn(&Current) -> Option<u64>, describe: impl Fn(&Current) -> String) {
        let Ok(mut current) = self.current.lock() else { return };
        let Some(current) = current.as_mut() else { return };
        let position = position(current);
        current.bar.set_position(position.unwrap_or(0));
        let text = describe(current);
        match self.style {
            ProgressStyle::Bar => current.bar.set_message(text),
            ProgressStyle::Lines if current.last_line.elapsed() >= LINE_INTERVAL => {
                current.last_line = Instant::now();
                let percent =
                    position.zip(current.bar.length()).map_or(String::new(), |(position, length)| {
                        format!("{} %, ", position * 100 / length.max(1))
                    });
                self.printer.say(format!("{}: {percent}{text}", self.prefix(current.name)));
            }
            ProgressStyle::Lines | ProgressStyle::None => {}
        }
    }
}

impl FillProgress<'_> {
    /// Takes the bar off the screen, if there is one.
    fn take_bar(&self) {
        if let Ok(mut slot) = self.current.lock()
            && let Some(current) = slot.take()
        {
            current.bar.finish_and_clear();
        }
    }
}

impl Observer for FillProgress<'_> {
    fn checking_rows(&self, rows: u64) {
        self.tell(&format!("checking the rows that the interrupted fill has loaded: {}", grouped(rows)));
    }

    fn step_started(&self, step: InitStep) {
        // The rehearsal of a step has begun it, too. Its bar goes before another is drawn in its place.
        self.take_bar();
        let length = if step == InitStep::Generate { self.rows.unwrap_or(PARTS) } else { PARTS };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        if self.style == ProgressStyle::Bar {
            match &self.table {
                Some(table) => {
                    table.all.bars.add(bar.clone());
                }
                None => bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8)),
            }
            bar.set_style(bar::style("{prefix:12} "));
            bar.set_prefix(self.prefix(title(step)));
        }
        let now = Instant::now();
        let wait = String::new();
        let current = Current { name: title(step), bar, started: now, last_line: now, wait };
        if let Ok(mut slot) = self.current.lock() {
            *slot = Some(current);
        }
    }

    fn rows_sent(&self, rows: u64) {
        let sent = self.sent.fetch_add(rows, Ordering::Relaxed) + rows;
        let rate = |current: &Current| {
            (sent - self.before) as f64 / current.started.elapsed().as_secs_f64().max(1e-3)
        };
        let speed =
            |rate: f64| format!("{} rows/s, {:.0} MB/s", count(rate), rate * self.bytes_per_row / 1e6);
        let sent_rows = count(sent as f64);
        let Some(rows) = self.rows else {
            let position = |current: &Current| self.open_ended(current.started.elapsed()).0;
            return self.update(position, |current| {
                let free = self.open_ended(current.started.elapsed()).1;
                let free = free.map_or(String::new(), |free| format!(", {} free", bytes(free)));
                format!("{sent_rows} rows, {}{free}", speed(rate(current)))
            });
        };
        self.update(
            |_| Some(sent),
            |current| {
                let rate = rate(current);
                let left = match &self.table {
                    Some(table) => table.whole(sent as f64 / rows.max(1) as f64),
                    None => format!(", {} left", clock(rows.saturating_sub(sent) as f64 / rate)),
                };
                format!("{sent_rows} of {} rows, {}{left}", count(rows as f64), speed(rate))
            },
        );
    }

    fn fraction_done(&self, fraction: f64) {
        let fraction = fraction.clamp(0.0, 1.0);
        if let Some(grown) = self.grown.as_ref().filter(|_| self.is_at(InitStep::Generate)) {
            // Drawn with the rows.
            if let Ok(mut grown) = grown.lock() {
                *grown = fraction;
            }
            return;
        }
        self.update(
            |_| Some(parts(fraction)),
            |current| {
                let elapsed = current.started.elapsed().as_secs_f64();
                if fraction < 0.05 {
                    return format!("{} so far", clock(elapsed));
                }
                format!("{} left", clock(elapsed / fraction - elapsed))
            },
        );
    }

    fn event(&self, event: &Event) {
        if let Ok(mut events) = self.events.lock() {
            events.push(event.into());
        }
        self.tell(&event.what.to_string());
    }

    fn remaining_space(&self, now: RemainingSpace) {
        if let Ok(mut remaining) = self.remaining.lock() {
            // A volume that grows is further from its limit than at first.
            let first = remaining.map_or(now, |(first, _)| if first.to_go < now.to_go { now } else { first });
            *remaining = Some((first, now));
        }
    }

    fn probed(&self, point: &ProbePoint) {
        self.tell(&format!(
            "probe at {}: p50 {}, p99 {}",
            bytes(point.table_bytes),
            latency(point.latency.p50),
            latency(point.latency.p99)
        ));
    }

    fn waiting(&self, phrase: &str) {
        let is_new = self.current.lock().is_ok_and(|mut current| {
            current.as_mut().is_some_and(|current| {
                let is_new = current.wait != phrase;
                phrase.clone_into(&mut current.wait);
                is_new
            })
        });
        if is_new {
            self.tell(&format!("waiting {phrase}"));
        }
    }

    fn step_finished(&self, _: InitStep, _: Duration) {
        self.take_bar();
    }
}

impl Drop for FillProgress<'_> {
    /// Takes an unfinished bar off the screen before an error is printed.
    fn drop(&mut self) {
        self.take_bar();
    }
}

/// The steps of a plan, which are shown if it takes time: the server may be judging sample rows and candidate values, or may
/// wait until another pgrig has created tables.
pub(crate) fn planning(printer: &Printer) -> ShownSteps<'_> {
    let steps = ShownSteps::new(printer, "plan");
    steps.step("waiting for the server");
    steps
}

/// A fraction as a number of [`PARTS`].
fn parts(fraction: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to PARTS")]
    let parts = (fraction.clamp(0.0, 1.0) * PARTS as f64) as u64;
    parts
}

/// A step's name for people.
pub(crate) fn title(step: InitStep) -> &'static str {
    match step {
        InitStep::PrimaryKeys => "primary keys",
        InitStep::ForeignKeys => "foreign keys",
        InitStep::KeysAndIndexes => "keys and indexes",
        step => step.name(),
    }
}
