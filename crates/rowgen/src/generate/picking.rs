//! Chooses the key that a row of a foreign key refers to.

use super::groups::Groups;
use super::pairing::Pairing;
use super::spread::Spreading;
use super::statistics::gcd;
use crate::random::Stream;
use crate::{Member, Shared, Turn};

/// Choice of the key that a row refers to.
#[derive(Clone, Debug)]
pub(super) enum Picking {
    Random(Stream),
    Spread(Spreading),
    Earlier {
        stream: Stream,
        first: u64,
        null: bool,
    },
    InTurn(Turn),
    /// With the step from a group's first member to that of the next group.
    Shared(Shared, u64),
    /// Groups of different sizes.
    Groups(Groups),
    Paired(Box<Pairing>),
}

impl Picking {
    /// Of rows in groups of the same size.
    pub(super) fn shared(shared: &Shared) -> Self {
        let step = match shared.member {
            Some(Member::Of(count)) => step(count),
            _ => 1,
        };
        Self::Shared(shared.clone(), step)
    }

    /// Whether the row refers to no key.
    pub(super) fn is_null(&self, row: u64) -> bool {
        matches!(self, Self::Earlier { first, null: true, .. } if row <= *first)
    }

    /// The number of the key, of `count` keys, that a row refers to.
    pub(super) fn number(&self, row: u64, count: u64) -> u64 {
        match self {
            Self::Random(stream) => stream.draw(row).below(count),
            Self::Spread(spreading) => spreading.number(row).min(count - 1),
            Self::Earlier { first, .. } if row <= *first => row,
            Self::Earlier { stream, first, .. } => first + stream.draw(row).below(row - first),
            Self::InTurn(turn) => turn.of_row(row) % count,
            Self::Shared(shared, step) => shared.number(row, *step) % count,
            Self::Groups(groups) => groups.number(row) % count,
            Self::Paired(pairing) => pairing.number(row) % count,
        }
    }
}

/// A step with which each of so many numbers comes once before the first comes again. Steps that follow each other are far apart: it is about the
/// golden section of the count.
fn step(count: u64) -> u64 {
    let golden = u128::from(count) * 10_946 / 17_711;
    let golden = u64::try_from(golden).unwrap_or(u64::MAX).max(1);
    (golden..=count.max(golden)).find(|step| gcd(*step, count) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_member_comes_as_often_as_the_others() {
        for (groups, size, count) in [(4_000, 4, 200), (999, 3, 9), (50, 1, 1), (700, 7, 7), (30, 2, 1_000)] {
            let rows = groups * size;
            let shared = Shared { rows, groups, member: Some(Member::Of(count)), sizes: Arc::default() };
            let picking = Picking::shared(&shared);
            let mut counts = vec![0_u64; usize::try_from(count).unwrap()];
            for group in 0..groups {
                let mut members: Vec<u64> =
                    (0..size).map(|place| picking.number(group * size + place, count)).collect();
                for member in &members {
                    counts[usize::try_from(*member).unwrap()] += 1;
                }
                members.sort_unstable();
                members.dedup();
                assert_eq!(members.len() as u64, size, "group {group}");
            }
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            let apart = if groups.is_multiple_of(count) { 0 } else { size };
            assert!(most - least <= apart, "{groups} groups of {size}: {least} to {most}");
        }
    }
}
