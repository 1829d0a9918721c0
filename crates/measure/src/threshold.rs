//! Limits that the user sets to measured values: `p99>20ms`, `tps<500`, `skipped>1%`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use crate::censored::{Censored, Quantile, Skipped};
use crate::human;
use crate::latencies::{Latencies, Percentile};

/// A condition under which a run fails, e.g. `p99>20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    metric: Metric,
    comparison: Comparison,
    limit: f64,
    /// As the user wrote it.
    limit_text: String,
    text: String,
}

/// The measurements that a threshold may name.
#[derive(Clone, Copy, Debug)]
pub struct Metrics<'a> {
    /// Transactions that succeeded, per second.
    pub tps: f64,
    /// All transactions that were due: succeeded, failed or skipped.
    pub due: u64,
    /// Transactions that succeeded.
    pub succeeded: u64,
    /// Transactions given up after an error.
    pub failed: u64,
    /// Transactions tried more than once.
    pub retried: u64,
    /// Transactions that would have begun too late; none without a rate and a latency limit.
    pub skipped: Option<Skipped>,
    /// Transactions that succeeded too late; none without a limit of latency.
    pub late: Option<u64>,
    /// Latencies from the scheduled start to the end.
    pub latency: &'a Latencies,
    /// Delays from the scheduled start to the actual one; none without a rate.
    pub lag: Option<&'a Latencies>,
}

/// The result of a threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The threshold, as the user wrote it.
    pub threshold: String,
    /// Whether the run fails because of it.
    pub missed: bool,
    /// The finding as text: `p99 is 31.2 ms, over 20 ms`.
    pub text: String,
}

/// A text that is no threshold.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ThresholdError {
    /// The text has no comparison.
    #[error(
        "\"{0}\" has no comparison: write a name, one of < <= > >=, and a limit, like p99>20ms or tps<500"
    )]
    NoComparison(String),
    /// The name is no metric.
    #[error(
        "\"{0}\" is not a figure: give tps, failed, skipped, late or retried; mean, max, p50, p99 or another percentile \
         (of the latency); or lag-mean, lag-max, lag-p99 … (of the delay behind the schedule)"
    )]
    Name(String),
    /// The limit is no number.
    #[error("\"{0}\" is not a limit: give one like {1}, and not below 0")]
    Number(String, &'static str),
    /// The limit's unit does not fit.
    #[error("\"{text}\" {problem}: write it like {example}")]
    Unit {
        /// The limit that the user gave.
        text: String,
        /// Why the unit does not fit, as a predicate.
        problem: &'static str,
        /// An example of a correct limit.
        example: &'static str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Tps,
    Count(Counted),
    /// In percent. Failed, skipped and retried transactions count as a share of all due ones, late
    /// ones as a share of the succeeded ones.
    Percentage(Counted),
    /// A time in seconds.
    Time(Clock, Figure),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Counted {
    Failed,
    Skipped,
    Late,
    Retried,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    Latency,
    Lag,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Mean,
    /// The latency that this percentage does not exceed.
    Percentile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Under,
    AtMost,
    Over,
    AtLeast,
}

/// Measured value of a threshold's metric.
enum Value {
    Is(f64),
    /// More than this value, because this number of transactions was skipped.
    Over(f64, u64),
}

impl Threshold {
    /// Compares the threshold with the measurements. A percentile is exact to its three digits,
    /// rounded up rather than down.
    ///
    /// Skipped transactions rank above all others, as slower than the limit for which they were
    /// skipped. Unknown values count as missed: the lag without a rate, latency where no
    /// transaction succeeded, and by how much a skipped transaction is slower.
    pub fn judge(&self, metrics: &Metrics<'_>) -> Finding {
        let name = self.metric.to_string();
        let (missed, text) = match self.metric.value(metrics) {
            Ok(Value::Is(value)) => {
                let missed = self.comparison.holds(value, self.limit);
                let (not, relation) = (if missed { "" } else { "not " }, self.comparison.words());
                (
                    missed,
                    format!("{name} is {}, {not}{relation} {}", self.metric.show(value), self.limit_text),
                )
            }
            Ok(Value::Over(least, skipped)) => {
                let (missed, relation) = match self.comparison {
                    _ if least < self.limit => {
                        let more = self.metric.show(least);
                        let skipped = human::grouped(skipped);
                        let text = format!(
                            "pgrig cannot tell if {name} is {} {}, because skipped transactions ({skipped}) took more than \
                             {more}: give a higher --latency-limit",
                            self.comparison.words(),
                            self.limit_text
                        );
                        return Finding { threshold: self.text.clone(), missed: true, text };
                    }
                    Comparison::Over | Comparison::AtLeast => {
                        (true, format!("{} {}", self.comparison.words(), self.limit_text))
                    }
                    Comparison::Under | Comparison::AtMost => {
                        (false, format!("not {} {}", self.comparison.words(), self.limit_text))
                    }
                };
                let more = self.metric.show(least);
                let plural = if skipped == 1 { "" } else { "s" };
                let skipped = human::grouped(skipped);
                (
                    missed,
                    format!(
                        "{name}, with {skipped} skipped transaction{plural}, is more than {more}, which is {relation}"
                    ),
                )
            }
            Err(why) => (true, format!("{name} is not known: {why}")),
        };
        Finding { threshold: self.text.clone(), missed, text }
    }
}

/// As the user wrote it.
impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let no_comparison = || ThresholdError::NoComparison(text.to_owned());
        let (name, rest) = text.split_at(text.find(['<', '>']).ok_or_else(no_comparison)?);
        let (comparison, limit) = Comparison::split(rest).ok_or_else(no_comparison)?;
        let (name, limit) = (name.trim(), limit.trim());
        let metric = Metric::named(name).ok_or_else(|| ThresholdError::Name(name.to_owned()))?;
        let (metric, value) = metric.limited(limit)?;
        Ok(Self {
            metric,
            comparison,
            limit: value,
            limit_text: limit.to_owned(),
            text: text.trim().to_owned(),
        })
    }
}

