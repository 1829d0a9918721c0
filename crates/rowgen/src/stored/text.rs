//! Stored length of values that are given in a type's input syntax.

use std::collections::BTreeMap;

use super::{IPV4, Stored, bits, count, numeric, scale, varying};
use crate::tuples::jsonb_length;
use crate::{Kind, Precision, render};

/// Bytes after the header.
pub(super) fn length(kind: &Kind, text: &str) -> u32 {
    match kind {
        Kind::Char(length) => count(text.as_bytes()).max(*length),
        Kind::Bytea => {
            text.strip_prefix("\\x").map_or(count(text.as_bytes()), |hex| count(hex.as_bytes()) / 2)
        }
        Kind::Numeric(precision) => decimal(text, *precision),
        Kind::Bit(_) | Kind::Varbit(_) => bits(count(text.as_bytes())),
        Kind::Inet | Kind::Cidr => {
            if text.contains(':') {
                IPV4 + 12
            } else {
                IPV4
            }
        }
        // Number of points, whether closed, padding; or number of points and a box around them.
        Kind::Path => 12 + 16 * points(text),
        Kind::Polygon => 4 + 32 + 16 * points(text),
        Kind::Jsonb => jsonb_length(text).unwrap_or_else(|| jsonb(text)),
        Kind::TsVector => tsvector(text),
        // A size; 12 bytes each for operators and operands; the operands' text.
        Kind::TsQuery => {
            let operands: Vec<&str> = text.split(['&', '|', '!']).map(trimmed).collect();
            let texts: u32 = operands.iter().map(|operand| count(operand.as_bytes()) + 1).sum();
            4 + 12 * (2 * count(&operands) - 1) + texts
        }
        // Dimensions, null bitmap's offset, element type; length and lower bound of the dimension.
        Kind::Array(element) => {
            let [_, delimiter, _] = render::array(element);
            parts(text, delimiter).iter().fold(20, |offset, part| aligned(offset, element, part))
        }
        // A tuple's header.
        Kind::Composite { fields, .. } => {
            let parts = parts(text, b',');
            fields.iter().zip(&parts).fold(20, |offset, (field, part)| packed(offset, field, part))
        }
        Kind::Range { .. } if text == "empty" => 4 + 1,
        // The type before, flags after.
        Kind::Range { element, .. } => 4 + bounds(element, text) + 1,
        // The type, number of ranges, where each but the first begins, each one's flags; all aligned
        // (`multirange_size_estimate` in `utils/adt/multirangetypes.c`).
        Kind::Multirange { element, .. } => {
            let ranges = parts(text, b',');
            let align = element.align();
            let start = (8 + 5 * count(&ranges)).next_multiple_of(align);
            let bounds = ranges.iter().map(|range| bounds(element, range).next_multiple_of(align));
            start + bounds.sum::<u32>() - 4
        }
        _ => count(text.as_bytes()),
    }
}

/// A decimal number without exponent, as `numeric`.
fn decimal(text: &str, precision: Option<Precision>) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let shown = precision.map_or(u16::try_from(fraction.len()).unwrap_or(u16::MAX), scale);
    let whole = whole.trim_start_matches(['-', '+', '0', ' ']);
    let fraction = fraction.trim_end_matches('0');
    let zeros = fraction.len() - fraction.trim_start_matches('0').len();
    // Digits of base 10,000, and the first one's weight.
    let (digits, weight) = match (whole.len(), fraction.len()) {
        (0, 0) => (0, 0),
        (0, decimals) => (decimals.div_ceil(4) - zeros / 4, -1 - places(zeros / 4)),
        (integral, decimals) => (integral.div_ceil(4) + decimals.div_ceil(4), places((integral - 1) / 4)),
    };
    numeric(digits, shown, weight)
}

fn places(digits: usize) -> i16 {
    i16::try_from(digits).unwrap_or(i16::MAX)
}

fn points(text: &str) -> u32 {
    count(&text.split(',').collect::<Vec<_>>()) / 2
}

/// About: a header, and for every key and value 4 bytes and what it holds (`utils/jsonb.h`).
fn jsonb(text: &str) -> u32 {
    let mut length = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => {
                let end = rest[1..].find('"').map_or(rest.len(), |end| end + 2);
                length += 4 + count(&rest.as_bytes()[..end]) - 2;
                end
            }
            // Containers: an entry in what is around them, and a header.
            '{' | '[' => {
                length += 8;
                1
            }
            '-' | '0'..='9' => {
                let end = rest.find([',', '}', ']', ' ']).unwrap_or(rest.len());
                // A whole numeric with a long header.
                length += 4 + (4 + decimal(&rest[..end], None)).next_multiple_of(4);
                end
            }
            't' | 'f' | 'n' => {
                length += 4;
                rest.find([',', '}', ']', ' ']).unwrap_or(rest.len())
            }
            other => other.len_utf8(),
        };
        rest = &rest[taken..];
    }
    // Nothing is around the outermost.
    length.saturating_sub(4)
}

/// A size; for every word 4 bytes, its text, and its positions after their number.
fn tsvector(text: &str) -> u32 {
    let mut words: BTreeMap<&str, u32> = BTreeMap::new();
    for part in text.split_ascii_whitespace() {
        let (word, positions) = part.rsplit_once(':').map_or((part, 0), |(word, _)| (word, 1));
        *words.entry(trimmed(word)).or_default() += positions;
    }
    let texts = words.iter().fold(0_u32, |offset, (word, positions)| {
        let offset = offset + count(word.as_bytes());
        if *positions == 0 { offset } else { offset.next_multiple_of(2) + 2 + 2 * positions }
    });
    4 + 4 * u32::try_from(words.len()).expect("few words") + texts
}

fn trimmed(word: &str) -> &str {
    word.trim().trim_matches('\'')
}

/// The parts between a sequence's brackets, without quotes.
fn parts(text: &str, delimiter: u8) -> Vec<String> {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    let mut parts = vec![String::new()];
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_u32);
    for char in inner.chars() {
        let part = parts.last_mut().expect("one at least");
        match char {
            _ if escaped => {
                part.push(char);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if char == char::from(delimiter) && !quoted && depth == 0 => parts.push(String::new()),
            _ => {
                match char {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                part.push(char);
            }
        }
    }
    parts
}

/// Size of a range's bounds, after its header and type of 4 bytes each.
fn bounds(element: &Kind, range: &str) -> u32 {
    let bounds = parts(range, b',');
    bounds.iter().filter(|bound| !bound.is_empty()).fold(4, |offset, bound| packed(offset, element, bound))
        - 4
}

/// The offset after one more value, as in a tuple.
fn packed(offset: u32, kind: &Kind, text: &str) -> u32 {
    match kind.fixed_width() {
        Some((length, align)) => after(offset, length, align),
        None => match varying(kind, length(kind, text)) {
            Stored::Varying { length, align } => after(offset, length, align),
            Stored::Null | Stored::Fixed { .. } => unreachable!("of varying length"),
        },
    }
}

/// The offset after one more value and what aligns the next, as in an array.
fn aligned(offset: u32, kind: &Kind, text: &str) -> u32 {
    let (length, align) =
        kind.fixed_width().unwrap_or_else(|| (4 + length(kind, text), kind.varying_align()));
    after(after(offset, length, align), 0, align)
}

/// The offset after a value. Alignment is by the place in the whole value, which has a header of 4 bytes before the
/// offset.
fn after(offset: u32, length: u32, align: u32) -> u32 {
    (offset + 4).next_multiple_of(align) - 4 + length
}
