//! Unique values: a bijection from numbers to values of the kind.

use std::io::Write;

use crate::random::Stream;
use crate::value::Value;
use crate::{Kind, Turn, Units, Values, render};

/// Characters of unique text: in the order that most collations give them, too.
const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// With this many characters, there are more than 2^64 texts.
pub(crate) const LONGEST: u32 = 13;
/// Bytes of unique `bytea`.
const BYTES: u32 = 8;

impl Kind {
    /// Number of different values that [`crate::Values::Unique`] has for this kind; `u64::MAX` stands for that many
    /// or more. None for kinds that PostgreSQL cannot keep unique, or that have no values.
    pub fn distinct(&self) -> Option<u64> {
        let powers = |base: u64, exponent: u32| base.checked_pow(exponent).unwrap_or(u64::MAX);
        Some(match self {
            Self::Text | Self::Varchar(_) | Self::Char(_) | Self::Name => {
                powers(ALPHABET.len() as u64, self.characters().unwrap_or(LONGEST))
            }
            Self::Bytea | Self::Uuid | Self::Macaddr8 | Self::Jsonb | Self::TsVector | Self::TsQuery => {
                u64::MAX
            }
            Self::Inet | Self::Cidr => 1 << 32,
            Self::Macaddr => 1 << 48,
            Self::Bit(length) => powers(2, *length),
            Self::Varbit(most) => powers(2, most.unwrap_or(64)),
            Self::Json
            | Self::Xml
            | Self::Point
            | Self::Line
            | Self::Lseg
            | Self::Box
            | Self::Path
            | Self::Polygon
            | Self::Circle => return None,
            Self::Array(element) | Self::Range { element, .. } | Self::Multirange { element, .. } => {
                element.distinct()?
            }
            Self::Composite { fields, .. } => {
                fields.iter().map(Self::distinct).collect::<Option<Vec<u64>>>()?.into_iter().max()?
            }
            counted => {
                let Units { high, .. } = counted.units()?;
                let steps = high.abs_diff(first(counted)) / step(counted).unsigned_abs();
                steps.saturating_add(1)
            }
        })
    }
}

impl Kind {
    /// Characters of unique texts, or bytes of unique `bytea`; none for other kinds.
    pub fn unique_length(&self) -> Option<u32> {
        match self {
            Self::Bytea => Some(BYTES),
            kind if kind.is_text() => Some(kind.characters().map_or(LONGEST, |most| most.min(LONGEST))),
            _ => None,
        }
    }
}

impl Values {
    /// Values that differ where the turn does: texts of at least so many characters, or so many bytes.
    pub fn unique(kind: &Kind, turn: Turn, shortest: u32) -> Self {
        match kind.unique_length() {
            Some(length) if length < shortest => Self::Long { turn, length: shortest },
            _ => Self::Unique(turn),
        }
    }
}

/// The value for a number below [`Kind::distinct`], its bytes in `scratch`.
pub(super) fn value<'a>(kind: &Kind, number: u64, stream: Stream, scratch: &'a mut Vec<u8>) -> Value<'a> {
    scratch.clear();
    match kind {
        Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name => {
            text(number, kind.characters().map_or(LONGEST, |most| most.min(LONGEST)), scratch);
            Value::Plain(scratch)
        }
        Kind::Bytea => {
            scratch.extend(number.to_be_bytes());
            Value::Bytes(scratch)
        }
        // Random in looks: the number's bits all go in, scrambled.
        Kind::Uuid => {
            let bits = stream.scramble(number);
            Value::Uuid(uuid(bits, (bits & 0xFFFF) << 46 | stream.further().scramble(number) >> 18))
        }
        Kind::Inet | Kind::Cidr | Kind::Macaddr | Kind::Macaddr8 => Value::Address(number),
        Kind::Bit(length) => bits(*length, number, scratch),
        Kind::Varbit(most) => bits(most.unwrap_or(64).min(64), number, scratch),
        Kind::Jsonb => {
            write!(scratch, "{{\"id\": {number}}}").expect("memory takes it");
            Value::Plain(scratch)
        }
        Kind::TsVector | Kind::TsQuery => {
            text(number, LONGEST, scratch);
            Value::Plain(scratch)
        }
        Kind::Array(_) | Kind::Range { .. } | Kind::Multirange { .. } | Kind::Composite { .. } => {
            compound(kind, number, stream, scratch);
            Value::text(scratch)
        }
        counted => {
            Value::Units(first(counted).wrapping_add(number.cast_signed().wrapping_mul(step(counted))))
        }
    }
}

