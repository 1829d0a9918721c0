//! What of a run is compared.

use serde::Serialize;

use super::change::Better;
use crate::run::{Run, Trial, Unit};
use crate::sample::Sample;

/// Something that trials have a value of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The configuration of the trials.
    pub config: String,
    /// The observation's name; `tps`, which is derived, for transactions per second.
    pub name: String,
    /// What it is counted in.
    pub unit: FigureUnit,
    /// Whether it is by row: where pgrig chose how many rows to time, which is otherwise on another day.
    pub per_row: bool,
}

/// Units of what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureUnit {
    /// Seconds: less is better.
    Seconds,
    /// Bytes: less is better.
    Bytes,
    /// How many a second: more is better.
    PerSecond,
}

/// Derived from [`SUCCEEDED`] and [`ELAPSED`].
const TPS: &str = "tps";
const SUCCEEDED: &str = "succeeded";
const ELAPSED: &str = "elapsed";
/// The verb whose samples are of so many rows as pgrig thinks fit …
const MICRO: &str = "micro";
/// … with the observation that says how many, and the configuration of the round that only warms up.
const ROWS: &str = "rows";
const COLD: &str = "cold";
/// Seconds that explain a result and are none: what was waited for within a step, what else kept the machine
/// busy, what pgrig spent as it was told to.
const EXPLANATIONS: [&str; 5] = ["-read-time", "-write-time", "machine-", "disk-", "probing"];

impl Figure {
    /// Which way is the better one.
    pub fn better(&self) -> Better {
        match self.unit {
            FigureUnit::Seconds | FigureUnit::Bytes => Better::Less,
            FigureUnit::PerSecond => Better::More,
        }
    }

    /// Its values in a run's trials; none if no trial has one.
    pub(super) fn sample(&self, run: &Run) -> Option<Sample> {
        let trials = run.trials.iter().filter(|trial| trial.config == self.config);
        Sample::new(trials.filter_map(|trial| self.value(trial)).collect())
    }

    fn value(&self, trial: &Trial) -> Option<f64> {
        match self.unit {
            FigureUnit::Seconds | FigureUnit::Bytes if self.per_row => {
                Some(trial.value(&self.name)? / trial.value(ROWS)?)
            }
            FigureUnit::Seconds | FigureUnit::Bytes => trial.value(&self.name),
            FigureUnit::PerSecond => Some(trial.value(SUCCEEDED)? / trial.value(ELAPSED)?),
        }
    }
}

/// All figures of a run, in the order in which they come first.
pub(super) fn figures(run: &Run) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    let per_row = run.verb == MICRO;
    for trial in run.trials.iter().filter(|trial| !per_row || trial.config != COLD) {
        let has_tps = trial.value(SUCCEEDED).is_some() && trial.value(ELAPSED).is_some();
        for observation in &trial.observations {
            let (name, unit) = match (observation.name.as_str(), observation.unit) {
                // How long a run takes in which transactions are counted was asked for.
                (ELAPSED, Unit::Seconds) if has_tps => (TPS, FigureUnit::PerSecond),
                (name, Unit::Seconds) if !explains(name) => (name, FigureUnit::Seconds),
                (name, Unit::Bytes)
                    if name == "wal" || name.ends_with("-wal") && !name.starts_with("predicted") =>
                {
                    (name, FigureUnit::Bytes)
                }
                _ => continue,
            };
            let figure = Figure { config: trial.config.clone(), name: name.to_owned(), unit, per_row };
            if !all.contains(&figure) {
                all.push(figure);
            }
        }
    }
    all
}

fn explains(name: &str) -> bool {
    EXPLANATIONS.iter().any(|part| name.starts_with(part) || name.ends_with(part))
}
