//! A field: its length, and its bytes as the type's receive function reads them (`*_recv` in
//! PostgreSQL's `utils/adt`).

use crate::numeric::{Digits, trimmed};
use crate::units::decimals;
use crate::value::Value;
use crate::{Kind, render};

/// `PGSQL_AF_INET` (`utils/inet.h`).
const IPV4: u8 = 2;

/// Whether the kind's values, other than literals, can be written.
pub(super) fn has_form(kind: &Kind) -> bool {
    fixed_length(kind).is_some()
        || is_its_text(kind)
        || matches!(kind, Kind::Numeric(_) | Kind::Bytea | Kind::Bit(_) | Kind::Varbit(_))
}

/// Whether the binary form is the text itself, perhaps with a short prefix.
pub(super) fn is_its_text(kind: &Kind) -> bool {
    kind.is_text() || matches!(kind, Kind::Enum { .. } | Kind::Json | Kind::Jsonb | Kind::Xml)
}

/// Bytes of each of the kind's values; none if they differ.
pub(super) fn fixed_length(kind: &Kind) -> Option<usize> {
    match kind {
        Kind::Bool => Some(1),
        Kind::Int2 => Some(2),
        Kind::Int4 | Kind::Oid | Kind::Date | Kind::Float4 => Some(4),
        Kind::Int8
        | Kind::Float8
        | Kind::Money
        | Kind::Time
        | Kind::Timestamp
        | Kind::TimestampTz
        | Kind::PgLsn
        | Kind::Macaddr8
        | Kind::Inet
        | Kind::Cidr => Some(8),
        Kind::Macaddr => Some(6),
        Kind::TimeTz => Some(12),
        Kind::Interval | Kind::Uuid => Some(16),
        _ => None,
    }
}

/// Whether the kind's units are written as one integer.
pub(super) fn is_integer(kind: &Kind) -> bool {
    let apart = matches!(kind, Kind::Float4 | Kind::Float8 | Kind::TimeTz | Kind::Interval);
    !apart && kind.units().is_some() && fixed_length(kind).is_some()
}

/// Appends a field.
#[inline]
pub(super) fn write(kind: &Kind, value: Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    if value != Value::Null {
        write_value(kind, value, out);
        let length = i32::try_from(out.len() - start - 4).expect("a field is below 2 GB");
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

fn write_value(kind: &Kind, value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => unreachable!("NULL has no bytes"),
        Value::Units(units) => write_units(kind, units, out),
        Value::Real(real) => write_real(kind, real, out),
        Value::Uuid(bits) => out.extend(bits.to_be_bytes()),
        Value::Address(address) => write_address(kind, address, out),
        Value::Bits { length, bytes } => {
            out.extend(length.to_be_bytes());
            out.extend_from_slice(bytes);
        }
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Plain(_) | Value::Text(_) | Value::Json(_) | Value::Elements(_) => {
            if *kind == Kind::Jsonb {
                // The format's version.
                out.push(1);
            }
            render::value(kind, value, out);
        }
    }
}

fn write_units(kind: &Kind, units: i64, out: &mut Vec<u8>) {
    match kind {
        #[expect(clippy::cast_precision_loss)]
        Kind::Float4 | Kind::Float8 => write_real(kind, units as f64, out),
        Kind::Numeric(precision) => numeric(units, decimals(*precision), precision.is_none(), out),
        // Microseconds; then seconds west of UTC.
        Kind::TimeTz => {
            out.extend(units.to_be_bytes());
            out.extend(0_i32.to_be_bytes());
        }
        // Microseconds; then days and months.
        Kind::Interval => {
            out.extend(units.to_be_bytes());
            out.extend([0; 8]);
        }
        kind => match fixed_length(kind) {
            Some(length) => out.extend_from_slice(&units.to_be_bytes()[8 - length..]),
            None => render::value(kind, Value::Units(units), out),
        },
    }
}

fn write_real(kind: &Kind, real: f64, out: &mut Vec<u8>) {
    if *kind == Kind::Float4 {
        #[expect(clippy::cast_possible_truncation)]
        out.extend((real as f32).to_be_bytes());
    } else {
        out.extend(real.to_be_bytes());
    }
}

fn write_address(kind: &Kind, address: u64, out: &mut Vec<u8>) {
    let bytes = address.to_be_bytes();
    match kind {
        Kind::Macaddr => out.extend_from_slice(&bytes[2..]),
        Kind::Macaddr8 => out.extend_from_slice(&bytes),
        // Family, bits of the network, whether it is a cidr, bytes of the address.
        kind => {
            out.extend([IPV4, 32, u8::from(*kind == Kind::Cidr), 4]);
            out.extend_from_slice(&bytes[4..]);
        }
    }
}

/// `numeric_recv`: number of digits, the first one's weight, sign, decimals shown; the digits.
fn numeric(units: i64, decimals: i16, free: bool, out: &mut Vec<u8>) {
    /// `NUMERIC_NEG`.
    const NEGATIVE: u16 = 0x4000;
    let (units, decimals) = if free { trimmed(units, decimals) } else { (units, decimals) };
    let number = Digits::new(units.unsigned_abs().into(), decimals);
    out.extend(u16::try_from(number.digits().len()).expect("few digits").to_be_bytes());
    out.extend(number.weight.to_be_bytes());
    out.extend(if units < 0 { NEGATIVE } else { 0 }.to_be_bytes());
    out.extend(decimals.max(0).to_be_bytes());
    for digit in number.digits() {
        out.extend(digit.to_be_bytes());
    }
}
