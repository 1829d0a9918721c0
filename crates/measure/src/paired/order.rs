//! The order of the arms in a round.

use fastrand::Rng;

/// An endless sequence of orders: random, but balanced in position and in neighbours.
///
/// Each block is a Williams design ("Experimental designs balanced for the estimation of residual
/// effects of treatments", 1949) with shuffled arms: in a block of as many rounds as arms (twice as
/// many for an odd number) each arm is at each position equally often, and follows each other arm
/// equally often.
#[derive(Clone, Debug)]
pub struct Orders {
    arms: usize,
    random: Rng,
    /// The remaining rounds of the block, as indexes of arms in [`super::Rounds::arms`].
    block: Vec<Vec<usize>>,
}

impl Orders {
    /// Orders of so many arms. The same seed gives the same orders.
    pub fn new(arms: usize, seed: u64) -> Self {
        Self { arms, random: Rng::with_seed(seed), block: Vec::new() }
    }

    fn next_block(&mut self) -> Vec<Vec<usize>> {
        let mut names: Vec<usize> = (0..self.arms).collect();
        self.random.shuffle(&mut names);
        // 0, 1, n-1, 2, n-2, …: all steps between neighbours differ.
        let first = (0..self.arms).map(|place| match place % 2 {
            1 => place.div_ceil(2),
            _ => (self.arms - place / 2) % self.arms,
        });
        let first: Vec<usize> = first.collect();
        let shifted = |by: usize| first.iter().map(|arm| names[(arm + by) % self.arms]).collect::<Vec<_>>();
        let mut block: Vec<Vec<usize>> = (0..self.arms).map(shifted).collect();
        if self.arms % 2 == 1 {
            let mirrored = block.iter().map(|order| order.iter().rev().copied().collect());
            block.extend(mirrored.collect::<Vec<_>>());
        }
        self.random.shuffle(&mut block);
        block
    }
}

impl Iterator for Orders {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        if self.block.is_empty() {
            self.block = self.next_block();
        }
        self.block.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_neighbours_are_balanced() {
        for arms in 2..8 {
            let rounds = if arms % 2 == 1 { 2 * arms } else { arms };
            let orders: Vec<Vec<usize>> = Orders::new(arms, 7).take(rounds).collect();
            for arm in 0..arms {
                for place in 0..arms {
                    let times = orders.iter().filter(|order| order[place] == arm).count();
                    assert_eq!(times, rounds / arms, "{arms} arms: {arm} at {place}: {orders:?}");
                }
                for after in (0..arms).filter(|after| *after != arm) {
                    let pairs = orders.iter().flat_map(|order| order.windows(2));
                    let times = pairs.filter(|pair| *pair == [arm, after]).count();
                    assert_eq!(times, rounds / arms, "{arms} arms: {after} after {arm}: {orders:?}");
                }
            }
        }
    }

    #[test]
    fn a_seed_is_an_order_and_another_one_another() {
        let orders = |seed| Orders::new(5, seed).take(20).collect::<Vec<_>>();
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }
}
