//! The instant at which a second of the server's clock begins.

use std::time::{Duration, Instant};

use server::ClockReading;

/// The instant at which a second of the server's clock begins. If that is less than `lead` from now, the next whole second
/// that leaves so much time.
pub(super) fn instant_of(reading: &ClockReading, second: i64, lead: Duration) -> Instant {
    let now = Instant::now();
    let earliest = reading.time_at(now + lead);
    let begin = (second as f64).max(earliest.ceil());
    now + lead + Duration::from_secs_f64(begin - earliest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_over_becomes_the_next_second() {
        let at = Instant::now();
        let reading = ClockReading { at, time: 1000.0, error: Duration::ZERO, started: 0.0, database: 1 };
        let lead = Duration::from_millis(50);
        let seconds = |second| instant_of(&reading, second, lead).duration_since(at).as_secs_f64();
        assert!((seconds(1003) - 3.0).abs() < 0.001);
        assert!((seconds(990) - 1.0).abs() < 0.001);
    }
}
