//! The order of trials.

use fastrand::Rng;

/// Rounds that each contain every cell once.
///
/// The rounds are rows of a Williams design (E. J. Williams, 1949), with cells and rows shuffled by
/// the seed. After as many rounds as there are cells (twice as many for an odd number), each cell
/// has come at each position equally often, and directly after each other cell equally often. In
/// fewer rounds no cell comes twice at the same position, or more than once (twice for an odd
/// number) directly after the same other cell. Further rounds begin a new design with another
/// shuffle.
pub fn rounds(cells: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut random = Rng::with_seed(seed);
    let mut all = Vec::with_capacity(rounds);
    while all.len() < rounds && cells > 0 {
        all.extend(design(cells, &mut random));
    }
    all.truncate(rounds);
    all
}

/// One whole design.
fn design(cells: usize, random: &mut Rng) -> Vec<Vec<usize>> {
    // 0, n-1, 1, n-2, …: neighbours differ by 1, 2, 3 …, each once modulo an even n.
    let zigzag: Vec<usize> =
        (0..cells).map(|place| if place % 2 == 0 { place / 2 } else { cells - 1 - place / 2 }).collect();
    let mut names: Vec<usize> = (0..cells).collect();
    random.shuffle(&mut names);
    let row = |shift: usize| zigzag.iter().map(|cell| names[(cell + shift) % cells]).collect::<Vec<_>>();
    let mut square: Vec<Vec<usize>> = (0..cells).map(row).collect();
    random.shuffle(&mut square);
    if cells % 2 == 1 {
        // Modulo an odd n, half of the differences come twice; read backwards, the other half does.
        let mut mirrored: Vec<Vec<usize>> =
            square.iter().map(|row| row.iter().rev().copied().collect()).collect();
        random.shuffle(&mut mirrored);
        square.append(&mut mirrored);
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Number of occurrences of each thing.
    fn counts<T: std::hash::Hash + Eq>(things: impl IntoIterator<Item = T>) -> HashMap<T, usize> {
        let mut counts = HashMap::new();
        for thing in things {
            *counts.entry(thing).or_default() += 1;
        }
        counts
    }

    fn places(rounds: &[Vec<usize>]) -> HashMap<(usize, usize), usize> {
        counts(rounds.iter().flat_map(|round| round.iter().copied().enumerate()))
    }

    fn neighbours(rounds: &[Vec<usize>]) -> HashMap<(usize, usize), usize> {
        counts(rounds.iter().flat_map(|round| round.windows(2).map(|pair| (pair[0], pair[1]))))
    }

    proptest! {
        #[test]
        fn each_round_has_each_cell_once(cells in 1_usize..20, many in 0_usize..50, seed: u64) {
            let rounds = rounds(cells, many, seed);
            prop_assert_eq!(rounds.len(), many);
            for mut round in rounds {
                round.sort_unstable();
                prop_assert_eq!(round, (0..cells).collect::<Vec<_>>());
            }
        }

        #[test]
        fn a_whole_design_is_balanced(cells in 2_usize..16, seed: u64) {
            let whole = if cells % 2 == 0 { cells } else { 2 * cells };
            let rounds = rounds(cells, whole, seed);
            let places = places(&rounds);
            prop_assert_eq!(places.len(), cells * cells);
            prop_assert!(places.values().all(|count| *count == whole / cells));
            let neighbours = neighbours(&rounds);
            prop_assert_eq!(neighbours.len(), cells * (cells - 1));
            prop_assert!(neighbours.values().all(|count| *count == whole / cells));
        }

        #[test]
        fn few_rounds_are_as_balanced_as_can_be(cells in 2_usize..16, few in 1_usize..16, seed: u64) {
            let rounds = rounds(cells, few.min(cells), seed);
            prop_assert!(places(&rounds).values().all(|count| *count == 1));
            prop_assert!(neighbours(&rounds).values().all(|count| *count <= 1 + cells % 2));
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(rounds(8, 3, 1), rounds(8, 3, 1));
        assert_ne!(rounds(8, 3, 1), rounds(8, 3, 2));
    }
}
