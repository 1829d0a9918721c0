//! Converts a kind's input syntax to stored bytes: rowgen's own arrays and shapes, and values that users give.
//!
//! This module reads a value as the server does. The server accepts more forms (`'tomorrow'`, `'1e3'` as numeric,
//! `'yes'`); such values are left to it.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::civil::Date;

use super::attribute::{self, is_its_text, write_text, write_units};
use super::{array, composite, jsonb, lexemes, query, range, shape};
use crate::units::{DAY, decimals};
use crate::{Kind, Precision};

/// Whether a user's value can be written: whether the server would accept it, and as which value.
pub(super) fn is_readable(kind: &Kind, text: &str) -> bool {
    let well_formed = match kind {
        Kind::Json => jsonb::is_readable(text),
        // That is for the server to say.
        Kind::Xml => false,
        Kind::Array(element) => !matches!(**element, Kind::Json | Kind::Xml | Kind::Composite { .. }),
        Kind::Composite { fields, .. } => {
            let is_unread = |field: &Kind| matches!(field, Kind::Json | Kind::Xml | Kind::Array(_));
            !fields.iter().any(is_unread)
        }
        _ => true,
    };
    well_formed && payload(kind, text, &mut Vec::new()).is_some()
}

/// Appends the stored bytes of a value, those of a varying-length type without header. None, and anything
/// appended, if it cannot be read.
pub(super) fn payload(kind: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    match kind {
        kind if is_its_text(kind) => characters(kind, text, out),
        Kind::Bytea => bytes(text, out),
        Kind::Enum { labels, .. } => {
            let label = labels.iter().position(|label| label == text)?;
            write_units(kind, i64::try_from(label).ok()?, out);
            Some(())
        }
        Kind::Float4 => {
            let real = decimal_number(text)?.parse().ok().filter(|real: &f32| real.is_finite())?;
            out.extend(real.to_le_bytes());
            Some(())
        }
        Kind::Float8 => {
            attribute::write_real(kind, real(text)?, out);
            Some(())
        }
        Kind::Numeric(precision) => numeric(*precision, text, out),
        Kind::Uuid => hex(&without(text, b'-', &[8, 13, 18, 23])?, 16, out),
        Kind::Macaddr => hex(&without(text, b':', &[2, 5, 8, 11, 14])?, 6, out),
        Kind::Macaddr8 => hex(&without(text, b':', &[2, 5, 8, 11, 14, 17, 20])?, 8, out),
        Kind::Inet | Kind::Cidr => address(kind, text, out),
        Kind::Bit(length) => bits(text, out).filter(|bits| bits == length).map(|_| ()),
        Kind::Varbit(most) => {
            bits(text, out).filter(|bits| most.is_none_or(|most| *bits <= most)).map(|_| ())
        }
        Kind::Jsonb => jsonb::payload(text, out),
        Kind::Array(element) => array::payload(element, text, out),
        Kind::Range { element, oid, .. } => range::payload(*oid, element, text, out),
        Kind::Multirange { element, oid, .. } => range::multirange(*oid, element, text, out),
        Kind::TsVector => lexemes::payload(text, out),
        Kind::TsQuery => query::payload(text, out),
        Kind::Composite { oid, fields, .. } => composite::payload(*oid, fields, text, out),
        Kind::Point | Kind::Line | Kind::Lseg | Kind::Box | Kind::Path | Kind::Polygon | Kind::Circle => {
            shape::payload(kind, text, out)
        }
        kind => {
            write_units(kind, units(kind, text).filter(|units| kind.has(*units))?, out);
            Some(())
        }
    }
}

fn characters(kind: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let count = text.chars().count();
    let fits = match kind {
        Kind::Name => text.len() <= 63,
        kind => kind.characters().is_none_or(|most| count <= most as usize),
    };
    if !fits || text.contains('\0') {
        return None;
    }
    write_text(kind, text.as_bytes(), count, out);
    Some(())
}

