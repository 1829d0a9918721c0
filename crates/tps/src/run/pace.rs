//! Schedule: the parts of a run, and the times at which transactions begin under a rate.

use std::time::{Duration, Instant};

use script::Random;

use crate::outcome::Phase;
use crate::request::{Length, Request};

/// The parts of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timetable {
    start: Instant,
    /// Time between the beginnings of two clients.
    step: Duration,
    ramped: Instant,
    measured: Instant,
    end: Option<Instant>,
}

impl Timetable {
    pub(crate) fn new(start: Instant, request: &Request) -> Self {
        let clients = u32::try_from(request.clients).unwrap_or(u32::MAX);
        let ramped = start + request.ramp;
        let measured = ramped + request.warmup;
        let end = match request.length {
            Length::Time(time) => Some(measured + time),
            Length::Transactions(_) => None,
        };
        Self { start, step: request.ramp / clients, ramped, measured, end }
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Time at which all clients have begun.
    pub(crate) fn ramped(&self) -> Instant {
        self.ramped
    }

    /// Time at which a client begins.
    pub(crate) fn turn(&self, client: usize) -> Instant {
        self.start + self.step.saturating_mul(u32::try_from(client).unwrap_or(u32::MAX))
    }

    /// Time after which no transaction begins; none without `-T`.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    pub(crate) fn phase(&self, now: Instant) -> Phase {
        if now < self.ramped {
            Phase::Ramp
        } else if now < self.measured {
            Phase::Warmup
        } else {
            Phase::Measured
        }
    }

    /// The end of the second that begins at `from`: a second later, or where another part begins.
    pub(crate) fn next_cut(&self, from: Instant) -> Instant {
        let boundaries = [self.ramped, self.measured].into_iter().filter(|boundary| *boundary > from);
        boundaries.fold(from + Duration::from_secs(1), Instant::min)
    }
}

/// Skipped transactions from which on their times are not drawn.
const DRAWN: f64 = 10_000.0;

/// The times at which one job's transactions begin under `-R`: a Poisson process. It does not slow
/// down when the server does, so latencies include the queue that builds up.
#[derive(Debug)]
pub(crate) struct Schedule {
    random: Random,
    /// Mean time between two transactions of this job, nanoseconds.
    mean: f64,
    last: Instant,
    ramped: Instant,
}

impl Schedule {
    /// One of `jobs` schedules that make up `rate` transactions a second.
    pub(crate) fn new(rate: f64, jobs: usize, random: Random, timetable: &Timetable) -> Self {
        let mean = 1e9 / rate * jobs as f64;
        Self { random, mean, last: timetable.start(), ramped: timetable.ramped() }
    }

    /// Start of the next transaction.
    pub(crate) fn next(&mut self, now: Instant) -> Instant {
        // Transactions that missing clients would have run are not made up for.
        let from = if self.last < self.ramped { self.last.max(now) } else { self.last };
        let delay = u64::try_from(self.random.delay(self.mean)).unwrap_or_default();
        self.last = from + Duration::from_nanos(delay);
        self.last
    }

    /// Passes over the transactions up to a time if they are many. Returns their number, which is the expected one; 0 if they are few.
    pub(crate) fn skip_to(&mut self, until: Instant) -> u64 {
        let expected = until.saturating_duration_since(self.last).as_nanos() as f64 / self.mean;
        if expected < DRAWN {
            return 0;
        }
        self.last = until;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let expected = expected as u64;
        expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(length: Length, warmup: u64, ramp: u64) -> Request {
        let (warmup, ramp) = (Duration::from_secs(warmup), Duration::from_secs(ramp));
        Request { clients: 4, jobs: 2, length, warmup, ramp, ..Request::simple() }
    }

    #[test]
    fn parts_follow_each_other() {
        let start = Instant::now();
        let timetable = Timetable::new(start, &request(Length::Time(Duration::from_secs(5)), 3, 2));
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let phases = [0, 1999, 2000, 4999, 5000].map(|time| timetable.phase(at(time)));
        let expected = [Phase::Ramp, Phase::Ramp, Phase::Warmup, Phase::Warmup, Phase::Measured];
        assert_eq!(phases, expected);
        assert_eq!([0, 1, 3].map(|client| timetable.turn(client)), [0, 500, 1500].map(at));
        assert_eq!([9999, 10_000].map(|time| timetable.is_over(at(time))), [false, true]);
    }

    #[test]
    fn seconds_end_where_a_part_begins() {
        let start = Instant::now();
        let mut request = request(Length::Transactions(1), 0, 0);
        request.ramp = Duration::from_millis(700);
        request.warmup = Duration::from_millis(1200);
        let timetable = Timetable::new(start, &request);
        let mut cuts = vec![start];
        for _ in 0..4 {
            cuts.push(timetable.next_cut(cuts[cuts.len() - 1]));
        }
        let milliseconds: Vec<u128> = cuts.iter().map(|cut| (*cut - start).as_millis()).collect();
        assert_eq!(milliseconds, [0, 700, 1700, 1900, 2900]);
        assert!(!timetable.is_over(start + Duration::from_hours(1)));
    }

    #[test]
    fn schedules_of_all_jobs_make_up_the_rate() {
        let start = Instant::now();
        let timetable = Timetable::new(start, &request(Length::Transactions(1), 0, 0));
        let mut schedule = Schedule::new(1000.0, 2, Random::seeded(1), &timetable);
        let mut last = start;
        for _ in 0..10_000 {
            // However late it is, nothing is left out.
            let next = schedule.next(start + Duration::from_hours(1));
            assert!(next >= last);
            last = next;
        }
        // 10,000 at 500 a second, and the sum's standard deviation is a hundredth of it.
        let seconds = (last - start).as_secs_f64();
        assert!((19.0..21.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn the_highest_rate_comes_to_an_end() {
        let start = Instant::now();
        let timetable = Timetable::new(start, &request(Length::Transactions(1), 0, 0));
        let mut schedule = Schedule::new(1e9, 1, Random::seeded(1), &timetable);
        let last = (0..10_000).map(|_| schedule.next(start)).last().unwrap();
        assert!(last > start + Duration::from_micros(5));
    }

    #[test]
    fn a_long_rest_is_not_drawn() {
        let start = Instant::now();
        let timetable = Timetable::new(start, &request(Length::Time(Duration::from_mins(1)), 0, 0));
        let end = start + Duration::from_mins(1);
        let mut schedule = Schedule::new(1e9, 2, Random::seeded(1), &timetable);
        assert_eq!(schedule.skip_to(end), 30_000_000_000);
        assert!(schedule.next(end) >= end);
        // A short one is: its number is random.
        let mut schedule = Schedule::new(100.0, 1, Random::seeded(1), &timetable);
        assert_eq!(schedule.skip_to(end), 0);
        assert!(schedule.next(start) < end);
    }

    #[test]
    fn nothing_piles_up_while_clients_are_missing() {
        let start = Instant::now();
        let timetable = Timetable::new(start, &request(Length::Transactions(1), 0, 10));
        let mut schedule = Schedule::new(1000.0, 1, Random::seeded(1), &timetable);
        let late = start + Duration::from_secs(9);
        assert!(schedule.next(late) >= late);
    }
}
