//! The rows that a part sent, by the server's clock.

use std::ops::Range;

use super::super::clock::Clock;
use crate::run::{Trial, Unit};
use crate::series::Series;

/// Series of the rows that were sent.
pub(super) const ROWS_SENT: &str = "rows-sent";

/// Rows that were sent in a time.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    /// By the server's clock, seconds since 1970.
    time: Range<f64>,
    rows: f64,
}

/// The rows that a part sent, in the order of time. Rows of one point came evenly.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load(Vec<Sent>);

impl Load {
    /// Of a trial, without times in which it sent no rows.
    pub(super) fn of(trial: &Trial, clock: &Clock) -> Self {
        let found = trial.series.iter().find(|series| series.name == ROWS_SENT);
        let mut before = 0.0;
        let mut all = Vec::new();
        for &(at, rows) in found.map_or(&[][..], |series| &series.points) {
            if rows > 0.0 {
                all.push(Sent { time: clock.time(before)..clock.time(at), rows });
            }
            before = at;
        }
        Self(all)
    }

    /// Adds those of another table.
    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// From the first row to the last; none if it sent no row.
    pub(super) fn span(&self) -> Option<Range<f64>> {
        let first = self.0.iter().map(|sent| sent.time.start).reduce(f64::min)?;
        let last = self.0.iter().map(|sent| sent.time.end).reduce(f64::max)?;
        Some(first..last)
    }

    /// Rows within this time.
    pub(super) fn rows_in(&self, time: &Range<f64>) -> f64 {
        let inside = |sent: &Sent| {
            let length = sent.time.end - sent.time.start;
            let shared = sent.time.end.min(time.end) - sent.time.start.max(time.start);
            if length > 0.0 {
                sent.rows * (shared / length).clamp(0.0, 1.0)
            } else if time.contains(&sent.time.start) {
                sent.rows
            } else {
                0.0
            }
        };
        self.0.iter().map(inside).sum()
    }
}

/// The time from the first row of any part to the last.
pub(super) fn whole(loads: &[&Load]) -> Option<Range<f64>> {
    let spans = || loads.iter().filter_map(|load| load.span());
    let first = spans().map(|span| span.start).reduce(f64::min)?;
    let last = spans().map(|span| span.end).reduce(f64::max)?;
    Some(first..last)
}

/// The time in which all parts that sent rows did so; none if there is none, or if it is shorter than a second.
pub(super) fn shared(loads: &[&Load]) -> Option<Range<f64>> {
    let spans = || loads.iter().filter_map(|load| load.span());
    let first = spans().map(|span| span.start).reduce(f64::max)?;
    let last = spans().map(|span| span.end).reduce(f64::min)?;
    (last - first >= 1.0).then_some(first..last)
}

/// The rows of all parts, second by second of this time.
pub(super) fn series(loads: &[&Load], whole: &Range<f64>) -> Series {
    let mut series = Series::new(ROWS_SENT, Unit::Seconds, Unit::Rows);
    let length = whole.end - whole.start;
    let mut from = 0.0;
    while from < length {
        let until = f64::min(from + 1.0, length);
        let second = whole.start + from..whole.start + until;
        series.points.push((until, loads.iter().map(|load| load.rows_in(&second)).sum()));
        from = until;
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(all: &[(f64, f64, f64)]) -> Load {
        Load(all.iter().map(|(from, until, rows)| Sent { time: *from..*until, rows: *rows }).collect())
    }

    #[test]
    fn rows_are_added_second_by_second() {
        let (one, other) = (
            load(&[(10.0, 11.0, 100.0), (11.0, 12.5, 150.0)]),
            load(&[(10.5, 11.5, 40.0), (14.0, 14.0, 7.0)]),
        );
        let all = [&one, &other];
        assert_eq!(whole(&all), Some(10.0..14.0));
        let points = series(&all, &(10.0..14.0)).points;
        assert_eq!(points, [(1.0, 120.0), (2.0, 120.0), (3.0, 50.0), (4.0, 0.0)]);
        assert_eq!(shared(&all), Some(10.5..12.5));
        assert!((one.rows_in(&(10.5..12.5)) - 200.0).abs() < 1e-9);
        // A part without rows shares any time.
        assert_eq!(shared(&[&one, &Load::default()]), Some(10.0..12.5));
        assert_eq!(shared(&[&one, &load(&[(12.0, 13.0, 5.0)])]), None);
        assert_eq!((shared(&[]), whole(&[])), (None, None));
    }
}
