//! One of several processes that share a fill.

use serde::{Deserialize, Serialize};

/// One of several processes that share a fill. The chunks of a table go to the parts in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its number, from 1.
    pub number: u32,
    /// Number of all parts.
    pub of: u32,
}

impl Part {
    /// All parts, in order.
    pub(crate) fn all(self) -> impl Iterator<Item = Self> {
        (1..=self.of).map(move |number| Self { number, of: self.of })
    }
}

/// The chunks of a table that a process loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Number of all parts.
    of: u64,
    /// Place of the table among those that are filled: first chunks of tables go to the parts in turn, too.
    place: u64,
    /// Whether one part loads the whole table, because its rows have an order.
    is_undivided: bool,
    chunks: Chunks,
}

/// The chunks of a share.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Chunks {
    /// Those of the part with this number.
    Own(u64),
    /// Those of parts that are not `there`, divided among those that are: `rank` is this one among them.
    OfAbsent { there: Vec<u64>, rank: u64 },
}

impl Share {
    /// The own chunks of a part.
    pub(crate) fn of(part: Part, place: u64, is_undivided: bool) -> Self {
        let Part { number, of } = part;
        Self { of: of.into(), place, is_undivided, chunks: Chunks::Own(number.into()) }
    }

    /// The chunks that the part of this share loads instead of parts that are not there. `there` has the numbers of those that are.
    pub(crate) fn of_absent(&self, there: &[u32]) -> Self {
        let there: Vec<u64> = there.iter().copied().map(u64::from).collect();
        let rank = match &self.chunks {
            Chunks::Own(number) => there.iter().position(|other| other == number).unwrap_or(0) as u64,
            Chunks::OfAbsent { rank, .. } => *rank,
        };
        Self { chunks: Chunks::OfAbsent { there, rank }, ..self.clone() }
    }

    /// Number of all parts.
    pub(crate) fn parts(&self) -> u64 {
        self.of
    }

    /// Whether the chunk of this number belongs to it.
    pub(crate) fn has(&self, chunk: u64) -> bool {
        let turn = self.turn(chunk);
        let owner = turn % self.of + 1;
        match &self.chunks {
            Chunks::Own(number) => owner == *number,
            Chunks::OfAbsent { there, rank } => {
                !there.contains(&owner) && turn / self.of % (there.len().max(1) as u64) == *rank
            }
        }
    }

    /// The number of the part to which a chunk belongs.
    pub(crate) fn owner(&self, chunk: u64) -> u32 {
        u32::try_from(self.turn(chunk) % self.of + 1).unwrap_or(u32::MAX)
    }

    fn turn(&self, chunk: u64) -> u64 {
        self.place + if self.is_undivided { 0 } else { chunk }
    }

    /// How many of so many chunks a part owns.
    pub(crate) fn count(&self, all: u64) -> u64 {
        let Chunks::Own(number) = self.chunks else { return 0 };
        if self.is_undivided {
            return if self.has(0) { all } else { 0 };
        }
        // Its first chunk, then every further one after as many as there are parts.
        let first = (number - 1 + self.of - self.place % self.of) % self.of;
        all.saturating_sub(first).div_ceil(self.of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shares(of: u32, place: u64, is_undivided: bool) -> Vec<Share> {
        let parts = Part { number: 1, of };
        parts.all().map(|part| Share::of(part, place, is_undivided)).collect()
    }

    proptest! {
        #[test]
        fn each_chunk_belongs_to_one_part(of in 1_u32..9, place in 0_u64..20, all in 0_u64..50, is_undivided: bool) {
            let shares = shares(of, place, is_undivided);
            for chunk in 0..all {
                let owners = shares.iter().filter(|share| share.has(chunk)).count();
                prop_assert_eq!(owners, 1);
                let owner = shares[0].owner(chunk);
                prop_assert!(shares[owner as usize - 1].has(chunk));
            }
            for share in &shares {
                prop_assert_eq!(share.count(all), (0..all).filter(|chunk| share.has(*chunk)).count() as u64);
            }
        }

        #[test]
        fn chunks_of_absent_parts_are_divided_among_the_others(of in 2_u32..9, place in 0_u64..20, missing in 0_u32..8) {
            let shares = shares(of, place, false);
            let absent = missing % of + 1;
            let there: Vec<u32> = (1..=of).filter(|number| *number != absent).collect();
            for chunk in 0..50 {
                let takers = there.iter().filter(|number| shares[**number as usize - 1].of_absent(&there).has(chunk)).count();
                prop_assert_eq!(takers, usize::from(shares[0].owner(chunk) == absent));
            }
        }
    }
}