impl Metric {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "tps" => Self::Tps,
            "failed" => Self::Count(Counted::Failed),
            "skipped" => Self::Count(Counted::Skipped),
            "late" => Self::Count(Counted::Late),
            "retried" => Self::Count(Counted::Retried),
            _ => match name.strip_prefix("lag-") {
                Some(figure) => Self::Time(Clock::Lag, Figure::named(figure)?),
                None => Self::Time(Clock::Latency, Figure::named(name)?),
            },
        })
    }

    /// Reads the limit; its unit tells whether it is a count or a percentage.
    fn limited(self, text: &str) -> Result<(Self, f64), ThresholdError> {
        let digits = text.trim_end_matches(|c: char| !(c.is_ascii_digit() || c == '.'));
        let unit = text[digits.len()..].trim();
        let example = self.example();
        let wrong = |problem| Err(ThresholdError::Unit { text: text.to_owned(), problem, example });
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        let number = number.ok_or_else(|| ThresholdError::Number(text.to_owned(), example))?;
        Ok(match (self, unit) {
            (Self::Time(..), _) => match seconds(unit) {
                Some(seconds) => (self, number * seconds),
                None if unit.is_empty() => return wrong("has no unit"),
                None => return wrong("is not a time in us, ms or s"),
            },
            (Self::Count(counted), "%") => (Self::Percentage(counted), number),
            (Self::Tps | Self::Count(_), "") => (self, number),
            (Self::Tps, _) => return wrong("is not a plain number"),
            _ => return wrong("is not a number with or without %"),
        })
    }

    fn example(self) -> &'static str {
        match self {
            Self::Tps => "500",
            Self::Count(_) | Self::Percentage(_) => "10 or 1%",
            Self::Time(..) => "500us, 20ms or 1.5s",
        }
    }

    /// The value, or the reason why there is none.
    fn value(self, metrics: &Metrics<'_>) -> Result<Value, &'static str> {
        match self {
            Self::Tps if metrics.tps.is_finite() => Ok(Value::Is(metrics.tps)),
            Self::Tps => Err("no time was measured"),
            Self::Count(counted) => Ok(Value::Is(counted.number(metrics)? as f64)),
            Self::Percentage(counted) => match (counted.number(metrics)?, counted.of(metrics)) {
                (_, 0) => Err("there were no transactions"),
                (number, of) => Ok(Value::Is(number as f64 * 100.0 / of as f64)),
            },
            Self::Time(clock, figure) => {
                let latencies = match clock {
                    Clock::Latency => metrics.latency,
                    Clock::Lag => metrics.lag.ok_or("lag needs a rate (-R)")?,
                };
                let censored = Censored::new(latencies, metrics.skipped);
                match figure.of(&censored).ok_or("no transaction succeeded")? {
                    Quantile::Is(time) => Ok(Value::Is(time.as_secs_f64())),
                    Quantile::Over(least) => {
                        let skipped = censored.skipped().map_or(0, |skipped| skipped.number);
                        Ok(Value::Over(least.as_secs_f64(), skipped))
                    }
                }
            }
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Tps => human::count(value),
            Self::Count(_) => format!("{value}"),
            Self::Percentage(_) => format!("{value:.2} %"),
            Self::Time(..) => human::latency(value),
        }
    }
}

