//! Values in their kinds' input syntax, before any escaping that a wire format asks for.

pub(crate) mod clock;
mod compound;
mod number;

use std::io::Write;

pub(crate) use compound::{COMPOSITE, MULTIRANGE, array, element, range, sequence};

use crate::Kind;
use crate::generate::any::array as array_of;
use crate::numeric::trimmed;
use crate::units::decimals;
use crate::value::Value;

/// Appends a value other than NULL.
pub(crate) fn value(kind: &Kind, value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => unreachable!("NULL has no syntax of its own"),
        Value::Units(units) => self::units(kind, units, out),
        Value::Real(real) => number::real(kind, real, out),
        Value::Uuid(bits) => uuid(bits, out),
        Value::Address(address) => self::address(kind, address, out),
        Value::Bits { length, bytes } => bits(length, bytes, out),
        Value::Bytes(bytes) => {
            out.extend(b"\\x");
            hex(bytes, out);
        }
        Value::Plain(text) => out.extend_from_slice(text),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Json(json) => json.write(out),
        Value::Elements(mut draw) => {
            let Kind::Array(element) = kind else { unreachable!("an array's elements") };
            array_of(element, &mut draw, out);
        }
    }
}

/// Appends a number of the kind's units.
fn units(kind: &Kind, units: i64, out: &mut Vec<u8>) {
    match kind.infinities() {
        Some([low, _]) if units == low => return out.extend(b"-infinity"),
        Some([_, high]) if units == high => return out.extend(b"infinity"),
        _ => {}
    }
    match kind {
        Kind::Bool => out.push(if units == 0 { b'f' } else { b't' }),
        Kind::Numeric(None) => {
            let (units, decimals) = trimmed(units, decimals(None));
            number::decimal(units, decimals, out);
        }
        Kind::Numeric(precision) => number::decimal(units, decimals(*precision), out),
        Kind::Money => number::decimal(units, 2, out),
        Kind::Date => clock::date(units, out),
        Kind::Interval if units < 0 => {
            out.push(b'-');
            clock::time(-units, out);
        }
        Kind::Time | Kind::Interval => clock::time(units, out),
        Kind::TimeTz => {
            clock::time(units, out);
            out.extend(b"+00");
        }
        Kind::Timestamp => clock::timestamp(units, out),
        Kind::TimestampTz => {
            clock::timestamp(units, out);
            out.extend(b"+00");
        }
        Kind::PgLsn => write!(out, "{:X}/{:X}", units >> 32, units & 0xFFFF_FFFF).expect("memory takes it"),
        Kind::Enum { labels, .. } => out.extend(label(labels, units).as_bytes()),
        _ => number::integer(units, out),
    }
}

/// The label that a number of units stands for.
pub(crate) fn label(labels: &[String], units: i64) -> &str {
    &labels[usize::try_from(units).expect("labels are counted from 0")]
}

fn uuid(bits: u128, out: &mut Vec<u8>) {
    let bytes = bits.to_be_bytes();
    for (position, part) in
        [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].iter().enumerate()
    {
        if position > 0 {
            out.push(b'-');
        }
        hex(part, out);
    }
}

fn address(kind: &Kind, address: u64, out: &mut Vec<u8>) {
    let bytes = address.to_be_bytes();
    match kind {
        Kind::Macaddr => hex(&bytes[2..], out),
        Kind::Macaddr8 => hex(&bytes, out),
        _ => {
            for (position, byte) in bytes[4..].iter().enumerate() {
                if position > 0 {
                    out.push(b'.');
                }
                number::integer(i64::from(*byte), out);
            }
        }
    }
}

fn bits(length: u32, bytes: &[u8], out: &mut Vec<u8>) {
    let digits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| b'0' + (byte >> bit & 1)));
    out.extend(digits.take(length as usize));
}

/// Appends two digits a byte.
pub(crate) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    for (digits, byte) in out[start..].chunks_exact_mut(2).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
}
