//! A number with its uncertainty.

use serde::{Deserialize, Serialize};

/// A value with an interval that contains the true value in 95 of 100 cases: low ≤ value ≤ high.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate, in the unit of the samples.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Standard deviations that a 95 % interval of normal values reaches to either side.
pub(super) const REACH_95: f64 = 1.959_964;

impl Estimate {
    /// Half of the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Greatest absolute value in the interval.
    pub fn reach(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// Whether 0 is outside the interval.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// p-value: the probability of an estimate at least so far from 0 if the true value is 0. It is
    /// below 0.05 exactly if the interval excludes 0.
    pub(super) fn p_value(&self) -> f64 {
        let towards_zero = if self.value > 0.0 { self.value - self.low } else { self.high - self.value };
        if towards_zero <= 0.0 {
            return if self.excludes_zero() { 0.0 } else { 1.0 };
        }
        libm::erfc(REACH_95 * self.value.abs() / towards_zero / std::f64::consts::SQRT_2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_just_reaches_zero_has_p_of_five_percent() {
        let p = |low| Estimate { value: 2.0, low, high: 3.0 }.p_value();
        assert!((p(0.0) - 0.05).abs() < 1e-6);
        assert!(p(0.1) < 0.05 && p(-0.1) > 0.05);
        assert!(Estimate { value: 2.0, low: 2.0, high: 2.0 }.p_value() < 1e-12);
        assert!((Estimate { value: 0.0, low: 0.0, high: 0.0 }.p_value() - 1.0).abs() < 1e-12);
    }
}
