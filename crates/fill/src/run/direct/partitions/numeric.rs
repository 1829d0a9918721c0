//! Values of `numeric`, as the server compares and hashes them (`numeric.c`).

use std::cmp::Ordering;

use rowgen::RowHash;

/// A number, NaN or an infinity. Zeros before and after its digits do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Numeric {
    sign: Sign,
    /// Exponent of the first digit to the base 10,000; 0 without digits.
    weight: i16,
    /// Digits of base 10,000, the most significant one first.
    digits: Vec<u16>,
}

/// The sign; the order of variants is that of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Sign {
    MinusInfinity,
    Minus,
    Zero,
    Plus,
    Infinity,
    NaN,
}

impl Numeric {
    /// Reads a stored value, without its length.
    ///
    /// # Panics
    /// If it has no header, or not two bytes for each digit.
    pub(super) fn of_stored(stored: &[u8]) -> Self {
        let words: Vec<u16> =
            stored.chunks_exact(2).map(|word| u16::from_le_bytes([word[0], word[1]])).collect();
        let header = words[0];
        if header & 0xC000 == 0x8000 {
            // NUMERIC_SHORT: sign, decimals, and 7 bits of weight, whose highest one is its sign.
            let weight =
                i16::from((header & 0x3F).to_le_bytes()[0]) - if header & 0x40 == 0 { 0 } else { 64 };
            let sign = if header & 0x2000 == 0 { Sign::Plus } else { Sign::Minus };
            return Self::new(sign, weight, &words[1..]);
        }
        match Sign::of(header & 0xF000) {
            Some(sign @ (Sign::Plus | Sign::Minus)) => Self::new(sign, words[1].cast_signed(), &words[2..]),
            sign => Self::new(sign.unwrap_or(Sign::NaN), 0, &[]),
        }
    }

    /// Reads the binary format of the protocol (`numeric_send`).
    pub(super) fn of_wire(wire: &[u8]) -> Option<Self> {
        let words: Vec<u16> =
            wire.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]])).collect();
        let [_, weight, sign, _, digits @ ..] = words.as_slice() else { return None };
        Some(Self::new(Sign::of(*sign)?, weight.cast_signed(), digits))
    }

    fn new(sign: Sign, weight: i16, digits: &[u16]) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let after = digits.iter().rev().take_while(|digit| **digit == 0).count();
        let digits = digits.get(zeros..digits.len() - after).unwrap_or_default();
        let sign = match sign {
            Sign::Plus | Sign::Minus if digits.is_empty() => Sign::Zero,
            sign => sign,
        };
        let weight = if digits.is_empty() { 0 } else { weight - i16::try_from(zeros).unwrap_or(i16::MAX) };
        Self { sign, weight, digits: digits.to_vec() }
    }

    pub(super) fn hash_into(&self, hash: &mut RowHash) {
        match self.sign {
            Sign::MinusInfinity | Sign::Infinity | Sign::NaN => hash.special_numeric(),
            Sign::Minus | Sign::Zero | Sign::Plus => hash.numeric(&self.digits, self.weight),
        }
    }
}

impl Sign {
    /// By the sign of the protocol, which is that of a long header too.
    fn of(word: u16) -> Option<Self> {
        Some(match word {
            0 | 0x1000 | 0x2000 | 0x3000 => Self::Plus,
            0x4000 | 0x5000 | 0x6000 | 0x7000 => Self::Minus,
            0xC000 => Self::NaN,
            0xD000 => Self::Infinity,
            0xF000 => Self::MinusInfinity,
            _ => return None,
        })
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        let of_size = || self.weight.cmp(&other.weight).then_with(|| self.digits.cmp(&other.digits));
        self.sign.cmp(&other.sign).then_with(|| match self.sign {
            Sign::Plus => of_size(),
            Sign::Minus => of_size().reverse(),
            _ => Ordering::Equal,
        })
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(sign: u16, weight: i16, digits: &[u16]) -> Numeric {
        let count = u16::try_from(digits.len()).unwrap();
        let words = [count, weight.cast_unsigned(), sign, 0].into_iter().chain(digits.iter().copied());
        Numeric::of_wire(&words.flat_map(u16::to_be_bytes).collect::<Vec<u8>>()).unwrap()
    }

    #[test]
    fn numbers_are_in_order() {
        // -Infinity, -10000, -1.5, -1, 0, 0.0001, 1, 1.5, 10000, 10001, Infinity, NaN
        let ordered = [
            wire(0xF000, 0, &[]),
            wire(0x4000, 1, &[1]),
            wire(0x4000, 0, &[1, 5000]),
            wire(0x4000, 0, &[1]),
            wire(0, 0, &[]),
            wire(0, -1, &[1]),
            wire(0, 0, &[1]),
            wire(0, 0, &[1, 5000]),
            wire(0, 1, &[1]),
            wire(0, 1, &[1, 1]),
            wire(0xD000, 0, &[]),
            wire(0xC000, 0, &[]),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0] < pair[1]), "{ordered:?}");
        assert_eq!(wire(0, 1, &[0, 7, 0]), wire(0, 0, &[7]));
    }

    #[test]
    fn stored_numbers_are_those_of_the_protocol() {
        let stored = |words: &[u16]| {
            Numeric::of_stored(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
        };
        // 1.50 with 2 decimals, -0.0001, 10000 ^ -64, and long headers.
        assert_eq!(stored(&[0x8000 | 2 << 7, 1, 5000]), wire(0, 0, &[1, 5000]));
        assert_eq!(stored(&[0x8000 | 0x2000 | 4 << 7 | 0x7F, 1]), wire(0x4000, -1, &[1]));
        assert_eq!(stored(&[0x8000 | 0x40, 1]), wire(0, -64, &[1]));
        assert_eq!(stored(&[0x4064, 90, 3]), wire(0x4000, 90, &[3]));
        assert_eq!(stored(&[0x8000]), wire(0, 0, &[]));
    }
}
