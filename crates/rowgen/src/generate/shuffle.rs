//! A random order that needs no table.

use crate::random::Stream;

/// Place of the number, below `count`, in a random order of all numbers below `count`.
///
/// A bijection of the numbers of as many bits as `count` needs, applied until the result is below
/// `count`: on average less than twice ("cycle walking": Black and Rogaway, "Ciphers with arbitrary
/// finite domains", 2002).
pub(super) fn place(number: u64, count: u64, stream: Stream) -> u64 {
    let bits = (64 - (count - 1).leading_zeros()).max(1);
    let mut place = number;
    loop {
        place = permuted(place, bits, stream);
        if place < count {
            return place;
        }
    }
}

/// Each step can be undone: adding, multiplying by an odd number, folding high bits onto low ones.
fn permuted(number: u64, bits: u32, stream: Stream) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let half = bits.div_ceil(2);
    (0..3).fold(number, |number, round| {
        let (summand, factor) = (stream.scramble(2 * round), stream.scramble(2 * round + 1) | 1);
        let number = number.wrapping_add(summand).wrapping_mul(factor) & mask;
        number ^ number >> half
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_place() {
        for count in (1..70).chain([1_000, 4_096, 65_537]) {
            let stream = Stream::new(count, &["t", "c"]);
            let mut places: Vec<u64> = (0..count).map(|number| place(number, count, stream)).collect();
            assert!(count < 16 || !places.is_sorted(), "{count}");
            places.sort_unstable();
            assert!(places.into_iter().eq(0..count), "{count}");
        }
        let stream = Stream::new(0, &[]);
        assert_ne!(place(0, u64::MAX, stream), place(1, u64::MAX, stream));
    }
}
