//! Random numbers with a shape. `libm` computes the same on every machine; the system's need not.

use crate::Distribution;
use crate::random::Draw;

/// A distribution with the numbers that are computed once.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    Uniform { low: f64, width: f64 },
    Normal { mean: f64, sd: f64 },
    Exponential { mean: f64 },
    Zipf(Zipf),
}

impl Sampler {
    pub(super) fn new(distribution: Distribution) -> Self {
        match distribution {
            Distribution::Uniform { low, high } => Self::Uniform { low, width: high - low },
            Distribution::Normal { mean, sd } => Self::Normal { mean, sd },
            Distribution::Exponential { mean } => Self::Exponential { mean },
            Distribution::Zipf { n, s } => Self::Zipf(Zipf::new(n as f64, s)),
        }
    }

    pub(super) fn sample(&self, draw: &mut Draw) -> f64 {
        match self {
            Self::Uniform { low, width } => low + width * draw.fraction(),
            Self::Normal { mean, sd } => mean + sd * standard_normal(draw),
            Self::Exponential { mean } => -mean * libm::log(1.0 - draw.fraction()),
            Self::Zipf(zipf) => zipf.sample(draw),
        }
    }
}

/// Box and Muller's transformation.
fn standard_normal(draw: &mut Draw) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - draw.fraction()));
    radius * libm::cos(std::f64::consts::TAU * draw.fraction())
}

/// Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", 1996): no table, however large n.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    n: f64,
    s: f64,
    /// Integral of the hat function from below 1.
    first: f64,
    /// Integral of the hat function to above n.
    last: f64,
    /// A point that lies no farther than this below a whole number is accepted at once.
    close: f64,
}

impl Zipf {
    fn new(n: f64, s: f64) -> Self {
        let mut zipf = Self { n, s, first: 0.0, last: 0.0, close: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(n + 0.5);
        zipf.close = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn sample(&self, draw: &mut Draw) -> f64 {
        loop {
            let area = self.last + draw.fraction() * (self.first - self.last);
            let point = self.inverse(area);
            let value = libm::floor(point + 0.5).clamp(1.0, self.n);
            if value - point <= self.close || area >= self.integral(value + 0.5) - self.density(value) {
                return value;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.s * libm::log(x))
    }

    /// Integral of the density from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        ratio(libm::expm1, (1.0 - self.s) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        libm::exp(ratio(libm::log1p, (area * (1.0 - self.s)).max(-1.0)) * area)
    }
}

/// `function(x) / x`, for functions that are about x near 0.
fn ratio(function: fn(f64) -> f64, x: f64) -> f64 {
    if x.abs() > 1e-8 { function(x) / x } else { 1.0 }
}
