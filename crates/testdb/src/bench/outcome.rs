//! Verdicts and a recommendation from the times of trials.

use measure::Better;
use measure::compare::Change;
use measure::{Median, Sample, Verdict};
use serde::Serialize;

use crate::bench::variant::Variant;

/// Times of one trial, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Time to make the database, seconds.
    pub prepare: f64,
    /// Time of the work, seconds: of the command, or of one transaction with a script of
    /// transactions.
    pub work: f64,
}

impl Figures {
    /// The sum of both, seconds.
    pub fn total(self) -> f64 {
        self.prepare + self.work
    }
}

/// A variant's trials, round by round from the first on.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The variant that was measured.
    pub variant: Variant,
    /// Figures of each trial.
    pub trials: Vec<Figures>,
    /// Whether a trial failed. Then the other trials are not judged.
    pub has_failed: bool,
}

/// The time that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The sum of both times: a suite waits for its database too.
    Total,
    /// The work alone, which in practice takes much longer than in a trial.
    Work,
}

impl Judged {
    fn of(self, figures: Figures) -> f64 {
        match self {
            Self::Total => figures.total(),
            Self::Work => figures.work,
        }
    }
}

/// The finding on a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The variant that was judged.
    pub variant: Variant,
    /// Median of the judged time, seconds.
    pub total: Median,
    /// Median of the time to make the database, seconds.
    pub prepare: f64,
    /// Median of the time of the work, seconds.
    pub work: f64,
    /// Change against normal, from the same rounds; none for normal itself and for failed variants.
    pub change: Option<Change>,
    /// Whether a trial failed.
    pub has_failed: bool,
}

/// Judges each variant with a trial in the same round as a normal one. Changes of less than
/// `threshold` (0.05 is 5 %) count as no change.
pub fn judge(measured: &[Measured], judged: Judged, threshold: f64) -> Vec<Finding> {
    let values =
        |measured: &Measured| measured.trials.iter().map(|trial| judged.of(*trial)).collect::<Vec<_>>();
    let normal = measured.iter().find(|measured| measured.variant == Variant::NORMAL).map(&values);
    let finding = |measured: &Measured| {
        let median = |part: fn(&Figures) -> f64| {
            Some(Sample::new(measured.trials.iter().map(part).collect())?.median())
        };
        let is_judged = measured.variant != Variant::NORMAL && !measured.has_failed;
        let change = normal.as_ref().filter(|_| is_judged).and_then(|normal| {
            let rounds: Vec<(f64, f64)> = normal.iter().copied().zip(values(measured)).collect();
            Change::of_rounds(&rounds, Better::Less, threshold)
        });
        Some(Finding {
            variant: measured.variant,
            total: Median::of(&Sample::new(values(measured))?),
            prepare: median(|trial| trial.prepare)?,
            work: median(|trial| trial.work)?,
            change,
            has_failed: measured.has_failed,
        })
    };
    measured.iter().filter_map(finding).collect()
}

/// Recommendation of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// This variant. It is faster than normal, no variant is provably faster than it, and of those
    /// it costs least.
    Use(Variant),
    /// Nothing: each variant is proved not to be faster.
    Nothing,
    /// Nothing: of the variants that did not fail, each is proved not to be faster.
    NothingElse,
    /// Undecided: some variants may be faster, but none is proved to be.
    Unsure,
    /// None: normal is the only variant that was tried and did not fail.
    Unknown,
}

/// The advice from the measured variants. Among the variants that are proved to be faster than
/// normal, it finds the fastest. Of that one and those not proved to be slower, it recommends the
/// one for which a crash can cost least.
pub fn advise(measured: &[Measured], judged: Judged, threshold: f64) -> Advice {
    let findings = judge(measured, judged, threshold);
    let verdict = |finding: &Finding| finding.change.map(|change| change.verdict);
    let improved: Vec<&Finding> =
        findings.iter().filter(|finding| verdict(finding) == Some(Verdict::Improved)).collect();
    let fastest = improved.iter().min_by(|one, other| one.total.median.total_cmp(&other.total.median));
    let Some(fastest) = fastest else {
        return without_gain(measured, &findings);
    };
    let values = |variant: Variant| -> Vec<f64> {
        let found = measured.iter().filter(|measured| measured.variant == variant);
        found.flat_map(|measured| &measured.trials).map(|trial| judged.of(*trial)).collect()
    };
    let best = values(fastest.variant);
    let as_fast = improved.iter().map(|finding| finding.variant).filter(|variant| {
        let rounds: Vec<(f64, f64)> = best.iter().copied().zip(values(*variant)).collect();
        let change = Change::of_rounds(&rounds, Better::Less, threshold);
        change.is_none_or(|change| change.verdict != Verdict::Regressed)
    });
    Advice::Use(as_fast.min().unwrap_or(fastest.variant))
}