/// The value of [`Values::Long`] for a number: that of the number, then random characters or bytes.
pub(super) fn long<'a>(
    kind: &Kind,
    (number, length): (u64, u32),
    stream: Stream,
    scratch: &'a mut Vec<u8>,
) -> Value<'a> {
    let length = length as usize;
    let mut draw = stream.draw(number);
    scratch.clear();
    if *kind == Kind::Bytea {
        scratch.extend(number.to_be_bytes());
        while scratch.len() < length {
            scratch.extend(draw.next().to_le_bytes());
        }
        scratch.truncate(length);
        return Value::Bytes(scratch);
    }
    text(number, LONGEST, scratch);
    while scratch.len() < length {
        scratch.push(ALPHABET[(draw.next() % 36) as usize]);
    }
    Value::Plain(scratch)
}

fn compound(kind: &Kind, number: u64, stream: Stream, out: &mut Vec<u8>) {
    let mut scratch = Vec::new();
    match kind {
        Kind::Array(element) => render::sequence(render::array(element), [()], out, |(), out| {
            render::element(element, value(element, number, stream, &mut scratch), out);
        }),
        // Each field by itself where it has as many values, so one of them always differs.
        Kind::Composite { fields, .. } => render::sequence(render::COMPOSITE, fields, out, |field, out| {
            let number = number % field.distinct().expect("checked in Kind::distinct");
            render::element(field, value(field, number, stream, &mut scratch), out);
        }),
        Kind::Multirange { element, .. } => render::sequence(render::MULTIRANGE, [()], out, |(), out| {
            render::range(element, value(element, number, stream, &mut scratch), None, out);
        }),
        // Up to where the next one begins: they do not overlap.
        Kind::Range { element, .. } => {
            let has_next =
                element.units().is_some() && element.distinct().is_some_and(|all| number + 1 < all);
            let mut next = Vec::new();
            let high = has_next.then(|| value(element, number + 1, stream, &mut next));
            render::range(element, value(element, number, stream, &mut scratch), high, out);
        }
        _ => unreachable!("no compound kind"),
    }
}

/// First of a kind's unique values, units.
fn first(kind: &Kind) -> i64 {
    match kind {
        Kind::Bool
        | Kind::Enum { .. }
        | Kind::Date
        | Kind::Time
        | Kind::TimeTz
        | Kind::Timestamp
        | Kind::TimestampTz
        | Kind::Interval => 0,
        _ => 1,
    }
}

/// Difference of successive values, units.
pub(super) fn step(kind: &Kind) -> i64 {
    match kind {
        // Seconds, whatever precision the column has.
        Kind::Timestamp | Kind::TimestampTz | Kind::Interval => 1_000_000,
        _ => 1,
    }
}

/// A uuid of version 4: bits 12 to 15 of `high` are replaced by the version, the first two of `low`
/// by the variant.
pub(super) fn uuid(high: u64, low: u64) -> u128 {
    let bits = u128::from(high) << 64 | u128::from(low);
    let version = 0xF << 76;
    let variant = 0b11 << 62;
    bits & !version & !variant | 4 << 76 | 0b10 << 62
}

fn text(mut number: u64, length: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + length as usize, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = ALPHABET[(number % 36) as usize];
        number /= 36;
    }
}

/// The number as the last of so many bits.
fn bits(length: u32, number: u64, scratch: &mut Vec<u8>) -> Value<'_> {
    let used = length.min(64);
    scratch.resize((length - used) as usize / 8, 0);
    let unaligned = (length - used) % 8;
    // Moved so that the bits that are used stand first, after what of the zeros fills no whole byte.
    let shifted = u128::from(number) << (128 - used - unaligned);
    scratch.extend(shifted.to_be_bytes());
    scratch.truncate(length.div_ceil(8) as usize);
    Value::Bits { length, bytes: scratch }
}