fn bytes(text: &str, out: &mut Vec<u8>) -> Option<()> {
    match text.strip_prefix("\\x") {
        Some(digits) => hex(digits, digits.len() / 2, out),
        None if text.contains(['\\', '\0']) => None,
        None => {
            out.extend_from_slice(text.as_bytes());
            Some(())
        }
    }
}

/// Reads so many bytes of two digits each.
fn hex(digits: &str, bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    if digits.len() != 2 * bytes || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok();
    (0..bytes).try_for_each(|at| byte(at).map(|byte| out.push(byte)))
}

/// The text without the marks that stand at these places, unless it has none at all.
fn without(text: &str, mark: u8, places: &[usize]) -> Option<String> {
    if !text.as_bytes().contains(&mark) {
        return Some(text.to_owned());
    }
    let marks = text.bytes().enumerate().filter(|(_, byte)| *byte == mark).map(|(place, _)| place);
    marks.eq(places.iter().copied()).then(|| text.replace(char::from(mark), ""))
}

/// The number of bits, which are stored after it.
fn bits(text: &str, out: &mut Vec<u8>) -> Option<u32> {
    let length = u32::try_from(text.len()).ok()?;
    out.extend(length.to_le_bytes());
    for eight in text.as_bytes().chunks(8) {
        let mut byte = 0;
        for (place, digit) in eight.iter().enumerate() {
            match digit {
                b'0' => {}
                b'1' => byte |= 0x80 >> place,
                _ => return None,
            }
        }
        out.push(byte);
    }
    Some(length)
}

/// `inet_struct` in `utils/inet.h`.
fn address(kind: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    /// `PGSQL_AF_INET6`.
    const IPV6: u8 = 3;
    let (host, network) = text.split_once('/').map_or((text, None), |(host, bits)| (host, Some(bits)));
    let (family, bytes) = match host.parse::<Ipv4Addr>() {
        Ok(host) => (attribute::IPV4, host.octets().to_vec()),
        Err(_) => (IPV6, host.parse::<Ipv6Addr>().ok()?.octets().to_vec()),
    };
    let all = 8 * bytes.len();
    let network = match network {
        Some(bits) => whole(bits).and_then(|bits| usize::try_from(bits).ok()).filter(|bits| *bits <= all)?,
        None => all,
    };
    let is_in_host = |bit: &usize| bytes[bit / 8] & 0x80 >> (bit % 8) != 0;
    if *kind == Kind::Cidr && (network..all).any(|bit| is_in_host(&bit)) {
        return None;
    }
    out.extend([family, u8::try_from(network).ok()?]);
    out.extend_from_slice(&bytes);
    Some(())
}

/// A finite number, in decimal.
pub(super) fn real(text: &str) -> Option<f64> {
    decimal_number(text)?.parse().ok().filter(|real: &f64| real.is_finite())
}

/// The text, if it is an ordinary decimal number: no word, nothing around it.
fn decimal_number(text: &str) -> Option<&str> {
    let ordinary = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(ordinary).then_some(text)
}

fn numeric(precision: Option<Precision>, text: &str, out: &mut Vec<u8>) -> Option<()> {
    let (number, places) = decimal(text)?;
    let Some(precision) = precision else {
        attribute::write_numeric(number.into(), places, places, out);
        return Some(());
    };
    let unit = decimals(Some(precision));
    let units = rescaled(number, places, unit)?;
    let fits = Kind::Numeric(Some(precision)).units()?.contains(units);
    attribute::write_numeric(units.into(), unit, precision.scale, out);
    fits.then_some(())
}

