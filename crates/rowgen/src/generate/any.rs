//! The default generator: random values that suit the kind.

use std::fmt::Arguments;
use std::io::Write;

use super::payload::{self, word};
use super::unique;
use crate::json::Json;
use crate::random::Draw;
use crate::units::{DAY, decimals};
use crate::value::Value;
use crate::{Kind, Payload, render};

/// Days from 2000-01-01 to 2024-12-31.
const RECENT_DAYS: i64 = 9_131;
/// Longest text, characters.
pub(crate) const LONG: u32 = 40;
/// Most items of an array.
pub(crate) const ITEMS: u32 = 5;
/// No `json` is longer, bytes.
pub(crate) const JSON: u32 = 128;
/// No `jsonb` is longer, unique ones included, without its header, bytes.
pub(crate) const JSONB: u32 = 160;
/// No `xml` is longer, bytes.
pub(crate) const XML: u32 = 40;

/// Least and greatest value, of kinds whose values all have the same length.
///
/// Integers are no greater than the root of the kind's greatest, so that a generated column may
/// multiply two of them.
pub(crate) fn range_of_fixed(kind: &Kind) -> Option<(i64, i64)> {
    Some(match kind {
        Kind::Bool => (0, 1),
        Kind::Int2 => (1, 181),
        Kind::Int4 | Kind::Oid => (1, 46_340),
        Kind::Int8 | Kind::PgLsn => (1, 3_037_000_499),
        Kind::Date => (0, RECENT_DAYS),
        Kind::Time | Kind::TimeTz => (0, DAY - 1),
        Kind::Timestamp | Kind::TimestampTz => (0, RECENT_DAYS * DAY),
        Kind::Interval => (0, 100 * DAY),
        _ => return None,
    })
}

/// A value for the kind, its bytes in `scratch`.
pub(crate) fn value<'a>(kind: &Kind, draw: &mut Draw, scratch: &'a mut Vec<u8>) -> Value<'a> {
    scratch.clear();
    if let Some((low, high)) = range_of_fixed(kind) {
        return Value::Units(draw.between(low, high));
    }
    match kind {
        Kind::Float4 | Kind::Float8 => Value::Real(quarters(draw)),
        Kind::Numeric(_) | Kind::Money => Value::Units(draw.between(0, most_amount(kind))),
        Kind::Enum { labels, .. } => Value::Units(draw.below(labels.len() as u64).cast_signed()),
        Kind::Uuid => Value::Uuid(unique::uuid(draw.next(), draw.next())),
        // 10.0.0.0/8 is for private networks.
        Kind::Inet | Kind::Cidr => Value::Address(10 << 24 | draw.below(1 << 24)),
        Kind::Macaddr => Value::Address(draw.below(1 << 48)),
        Kind::Macaddr8 => Value::Address(draw.next()),
        Kind::Bit(length) => bits(*length, draw, scratch),
        Kind::Varbit(most) => bits(draw.length(1, most.unwrap_or(64).min(64)), draw, scratch),
        Kind::Bytea => {
            payload::bytes(Payload::Random, draw.length(16, 64), draw, scratch);
            Value::Bytes(scratch)
        }
        Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name => {
            text(kind, draw, scratch);
            Value::Plain(scratch)
        }
        Kind::Json | Kind::Jsonb => Value::Json(json(draw)),
        Kind::Xml => {
            plain(scratch, format_args!("<item id=\"{}\">{}</item>", draw.below(10_000), word(draw)))
        }
        Kind::TsVector => tsvector(draw, scratch),
        Kind::TsQuery => plain(scratch, format_args!("'{}' & '{}'", word(draw), word(draw))),
        Kind::Point | Kind::Line | Kind::Lseg | Kind::Box | Kind::Path | Kind::Polygon | Kind::Circle => {
            shape(kind, draw, scratch)
        }
        Kind::Array(_) | Kind::Range { .. } | Kind::Multirange { .. } | Kind::Composite { .. } => {
            compound(kind, draw, scratch);
            Value::text(scratch)
        }
        Kind::Bool
        | Kind::Int2
        | Kind::Int4
        | Kind::Int8
        | Kind::Oid
        | Kind::PgLsn
        | Kind::Date
        | Kind::Time
        | Kind::TimeTz
        | Kind::Timestamp
        | Kind::TimestampTz
        | Kind::Interval => unreachable!("of fixed length"),
    }
}

/// Appends words, of a text kind.
pub(crate) fn text(kind: &Kind, draw: &mut Draw, out: &mut Vec<u8>) {
    let most = kind.characters().map_or(LONG, |most| most.min(LONG));
    payload::words(draw.length(most.div_ceil(4), most), draw, out);
}

/// Appends an array of random elements, as text.
pub(crate) fn array(element: &Kind, draw: &mut Draw, out: &mut Vec<u8>) {
    let mut scratch = Vec::new();
    let items = 0..count_of_elements(draw);
    render::sequence(render::array(element), items, out, |_, out| {
        render::element(element, value(element, draw, &mut scratch), out);
    });
}

