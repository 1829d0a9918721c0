//! A verdict between two saved runs of the same thing.
//!
//! What was otherwise in request, server, machine and connection is named ([`Difference`]), and what then
//! differs may be due to it. Figures are read by configuration and name, so that any verb's runs compare.

mod change;
mod difference;
mod figure;

use serde::Serialize;

pub use change::{Better, Change};
pub use difference::{Difference, differing_settings};
pub use figure::{Figure, FigureUnit};

use crate::run::Run;
use crate::sample::Sample;

/// Two runs beside each other.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What was otherwise.
    pub differences: Vec<Difference>,
    /// What both runs observed, in the baseline's order.
    pub compared: Vec<Compared>,
}

/// A figure of both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What it is.
    #[serde(flatten)]
    pub figure: Figure,
    /// Its values in the baseline's trials.
    pub baseline: Sample,
    /// And in the candidate's.
    pub candidate: Sample,
    /// What that says.
    pub change: Change,
}

impl Comparison {
    /// Of a saved run and a new one; changes of less than `threshold` (0.05 is 5 %) do not matter.
    pub fn of(baseline: &Run, candidate: &Run, threshold: f64) -> Self {
        let compared = figure::figures(baseline).into_iter().filter_map(|figure| {
            let baseline = figure.sample(baseline)?;
            let candidate = figure.sample(candidate)?;
            let change = Change::of(&baseline, &candidate, figure.better(), threshold)?;
            Some(Compared { figure, baseline, candidate, change })
        });
        Self { differences: difference::differences(baseline, candidate), compared: compared.collect() }
    }

    /// What makes the runs incomparable.
    pub fn hindrances(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.hinders)
    }
}
