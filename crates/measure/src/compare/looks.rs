//! Points in time (looks) at which the rounds so far are judged. They are fixed before the first
//! round.

use super::exact::FALSE_ALARMS;

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// The rounds after which figures are judged, each with its share of the allowed false verdicts.
/// (Looking after every round, and stopping at the first difference, would sooner or later find one
/// where there is none.)
#[derive(Clone, Debug, PartialEq)]
pub struct Looks(Vec<Look>);

/// One look at the runs so far, after which a comparison may end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// After this round, counted from 1.
    pub round: usize,
    /// Probability of a false verdict on the judged figures at this look.
    pub alpha: f64,
}

impl Looks {
    /// Looks after the rounds in `early`, and after the last one. Rounds beyond the last are
    /// ignored.
    ///
    /// Shares grow as the bounds of O'Brien and Fleming do (Lan and DeMets, "Discrete sequential
    /// boundaries for clinical trials", 1983): early looks get little, so that the last one keeps
    /// nearly all. The shares add up to the total, so no assumption about the dependence between
    /// looks is needed.
    pub fn new(early: &[usize], rounds: usize) -> Self {
        let mut places: Vec<usize> =
            early.iter().copied().filter(|round| (1..rounds).contains(round)).collect();
        places.push(rounds);
        places.sort_unstable();
        places.dedup();
        let mut spent = 0.0;
        let looks = places.into_iter().map(|round| {
            let share = round as f64 / rounds as f64;
            let until = if round == rounds { FALSE_ALARMS } else { libm::erfc(Z / (2.0 * share).sqrt()) };
            let alpha = until - spent;
            spent = until;
            Look { round, alpha }
        });
        Self(looks.collect())
    }

    /// The look after this round, if there is one.
    pub fn after(&self, round: usize) -> Option<Look> {
        self.0.iter().copied().find(|look| look.round == round)
    }

    /// All looks, in order.
    pub fn all(&self) -> &[Look] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_the_last_look_keeps_most() {
        for early in [&[][..], &[5], &[4, 8, 4, 90], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            let looks = Looks::new(early, 10);
            let sum: f64 = looks.all().iter().map(|look| look.alpha).sum();
            assert!((sum - FALSE_ALARMS).abs() < 1e-12, "{looks:?}");
            assert!(looks.all().iter().all(|look| look.alpha >= 0.0));
            assert_eq!(looks.all().last().unwrap().round, 10);
        }
        // O'Brien and Fleming's bound at half: 0.0054 to 0.0056 in tables.
        let half = Looks::new(&[10], 20).after(10).unwrap();
        assert!((half.alpha - 0.005_57).abs() < 1e-4, "{half:?}");
        assert_eq!(Looks::new(&[10], 20).after(11), None);
    }
}