/// Number of an array's elements, which are drawn after it.
pub(crate) fn count_of_elements(draw: &mut Draw) -> u32 {
    draw.length(1, ITEMS)
}

fn compound(kind: &Kind, draw: &mut Draw, out: &mut Vec<u8>) {
    let mut scratch = Vec::new();
    match kind {
        Kind::Array(element) => array(element, draw, out),
        Kind::Composite { fields, .. } => render::sequence(render::COMPOSITE, fields, out, |field, out| {
            render::element(field, value(field, draw, &mut scratch), out);
        }),
        Kind::Multirange { element, .. } => {
            // Ranges without end would be merged into one; narrow ones seldom are.
            let bounded = element.units().is_some() && !element.is_text();
            let items = 0..if bounded { draw.length(1, 3) } else { 1 };
            render::sequence(render::MULTIRANGE, items, out, |_, out| range(element, 10, draw, out));
        }
        Kind::Range { element, .. } => range(element, 1_000, draw, out),
        _ => unreachable!("no compound kind"),
    }
}

/// A range of up to `widest` steps; one without an upper bound if the kind's values are not
/// counted.
fn range(element: &Kind, widest: i64, draw: &mut Draw, out: &mut Vec<u8>) {
    let width = draw.between(1, widest);
    let mut scratch = Vec::new();
    let low = value(element, draw, &mut scratch);
    let high = match low {
        Value::Units(low) => low
            .checked_add(width * unique::step(element))
            .filter(|high| element.units().is_some_and(|units| units.contains(*high)))
            .map(Value::Units),
        Value::Real(low) => Some(Value::Real(low + width as f64)),
        _ => None,
    };
    render::range(element, low, high, out);
}

/// A number from 0 to 10,000; quarters are exact in both floating-point kinds and short as text.
fn quarters(draw: &mut Draw) -> f64 {
    draw.between(0, 40_000) as f64 / 4.0
}

/// The greatest amount of money or numeric: just below 10,000 if the kind has room for that.
fn most_amount(kind: &Kind) -> i64 {
    let decimals = match kind {
        Kind::Numeric(precision) => u32::try_from(decimals(*precision)).unwrap_or(0),
        _ => 2,
    };
    let most = kind.units().expect("amounts are counted").high;
    10_i64.checked_pow(decimals + 4).map_or(most, |units| most.min(units - 1))
}

fn bits<'a>(length: u32, draw: &mut Draw, scratch: &'a mut Vec<u8>) -> Value<'a> {
    payload::bytes(Payload::Random, length.div_ceil(8), draw, scratch);
    if let Some(last) = scratch.last_mut() {
        *last &= u8::MAX << (length.next_multiple_of(8) - length);
    }
    Value::Bits { length, bytes: scratch }
}

fn json(draw: &mut Draw) -> Json {
    let (id, cents, active) = (draw.below(1_000_000), draw.below(100_000), draw.below(2) == 1);
    let (name, first, second) = (word(draw), word(draw), word(draw));
    let [id, cents] = [id, cents].map(|number| u32::try_from(number).expect("below a million"));
    Json { id, name, cents, active, tags: [first, second] }
}

fn tsvector<'a>(draw: &mut Draw, scratch: &'a mut Vec<u8>) -> Value<'a> {
    let mut position = 0;
    for _ in 0..draw.length(3, 10) {
        position += draw.below(3) + 1;
        plain(scratch, format_args!("'{}':{position} ", word(draw)));
    }
    Value::Plain(scratch)
}

fn shape<'a>(kind: &Kind, draw: &mut Draw, out: &'a mut Vec<u8>) -> Value<'a> {
    let mut point = || format!("({},{})", quarters(draw), quarters(draw));
    match kind {
        Kind::Point => plain(out, format_args!("{}", point())),
        Kind::Lseg => plain(out, format_args!("[{},{}]", point(), point())),
        Kind::Box => plain(out, format_args!("{},{}", point(), point())),
        Kind::Path => plain(out, format_args!("[{},{},{}]", point(), point(), point())),
        Kind::Polygon => plain(out, format_args!("({},{},{},{})", point(), point(), point(), point())),
        Kind::Circle => plain(out, format_args!("<{},{}>", point(), quarters(draw))),
        // A x + B y + C = 0, where A and B must not both be 0.
        Kind::Line => {
            let (a, b, c) = (draw.between(1, 100), draw.between(-100, 100), draw.between(-100, 100));
            plain(out, format_args!("{{{a},{b},{c}}}"))
        }
        _ => unreachable!("no shape"),
    }
}

fn plain<'a>(scratch: &'a mut Vec<u8>, text: Arguments<'_>) -> Value<'a> {
    scratch.write_fmt(text).expect("memory takes it");
    Value::Plain(scratch)
}
