//! Forecasts of a value at a size, from the values at smaller sizes. Pure.
//!
//! [`Fit`] finds a law by non-negative least squares and cross-validation; a [`Boundary`] is a size across which no such law
//! holds. The interval is wider the farther the size is from the measured ones: the value that the law of the smaller sizes
//! gives at the largest one is compared with the measured value there, and the errors of the runs become errors of the slope. Start
//! reading at [`Law::at`].

mod boundary;
mod fit;

use serde::Serialize;

pub use self::boundary::{Boundary, Cause, Memory};
pub use self::fit::{Fit, Models, Point, sizes};

/// The quantile of the normal distribution that leaves 5 % on either side.
const TWO_SIDED_90: f64 = 1.645;
/// The growing part must be at least this part of the value at the largest size, or its slope is not known.
const LEAST_GROWTH: f64 = 0.25;
/// The growth must be at least this multiple of the standard deviation of the runs of one size, or noise may be all of it.
const LEAST_DISTINCTION: f64 = 2.0;
/// The size to measure has this factor to spare: boundaries and the ratio of the sizes move a little with the size.
const MARGIN: f64 = 1.15;

/// The least standard error of a forecast, as a part of it. No law of three sizes is the whole truth.
#[derive(Clone, Copy, Debug)]
pub struct Least {
    /// Relative standard error at the largest measured size: 0.1 for 10 %.
    pub error: f64,
    /// The error that is added (as independent errors add) for each factor of e between that size and the one of the forecast.
    pub growth: f64,
    /// A standard error in the unit of the quantity, which is added, too.
    pub absolute: f64,
}

/// A forecast of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// A value with an interval that holds it with 90 % probability.
    Value {
        /// The most probable value.
        value: f64,
        /// Lower bound of the interval.
        low: f64,
        /// Upper bound of the interval.
        high: f64,
    },
    /// None: this boundary lies between, the largest of several. To measure beyond it, this many bytes must be filled.
    Beyond {
        /// The boundary across which no law holds.
        boundary: Boundary,
        /// Bytes that the data of the largest measured size must have, so that those of the size before it are beyond the boundary, too.
        measure: u64,
    },
    /// None: fewer than two sizes were measured.
    TooFewSizes,
    /// None: the quantity grows with the data, but most of it is the same at all measured sizes, or it grows no more than runs differ.
    TooSmall,
    /// None: a part of the quantity was not measured.
    NotMeasured,
}

impl Figure {
    /// The figure in another unit, of which one takes so many of this one.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Value { value, low, high } => {
                Self::Value { value: value * factor, low: low * factor, high: high * factor }
            }
            unknown => unknown,
        }
    }

    /// The sum of both. Its bounds are the sums of the bounds, as if both were wrong in the same direction.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Value { value, low, high }, Self::Value { value: more, low: least, high: most }) => {
                Self::Value { value: value + more, low: low + least, high: high + most }
            }
            (Self::Value { .. }, unknown) | (unknown, _) => unknown,
        }
    }
}

/// The facts that are known of a quantity beforehand.
#[derive(Clone, Debug)]
pub struct Law {
    /// The terms that it may have.
    pub models: Models,
    /// The least error of its forecasts.
    pub least: Least,
    /// Sizes from which on it follows another law.
    pub boundaries: Vec<Boundary>,
}

impl Law {
    /// The forecast for these bytes and rows. `step` is the ratio of the largest measured size to the one before it, as it will be if
    /// larger sizes are measured.
    pub fn at(&self, mut points: Vec<Point>, (bytes, rows): (f64, f64), step: f64) -> Figure {
        // Only sizes beyond all of them tell of the size that is asked for.
        let between = self.boundaries.iter().filter(|boundary| (boundary.at as f64) < bytes);
        if let Some(boundary) = between.max_by_key(|boundary| boundary.at) {
            let at = boundary.at as f64;
            points.retain(|point| point.bytes >= at);
            if sizes(&points).len() < 2 {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
                let measure = (at * step * MARGIN).ceil() as u64;
                return Figure::Beyond { boundary: *boundary, measure };
            }
        }
        let Some(fit) = Fit::best(&points, self.models) else { return Figure::TooFewSizes };
        let largest = points.iter().max_by(|one, other| one.bytes.total_cmp(&other.bytes));
        let share = largest.map_or(1.0, |largest| fit.growing_share(largest.bytes, largest.rows));
        if self.models.grow() && (share < LEAST_GROWTH || is_hidden(&points)) {
            return Figure::TooSmall;
        }
        interval(&points, &fit, (bytes, rows), self.least)
    }
}

/// The value of a fit with its interval.
pub fn interval(points: &[Point], fit: &Fit, (bytes, rows): (f64, f64), least: Least) -> Figure {
    let value = fit.at(bytes, rows);
    let largest = points.iter().map(|point| point.bytes).fold(0.0, f64::max);
    let distance = (bytes / largest).ln().max(0.0);
    let relative = least.error.hypot(least.growth * distance);
    let error = TWO_SIDED_90 * relative_error(points, fit, (bytes, rows)).hypot(relative);
    let absolute = if value > 0.0 { TWO_SIDED_90 * least.absolute } else { 0.0 };
    // As a factor: half as much is as far as twice as much.
    let (low, high) = (value / (1.0 + error), value * (1.0 + error));
    Figure::Value { value, low: (low - absolute).max(0.0), high: high + absolute }
}

