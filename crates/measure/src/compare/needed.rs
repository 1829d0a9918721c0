//! Number of runs that a verdict needs.

use std::fmt;

use serde::Serialize;

use super::exact::{least_p_of_rounds, least_p_of_sides};
use super::sides::Sides;

/// Greatest number of runs that is tried.
const MOST: usize = 1000;

/// The least number of runs with which a verdict can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needed {
    /// Rounds of one run on each side.
    Rounds(usize),
    /// Runs on each side.
    Runs(usize),
}

impl Needed {
    /// None if the sides have enough runs to judge so many figures.
    pub(super) fn of(sides: &Sides, figures: usize, alpha: f64) -> Option<Self> {
        let (baseline, candidate) = (sides.baseline().len(), sides.candidate().len());
        let level = alpha / figures.max(1) as f64;
        if sides.is_paired() {
            (least_p_of_rounds(baseline) > level).then(|| Self::Rounds(fewest_rounds(figures, alpha)))
        } else {
            (least_p_of_sides(baseline, candidate) > level).then(|| Self::Runs(fewest_runs(figures, alpha)))
        }
    }
}

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rounds(rounds) => write!(f, "{rounds} rounds"),
            Self::Runs(runs) => write!(f, "{runs} runs on each side"),
        }
    }
}

/// Least number of rounds for a verdict about so many figures: the least p-value of the test is
/// then at most `alpha` divided by the number of figures.
pub fn fewest_rounds(figures: usize, alpha: f64) -> usize {
    let level = alpha / figures.max(1) as f64;
    (1..MOST).find(|rounds| least_p_of_rounds(*rounds) <= level).unwrap_or(MOST)
}

/// The least number of runs on each side, if they are not paired.
pub(crate) fn fewest_runs(figures: usize, alpha: f64) -> usize {
    let level = alpha / figures.max(1) as f64;
    (1..MOST).find(|runs| least_p_of_sides(*runs, *runs) <= level).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_figures_take_more_runs() {
        // 2 / 2^n and 2 / C(2n, n), by hand.
        assert_eq!([1, 2, 3, 4, 6, 7].map(|figures| fewest_rounds(figures, 0.05)), [6, 7, 7, 8, 8, 9]);
        assert_eq!([1, 2, 6, 7].map(|figures| fewest_runs(figures, 0.05)), [4, 5, 5, 6]);
        assert_eq!(fewest_rounds(0, 0.05), 6);
    }
}
