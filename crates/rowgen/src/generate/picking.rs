//! Chooses the key that a row of a foreign key refers to.

use super::groups::Groups;
use super::spread::Spreading;
use crate::random::Stream;
use crate::{Shared, Turn};

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
    Shared(Shared),
    /// Groups of different sizes.
    Groups(Groups),
}

impl Picking {
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
            Self::Shared(shared) => shared.number(row) % count,
            Self::Groups(groups) => groups.number(row) % count,
        }
    }
}
