//! Finds out whether the machine became faster or slower while rounds were measured.

use super::bootstrap::Column;
use super::rounds::Rounds;

/// Least distance of a trend's correlation with time from 0, in standard deviations: chance exceeds
/// it in 3 of 1,000 cases.
const SURE: f64 = 3.0;

/// Share by which the last third of the rounds took longer (below 0: shorter) than the first third,
/// over all arms. None if that is less than `least`, or if rounds have no trend.
///
/// Differences within rounds are not affected by it. But a reader of the absolute times should
/// know.
pub(super) fn drift(rounds: &Rounds, least: f64) -> Option<f64> {
    let levels = levels(rounds);
    let third = levels.len() / 3;
    let before = Column::new(&levels[..third]).location();
    let after = Column::new(&levels[levels.len() - third..]).location();
    let change = after / before - 1.0;
    let trend = trend(&levels) * (levels.len() as f64 - 1.0).sqrt();
    (change.abs() > least && trend.abs() > SURE).then_some(change)
}

/// Speed of the machine in each round: the mean over arms of each arm's time divided by its usual
/// time.
fn levels(rounds: &Rounds) -> Vec<f64> {
    let arms = rounds.arms();
    let usual: Vec<f64> =
        arms.iter().map(|arm| Column::new(&rounds.times(*arm).collect::<Vec<_>>()).location()).collect();
    let level = |round: &[f64]| {
        let shares = round.iter().zip(&usual).map(|(time, usual)| time / usual);
        shares.sum::<f64>() / arms.len() as f64
    };
    rounds.rounds().map(level).collect()
}

/// Spearman's correlation with time.
fn trend(levels: &[f64]) -> f64 {
    let middle = (levels.len() as f64 - 1.0) / 2.0;
    let column = Column::new(levels);
    let (mut both, mut all) = (0.0, 0.0);
    for (round, rank) in column.ranks().iter().enumerate() {
        both += (round as f64 - middle) * (*rank as f64 - middle);
        all += (round as f64 - middle).powi(2);
    }
    both / all
}
