//! Text that ascends with the number that it is made from.

use super::order::READ_WHOLE;
use super::{payload, shuffle};
use crate::random::Stream;
use crate::spread::{Alphabet, Letters};

/// Points at which a mean length is computed.
const POINTS: u32 = 1_000;
/// Most turns that are tried for lengths, and the distance from the mean, relative to it, that is near enough.
const TURNS: u64 = 64;
const NEAR: f64 = 0.002;

/// Makes the texts for a given number of numbers.
#[derive(Clone, Debug)]
pub(super) struct Lettering {
    alphabet: Alphabet,
    lengths: Vec<u32>,
    /// Numbers are below this; `u64::MAX` if there is no limit.
    count: u64,
    /// Number of leading characters that follow from the number; the others are random.
    ordered: u32,
    most: u32,
    /// Decides which numbers get which lengths.
    turn: u64,
}

/// Digits that numbers below `count` take with so many characters.
pub(crate) fn digits(alphabet: Alphabet, count: u64) -> u32 {
    let base = alphabet.characters().len() as u64;
    let mut last = count.saturating_sub(1);
    let mut digits = 1;
    while last >= base {
        last /= base;
        digits += 1;
    }
    digits
}

impl Lettering {
    /// For numbers below `count`, at most `most` characters long.
    pub(super) fn new(letters: &Letters, count: u64, most: Option<u32>) -> Self {
        let most = most.unwrap_or(u32::MAX);
        let ordered = digits(letters.alphabet, count).min(most);
        Self { alphabet: letters.alphabet, lengths: letters.lengths.clone(), count, ordered, most, turn: 0 }
    }

    /// Texts of numbers that come in so many rows each: the mean length in all rows is near that of the lengths.
    pub(super) fn balance(&mut self, numbers: &[(u64, u64)], stream: Stream) {
        if !self.is_few() {
            return;
        }
        let evenly = (0..POINTS).map(|at| f64::from(self.drawn((f64::from(at) + 0.5) / f64::from(POINTS))));
        let wanted = evenly.sum::<f64>() / f64::from(POINTS);
        let rows = numbers.iter().map(|(_, rows)| rows).sum::<u64>().max(1) as f64;
        let off = |turn: u64| {
            let lengths = numbers.iter().map(|(number, rows)| {
                f64::from(self.drawn(self.place(*number, turn, stream))) * *rows as f64
            });
            (lengths.sum::<f64>() / rows - wanted).abs()
        };
        let (mut best, mut least) = (0, f64::INFINITY);
        for turn in 0..TURNS {
            let off = off(turn);
            if off < least {
                (best, least) = (turn, off);
            }
            if off < NEAR * wanted {
                break;
            }
        }
        self.turn = best;
    }

    /// Whether there are so few numbers that chance would change the mean length.
    fn is_few(&self) -> bool {
        (2..=READ_WHOLE).contains(&self.count)
    }

    /// The place of a number's length among all, 0 to 1.
    fn place(&self, number: u64, turn: u64, stream: Stream) -> f64 {
        if self.is_few() {
            // Each place comes once.
            let stream = Stream::new(stream.draw(turn).next(), &[]);
            return (shuffle::place(number % self.count, self.count, stream) as f64 + 0.5)
                / self.count as f64;
        }
        // Lengths of any numbers that follow each other are spread evenly (Weyl's sequence), so that few have the mean, too.
        let first = stream.draw(u64::MAX).next();
        let turn = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(first);
        (turn >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The length of a text with this place among all lengths.
    fn drawn(&self, place: f64) -> u32 {
        self.length(place).max(self.ordered).min(self.most)
    }

    /// Appends the text of a number.
    pub(super) fn write(&self, number: u64, stream: Stream, out: &mut Vec<u8>) {
        let characters = self.alphabet.characters();
        let base = characters.len() as u64;
        let mut draw = stream.draw(number);
        let length = self.drawn(self.place(number, self.turn, stream));
        let start = out.len();
        out.resize(start + length as usize, b' ');
        let text = &mut out[start..];
        let mut rest = self.spread(number, base);
        let ordered = self.ordered as usize;
        for place in text[..ordered].iter_mut().rev() {
            *place = character(characters, rest % base);
            rest /= base;
        }
        if self.alphabet == Alphabet::Words {
            // The ordered characters are a word of their own, if there is room for another one.
            let first = if length > self.ordered + 1 { self.ordered + 1 } else { self.ordered };
            out.truncate(start + first as usize);
            payload::words(length - first, &mut draw, out);
            return;
        }
        let mut bits = 0;
        for (at, place) in text[ordered..].iter_mut().enumerate() {
            if at % 8 == 0 {
                bits = draw.next();
            }
            let byte = bits & 0xFF;
            bits >>= 8;
            *place = character(characters, (byte * base) >> 8);
        }
    }

    /// A quantile of the length.
    fn length(&self, at: f64) -> u32 {
        let [first, .., last] = self.lengths[..] else { return self.lengths.first().copied().unwrap_or(1) };
        let place = at * (self.lengths.len() - 1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let index = (place as usize).min(self.lengths.len() - 2);
        let (low, high) = (f64::from(self.lengths[index]), f64::from(self.lengths[index + 1]));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two lengths")]
        let length = (low + (high - low) * (place - index as f64)).round() as u32;
        length.clamp(first.min(last), first.max(last))
    }

    /// Scales the number to the range that its characters can express, so that first letters vary.
    fn spread(&self, number: u64, base: u64) -> u64 {
        let Some(all) = base.checked_pow(self.ordered) else { return number };
        let spread = u128::from(number) * u128::from(all) / u128::from(self.count.max(1));
        u64::try_from(spread).unwrap_or(u64::MAX).min(all - 1)
    }
}

fn character(characters: &[u8], index: u64) -> u8 {
    characters[usize::try_from(index).expect("below the number of characters")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_ascend_and_differ() {
        for alphabet in [Alphabet::Digits, Alphabet::Lower, Alphabet::Words, Alphabet::Mixed] {
            let letters = Letters { alphabet, lengths: vec![2, 5, 9, 30] };
            let lettering = Lettering::new(&letters, 3_000, None);
            let text = |number| {
                let mut out = Vec::new();
                lettering.write(number, Stream::new(1, &["t", "c"]), &mut out);
                String::from_utf8(out).unwrap()
            };
            let texts: Vec<String> = (0..3_000).map(text).collect();
            assert!(texts.windows(2).all(|pair| pair[0] < pair[1]), "{alphabet:?}");
            assert!(texts.iter().all(|text| text.len() <= 30 && !text.ends_with(' ')));
            let mean = texts.iter().map(String::len).sum::<usize>() as f64 / 3_000.0;
            // Quantiles 2, 5, 9, 30 have a mean of 10; no text is shorter than its ordered characters.
            assert!((9.5..11.5).contains(&mean), "{alphabet:?}: {mean}");
        }
    }

    #[test]
    fn open_numbers_fit() {
        let letters = Letters { alphabet: Alphabet::Lower, lengths: vec![4] };
        let lettering = Lettering::new(&letters, u64::MAX, None);
        let mut out = Vec::new();
        lettering.write(u64::MAX - 1, Stream::new(1, &["t", "c"]), &mut out);
        assert_eq!(out.len(), digits(Alphabet::Lower, u64::MAX) as usize);
    }
}
