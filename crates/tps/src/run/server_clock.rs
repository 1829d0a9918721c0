//! The server's clock, read by round trips: the reading was taken in the middle of one, with an error of half of it.

use std::time::{Duration, Instant};

use connect::Connection;
use tokio_postgres::{Error, Statement};

use crate::outcome::ClockReading;

/// Round trips of a reading: the shortest one counts.
const ROUND_TRIPS: usize = 9;

impl ClockReading {
    /// The server's time at an instant, seconds since 1970.
    pub(super) fn time_at(&self, instant: Instant) -> f64 {
        match instant.checked_duration_since(self.at) {
            Some(later) => self.time + later.as_secs_f64(),
            None => self.time - self.at.duration_since(instant).as_secs_f64(),
        }
    }

    /// The instant at which a second of the server's clock begins. If that is less than `lead` from now, the next whole second
    /// that leaves so much time.
    pub(super) fn instant_of(&self, second: i64, lead: Duration) -> Instant {
        let now = Instant::now();
        let earliest = self.time_at(now + lead);
        let begin = (second as f64).max(earliest.ceil());
        now + lead + Duration::from_secs_f64(begin - earliest)
    }
}

/// The reading of the shortest of some round trips.
pub(super) async fn read(connection: &Connection, statement: &Statement) -> Result<ClockReading, Error> {
    let mut best: Option<ClockReading> = None;
    for _ in 0..ROUND_TRIPS {
        let sent = Instant::now();
        let row = connection.client.query_one(statement, &[]).await?;
        let half = sent.elapsed() / 2;
        if best.is_none_or(|best| half < best.error) {
            let (time, started) = (row.get("time"), row.get("started"));
            best = Some(ClockReading {
                at: sent + half,
                time,
                error: half,
                started,
                database: row.get("database"),
            });
        }
    }
    Ok(best.expect("there are round trips"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_over_becomes_the_next_second() {
        let at = Instant::now();
        let reading = ClockReading { at, time: 1000.0, error: Duration::ZERO, started: 0.0, database: 1 };
        let lead = Duration::from_millis(50);
        let seconds = |second| reading.instant_of(second, lead).duration_since(at).as_secs_f64();
        assert!((seconds(1003) - 3.0).abs() < 0.001);
        assert!((seconds(990) - 1.0).abs() < 0.001);
        assert!((reading.time_at(at + Duration::from_secs(2)) - 1002.0).abs() < 1e-6);
    }
}