/// The advice if no variant is proved to be faster.
fn without_gain(measured: &[Measured], findings: &[Finding]) -> Advice {
    let verdicts: Vec<Verdict> =
        findings.iter().filter_map(|finding| Some(finding.change?.verdict)).collect();
    let tried = measured.iter().filter(|measured| measured.variant != Variant::NORMAL).count();
    if verdicts.is_empty() {
        Advice::Unknown
    } else if verdicts.contains(&Verdict::Inconclusive) {
        Advice::Unsure
    } else if verdicts.len() < tried {
        Advice::NothingElse
    } else {
        Advice::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Factor by which the machine is slower in each round.
    const SLOW: [f64; 6] = [1.0, 3.0, 1.2, 2.0, 1.1, 5.0];

    fn measured(name: &str, prepare: f64, work: f64) -> Measured {
        let trials = SLOW.iter().map(|slow| Figures { prepare: prepare * slow, work: work * slow });
        Measured { variant: name.parse().unwrap(), trials: trials.collect(), has_failed: false }
    }

    fn advice(measured: &[Measured]) -> Advice {
        advise(measured, Judged::Total, 0.05)
    }

    fn using(name: &str) -> Advice {
        Advice::Use(name.parse().unwrap())
    }

    #[test]
    fn the_total_is_judged_round_by_round() {
        let all =
            [measured("normal", 1.0, 4.0), measured("template", 0.1, 4.0), measured("tmpfs", 1.0, 4.02)];
        let found = judge(&all, Judged::Total, 0.05);
        assert_eq!(found[0].change, None);
        let verdicts: Vec<Verdict> =
            found[1..].iter().map(|finding| finding.change.unwrap().verdict).collect();
        assert_eq!(verdicts, [Verdict::Improved, Verdict::NoChange]);
        assert!((found[1].change.unwrap().ratio - 0.82).abs() < 1e-9);
        assert!((found[1].prepare - 0.16).abs() < 1e-9, "{found:?}");
        // The work alone is the same.
        let found = judge(&all, Judged::Work, 0.05);
        assert_eq!(found[1].change.unwrap().verdict, Verdict::NoChange);
    }

    #[test]
    fn few_rounds_prove_nothing() {
        let mut all = [measured("normal", 1.0, 4.0), measured("template", 0.1, 0.4)];
        for measured in &mut all {
            measured.trials.truncate(5);
        }
        assert_eq!(judge(&all, Judged::Total, 0.05)[1].change.unwrap().verdict, Verdict::Inconclusive);
        assert_eq!(advice(&all), Advice::Unsure);
    }

    #[test]
    fn what_failed_is_not_judged() {
        let mut failed = measured("dangerous", 0.1, 0.1);
        failed.has_failed = true;
        failed.trials.truncate(2);
        let all = [measured("normal", 1.0, 4.0), failed];
        let found = judge(&all, Judged::Total, 0.05);
        assert_eq!((found[1].has_failed, found[1].change), (true, None));
    }

    #[test]
    fn of_what_was_not_tried_to_its_end_nothing_is_said() {
        let failed = |name| Measured { has_failed: true, ..measured(name, 0.1, 0.1) };
        let normal = measured("normal", 1.0, 4.0);
        let never = Measured { trials: Vec::new(), ..failed("tmpfs") };
        assert_eq!(advice(std::slice::from_ref(&normal)), Advice::Unknown);
        assert_eq!(advice(&[normal.clone(), failed("dangerous"), never.clone()]), Advice::Unknown);
        let same = measured("template", 1.0, 4.01);
        assert_eq!(advice(&[normal.clone(), same.clone(), never]), Advice::NothingElse);
        assert_eq!(advice(&[normal.clone(), same]), Advice::Nothing);
        assert_eq!(advice(&[normal, measured("template", 1.0, 9.0)]), Advice::Nothing);
    }

    #[test]
    fn the_fastest_is_recommended() {
        let all = [
            measured("normal", 1.0, 4.0),
            measured("template", 0.1, 4.0),
            measured("dangerous", 0.5, 1.0),
            measured("unlogged", 1.0, 2.0),
        ];
        assert_eq!(advice(&all), using("dangerous"));
    }

    #[test]
    fn among_those_as_fast_the_least_risky_is_recommended() {
        let all = [
            measured("normal", 1.0, 4.0),
            measured("dangerous", 1.0, 1.0),
            measured("unlogged", 1.0, 1.04),
            measured("template", 0.1, 3.0),
            measured("dangerous+template", 0.99, 1.03),
        ];
        assert_eq!(advice(&all), using("unlogged"));
    }

    #[test]
    fn nothing_is_recommended_where_nothing_helps() {
        let all =
            [measured("normal", 0.1, 4.0), measured("dangerous", 0.1, 3.99), measured("tmpfs", 1.1, 4.0)];
        assert_eq!(advice(&all), Advice::Nothing);
    }
}
