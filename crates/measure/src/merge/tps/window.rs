//! The time that all parts share, in whole seconds of the server's clock.

use std::ops::Range;

use super::super::clock::Clock;
use crate::increment::Increment;

/// An increment that begins or ends this close to a whole second of the server's clock does so at that second, seconds.
const TOLERANCE: f64 = 0.1;

/// The increments of one part, with the server's time of their ends.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    increments: &'a [Increment],
    /// The server's time of the beginning of the first increment, and of the end of each, seconds since 1970.
    edges: Vec<f64>,
}

impl<'a> Timeline<'a> {
    /// Of at least one increment.
    pub(super) fn new(increments: &'a [Increment], clock: &Clock) -> Self {
        let first = increments.first().map(|first| first.from);
        let edges = first.into_iter().chain(increments.iter().map(|increment| increment.until));
        Self { increments, edges: edges.map(|at| clock.time(at)).collect() }
    }

    /// Beginning and end.
    pub(super) fn span(&self) -> (f64, f64) {
        (self.edges[0], self.edges[self.edges.len() - 1])
    }

    /// The edge at this second, if there is one. Of several it is the one that is the closest.
    fn edge(&self, second: f64) -> Option<usize> {
        let distance = |edge: &(usize, &f64)| (edge.1 - second).abs();
        let near = self.edges.iter().enumerate().filter(|edge| distance(edge) <= TOLERANCE);
        near.min_by(|one, other| distance(one).total_cmp(&distance(other))).map(|(index, _)| index)
    }

    /// The increments between two seconds that have an edge, each with the whole second in which it ends, from 1.
    pub(super) fn cut(&self, window: &Range<f64>) -> impl Iterator<Item = (usize, &'a Increment)> {
        let edge = |second| self.edge(second).unwrap_or_default();
        let (from, until) = (edge(window.start), edge(window.end));
        let last = window.end - window.start;
        (from..until).map(move |index| {
            let second = (self.edges[index + 1] - window.start - TOLERANCE).ceil().clamp(1.0, last);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of seconds"
            )]
            let second = second as usize;
            (second, &self.increments[index])
        })
    }
}

/// The longest time between two whole seconds at which increments of all parts begin or end; none if there is no such time.
pub(super) fn shared(parts: &[&Timeline<'_>]) -> Option<Range<f64>> {
    let begin = parts.iter().map(|part| part.span().0).fold(f64::MIN, f64::max);
    let end = parts.iter().map(|part| part.span().1).fold(f64::MAX, f64::min);
    let (first, last) = ((begin - TOLERANCE).ceil(), (end + TOLERANCE).floor());
    let has_all = |second: &f64| parts.iter().all(|part| part.edge(*second).is_some());
    let seconds = || {
        std::iter::successors(Some(first), |second| Some(second + 1.0)).take_while(|second| *second <= last)
    };
    let from = seconds().find(has_all)?;
    let until = seconds().filter(has_all).last()?;
    (until > from).then_some(from..until)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::{Event, Trial};

    fn increments(edges: &[f64]) -> Vec<Increment> {
        let increment = |pair: &[f64]| Increment { from: pair[0], until: pair[1], ..Increment::default() };
        edges.windows(2).map(increment).collect()
    }

    /// A trial that began at this time of the server.
    fn clock(began: f64) -> Clock {
        let what = json!({ "event": "clock", "time": began, "error": 0.0, "started": 1.0, "database": 1 });
        let event = Event { at: 0.0, text: "clock".to_owned(), what };
        Clock::of(&Trial { events: vec![event], ..Trial::default() }).unwrap()
    }

    #[test]
    fn the_shared_time_begins_and_ends_where_all_have_an_edge() {
        // The first part's second 103 has no edge: its client was late.
        let (one, other) = (
            increments(&[0.0, 1.0, 2.004, 3.6, 4.001, 5.0, 5.02]),
            increments(&[0.0, 0.98, 2.0, 3.0, 4.0, 5.0]),
        );
        let parts = [Timeline::new(&one, &clock(100.01)), Timeline::new(&other, &clock(102.0))];
        let window = shared(&parts.each_ref()).unwrap();
        assert_eq!(window, 102.0..105.0);
        let cut = |part: &Timeline<'_>| {
            part.cut(&window).map(|(second, one)| (second, one.until)).collect::<Vec<_>>()
        };
        assert_eq!(cut(&parts[0]), [(2, 3.6), (2, 4.001), (3, 5.0)]);
        assert_eq!(cut(&parts[1]), [(1, 0.98), (2, 2.0), (3, 3.0)]);
    }

    #[test]
    fn parts_that_met_for_no_whole_second_share_nothing() {
        let one = increments(&[0.0, 1.0, 2.0]);
        for began in [101.5, 102.0, 300.0] {
            let parts = [Timeline::new(&one, &clock(100.0)), Timeline::new(&one, &clock(began))];
            assert_eq!(shared(&parts.each_ref()), None, "{began}");
        }
    }
}
