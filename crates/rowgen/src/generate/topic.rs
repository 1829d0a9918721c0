//! Makes a topic's values for a kind.

use std::borrow::Cow;

use super::payload::whole_words;
use crate::random::Draw;
use crate::topic::{Amounts, Make, TextPart, Topic};
use crate::units::decimals;
use crate::value::Value;
use crate::{Kind, Units};

/// Digits that the number of a row may have where a text has a greatest length.
const NUMBER_DIGITS: u32 = 13;
/// Number of rows whose numbers have at most that many digits.
pub(crate) const NUMBERS: u64 = 10_u64.pow(NUMBER_DIGITS);
/// No sentence is longer, characters.
const LONGEST_SENTENCE: u32 = 90;
/// Room for a few words.
const SHORTEST_SENTENCE: u32 = 16;
/// Words are not made shorter than that to fit a column, characters.
const SHORTEST_WORD: usize = 3;
/// Length of the copy that is made of each word, bytes: most words are shorter.
const COPIED: usize = 16;
/// No word of a list is longer, characters.
const LONGEST_WORD: usize = 64;

/// The form of a topic's values for a kind.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Put together from pieces, at most so many characters in all.
    Text { pieces: Vec<Piece>, longest: u32 },
    /// `low`, `low + step` … `count` of them.
    Stepped { low: i64, step: i64, count: u64 },
    /// As `Stepped` with step 1, divided by `by`.
    Divided { low: i64, count: u64, by: f64 },
}

/// A [`TextPart`] that fits.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Literal(&'static str),
    Words(Vec<Word>),
    Letters(u32),
    Digits(u32),
    Byte,
    Number,
    Sentence { longest: u32 },
}

/// A word, with room for a copy of constant length, which the compiler inlines.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    start: [u8; COPIED],
    text: Cow<'static, str>,
}

impl Word {
    fn new(text: Cow<'static, str>) -> Self {
        let mut start = [0; COPIED];
        let length = text.len().min(COPIED);
        start[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self { start, text }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let length = self.text.len();
        if length > COPIED {
            return out.extend_from_slice(self.text.as_bytes());
        }
        let end = out.len() + length;
        out.extend_from_slice(&self.start);
        out.truncate(end);
    }
}

impl Form {
    /// None if the topic does not suit the kind, or its values are too long for it. `numbered` says
    /// that values contain the row's number.
    pub(crate) fn new(topic: Topic, kind: &Kind, numbered: bool) -> Option<Self> {
        match topic.make() {
            Make::Text(parts) if kind.is_text() => {
                let most = kind.characters().unwrap_or(u32::MAX);
                (SHORTEST_WORD..=LONGEST_WORD)
                    .rev()
                    .filter_map(|cap| pieces(parts, numbered, cap, most))
                    .map(|pieces| Self::Text { longest: pieces.iter().map(Piece::longest).sum(), pieces })
                    .find(|form| matches!(form, Self::Text { longest, .. } if *longest <= most))
            }
            Make::Amounts(amounts) => Self::amounts(amounts, kind),
            Make::Text(_) => None,
        }
    }

    fn amounts(Amounts { low, high, decimals: most }: Amounts, kind: &Kind) -> Option<Self> {
        let power = |decimals: i16| 10_i64.checked_pow(u32::try_from(decimals).ok()?);
        let decimals = match kind {
            Kind::Numeric(precision) => decimals(*precision).max(0),
            Kind::Money => 2,
            Kind::Int2 | Kind::Int4 | Kind::Int8 => 0,
            Kind::Float4 | Kind::Float8 => {
                let by = power(most)? as f64;
                return Some(Self::Divided { low, count: Units { low, high }.count(), by });
            }
            _ => return None,
        };
        // In units of as many decimals as both have.
        let coarser = power((most - decimals).max(0))?;
        let step = power((decimals - most).max(0))?;
        let whole = kind.units()?;
        let (low, high) = (low / coarser, high / coarser);
        let (low, high) = (low.max(whole.low / step), high.min(whole.high / step));
        let low_units = low.checked_mul(step)?;
        high.checked_mul(step)?;
        (low < high).then(|| Self::Stepped { low: low_units, step, count: Units { low, high }.count() })
    }

    /// Least and greatest value of numbers, units.
    pub(crate) fn range(&self) -> Option<Units> {
        match self {
            Self::Text { .. } => None,
            Self::Stepped { low, step, count } => {
                Some(Units { low: *low, high: *low + (count - 1).cast_signed() * step })
            }
            Self::Divided { low, count, by } => {
                #[expect(clippy::cast_possible_truncation, reason = "a few hundred")]
                let whole = |number: i64| libm::floor(number as f64 / by) as i64;
                Some(Units { low: whole(*low), high: whole(*low + (count - 1).cast_signed()) + 1 })
            }
        }
    }

