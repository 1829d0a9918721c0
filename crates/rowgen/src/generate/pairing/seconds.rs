//! The keys of the second side of [`Paired`](crate::Paired) rows.

use std::sync::Arc;

use super::super::shuffle;
use super::{Block, Group, capped, used};
use crate::random::Stream;

/// The keys of the second side, for the rows of one key of the first side.
#[derive(Clone, Debug)]
pub(super) enum Seconds {
    /// All come equally often: one after the other, in an order that chance decides, and from the first one again.
    Even { blocks: Vec<Block>, before: Vec<u64>, count: u64, stream: Stream },
    /// By lines for different numbers of rows, in ascending order of these.
    Lines { blocks: Vec<Block>, lines: Vec<Line> },
    /// Those of each rank: of few rows.
    Listed(Arc<[u64]>),
}

/// A line on which each key has a length by its frequency.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Most rows that get different keys.
    rows: u64,
    /// Length of each key of a block.
    each: Vec<u64>,
    /// End of each block.
    until: Vec<u64>,
}

/// Lengths of lines that follow each other differ by this factor in the number of rows.
const APART: f64 = 1.25;
/// About the length of a line, binary digits.
const DIGITS: u32 = 52;

impl Seconds {
    /// The key of each rank.
    pub(super) fn of(keys: Vec<u64>) -> Self {
        Self::Listed(keys.into())
    }

    /// `most` is the greatest number of rows of a key of the first side, at most the number of keys of the blocks.
    pub(super) fn new(blocks: Vec<Block>, most: u64, stream: Stream) -> Self {
        let shares = || blocks.iter().map(|block| block.share);
        let (least, greatest) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
        if greatest - least <= 1e-6 * greatest {
            let before = blocks.iter().scan(0, |sum, block| {
                *sum += block.numbers;
                Some(*sum - block.numbers)
            });
            return Self::Even { before: before.collect(), count: used(&blocks), blocks, stream };
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
        let up = |rows: f64| (rows as u64).clamp(1, most);
        // Up to so many rows no key has to give away any of its share.
        let mut rows = up(1.0 / greatest);
        let mut lines = vec![Line::new(&blocks, rows)];
        while rows < most {
            rows = up((rows as f64 * APART).ceil().max(rows as f64 + 1.0));
            lines.push(Line::new(&blocks, rows));
        }
        Self::Lines { blocks, lines }
    }

    /// The number of the key of one of the group's rows.
    pub(super) fn number(&self, group: &Group, row: u64) -> u64 {
        match self {
            Self::Listed(keys) => {
                let rank = usize::try_from(group.first + row).unwrap_or(usize::MAX);
                keys.get(rank).copied().unwrap_or_default()
            }
            Self::Even { blocks, before, count, stream } => {
                // A place further in each round, so that other keys come together.
                let at = (u128::from(group.first) + u128::from(group.first / count) + u128::from(row))
                    % u128::from(*count);
                let at = u64::try_from(at).unwrap_or_default();
                let at = if *count > 1 { shuffle::place(at, *count, *stream) } else { 0 };
                let block = before.partition_point(|before| *before <= at) - 1;
                blocks[block].number(at - before[block])
            }
            Self::Lines { blocks, lines } => {
                let line = &lines[lines.partition_point(|line| line.rows < group.rows).min(lines.len() - 1)];
                let (block, within) = line.at(group.number, row, group.rows);
                blocks[block].number(within)
            }
        }
    }
}

impl Line {
    fn new(blocks: &[Block], rows: u64) -> Self {
        let most = (1 << DIGITS.saturating_sub(64 - rows.leading_zeros()).max(1)).min(1 << DIGITS);
        let length = most as f64 * rows as f64;
        let shares = capped(blocks, 1.0 / rows as f64);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the length")]
        let mut each: Vec<u64> =
            shares.iter().map(|share| ((share * length).ceil() as u64).clamp(1, most)).collect();
        let total =
            |each: &[u64]| -> u64 { each.iter().zip(blocks).map(|(each, block)| each * block.numbers).sum() };
        // Rounding must not make a key longer than the distance of two rows.
        loop {
            let distance = total(&each) / rows;
            if each.iter().all(|each| *each <= distance) {
                break;
            }
            for each in &mut each {
                *each = (*each).min(distance.max(1));
            }
        }
        let until = each.iter().zip(blocks).scan(0, |sum, (each, block)| {
            *sum += each * block.numbers;
            Some(*sum)
        });
        Self { rows, until: until.collect(), each }
    }

    /// The block, and the key in it, of a row of a group with so many rows.
    fn at(&self, group: u64, row: u64, rows: u64) -> (usize, u64) {
        // Groups that follow each other begin at places from all over a distance.
        let begin = group.wrapping_mul(GOLDEN) >> 32;
        let length = self.until[self.until.len() - 1];
        let place =
            ((u128::from(row) << 32) + u128::from(begin)) * u128::from(length) / (u128::from(rows) << 32);
        let place = u64::try_from(place).unwrap_or(length - 1);
        let block = self.until.partition_point(|until| *until <= place).min(self.until.len() - 1);
        let before = block.checked_sub(1).map_or(0, |before| self.until[before]);
        (block, (place - before) / self.each[block])
    }
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
