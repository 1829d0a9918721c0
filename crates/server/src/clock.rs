//! The server's clock, read by round trips: the reading was taken in the middle of one, with an error of half of it.

use std::time::{Duration, Instant};

use connect::Connection;
use measure::Event;
use serde_json::json;
use tokio_postgres::{Error, Statement};

/// Round trips of a reading: the shortest one counts.
const ROUND_TRIPS: usize = 9;

/// A reading of the server's clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// Middle of the round trip, by this machine's clock.
    pub at: Instant,
    /// The server's time, seconds since 1970.
    pub time: f64,
    /// Greatest error of this time: half of the round trip.
    pub error: Duration,
    /// Start of the server, seconds since 1970.
    pub started: f64,
    /// OID of the database to which the session is connected.
    pub database: u32,
}

impl ClockReading {
    /// The statement of [`Self::take`].
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn prepare(connection: &Connection) -> Result<Statement, Error> {
        connection.client.prepare(include_str!("sql/clock.sql")).await
    }

    /// The reading of the shortest of some round trips.
    ///
    /// # Errors
    /// If the server is gone.
    pub async fn take(connection: &Connection, statement: &Statement) -> Result<Self, Error> {
        let mut best = Self::once(connection, statement).await?;
        for _ in 1..ROUND_TRIPS {
            let reading = Self::once(connection, statement).await?;
            if reading.error < best.error {
                best = reading;
            }
        }
        Ok(best)
    }

    /// The reading of one round trip.
    async fn once(connection: &Connection, statement: &Statement) -> Result<Self, Error> {
        let sent = Instant::now();
        let row = connection.client.query_one(statement, &[]).await?;
        let half = sent.elapsed() / 2;
        let (time, started) = (row.get("time"), row.get("started"));
        Ok(Self { at: sent + half, time, error: half, started, database: row.get("database") })
    }

    /// The server's time at an instant, seconds since 1970.
    pub fn time_at(&self, instant: Instant) -> f64 {
        match instant.checked_duration_since(self.at) {
            Some(later) => self.time + later.as_secs_f64(),
            None => self.time - self.at.duration_since(instant).as_secs_f64(),
        }
    }

    /// The reading as an event of a trial that began then. One from before the trial becomes one at its beginning.
    pub fn event(&self, begun: Instant) -> Event {
        let at = self.at.max(begun);
        let what = json!({
            "event": "clock",
            "time": self.time_at(at),
            "error": self.error.as_secs_f64(),
            "started": self.started,
            "database": self.database,
        });
        let at = at.duration_since(begun).as_secs_f64();
        Event { at, text: "the server's clock is read".to_owned(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_from_before_the_trial_counts_at_its_beginning() {
        let begun = Instant::now();
        let at = begun + Duration::from_secs(3);
        let reading = ClockReading { at, time: 1000.0, error: Duration::ZERO, started: 0.0, database: 1 };
        assert!((reading.time_at(at + Duration::from_secs(2)) - 1002.0).abs() < 1e-6);
        let event = |begun| {
            let event = reading.event(begun);
            (event.at, event.what["time"].as_f64().unwrap())
        };
        assert_eq!(event(at + Duration::from_secs(3)), (0.0, 1003.0));
        assert_eq!(event(begun), (3.0, 1000.0));
    }
}
