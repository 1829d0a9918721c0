//! pgbench's hash functions and its permutation (`pgbench.c`).
// Signed and unsigned 64 bits are the same bits here.
#![allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)]

use crate::random::Random;

/// FNV-1a over the value's eight bytes, lowest first.
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xCBF2_9CE4_8422_2325 ^ seed as u64;
    let hash = value
        .to_le_bytes()
        .into_iter()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    hash as i64
}

/// MurmurHash2 of eight bytes.
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    let mut word = (value as u64).wrapping_mul(FACTOR);
    word ^= word >> SHIFT;
    word = word.wrapping_mul(FACTOR);
    let mut hash = seed as u64 ^ FACTOR.wrapping_mul(8);
    hash = (hash ^ word).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Position of `value` in the seed's permutation of 0 to `size - 1`. Each of six rounds multiplies
/// and rotates the lower and the upper part, which overlap, and then shifts all numbers. `size` is
/// above 0.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let size = size as u64;
    let part = BitRange::below(size);
    let mut random = Random::seeded(seed as u64);
    // As C has it: of the value's bits, not of the signed number.
    let mut place = value as u64 % size;
    for _ in 0..6 {
        place = part.scramble(place, &mut random);
        place = size - 1 - part.scramble(size - 1 - place, &mut random);
        let offset = random.up_to(size - 1);
        place = (place + offset) % size;
    }
    place as i64
}

/// The numbers from 0 to `mask`, whose bits are all ones.
struct BitRange {
    bits: u32,
    mask: u64,
}

impl BitRange {
    /// The part whose size is the greatest power of 2 up to `size`.
    fn below(size: u64) -> Self {
        let bits = size.ilog2();
        Self { bits, mask: (1 << bits) - 1 }
    }

    /// A bijection within the part; numbers above it stay.
    fn scramble(&self, number: u64, random: &mut Random) -> u64 {
        let factor = (random.next() & self.mask) | 1;
        let flips = random.next() & self.mask;
        if number > self.mask {
            return number;
        }
        let number = (number.wrapping_mul(factor) ^ flips) & self.mask;
        ((number << 1) & self.mask) | (number >> (self.bits - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_take_every_place_once() {
        for size in [1, 2, 3, 5, 64, 1000] {
            for seed in [0, 1, -7] {
                let mut places: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
                places.sort_unstable();
                assert_eq!(places, (0..size).collect::<Vec<_>>(), "size {size} seed {seed}");
            }
        }
    }
}
