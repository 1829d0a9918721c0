//! The front: ways that no other way beats in size, time to back up and time to restore.

use measure::forecast::Figure;

use crate::forecast::Forecast;
use crate::outcome::Outcome;

/// Bytes of the backup, seconds to back up, seconds to restore.
pub(crate) type Costs = [f64; 3];

/// Whether one is as good as the other in all, and better in one.
fn beats(one: &Costs, other: &Costs) -> bool {
    let pairs = || one.iter().zip(other);
    pairs().all(|(own, others)| own <= others) && pairs().any(|(own, others)| own < others)
}

/// For each, whether no other one beats it.
pub(crate) fn front(all: &[Costs]) -> Vec<bool> {
    all.iter().map(|one| !all.iter().any(|other| beats(other, one))).collect()
}

impl Forecast {
    /// Its values without their intervals; none if one of them is not known.
    fn costs(&self) -> Option<Costs> {
        let value = |figure: Figure| match figure {
            Figure::Value { value, .. } => Some(value),
            _ => None,
        };
        Some([value(self.size)?, value(self.backup)?, value(self.restore)?])
    }
}

impl Outcome {
    /// For each forecast, whether no other one beats it, by the values without their intervals. None for those with an unknown figure, which
    /// are not compared, and for all if fewer than two can be compared.
    pub fn forecast_front(&self) -> Vec<Option<bool>> {
        let costs: Vec<Option<Costs>> = self.forecasts.iter().map(Forecast::costs).collect();
        let known: Vec<Costs> = costs.iter().flatten().copied().collect();
        if known.len() < 2 {
            return vec![None; costs.len()];
        }
        let mut front = front(&known).into_iter();
        costs.iter().map(|costs| costs.and_then(|_| front.next())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(way: &str, [size, backup, restore]: [Option<f64>; 3]) -> Forecast {
        // The intervals of all of them overlap.
        let figure = |value: Option<f64>| {
            value.map_or(Figure::NotMeasured, |value| Figure::Value {
                value,
                low: value / 9.0,
                high: value * 9.0,
            })
        };
        Forecast {
            way: way.parse().unwrap(),
            bytes: 1,
            size: figure(size),
            price: None,
            backup: figure(backup),
            restore: figure(restore),
            disk: Figure::NotMeasured,
            day: None,
            held: None,
            rto: None,
        }
    }

    #[test]
    fn forecasts_are_compared_by_their_values_if_all_three_are_known() {
        let front = |forecasts: Vec<Forecast>| Outcome { forecasts, ..Outcome::default() }.forecast_front();
        let plain = || forecast("plain", [Some(9.0), Some(2.0), Some(3.0)]);
        let custom = || forecast("custom", [Some(2.0), Some(2.0), Some(3.0)]);
        let base = || forecast("base", [Some(8.0), Some(1.0), Some(1.0)]);
        let unknown = || forecast("base-tar", [Some(1.0), Some(1.0), None]);
        let expected = [Some(false), None, Some(true), Some(true)];
        assert_eq!(front(vec![plain(), unknown(), custom(), base()]), expected);
        // Nothing to compare with.
        assert_eq!(front(vec![unknown(), plain()]), [None, None]);
        assert_eq!(front(vec![plain()]), [None]);
        assert_eq!(front(vec![plain(), plain()]), [Some(true), Some(true)]);
    }
}
