//! `numeric` as PostgreSQL stores and sends it: digits of base 10,000 (`utils/adt/numeric.c`).

const BASE: u16 = 10_000;
/// Digits of base 10,000 that any number takes, however its decimals are aligned.
const MOST: usize = 10;

/// A number that is not negative, without zeros before and after its digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits {
    /// Digits of base 10,000; only the first `count` are used.
    places: [u16; MOST],
    count: usize,
    /// Weight of the first digit: its exponent to the base 10,000.
    pub(crate) weight: i16,
}

impl Digits {
    /// `number` × 10^-`decimals`.
    ///
    /// # Panics
    /// If the number has more than 35 decimal digits.
    pub(crate) fn new(number: u128, decimals: i16) -> Self {
        // Digits of base 10,000 after the point; below 0 so many zeros before it.
        let fraction = -(-decimals).div_euclid(4);
        let aligned = 4 * fraction - decimals;
        let factor = [1, 10, 100, 1_000][usize::from(aligned.unsigned_abs() % 4)];
        let mut digits = [0; MOST];
        let mut count = 0;
        let mut dropped = 0;
        let mut push = |digit: u64| {
            let digit = u16::try_from(digit).expect("below the base");
            if count > 0 || digit > 0 {
                digits[count] = digit;
                count += 1;
            } else {
                dropped += 1;
            }
        };
        // Most numbers have 64 bits at most, which are divided much faster.
        let mut small = u64::try_from(number).ok().and_then(|number| number.checked_mul(factor));
        if small.is_none() {
            let mut rest = number * u128::from(factor);
            while u64::try_from(rest).is_err() {
                push(u64::try_from(rest % u128::from(BASE)).expect("below the base"));
                rest /= u128::from(BASE);
            }
            small = u64::try_from(rest).ok();
        }
        let mut rest = small.expect("divided until it fits");
        while rest > 0 {
            push(rest % u64::from(BASE));
            rest /= u64::from(BASE);
        }
        digits[..count].reverse();
        let whole = i16::try_from(count).expect("few digits") + dropped - fraction;
        Self { places: digits, count, weight: if count == 0 { 0 } else { whole - 1 } }
    }

    /// The digits, the most significant one first.
    pub(crate) fn digits(&self) -> &[u16] {
        &self.places[..self.count]
    }
}

/// Whether a number with so many decimals shown, and this weight of its first digit, is stored with a header
/// of 2 bytes; others have 4 (`NUMERIC_CAN_BE_SHORT`).
pub(crate) fn has_short_header(scale: u16, weight: i16) -> bool {
    scale <= 63 && (-64..=63).contains(&weight)
}

/// Decimals left once the zeros at the end are taken away, and the number without them.
pub(crate) fn trimmed(mut number: i64, mut decimals: i16) -> (i64, i16) {
    while decimals > 0 && number % 10 == 0 {
        number /= 10;
        decimals -= 1;
    }
    (number, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_weight() {
        let seen = |number, decimals| {
            let digits = Digits::new(number, decimals);
            (digits.digits().to_vec(), digits.weight)
        };
        assert_eq!(seen(0, 2), (vec![], 0));
        assert_eq!(seen(1, 0), (vec![1], 0));
        assert_eq!(seen(12_345, 2), (vec![123, 4_500], 0));
        assert_eq!(seen(100_000_000, 0), (vec![1], 2));
        assert_eq!(seen(1, 5), (vec![1_000], -2));
        assert_eq!(seen(12, -5), (vec![120], 1));
        assert_eq!(seen(u64::MAX.into(), 1), (vec![184, 4_674, 4_073, 7_095, 5_161, 5_000], 4));
    }
}
