//! The runs of a baseline and those of a candidate.

use super::difference::{Difference, differences};
use super::exact::{FALSE_ALARMS, of_sides};
use super::{in_order, start};
use crate::run::Run;
use failure::{Class, Classified};

/// Runs that are compared: at least one on each side, in the order in which they began.
#[derive(Clone, Debug)]
pub struct Sides {
    baseline: Vec<Run>,
    candidate: Vec<Run>,
    is_paired: bool,
}

/// Why runs are not paired rounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPairs {
    /// The sides have different numbers of runs.
    #[error(
        "--paired needs the same number of runs on each side; the baseline has {0}, the candidate {1}: give as many of each, or leave out --paired"
    )]
    Counts(usize, usize),
    /// A run began before the previous round was complete.
    #[error("runs {0} and {1} did not alternate: compare them without --paired")]
    Order(String, String),
}

impl Classified for NoPairs {
    fn class(&self) -> Class {
        match self {
            Self::Counts(..) | Self::Order(..) => Class::Request,
        }
    }
}

impl Sides {
    /// Sides of runs that were not measured in turn. None if a side has no run.
    pub fn new(mut baseline: Vec<Run>, mut candidate: Vec<Run>) -> Option<Self> {
        in_order(&mut baseline);
        in_order(&mut candidate);
        let is_empty = baseline.is_empty() || candidate.is_empty();
        (!is_empty).then_some(Self { baseline, candidate, is_paired: false })
    }

    /// Sides of runs that were measured in turn: the first baseline and the first candidate are the
    /// first round, and so on.
    ///
    /// # Errors
    /// [`NoPairs`], if a run of one round began before one of the round before.
    pub fn paired(self) -> Result<Self, NoPairs> {
        let (baseline, candidate) = (&self.baseline, &self.candidate);
        if baseline.len() != candidate.len() {
            return Err(NoPairs::Counts(baseline.len(), candidate.len()));
        }
        let rounds: Vec<[&Run; 2]> =
            baseline.iter().zip(candidate).map(|(one, other)| [one, other]).collect();
        for pair in rounds.windows(2) {
            for (before, after) in
                pair[0].iter().flat_map(|before| pair[1].iter().map(move |after| (before, after)))
            {
                if start(after) < start(before) {
                    return Err(NoPairs::Order(before.id.clone(), after.id.clone()));
                }
            }
        }
        Ok(Self { is_paired: true, ..self })
    }

    /// The baselines, in the order in which they began.
    pub fn baseline(&self) -> &[Run] {
        &self.baseline
    }

    /// The candidates, in the order in which they began.
    pub fn candidate(&self) -> &[Run] {
        &self.candidate
    }

    /// Whether the runs of both sides were measured in turn, round by round.
    pub fn is_paired(&self) -> bool {
        self.is_paired
    }

    /// Whether all, or most, runs of one side were before those of the other. A change in the
    /// machine's speed in between then looks like a difference of the sides, and no test can tell
    /// them apart.
    pub fn is_apart(&self) -> bool {
        let mut all: Vec<&str> = self.baseline.iter().chain(&self.candidate).map(start).collect();
        all.sort_unstable();
        let place = |run: &Run| all.partition_point(|known| *known < start(run)) as f64 + 1.0;
        let [baseline, candidate] =
            [&self.baseline, &self.candidate].map(|runs| runs.iter().map(place).collect::<Vec<_>>());
        let last = |places: &[f64]| places.iter().copied().fold(0.0, f64::max);
        let first = |places: &[f64]| places.iter().copied().fold(f64::INFINITY, f64::min);
        let is_disjoint = last(&baseline) < first(&candidate) || last(&candidate) < first(&baseline);
        !self.is_paired
            && (is_disjoint || of_sides(&baseline, &candidate).is_some_and(|found| found.p <= FALSE_ALARMS))
    }

    /// Differences between the sides, and within one.
    pub(super) fn differences(&self) -> Vec<Difference> {
        let (baseline, candidate) = (&self.baseline[0], &self.candidate[0]);
        let mut found = differences(baseline, candidate);
        for (side, runs) in [("baseline", &self.baseline), ("candidate", &self.candidate)] {
            for run in &runs[1..] {
                for difference in differences(&runs[0], run) {
                    let what = format!("{} within the {side}", difference.what);
                    if !found.iter().any(|known: &Difference| known.what == what) {
                        found.push(Difference { what, ..difference });
                    }
                }
            }
        }
        found
    }
}
