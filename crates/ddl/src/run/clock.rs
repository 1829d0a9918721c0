//! The time that is left: from the work that is done.

use std::time::{Duration, Instant};

/// Work of one copy, however small: the server makes a database and drops it.
const FIXED: f64 = 0.05;

/// Counts the fills and runs of a measurement. A fill or a run of the largest size is one unit of work, and a little.
pub(crate) struct Clock {
    began: Instant,
    done: f64,
    all: f64,
}

impl Clock {
    /// Of sizes, as fractions of the largest, with the runs at each.
    pub(crate) fn begin(sizes: &[(f64, usize)]) -> Self {
        // A fill and the runs at each size, and a look at the largest.
        let of_size = |(part, runs): &(f64, usize)| {
            work(*part) * (1.0 + f64::from(u32::try_from(*runs).unwrap_or(u32::MAX)))
        };
        Self { began: Instant::now(), done: 0.0, all: sizes.iter().map(of_size).sum::<f64>() + work(1.0) }
    }

    /// A fill or a run of that size, or a look at it, is done.
    pub(crate) fn did(&mut self, part: f64) {
        self.done += work(part);
    }

    /// The time that is left, if all goes on as it went.
    pub(crate) fn left(&self) -> Duration {
        let of_one = self.began.elapsed().as_secs_f64() / self.done.max(FIXED);
        Duration::from_secs_f64(of_one * (self.all - self.done).max(0.0))
    }
}

fn work(part: f64) -> f64 {
    FIXED + part
}
