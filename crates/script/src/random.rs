//! PostgreSQL's random numbers: xoroshiro128** (Blackman, Vigna) of `src/common/pg_prng.c`, and pgbench's
//! distributions over it. The same seed gives the same numbers as pgbench 15 to 18.
// Numbers go from integer to double and back as in C: pgbench's values depend on it.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]

use std::f64::consts::PI;

/// A sequence of random numbers. Copy it to repeat them: a transaction that is tried again gets the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    s0: u64,
    s1: u64,
}

impl Random {
    /// The sequence that a seed begins (`pg_prng_seed`).
    pub fn seeded(mut seed: u64) -> Self {
        let (s0, s1) = (split_mix(&mut seed), split_mix(&mut seed));
        // All zeros would stay so; PostgreSQL then takes Knuth's numbers.
        if (s0, s1) == (0, 0) {
            return Self { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        Self { s0, s1 }
    }

    /// A sequence seeded by this one's next number (`initRandomState`).
    pub(crate) fn derive(&mut self) -> Self {
        Self::seeded(self.next())
    }

    /// A random number of 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        let (s0, mixed) = (self.s0, self.s1 ^ self.s0);
        self.s0 = s0.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.s1 = mixed.rotate_left(37);
        s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A uniform random number from 0 to `last` (`pg_prng_uint64_range`).
    pub(crate) fn up_to(&mut self, last: u64) -> u64 {
        if last == 0 {
            return 0;
        }
        let shift = last.leading_zeros();
        loop {
            let number = self.next() >> shift;
            if number <= last {
                return number;
            }
        }
    }

    /// A random number from 0 to below 1: 52 bits, times 2 to the power of -52.
    fn double(&mut self) -> f64 {
        (self.next() >> 12) as f64 * f64::EPSILON
    }

    /// A uniform random number from `min` to `max`.
    pub(crate) fn uniform(&mut self, min: i64, max: i64) -> i64 {
        min.wrapping_add(self.up_to(max.wrapping_sub(min) as u64) as i64)
    }

    /// Exponentially distributed: `min` most often. `parameter` is above 0.
    pub(crate) fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        let within = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        min.wrapping_add((count(min, max) * within) as i64)
    }

    /// Normally distributed around the middle. `parameter` is at least 2.
    pub(crate) fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let deviation = loop {
            let (first, second) = (1.0 - self.double(), 1.0 - self.double());
            let deviation = (-2.0 * first.ln()).sqrt() * (2.0 * PI * second).sin();
            if (-parameter..parameter).contains(&deviation) {
                break deviation;
            }
        };
        let within = (deviation + parameter) / (parameter * 2.0);
        min.wrapping_add((count(min, max) * within) as i64)
    }

    /// Zipf's distribution by rejection (Devroye, "Non-Uniform Random Variate Generation", 1986, page 550).
    /// `parameter` is from 1.001 to 1000.
    pub(crate) fn zipfian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        if max <= min {
            return min;
        }
        let (count, power) = (count(min, max), parameter - 1.0);
        let base = 2_f64.powf(power);
        loop {
            let (first, second) = (self.double(), self.double());
            let rank = first.powf(-1.0 / power).floor();
            let ratio = (1.0 + 1.0 / rank).powf(power);
            if second * rank * (ratio - 1.0) / (base - 1.0) <= ratio / base && rank <= count {
                return min.wrapping_sub(1).wrapping_add(rank as i64);
            }
        }
    }

    /// A random time until the next event; `mean` is the mean time between two events. It gives
    /// pgbench's delays under `--rate`, in the unit of `mean`.
    pub fn delay(&mut self, mean: f64) -> i64 {
        let uniform = 1.0 - self.double();
        (-uniform.ln() * mean + 0.5) as i64
    }
}

fn count(min: i64, max: i64) -> f64 {
    (max - min + 1) as f64
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
