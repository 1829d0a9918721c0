//! Rows to numbers that come again as often as a [`Spread`] says.

use super::order::Order;
use crate::Spread;
use crate::random::Stream;

/// A [`Spread`] over a number of rows.
#[derive(Clone, Debug)]
pub(super) struct Spreading {
    order: Order,
    count: u64,
    pieces: Vec<Piece>,
}

/// Ranks that share a stretch of numbers evenly.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// First rank after it.
    until: u64,
    /// Ranks.
    ranks: u64,
    first: u64,
    numbers: u64,
}

/// Different values among so many rows; `distinct` as in [`Spread`].
pub(super) fn count_of(distinct: f64, rows: u64) -> u64 {
    let count = if distinct < 0.0 { -distinct * rows as f64 } else { distinct };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let count = count.round().clamp(1.0, 1e18) as u64;
    count.min(rows.max(1))
}

impl Spreading {
    /// Over so many rows (`u64::MAX`: open), with so many different numbers.
    pub(super) fn new(spread: &Spread, stream: Stream, rows: u64, count: u64) -> Self {
        let count = count.max(1);
        let mut common: Vec<(u64, f64)> =
            spread.common.iter().map(|common| (place(common.place, count), common.share)).collect();
        common.sort_by_key(|(number, _)| *number);
        apart(&mut common, count);
        let all = spread.common_share();
        let others = count - common.len() as u64;
        let rest = if others == 0 { 0.0 } else { (1.0 - all).max(0.0) };
        let squares: f64 = common.iter().map(|(_, share)| share * share).sum();
        let ties = squares + rest * rest / others.max(1) as f64;
        let order = Order::new(stream, rows, spread.correlation, ties);
        let total = (all + rest).max(f64::MIN_POSITIVE);
        let mut pieces = Pieces { ranks: order.count(), total, share: 0.0, all: Vec::new() };
        let each = rest / others.max(1) as f64;
        let mut next = 0;
        for (number, share) in common {
            pieces.push(next, number - next, each * (number - next) as f64);
            pieces.push(number, 1, share);
            next = number + 1;
        }
        pieces.push(next, count - next, each * (count - next) as f64);
        Self { order, count, pieces: pieces.all }
    }

    /// How many different numbers there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The number of a row.
    #[inline]
    pub(super) fn number(&self, row: u64) -> u64 {
        let rank = self.order.rank(row);
        let at = self.pieces.partition_point(|piece| piece.until <= rank).min(self.pieces.len() - 1);
        let piece = self.pieces[at];
        let within = rank - (piece.until - piece.ranks).min(rank);
        let number = u128::from(within) * u128::from(piece.numbers) / u128::from(piece.ranks.max(1));
        piece.first + u64::try_from(number).unwrap_or(u64::MAX).min(piece.numbers - 1)
    }
}

struct Pieces {
    ranks: u64,
    total: f64,
    share: f64,
    all: Vec<Piece>,
}

impl Pieces {
    fn push(&mut self, first: u64, numbers: u64, share: f64) {
        if numbers == 0 {
            return;
        }
        self.share += share;
        let begin = self.all.last().map_or(0, |piece| piece.until);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the ranks")]
        let until = ((self.share / self.total * self.ranks as f64).round() as u64).clamp(begin, self.ranks);
        self.all.push(Piece { until, ranks: until - begin, first, numbers });
    }
}

fn place(place: f64, count: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let number = (place * count as f64) as u64;
    number.min(count - 1)
}

/// Moves equal numbers apart, within the count; drops those that find no room.
fn apart(common: &mut Vec<(u64, f64)>, count: u64) {
    common.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    let mut least = 0;
    for (number, _) in common.iter_mut() {
        *number = (*number).max(least);
        least = *number + 1;
    }
    let mut most = count;
    for (number, _) in common.iter_mut().rev() {
        *number = (*number).min(most - 1);
        most = *number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Common;

    fn numbers(spread: &Spread, rows: u64) -> Vec<u64> {
        let count = count_of(spread.distinct, rows);
        let spreading = Spreading::new(spread, Stream::new(7, &["t", "c"]), rows, count);
        (0..rows).map(|row| spreading.number(row)).collect()
    }

    #[test]
    fn common_numbers_have_their_shares_and_others_come_evenly() {
        let common = vec![Common { place: 0.5, share: 0.3 }, Common { place: 0.5, share: 0.1 }];
        let made = numbers(&Spread { distinct: 100.0, correlation: 0.0, common }, 10_000);
        let mut counts = [0_u32; 100];
        made.iter().for_each(|&number| counts[usize::try_from(number).unwrap()] += 1);
        assert_eq!((counts[50], counts[51]), (3_000, 1_000));
        let others = counts.iter().enumerate().filter(|(at, _)| !(50..52).contains(at));
        assert!(others.map(|(_, count)| *count).all(|count| (60..=62).contains(&count)), "{counts:?}");
    }

    #[test]
    fn as_many_numbers_as_rows_come_once_each() {
        for correlation in [0.0, 0.6, 1.0] {
            let spread = Spread { distinct: -1.0, correlation, common: Vec::new() };
            let mut made = numbers(&spread, 5_000);
            assert_eq!(made.is_sorted(), correlation == 1.0);
            made.sort_unstable();
            assert!(made.into_iter().eq(0..5_000));
        }
    }

    #[test]
    fn few_numbers_have_room_for_what_is_common() {
        let common = vec![Common { place: 1.0, share: 0.5 }, Common { place: 1.0, share: 0.5 }];
        let made = numbers(&Spread { distinct: 2.0, correlation: 0.0, common }, 10);
        assert_eq!(made.iter().filter(|&&number| number == 0).count(), 5);
    }
}