    /// The value for a row, its bytes in `scratch`.
    pub(super) fn value<'a>(&self, number: u64, mut draw: Draw, scratch: &'a mut Vec<u8>) -> Value<'a> {
        match self {
            Self::Stepped { low, step, count } => Value::Units(low + draw.below(*count).cast_signed() * step),
            Self::Divided { low, count, by } => {
                Value::Real((low + draw.below(*count).cast_signed()) as f64 / by)
            }
            Self::Text { pieces, .. } => {
                scratch.clear();
                append(pieces, number, draw, scratch);
                Value::Plain(scratch)
            }
        }
    }
}

/// Appends the text for a row.
pub(super) fn append(pieces: &[Piece], number: u64, mut draw: Draw, out: &mut Vec<u8>) {
    for piece in pieces {
        piece.write(number, &mut draw, out);
    }
}

/// The parts, with words of at most `cap` characters. None if too few words are left.
fn pieces(parts: &[TextPart], numbered: bool, cap: usize, most: u32) -> Option<Vec<Piece>> {
    parts
        .iter()
        .map(|part| {
            Some(match *part {
                TextPart::Literal(text) => Piece::Literal(text),
                TextPart::Word(words) => Piece::words(words, false, cap)?,
                TextPart::Lower(words) => Piece::words(words, true, cap)?,
                TextPart::Letters(count) => Piece::Letters(count),
                TextPart::Byte => Piece::Byte,
                TextPart::Number(_) if numbered => Piece::Number,
                TextPart::Number(0) => Piece::Literal(""),
                TextPart::Digits(count) | TextPart::Number(count) => Piece::Digits(count),
                TextPart::Sentence if most < SHORTEST_SENTENCE => return None,
                TextPart::Sentence => Piece::Sentence { longest: most.min(LONGEST_SENTENCE) },
            })
        })
        .collect()
}

impl Piece {
    fn words(words: &[&'static str], lower: bool, cap: usize) -> Option<Self> {
        /// With fewer the values would all look the same.
        const FEWEST: usize = 3;
        let fits = |word: &&&str| {
            let bytes = word.as_bytes();
            let is_plain = |byte: &u8| if lower { byte.is_ascii_alphabetic() } else { is_plain(*byte) };
            (bytes.len() <= cap || words.len() <= FEWEST) && bytes.iter().all(is_plain)
        };
        let cased = |word: &&'static str| {
            Word::new(if lower { Cow::Owned(word.to_ascii_lowercase()) } else { Cow::Borrowed(*word) })
        };
        let words: Vec<Word> = words.iter().filter(fits).map(cased).collect();
        (words.len() >= FEWEST).then_some(Self::Words(words))
    }

    fn longest(&self) -> u32 {
        let length = |text: &str| u32::try_from(text.len()).expect("short words");
        match self {
            Self::Literal(text) => length(text),
            Self::Words(words) => words.iter().map(|word| length(&word.text)).max().unwrap_or(0),
            Self::Letters(count) | Self::Digits(count) => *count,
            Self::Byte => 3,
            Self::Number => NUMBER_DIGITS,
            Self::Sentence { longest } => *longest,
        }
    }

    fn write(&self, number: u64, draw: &mut Draw, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        match self {
            Self::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Self::Words(words) => {
                #[expect(clippy::cast_possible_truncation, reason = "below a count of words")]
                let index = draw.below(words.len() as u64) as usize;
                words[index].write(out);
            }
            Self::Letters(count) => {
                out.extend((0..*count).map(|_| b'A' + u8::try_from(draw.below(26)).expect("below 26")));
            }
            Self::Digits(count) => {
                let least = 10_u64.pow(count - 1);
                out.extend_from_slice(digits.format(least + draw.below(9 * least)).as_bytes());
            }
            Self::Byte => out.extend_from_slice(digits.format(draw.below(256)).as_bytes()),
            Self::Number => out.extend_from_slice(digits.format(number).as_bytes()),
            Self::Sentence { longest } => sentence(*longest, draw, out),
        }
    }
}

/// Printable, and needs no escape.
fn is_plain(byte: u8) -> bool {
    (byte.is_ascii_graphic() || byte == b' ') && byte != b'\\'
}

/// Whole words, up to a random length.
fn sentence(longest: u32, draw: &mut Draw, out: &mut Vec<u8>) {
    let start = out.len();
    let most = draw.length(longest / 2, longest) as usize;
    whole_words(most, draw, out);
    if out.len() == start {
        out.extend_from_slice(b"None");
    }
    out[start].make_ascii_uppercase();
    out.push(b'.');
}
