//! The time that a measurement takes: before it from assumed speeds, and then from the work that is done.

use std::time::{Duration, Instant};

use super::assumed::Assumed;
use crate::find::{Class, LockMode};
use crate::outcome::Effects;
use crate::plan::PlannedTable;

/// Seconds of one copy, however small: the server makes a database and drops it.
const FIXED: f64 = 0.3;
/// Seconds of a run with readers and writers, beyond those of the statements.
const PROBED: f64 = 2.0;
/// Bytes of tables that COPY fills in a second, with their indexes.
const COPY: f64 = 40e6;
/// The same, if pgrig writes them as pages: 380 MB/s on two idle cores (`records/2026-11-24-schema-pg18-bulk-5010000-rows.json`).
const PAGES: f64 = 300e6;
/// Bytes that are copied and forced to disk in a second.
const COPIED: f64 = 300e6;

/// Seconds of work at the largest size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speeds {
    /// Of a fill.
    fill: f64,
    /// Of a run of the migration in a copy.
    run: f64,
}

/// A piece of work; sizes are parts of the largest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// The tables are filled.
    Fill(f64),
    /// The migration runs.
    Run(f64),
    /// It runs at the largest size while readers and writers use the tables, and waits so long for open transactions.
    Probed(Duration),
}

impl Speeds {
    /// Assumed for tables of so many bytes, written as pages or not, and for what the statements did without rows.
    pub(crate) fn assumed(
        tables: &[PlannedTable],
        (bytes, as_pages): (u64, bool),
        statements: &[Assumed],
    ) -> Self {
        let of = |work: &Assumed| {
            let of_tables = tables.iter().filter(|table| work.tables.contains_key(&table.name));
            of_tables.map(|table| table.bytes as f64).sum::<f64>() / speed(work.class)
        };
        let bytes = bytes as f64;
        let filled = if as_pages { PAGES } else { COPY };
        Self { fill: bytes / filled, run: bytes / COPIED + statements.iter().map(of).sum::<f64>() }
    }

    fn of(self, work: Work) -> f64 {
        FIXED
            + match work {
                Work::Fill(part) => self.fill * part,
                Work::Run(part) => self.run * part,
                Work::Probed(_) => self.run + PROBED,
            }
    }
}

impl Work {
    /// Seconds that it waits for open transactions, whatever the speed.
    fn waits(self) -> f64 {
        match self {
            Self::Fill(_) | Self::Run(_) => 0.0,
            Self::Probed(open) => open.as_secs_f64(),
        }
    }
}

/// The class of a statement that ran without rows, by which its time is estimated.
pub(crate) fn class_of(found: &Effects) -> Class {
    // Without rows, none was changed.
    let changes = found.held.values().any(|modes| modes.contains(&LockMode::RowExclusive));
    if changes { found.class.max(Class::Rows) } else { found.class }
}

/// Bytes of tables in a second.
fn speed(class: Class) -> f64 {
    match class {
        Class::CatalogOnly | Class::Wait => f64::INFINITY,
        Class::Scan | Class::ScanOfAnother => 500e6,
        Class::Copy => 300e6,
        Class::SeveralTables => 200e6,
        Class::IndexBuild => 100e6,
        Class::Rewrite => 50e6,
        Class::Rows => 20e6,
    }
}

/// Counts work that is done: fills and runs apart, because a slow fill tells nothing of the runs. Waits for open transactions have no speed.
pub(crate) struct Clock {
    /// The end of the last piece of work.
    last: Instant,
    speeds: Speeds,
    fills: Progress,
    runs: Progress,
    waits: Progress,
}

/// Work of one kind, seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Assumed for all of it.
    all: f64,
    /// Assumed for the finished part.
    done: f64,
    /// Taken by the finished part.
    took: f64,
}

impl Progress {
    /// The time that is left, if all goes on as it went.
    fn left(self) -> f64 {
        let pace = if self.done > 0.0 { self.took / self.done.max(FIXED) } else { 1.0 };
        pace * self.rest()
    }

    /// Assumed for the rest.
    fn rest(self) -> f64 {
        (self.all - self.done).max(0.0)
    }
}

