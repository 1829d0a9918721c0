//! Verdicts between sides of saved runs.
//!
//! The run is the unit of comparison: it has one value of each figure ([`crate::figures()`]),
//! whatever its number of trials. A few figures are judged together (`holm`); all others are only
//! shown with their change. Differences of request, server, machine and connection are reported
//! ([`Difference`]), because they may be the cause of a change.

mod change;
mod difference;
pub mod exact;
mod looks;
mod needed;
mod sides;

use serde::Serialize;

pub use change::Change;
pub use difference::{Difference, differences, differing_settings};
pub use looks::{Look, Looks};
pub use needed::{Needed, fewest_rounds};
pub use sides::{NoPairs, Sides};

use crate::figure::{Figure, figures, judged};
use crate::paired::Estimate;
use crate::run::Run;
use crate::verdict::Verdict;
use change::verdict;
use exact::Tested;

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Changes of less than this share do not matter: 0.05 is 5 %.
    pub threshold: f64,
    /// Probability of a false verdict on the judged figures together.
    pub alpha: f64,
    /// The figures to judge ([`Figure::is_named`]); empty for the default ones.
    pub figures: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 0.05, alpha: exact::FALSE_ALARMS, figures: Vec::new() }
    }
}

/// A comparison of two sides of runs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Differences of the runs other than figures.
    pub differences: Vec<Difference>,
    /// The figures that all runs have: those that are judged first, then in the order of the first baseline.
    pub compared: Vec<Compared>,
    /// Figures to judge that some runs do not have, or that have no ratio.
    pub unmeasured: Vec<Figure>,
    /// Least number of runs for a verdict; none if there are enough.
    pub needed: Option<Needed>,
}

/// A figure of both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The compared figure.
    #[serde(flatten)]
    pub figure: Figure,
    /// Values of the baseline's runs in the figure's unit, in the order of time.
    pub baseline: Vec<f64>,
    /// The value of each candidate; of paired runs in the same order.
    pub candidate: Vec<f64>,
    /// The medians of the sides, scaled so that their ratio is `ratio`.
    pub typical: [f64; 2],
    /// Ratio of the candidate to the baseline.
    pub ratio: f64,
    /// Holds the true ratio in 95 of 100 cases; none with too few runs.
    pub interval: Option<Estimate>,
    /// p-value: the probability of a difference at least this large between sides that do not
    /// differ.
    pub p: f64,
    /// The verdict; none if the figure is not judged.
    pub verdict: Option<Verdict>,
}

impl Comparison {
    /// Compares the sides.
    pub fn of(sides: &Sides, options: &Options) -> Self {
        let all =
            [sides.baseline(), sides.candidate()].map(|runs| runs.iter().map(figures).collect::<Vec<_>>());
        let asked = asked(sides, &all, options);
        let mut unmeasured = Vec::new();
        let mut compared = Vec::new();
        for (figure, is_judged) in asked {
            let values = [0, 1].map(|side| values(&all[side], &figure));
            match values {
                [Some(baseline), Some(candidate)] => match Compared::of(figure, baseline, candidate, sides) {
                    Ok(found) => compared.push((found, is_judged)),
                    Err(figure) if is_judged => unmeasured.push(figure),
                    Err(_) => {}
                },
                _ if is_judged => unmeasured.push(figure),
                _ => {}
            }
        }
        compared.sort_by_key(|(_, is_judged)| !is_judged);
        let count = compared.iter().filter(|(_, is_judged)| *is_judged).count();
        let compared: Vec<Compared> = compared.into_iter().map(|(found, _)| found).collect();
        let mut comparison = Self {
            differences: sides.differences(),
            compared,
            unmeasured,
            needed: Needed::of(sides, count, options.alpha),
        };
        comparison.judge(count, options);
        comparison
    }

    /// Judges the first `count` figures, together.
    fn judge(&mut self, count: usize, options: &Options) {
        let judged = &mut self.compared[..count];
        let p_values: Vec<f64> = judged.iter().map(|one| one.p).collect();
        for (one, differs) in judged.iter_mut().zip(exact::holm(&p_values, options.alpha)) {
            let better = one.figure.better();
            one.verdict = Some(verdict(differs, one.ratio, one.interval, better, options.threshold));
        }
    }

    /// The figures with a verdict.
    pub fn judged(&self) -> impl Iterator<Item = (&Compared, Verdict)> {
        self.compared.iter().filter_map(|one| Some((one, one.verdict?)))
    }

    /// Differences that make the runs incomparable.
    pub fn hindrances(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.hinders)
    }
}

/// All figures of the runs, in the order of their first occurrence, and whether each is judged.
fn asked(sides: &Sides, all: &[Vec<Vec<(Figure, f64)>>; 2], options: &Options) -> Vec<(Figure, bool)> {
    let mut known: Vec<&Figure> = Vec::new();
    for (figure, _) in all.iter().flatten().flatten() {
        if !known.contains(&figure) {
            known.push(figure);
        }
    }
    let by_default = judged(&sides.baseline()[0].verb, &known);
    let is_asked = |figure: &Figure, default: bool| match options.figures.as_slice() {
        [] => default,
        names => names.iter().any(|name| figure.is_named(name)),
    };
    known
        .iter()
        .zip(by_default)
        .map(|(figure, default)| ((*figure).clone(), is_asked(figure, default)))
        .collect()
}

/// The figure's value in each run; none if one has none.
fn values(runs: &[Vec<(Figure, f64)>], figure: &Figure) -> Option<Vec<f64>> {
    let value =
        |run: &Vec<(Figure, f64)>| run.iter().find(|(known, _)| known == figure).map(|(_, value)| *value);
    runs.iter().map(value).collect()
}

impl Compared {
    /// Compares a figure. Returns the figure as an error if it has no ratio.
    fn of(figure: Figure, baseline: Vec<f64>, candidate: Vec<f64>, sides: &Sides) -> Result<Self, Figure> {
        let tested = if sides.is_paired() {
            let rounds: Vec<(f64, f64)> = baseline.iter().copied().zip(candidate.iter().copied()).collect();
            exact::of_rounds(&rounds)
        } else {
            exact::of_sides(&baseline, &candidate)
        };
        let Some(Tested { ratio, interval, p }) = tested else { return Err(figure) };
        let middle = [&baseline, &candidate].map(|values| middle(values).ln()).iter().sum::<f64>() / 2.0;
        let typical = [middle.exp() / ratio.sqrt(), middle.exp() * ratio.sqrt()];
        Ok(Self { figure, baseline, candidate, typical, ratio, interval, p, verdict: None })
    }
}

/// The median of values that are finite.
fn middle(values: &[f64]) -> f64 {
    crate::sample::Sample::new(values.to_vec()).map_or(f64::NAN, |sample| sample.median())
}

/// Runs in the order in which they began.
fn in_order(runs: &mut [Run]) {
    runs.sort_by(|one, other| start(one).cmp(start(other)));
}

/// Start of a run, as a text that sorts.
fn start(run: &Run) -> &str {
    run.started_at.trim_end_matches('Z')
}
