//! The server's clock, as a run read it.

use crate::run::{Event, Trial};

/// Name of the event.
const CLOCK: &str = "clock";

/// A reading of the server's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    /// When, seconds since the trial began.
    at: f64,
    /// The server's time minus `at`, seconds since 1970.
    offset: f64,
}

/// The server's clock during a trial, and the server that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clock {
    /// At least one.
    readings: Vec<Reading>,
    /// The start of the server, seconds since 1970, and the database's OID. Together they identify a database.
    pub(super) server: (f64, u64),
    /// The greatest error of a reading, seconds.
    pub(super) error: f64,
}

impl Clock {
    /// From the events of a trial; none if the clock was not read.
    pub(super) fn of(trial: &Trial) -> Option<Self> {
        let events = || trial.events.iter().filter(|event| Self::is_reading(event));
        let number = |what: &serde_json::Value, name: &str| what[name].as_f64();
        let reading = |event: &Event| {
            let server = number(&event.what, "time")?;
            Some(Reading { at: event.at, offset: server - event.at })
        };
        let mut readings: Vec<Reading> = events().filter_map(reading).collect();
        readings.sort_by(|one, other| one.at.total_cmp(&other.at));
        let first = events().next()?;
        let server = (number(&first.what, "started")?, first.what["database"].as_u64()?);
        let error = events().filter_map(|event| number(&event.what, "error")).fold(0.0, f64::max);
        (!readings.is_empty()).then_some(Self { readings, server, error })
    }

    /// Whether the event is a reading.
    pub(super) fn is_reading(event: &Event) -> bool {
        event.what["event"] == CLOCK
    }

    /// Change of the difference between both clocks from the first reading to the last, seconds.
    pub(super) fn change(&self) -> f64 {
        let [first, last] =
            [self.readings.first(), self.readings.last()].map(|one| one.map(|one| one.offset));
        first.zip(last).map_or(0.0, |(first, last)| (last - first).abs())
    }

    /// The server's time, seconds since 1970, when the trial had run for so many seconds. Between two readings, the
    /// difference of both clocks changes evenly.
    pub(super) fn time(&self, at: f64) -> f64 {
        let after = self.readings.partition_point(|reading| reading.at <= at);
        let offset =
            match (after.checked_sub(1).map(|before| self.readings[before]), self.readings.get(after)) {
                (Some(one), Some(next)) => {
                    let share = (at - one.at) / (next.at - one.at);
                    one.offset + share * (next.offset - one.offset)
                }
                (Some(only), None) => only.offset,
                (None, Some(only)) => only.offset,
                (None, None) => 0.0,
            };
        at + offset
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_clock_that_drifts_is_followed() {
        let event = |at: f64, time: f64| Event {
            at,
            text: "clock".to_owned(),
            what: json!({ "event": "clock", "time": time, "error": 0.001, "started": 5.0, "database": 3 }),
        };
        let trial = Trial { events: vec![event(10.0, 1010.0), event(20.0, 1021.0)], ..Trial::default() };
        let clock = Clock::of(&trial).unwrap();
        for (at, time) in [(0.0, 1000.0), (10.0, 1010.0), (15.0, 1015.5), (20.0, 1021.0), (30.0, 1031.0)] {
            assert!((clock.time(at) - time).abs() < 1e-9, "{at}");
        }
        assert_eq!((clock.server, clock.error), ((5.0, 3), 0.001));
        assert_eq!(Clock::of(&Trial::default()), None);
    }
}