/// A decimal number without exponent: its digits, and how many of them are decimals.
pub(super) fn decimal(text: &str) -> Option<(i64, i16)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_negative = text.starts_with('-');
    let (mut number, mut point) = (0_i64, None);
    for (place, byte) in unsigned.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let digit = i64::from(byte - b'0');
                let before = number.checked_mul(10)?;
                number = if is_negative { before.checked_sub(digit) } else { before.checked_add(digit) }?;
            }
            b'.' if point.is_none() && place > 0 => point = Some(place),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| unsigned.len() - point - 1);
    let is_whole = !unsigned.is_empty() && (point.is_none() || decimals > 0);
    is_whole.then_some((number, i16::try_from(decimals).ok()?))
}

/// The number with other decimals, if it needs no rounding.
fn rescaled(number: i64, places: i16, wanted: i16) -> Option<i64> {
    let power = 10_i64.checked_pow(u32::from((wanted - places).unsigned_abs()))?;
    if wanted >= places { number.checked_mul(power) } else { (number % power == 0).then(|| number / power) }
}

/// A whole number without a sign before it other than minus.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let ordinary = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| ordinary)
}

pub(super) fn units(kind: &Kind, text: &str) -> Option<i64> {
    match (kind.infinities(), text) {
        (Some([low, _]), "-infinity") => return Some(low),
        (Some([_, high]), "infinity") => return Some(high),
        _ => {}
    }
    match kind {
        Kind::Bool => match text {
            "f" | "false" => Some(0),
            "t" | "true" => Some(1),
            _ => None,
        },
        Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Oid => whole(text),
        Kind::Money => decimal(text).and_then(|(number, places)| rescaled(number, places, 2)),
        Kind::Date => date(text),
        Kind::Time => time(text).filter(|time| *time < DAY),
        Kind::TimeTz => time(text.strip_suffix("+00")?).filter(|time| *time < DAY),
        Kind::Interval => time(text),
        Kind::Timestamp => timestamp(text),
        Kind::TimestampTz => timestamp(text.strip_suffix("+00")?),
        Kind::PgLsn => {
            let (high, low) = text.split_once('/')?;
            let half = |text: &str| {
                let ordinary = (1..=8).contains(&text.len()) && !text.starts_with('+');
                u32::from_str_radix(text, 16).ok().filter(|_| ordinary)
            };
            i64::try_from(u64::from(half(high)?) << 32 | u64::from(half(low)?)).ok()
        }
        _ => None,
    }
}

/// Numbers of two digits and more between separators: `2024-12-31`, `23:59:59`.
fn three(text: &str, separator: char) -> Option<[&str; 3]> {
    let mut parts = text.split(separator);
    let three = [parts.next()?, parts.next()?, parts.next()?];
    let ordinary = |part: &str| part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    (parts.next().is_none() && three.into_iter().all(ordinary)).then_some(three)
}

/// Days from 2000-01-01.
fn date(text: &str) -> Option<i64> {
    let [year, month, day] = three(text, '-')?;
    if year.len() != 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    let epoch = Date::constant(2000, 1, 1);
    Some(date.duration_since(epoch).as_hours() / 24)
}

/// Microseconds of hours, minutes, seconds.
fn time(text: &str) -> Option<i64> {
    let (text, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let [hours, minutes, seconds] = three(text, ':')?;
    let below_60 = |text: &str| text.parse().ok().filter(|number: &i64| text.len() == 2 && *number < 60);
    let seconds =
        hours.parse::<u32>().ok().map(i64::from)? * 3_600 + below_60(minutes)? * 60 + below_60(seconds)?;
    let places = i16::try_from(fraction.len()).ok().filter(|places| *places <= 6)?;
    Some(seconds * 1_000_000 + rescaled(whole(fraction).filter(|_| !fraction.starts_with('-'))?, places, 6)?)
}

fn timestamp(text: &str) -> Option<i64> {
    let (day, clock) = text.split_once(' ').map_or((text, None), |(day, clock)| (day, Some(clock)));
    let clock = clock.map_or(Some(0), |clock| time(clock).filter(|time| *time < DAY))?;
    Some(date(day)? * DAY + clock)
}
