//! The write rate over time: bytes that all streams send to the server, second by second.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use measure::{Series, Unit};
use tokio::time::{Instant, MissedTickBehavior};

/// Time between two points.
const INTERVAL: Duration = Duration::from_secs(1);

/// Counts for several streams at once, and notes the count every second.
#[derive(Debug)]
pub struct RateMeter {
    started: Instant,
    sent: AtomicU64,
    points: Mutex<Points>,
}

#[derive(Debug)]
struct Points {
    /// The amount that earlier points account for.
    noted: u64,
    series: Series,
}

impl RateMeter {
    /// Starts now; `name` and `unit` are those of the counted amount.
    pub fn start(name: &str, unit: Unit) -> Self {
        let points = Points { noted: 0, series: Series::new(name, Unit::Seconds, unit) };
        Self { started: Instant::now(), sent: AtomicU64::new(0), points: Mutex::new(points) }
    }

    /// Adds an amount that was handed to the server. Takes no lock.
    pub fn add(&self, amount: u64) {
        self.sent.fetch_add(amount, Ordering::Relaxed);
    }

    /// Notes a point every second; to be polled beside the streams.
    pub async fn run(&self) -> Infallible {
        let mut every = tokio::time::interval_at(self.started + INTERVAL, INTERVAL);
        every.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            every.tick().await;
            self.note(self.started.elapsed());
        }
    }

    /// Records the rest and returns the series: x is the time since the start, y the amount since
    /// the point before, so that the last point, a part of a second, is as right as the others.
    pub fn finish(self) -> Series {
        self.note(self.started.elapsed());
        self.points.into_inner().unwrap_or_else(PoisonError::into_inner).series
    }

    fn note(&self, elapsed: Duration) {
        let mut points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.sent.load(Ordering::Relaxed);
        let amount = sent - points.noted;
        points.noted = sent;
        points.series.points.push((elapsed.as_secs_f64(), amount as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_point_a_second_and_one_for_what_is_left() {
        let meter = RateMeter::start("rows-sent", Unit::Rows);
        let load = async {
            meter.add(100);
            meter.add(20);
            tokio::time::sleep(Duration::from_millis(2250)).await;
            meter.add(7);
            tokio::time::sleep(Duration::from_millis(250)).await;
        };
        tokio::select! {
            () = load => (),
            never = meter.run() => match never {},
        }
        assert_eq!(meter.finish().points, [(1.0, 120.0), (2.0, 0.0), (2.5, 7.0)]);
    }

    #[tokio::test]
    async fn nothing_is_lost_between_streams() {
        let meter = RateMeter::start("rows-sent", Unit::Rows);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| meter.add(3)));
            }
            (0..10).for_each(|second| meter.note(Duration::from_secs(second)));
        });
        let amounts = meter.finish().points.into_iter().map(|(_, amount)| amount);
        assert!((amounts.sum::<f64>() - 12_000.0).abs() < 0.5);
    }
}
