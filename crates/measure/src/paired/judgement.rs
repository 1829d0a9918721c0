//! Makes verdicts from rounds.

use serde::Serialize;

use super::bootstrap::{Column, interval, resample};
use super::drift::drift;
use super::estimate::{Estimate, REACH_95};
use super::rounds::{Arm, Rounds};
use crate::verdict::Verdict;

/// With fewer rounds there is no judgement.
pub const FEWEST_ROUNDS: usize = 15;
/// Probability that pgrig reports one difference or more between candidates that do not differ.
const FALSE_ALARMS: f64 = 0.05;
/// An interval is narrow enough if it extends no farther than this to either side, as a share of
/// the threshold: then a difference of twice the threshold is recognised, and so is no difference
/// at all.
const NARROW: f64 = 0.5;
/// A verdict that would need more rounds than this counts as out of reach.
const MOST_ROUNDS: f64 = 100_000.0;

/// Estimates and verdicts of all pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Each candidate's own time, seconds per row: without the empty loop, if there is one.
    pub own: Vec<Estimate>,
    /// The empty loop's time, seconds per row.
    pub empty: Option<Estimate>,
    /// Difference of A′ and A, seconds per row: the effect of noise alone.
    pub repeat: Estimate,
    /// Share by which rounds became slower (below 0: faster) from the first third to the last; none if they did not.
    pub drift: Option<f64>,
    /// The pairs, in the order asked for.
    pub pairs: Vec<Judgement>,
}

/// One candidate beside another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The reference of the comparison, from 0.
    pub baseline: usize,
    /// Index of the compared candidate.
    pub candidate: usize,
    /// Time of the candidate minus that of the baseline, seconds per row.
    pub difference: Estimate,
    /// The difference as a share of the baseline's own time; none if that time is not significantly
    /// above 0.
    pub relative: Option<Estimate>,
    /// Improved, regressed, no change or inconclusive: `difference` judged by `margin` and the noise floor.
    pub verdict: Verdict,
    /// The least difference that matters, seconds per row: the threshold times the baseline's own
    /// time (or times its whole time, if the own time is not significantly above 0).
    pub margin: f64,
    /// The difference of A′ and A, seconds per row. pgrig reports no difference smaller than this,
    /// and never reports "no change" if this is more than `margin`.
    pub noise_floor: f64,
    /// Whether differences of successive rounds are correlated: then the same number of rounds tells less.
    pub autocorrelated: bool,
    /// Estimated number of further rounds for a verdict. None if there is a verdict, or if it is
    /// out of reach, because the difference is close to the margin or the noise floor hardly
    /// depends on the number of rounds.
    pub rounds_needed: Option<u32>,
    /// Whether the intervals of the difference and of A′ are so narrow that more rounds would
    /// hardly change them, so that measuring may stop.
    pub is_narrow_enough: bool,
}

impl Judged {
    /// Whether a candidate's own time is significantly above 0; otherwise it takes no longer than
    /// the empty loop.
    pub fn is_measurable(&self, candidate: usize) -> bool {
        self.own[candidate].low > 0.0
    }

    /// Whether to stop: all intervals are narrow enough, whatever the verdicts are. (Stopping as
    /// soon as there is a difference would sooner or later find one where there is none.)
    pub fn is_narrow_enough(&self) -> bool {
        self.pairs.iter().all(|pair| pair.is_narrow_enough)
    }
}

/// Judges pairs (baseline, candidate) of candidates, counted from 0. `threshold` is the least
/// difference that matters, as a share: 0.01 is 1 %. The same rounds and seed give the same result.
/// None with fewer than [`FEWEST_ROUNDS`] rounds.
///
/// Each pair costs 2000 resamples of all rounds: milliseconds for a hundred of them.
///
/// # Panics
/// If a pair names a candidate that does not exist.
pub fn judge(rounds: &Rounds, pairs: &[(usize, usize)], threshold: f64, seed: u64) -> Option<Judged> {
    if rounds.count() < FEWEST_ROUNDS {
        return None;
    }
    let ground = Evidence::of(rounds, threshold, seed);
    let mut judgements: Vec<Judgement> =
        pairs.iter().map(|&(baseline, candidate)| ground.compare(baseline, candidate)).collect();
    // Whether one pair differs depends on how many others there are.
    let differs = holm(&judgements);
    for (judgement, differs) in judgements.iter_mut().zip(differs) {
        judgement.verdict = judgement.verdict(differs);
        judgement.rounds_needed = judgement.rounds_needed(rounds.count(), pairs.len());
    }
    let empty = rounds.has_empty().then(|| estimate(&rounds.times(Arm::Empty).collect::<Vec<_>>(), seed));
    let Evidence { own, repeat, .. } = ground;
    Some(Judged { own, empty, repeat, drift: drift(rounds, threshold), pairs: judgements })
}

/// Trimmed mean with interval of some numbers, one from each round.
fn estimate(values: &[f64], seed: u64) -> Estimate {
    let column = Column::new(values);
    let block = column.block();
    let mut resampled: Vec<f64> = resample([&column], block, seed).into_iter().map(|[one]| one).collect();
    interval(column.location(), &mut resampled, values.len(), block)
}