impl Clock {
    pub(crate) fn begin(speeds: Speeds, works: impl IntoIterator<Item = Work>) -> Self {
        let [fills, runs, waits] = [Progress::default(); 3];
        let mut clock = Self { last: Instant::now(), speeds, fills, runs, waits };
        for work in works {
            clock.waits.all += work.waits();
            clock.of(work).all += speeds.of(work);
        }
        clock
    }

    /// The time since the last piece of work belongs to none.
    pub(crate) fn skip(&mut self) {
        self.last = Instant::now();
    }

    pub(crate) fn did(&mut self, work: Work) {
        let took = self.last.elapsed();
        self.last = Instant::now();
        self.took(work, took);
    }

    fn took(&mut self, work: Work, took: Duration) {
        let (assumed, waits) = (self.speeds.of(work), work.waits());
        self.waits.done += waits;
        let of = self.of(work);
        of.done += assumed;
        of.took += (took.as_secs_f64() - waits).max(0.0);
    }

    fn of(&mut self, work: Work) -> &mut Progress {
        match work {
            Work::Fill(_) => &mut self.fills,
            Work::Run(_) | Work::Probed(_) => &mut self.runs,
        }
    }

    /// The time of all work, as it was assumed.
    pub(crate) fn all(&self) -> Duration {
        time(self.fills.all + self.runs.all + self.waits.all)
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        time(self.fills.left() + self.runs.left() + self.waits.rest())
    }
}

/// A time of so many seconds, limited to the longest [`Duration`]: open transactions can add more than that.
fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_take_the_time_of_their_class_and_tables() {
        let table = |name: &str, bytes: u64| PlannedTable { name: name.to_owned(), rows: 1, bytes };
        let tables = [table("a", 1_000_000_000), table("b", 1_000_000_000)];
        let of = |class: Class, names: &[&str]| {
            let names = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
            let work = Assumed { class, tables: names, transaction: 1 };
            Speeds::assumed(&tables, (2_000_000_000, true), &[work]).run
        };
        let nothing = of(Class::CatalogOnly, &["a", "b"]);
        assert!((of(Class::Rewrite, &["a"]) - nothing - 20.0).abs() < 1e-6);
        assert!((of(Class::Rewrite, &["a", "b"]) - nothing - 40.0).abs() < 1e-6);
        let fill = |as_pages| Speeds::assumed(&tables, (3_000_000_000, as_pages), &[]).fill;
        assert!((fill(true) - 10.0).abs() < 1e-6 && (fill(false) - 75.0).abs() < 1e-6);
        let speeds = Speeds { fill: 10.0, run: 5.0 };
        let works = [Work::Fill(1.0), Work::Run(0.5), Work::Probed(Duration::from_secs(30))];
        let clock = Clock::begin(speeds, works);
        assert!((clock.all().as_secs_f64() - (10.0 + 2.5 + 37.0 + 3.0 * FIXED)).abs() < 1e-6);
    }

    #[test]
    fn a_slow_fill_does_not_make_runs_slow() {
        let speeds = Speeds { fill: 10.0, run: 5.0 };
        let mut clock = Clock::begin(speeds, [Work::Fill(1.0), Work::Run(1.0), Work::Run(1.0)]);
        clock.took(Work::Fill(1.0), Duration::from_secs(100));
        assert!((clock.left().as_secs_f64() - 2.0 * (5.0 + FIXED)).abs() < 1e-6);
        clock.took(Work::Run(1.0), Duration::from_secs(1));
        assert!((clock.left().as_secs_f64() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn fast_runs_do_not_shorten_open_transactions() {
        let speeds = Speeds { fill: 10.0, run: 5.0 };
        let open = Work::Probed(Duration::from_secs(30));
        let mut clock = Clock::begin(speeds, [Work::Run(1.0), open, open]);
        clock.took(Work::Run(1.0), Duration::ZERO);
        assert!((clock.left().as_secs_f64() - 60.0).abs() < 1e-6);
        clock.took(open, Duration::from_secs(30));
        assert!((clock.left().as_secs_f64() - 30.0).abs() < 1e-6);
        let endless = Clock::begin(speeds, [Work::Probed(Duration::MAX), open]);
        assert_eq!(endless.all(), Duration::MAX);
    }
}