/// Whether differences between the runs of one size hide the growth from the smallest size to the largest one.
fn is_hidden(points: &[Point]) -> bool {
    let sizes = sizes(points);
    let [smallest, .., largest] = sizes[..] else { return false };
    let of = |size: f64| points.iter().filter(move |point| point.bytes.total_cmp(&size).is_eq());
    let mean = |size: f64| of(size).map(|point| point.value).sum::<f64>() / of(size).count() as f64;
    let squares = |size: &f64| of(*size).map(|point| (point.value - mean(*size)).powi(2)).sum::<f64>();
    let free = points.len() - sizes.len();
    let deviation = (sizes.iter().map(squares).sum::<f64>() / free.max(1) as f64).sqrt();
    deviation > 0.0 && mean(largest) - mean(smallest) < LEAST_DISTINCTION * deviation
}

/// The standard error of a forecast, as a part of it: the spread of the runs, its effect on the law, and the error of the law where it was
/// tried, at the largest size from those below, which grows with the distance.
fn relative_error(points: &[Point], fit: &Fit, (bytes, rows): (f64, f64)) -> f64 {
    let sizes = sizes(points);
    let terms: Vec<usize> = (0..fit.factors.len()).filter(|term| fit.factors[*term] > 0.0).collect();
    let squares = points.iter().map(|point| fit.error(point).powi(2)).sum::<f64>();
    let free = points.len().saturating_sub(terms.len()).max(1);
    let of_law = (squares / free as f64).sqrt() * fit.leverage(points, bytes, rows);
    let spread = (squares / points.len() as f64).sqrt().hypot(of_law);
    let [.., below, largest] = sizes[..] else { return spread };
    let smaller: Vec<Point> = points.iter().filter(|point| point.bytes < largest).copied().collect();
    let at_largest: Vec<&Point> = points.iter().filter(|point| point.bytes >= largest).collect();
    let tried = Fit::of(&smaller, &terms).map_or(0.0, |fit| {
        let errors: f64 = at_largest.iter().map(|point| fit.error(point)).sum();
        errors / at_largest.len() as f64
    });
    let distance = (bytes / largest).ln() / (largest / below).ln().max(f64::EPSILON);
    spread.hypot(tried * distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs at each of three sizes.
    fn points(runs: [[f64; 2]; 3]) -> Vec<Point> {
        let of = |(bytes, runs): (f64, [f64; 2])| {
            runs.map(|value| Point { bytes, rows: bytes / 100.0, value }).into_iter()
        };
        [10e6, 30e6, 90e6].into_iter().zip(runs).flat_map(of).collect()
    }

    fn figure(runs: [[f64; 2]; 3]) -> Figure {
        let least = Least { error: 0.0, growth: 0.0, absolute: 0.0 };
        let law = Law { models: Models::OF_BYTES, least, boundaries: Vec::new() };
        law.at(points(runs), (900e6, 9e6), 3.0)
    }

    fn width(runs: [[f64; 2]; 3]) -> f64 {
        let found = figure(runs);
        let Figure::Value { low, high, .. } = found else { panic!("{found:?}") };
        high / low
    }

    #[test]
    fn growth_that_runs_hide_gives_no_figure() {
        // More than a quarter of the last ones grows, by a fit.
        let hidden = [[0.5, 0.9], [0.6, 0.7], [0.8, 1.1]];
        let fit = Fit::best(&points(hidden), Models::OF_BYTES).unwrap();
        assert!(fit.growing_share(90e6, 9e5) >= LEAST_GROWTH, "{fit:?}");
        assert_eq!(figure(hidden), Figure::TooSmall);
        assert!(is_hidden(&points([[1.0, 1.2], [1.2, 1.0], [1.0, 1.2]])));
        assert!(is_hidden(&points([[1.2, 1.3], [1.2, 1.0], [1.0, 1.1]])));
        // Nothing differs, or little beside the growth.
        assert!(!is_hidden(&points([[0.0; 2]; 3])) && !is_hidden(&points([[1.0; 2], [1.1; 2], [1.4; 2]])));
        assert!(!is_hidden(&points([[1.0, 1.1], [3.0, 3.3], [8.0, 10.0]])));
        assert!(!is_hidden(&points([[1.0, 1.2], [1.2, 1.0], [1.0, 1.2]])[..1]));
    }

    #[test]
    fn the_interval_is_wider_where_most_of_the_time_is_constant() {
        let noisy = |value: [f64; 3]| value.map(|value| [value * 0.95, value * 1.05]);
        let growing = noisy([0.1, 0.3, 0.9]);
        let constant = noisy([1.0 + 0.6 / 9.0, 1.2, 1.6]);
        assert!(width(constant) > 1.2 * width(growing), "{} {}", width(constant), width(growing));
        // Without noise, there is none of it.
        assert!(width([[1.0 + 0.6 / 9.0; 2], [1.2; 2], [1.6; 2]]) < 1.001);
    }
}