/// The evidence that all pairs are judged by.
struct Evidence<'a> {
    rounds: &'a Rounds,
    threshold: f64,
    seed: u64,
    /// Each candidate's own time, seconds per row.
    own: Vec<Estimate>,
    /// Each candidate's time with the empty loop in it, seconds per row.
    whole: Vec<f64>,
    /// A′ less A, seconds per row.
    repeat: Estimate,
}

impl<'a> Evidence<'a> {
    fn of(rounds: &'a Rounds, threshold: f64, seed: u64) -> Self {
        let candidates = || (0..rounds.candidates()).map(Arm::Candidate);
        let whole = |arm| Column::new(&rounds.times(arm).collect::<Vec<_>>()).location();
        Self {
            rounds,
            threshold,
            seed,
            own: candidates().map(|arm| estimate(&rounds.own_times(arm), seed)).collect(),
            whole: candidates().map(whole).collect(),
            repeat: estimate(&rounds.differences(Arm::Repeat, Arm::Candidate(0)), seed),
        }
    }

    /// A judgement without the parts that depend on the other pairs; its verdict is inconclusive
    /// for now.
    fn compare(&self, baseline: usize, candidate: usize) -> Judgement {
        let rounds = self.rounds;
        let differences =
            Column::new(&rounds.differences(Arm::Candidate(candidate), Arm::Candidate(baseline)));
        let own = Column::new(&rounds.own_times(Arm::Candidate(baseline)));
        let block = differences.block();
        let resampled = resample([&differences, &own], block, self.seed);
        let mut seconds: Vec<f64> = resampled.iter().map(|[difference, _]| *difference).collect();
        let difference = interval(differences.location(), &mut seconds, rounds.count(), block);
        let has_own = self.own[baseline].low > 0.0;
        let relative = has_own.then(|| {
            let mut shares: Vec<f64> = resampled.iter().map(|[difference, own]| difference / own).collect();
            interval(difference.value / own.location(), &mut shares, rounds.count(), block)
        });
        let base = if has_own { self.own[baseline].value } else { self.whole[baseline] };
        // Noise grows with the time.
        let noise = (self.whole[baseline] / self.whole[0]).max(1.0);
        let widest = difference.half_width().max(self.repeat.half_width() * noise);
        let longest = base.max(self.own[candidate].value);
        Judgement {
            baseline,
            candidate,
            difference,
            relative,
            verdict: Verdict::Inconclusive,
            margin: self.threshold * base,
            noise_floor: self.repeat.reach() * noise,
            autocorrelated: differences.is_autocorrelated(),
            rounds_needed: None,
            is_narrow_enough: widest <= NARROW * self.threshold * longest,
        }
    }
}

/// Returns for each judgement whether its difference exists. At most one in 20 such lists contains a difference that
/// does not: Holm, "A simple sequentially rejective multiple test procedure" (1979).
fn holm(judgements: &[Judgement]) -> Vec<bool> {
    let p_values: Vec<f64> = judgements.iter().map(|judgement| judgement.difference.p_value()).collect();
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut differs = vec![false; p_values.len()];
    for (place, index) in order.iter().enumerate() {
        if p_values[*index] >= FALSE_ALARMS / (p_values.len() - place) as f64 {
            break;
        }
        differs[*index] = true;
    }
    differs
}

impl Judgement {
    fn verdict(&self, differs: bool) -> Verdict {
        let difference = self.difference.value;
        if self.difference.reach() <= self.margin && self.noise_floor <= self.margin {
            Verdict::NoChange
        } else if !differs || difference.abs() <= self.margin.max(self.noise_floor) {
            Verdict::Inconclusive
        } else if difference < 0.0 {
            Verdict::Improved
        } else {
            Verdict::Regressed
        }
    }

    /// Assumes that intervals shrink with the square root of the number of rounds, and that
    /// estimates stay.
    fn rounds_needed(&self, rounds: usize, pairs: usize) -> Option<u32> {
        if self.verdict != Verdict::Inconclusive {
            return None;
        }
        let difference = self.difference.value.abs();
        let width = self.difference.reach() - difference;
        // Of the noise floor, what is not chance is not known: it is taken to shrink as a whole.
        let times = if difference < self.margin {
            (width / (self.margin - difference)).max(self.noise_floor / self.margin)
        } else {
            // Among several pairs an interval must be clear of 0 by more.
            let stricter = stricter(pairs);
            (width * stricter / difference).max(self.noise_floor / difference)
        };
        let more = (times.max(1.0).powi(2) - 1.0) * rounds as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to MOST_ROUNDS")]
        let needed = (more < MOST_ROUNDS).then(|| more.ceil().max(1.0) as u32);
        needed
    }
}

/// Factor by which intervals for so many pairs at once are wider (Bonferroni).
fn stricter(pairs: usize) -> f64 {
    let wanted = FALSE_ALARMS / pairs as f64;
    let mut reach = REACH_95;
    while libm::erfc(reach / std::f64::consts::SQRT_2) > wanted {
        reach += 0.01;
    }
    reach / REACH_95
}
