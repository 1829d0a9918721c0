//! Learns the fastest way to copy a template from the copies that are made.

use std::time::Duration;

use crate::clone::Strategy;

/// Number of copies by each strategy before the fastest is chosen.
const EACH: usize = 2;

/// The best time of each working strategy. Copies run at the same time as other copies and tests,
/// so the best time tells most about a strategy.
#[derive(Debug)]
pub(super) struct Speeds(Vec<Speed>);

#[derive(Debug)]
struct Speed {
    strategy: Strategy,
    /// Number of copies that were begun.
    tried: usize,
    best: Option<Duration>,
}

impl Speeds {
    /// Speeds without measurements. `strategies` is never empty: it contains at least the server's
    /// default.
    pub(super) fn new(strategies: &[Strategy]) -> Self {
        let strategies = if strategies.is_empty() { &[Strategy::Default] } else { strategies };
        let speed = |strategy: &Strategy| Speed { strategy: *strategy, tried: 0, best: None };
        Self(strategies.iter().map(speed).collect())
    }

    /// The strategy for the next copy. If a request waits for the copy (`in_haste`), strategies are
    /// tried only if nothing is known yet.
    pub(super) fn choose(&mut self, in_haste: bool) -> Strategy {
        let known = self.best().filter(|_| in_haste);
        let untried = self.0.iter().filter(|speed| speed.tried < EACH).min_by_key(|speed| speed.tried);
        let first = self.0[0].strategy;
        let chosen = known.or(untried.map(|speed| speed.strategy)).or(self.best()).unwrap_or(first);
        if let Some(speed) = self.0.iter_mut().find(|speed| speed.strategy == chosen) {
            speed.tried += 1;
        }
        chosen
    }

    /// Records the time of a copy.
    pub(super) fn took(&mut self, strategy: Strategy, took: Duration) {
        if let Some(speed) = self.0.iter_mut().find(|speed| speed.strategy == strategy) {
            speed.best = Some(speed.best.map_or(took, |best| best.min(took)));
        }
    }

    /// Removes a strategy that has never worked. Returns whether another one is left.
    pub(super) fn without(&mut self, strategy: Strategy) -> bool {
        let never = |speed: &Speed| speed.strategy == strategy && speed.best.is_none();
        let given_up = self.0.len() > 1 && self.0.iter().any(never);
        if given_up {
            self.0.retain(|speed| speed.strategy != strategy);
        }
        given_up
    }

    /// The fastest so far.
    pub(super) fn best(&self) -> Option<Strategy> {
        let known = self.0.iter().filter_map(|speed| Some((speed.best?, speed.strategy)));
        known.min_by_key(|(best, _)| *best).map(|(_, strategy)| strategy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_tried_and_the_fastest_taken() {
        let mut speeds = Speeds::new(&[Strategy::WalLog, Strategy::FileCopy]);
        let milliseconds = |strategy| if strategy == Strategy::WalLog { 30 } else { 20 };
        let mut tried = Vec::new();
        for _ in 0..4 {
            let strategy = speeds.choose(false);
            tried.push(strategy);
            speeds.took(strategy, Duration::from_millis(milliseconds(strategy)));
        }
        assert_eq!(tried.iter().filter(|strategy| **strategy == Strategy::WalLog).count(), 2);
        assert_eq!(speeds.choose(false), Strategy::FileCopy);
    }

    #[test]
    fn whoever_waits_gets_what_is_known() {
        let mut speeds = Speeds::new(&[Strategy::WalLog, Strategy::FileCopy]);
        assert_eq!(speeds.choose(true), Strategy::WalLog);
        speeds.took(Strategy::WalLog, Duration::from_millis(30));
        assert_eq!(speeds.choose(true), Strategy::WalLog);
        assert_eq!(speeds.choose(false), Strategy::FileCopy);
    }

    #[test]
    fn what_never_worked_is_given_up_unless_it_is_the_last() {
        let mut speeds = Speeds::new(&[Strategy::Clone, Strategy::WalLog]);
        assert!(speeds.without(Strategy::Clone));
        assert_eq!(speeds.choose(false), Strategy::WalLog);
        assert!(!speeds.without(Strategy::WalLog));
        let mut speeds = Speeds::new(&[Strategy::FileCopy, Strategy::WalLog]);
        speeds.took(Strategy::WalLog, Duration::from_millis(1));
        assert!(!speeds.without(Strategy::WalLog), "it worked before: something else is wrong");
    }
}
