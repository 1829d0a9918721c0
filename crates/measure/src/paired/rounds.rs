//! Times, round by round.

/// A candidate or repeat that is timed once in every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// A candidate, counted from 0. The first is A.
    Candidate(usize),
    /// The loop alone, without any candidate in it.
    Empty,
    /// The first candidate again: A′, which shows the noise.
    Repeat,
}

/// Times of all arms in all rounds, seconds per row: all are finite and more than 0, and there is at least
/// one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    candidates: usize,
    has_empty: bool,
    /// Times of all rounds one after the other, each in the order of [`Rounds::arms`].
    times: Vec<f64>,
}

impl Rounds {
    /// An empty set for so many candidates (at least 1), with or without an arm for the empty loop.
    pub fn new(candidates: usize, has_empty: bool) -> Self {
        Self { candidates: candidates.max(1), has_empty, times: Vec::new() }
    }

    /// All arms: the candidates, the empty loop if there is one, A′.
    pub fn arms(&self) -> Vec<Arm> {
        let empty = self.has_empty.then_some(Arm::Empty);
        (0..self.candidates).map(Arm::Candidate).chain(empty).chain([Arm::Repeat]).collect()
    }

    /// Adds a round: seconds per row of each arm, in the order of [`Rounds::arms`], whatever the
    /// order in which they ran.
    ///
    /// # Panics
    /// If there is not one time for each arm, or if one is not finite and above 0.
    pub fn push(&mut self, round: &[f64]) {
        assert_eq!(round.len(), self.width(), "a time for each arm");
        assert!(round.iter().all(|time| time.is_finite() && *time > 0.0), "times above 0: {round:?}");
        self.times.extend_from_slice(round);
    }

    /// Number of rounds.
    pub fn count(&self) -> usize {
        self.times.len() / self.width()
    }

    /// Number of candidates.
    pub fn candidates(&self) -> usize {
        self.candidates
    }

    /// Whether the empty loop is timed too.
    pub fn has_empty(&self) -> bool {
        self.has_empty
    }

    /// An arm's times, round by round.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn times(&self, arm: Arm) -> impl Iterator<Item = f64> {
        let place = self.place(arm).unwrap_or_else(|| panic!("no arm {arm:?}"));
        self.times.iter().skip(place).step_by(self.width()).copied()
    }

    /// One arm's times minus another one's, round by round.
    pub(super) fn differences(&self, arm: Arm, less: Arm) -> Vec<f64> {
        self.times(arm).zip(self.times(less)).map(|(time, less)| time - less).collect()
    }

    /// An arm's times minus the empty loop's, if that is timed.
    pub(super) fn own_times(&self, arm: Arm) -> Vec<f64> {
        if self.has_empty { self.differences(arm, Arm::Empty) } else { self.times(arm).collect() }
    }

    /// All arms' times of each round.
    pub(super) fn rounds(&self) -> impl Iterator<Item = &[f64]> {
        self.times.chunks_exact(self.width())
    }

    fn width(&self) -> usize {
        self.candidates + usize::from(self.has_empty) + 1
    }

    fn place(&self, arm: Arm) -> Option<usize> {
        match arm {
            Arm::Candidate(number) => (number < self.candidates).then_some(number),
            Arm::Empty => self.has_empty.then_some(self.candidates),
            Arm::Repeat => Some(self.width() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arm_has_its_own_times() {
        let mut rounds = Rounds::new(2, true);
        assert_eq!(rounds.arms(), [Arm::Candidate(0), Arm::Candidate(1), Arm::Empty, Arm::Repeat]);
        rounds.push(&[3.0, 5.0, 1.0, 3.5]);
        rounds.push(&[4.0, 6.5, 1.5, 4.0]);
        assert_eq!(rounds.count(), 2);
        assert_eq!(rounds.times(Arm::Repeat).collect::<Vec<_>>(), [3.5, 4.0]);
        assert_eq!(rounds.own_times(Arm::Candidate(1)), [4.0, 5.0]);
        assert_eq!(rounds.differences(Arm::Candidate(1), Arm::Candidate(0)), [2.0, 2.5]);
        let mut bare = Rounds::new(1, false);
        bare.push(&[3.0, 3.5]);
        assert_eq!(bare.own_times(Arm::Repeat), [3.5]);
    }

    #[test]
    #[should_panic(expected = "times above 0")]
    fn a_clock_that_ran_backwards_is_no_round() {
        Rounds::new(1, false).push(&[1.0, -1e-9]);
    }
}