/// Seconds of a unit of time.
fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    })
}

impl Counted {
    fn number(self, metrics: &Metrics<'_>) -> Result<u64, &'static str> {
        match self {
            Self::Failed => Ok(metrics.failed),
            Self::Retried => Ok(metrics.retried),
            Self::Skipped => match metrics.skipped {
                Some(skipped) => Ok(skipped.number),
                None => Err("skipped needs a rate (-R) and a limit (-L)"),
            },
            Self::Late => metrics.late.ok_or("late needs a limit (-L)"),
        }
    }

    /// The number that a percentage refers to.
    fn of(self, metrics: &Metrics<'_>) -> u64 {
        match self {
            Self::Failed | Self::Retried | Self::Skipped => metrics.due,
            Self::Late => metrics.succeeded,
        }
    }
}

impl Figure {
    fn named(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "max" => Some(Self::Percentile(Percentile::Max.share() * 100.0)),
            _ => {
                let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
                (percent > 0.0 && percent < 100.0).then_some(Self::Percentile(percent))
            }
        }
    }

    fn of(self, latencies: &Censored<'_>) -> Option<Quantile> {
        match self {
            Self::Mean => latencies.mean(),
            Self::Percentile(percent) => latencies.quantile(percent / 100.0),
        }
    }
}

impl Comparison {
    fn split(text: &str) -> Option<(Self, &str)> {
        let known = [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Under), (">", Self::Over)];
        known.into_iter().find_map(|(sign, comparison)| Some((comparison, text.strip_prefix(sign)?)))
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Under => value < limit,
            Self::AtMost => value <= limit,
            Self::Over => value > limit,
            Self::AtLeast => value >= limit,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Under => "under",
            Self::AtMost => "at most",
            Self::Over => "over",
            Self::AtLeast => "at least",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tps => f.write_str("tps"),
            Self::Count(counted) | Self::Percentage(counted) => f.write_str(match counted {
                Counted::Failed => "failed",
                Counted::Skipped => "skipped",
                Counted::Late => "late",
                Counted::Retried => "retried",
            }),
            Self::Time(clock, figure) => {
                f.write_str(if *clock == Clock::Lag { "lag-" } else { "" })?;
                match figure {
                    Figure::Mean => f.write_str("mean"),
                    Figure::Percentile(percent) if *percent >= 100.0 => f.write_str(Percentile::Max.name()),
                    Figure::Percentile(percent) => write!(f, "p{percent}"),
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "threshold_tests.rs"]
mod tests;
